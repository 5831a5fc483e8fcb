//! From the solved dump to the graph, at any batch.

use std::collections::HashMap;

use super::parse::{BufferName, Record, Trace};
use super::shapes::{CONVOLUTION, Solution};
use crate::assume::Assumptions;
use crate::build::{Builder, NewNode, Weights};
use crate::error::{Error, Result};
use crate::graph::facts::IMPLIED;
use crate::graph::{
    Activation, BinaryOp, Conv2dAttrs, DType, Graph, Layout, Op, Origin, PoolAttrs, Role, TensorId, UnaryKind,
};
use crate::solve::padding;

/// Builds the whole step.
pub(super) fn build(
    trace: &Trace<'_>,
    solution: &Solution,
    name: &str,
    batch: usize,
    assumptions: &mut Assumptions<'_>,
) -> Result<Graph> {
    let mut work = Work {
        trace,
        solution,
        batch,
        builder: Builder::new(name),
        tensors: HashMap::new(),
        gradients: HashMap::new(),
    };
    let BufferName::Input(image) = &trace.buffer(solution.image)?.name else {
        return Err(Error::internal("the image is no input"));
    };
    let shape = work.shape(solution.image)?;
    let id = work.builder.input(image, &shape)?;
    work.tensors.insert(solution.image, id);
    let mut outputs = Vec::new();
    for (record, is_loss) in trace.forward.iter().zip(&solution.is_loss) {
        if *is_loss {
            // The tensor that a loss compares with the labels is the network's output.
            let compared = record.inputs.first().and_then(|(id, _)| work.tensors.get(id));
            outputs.extend(compared.filter(|&&id| work.is_forward_result(id)));
            work.outside(record, Role::Loss);
        } else {
            work.forward(record).map_err(|e| record.locate(e))?
        }
    }
    for record in &trace.backward {
        work.outside(record, Role::Backward);
    }
    outputs.dedup();
    if outputs.is_empty() {
        outputs = work.unread();
        let names: Vec<_> = outputs
            .iter()
            .map(|&id| work.builder.graph().tensor(id).name.clone())
            .collect();
        if names.len() != 1 {
            return Err(Error::input(format!(
                "no loss, and {} results that nobody reads: {}",
                names.len(),
                names.join(", ")
            )));
        }
        let reason = "the dump has no loss, and nobody reads this";
        assumptions.record("output", names.join(", "), &names.join(", "), reason);
    }
    work.builder.finish(&outputs)
}

struct Work<'w, 't> {
    trace: &'w Trace<'t>,
    solution: &'w Solution,
    batch: usize,
    builder: Builder,
    tensors: HashMap<u64, TensorId>,
    /// The latest gradient of each buffer.
    gradients: HashMap<u64, TensorId>,
}

/// Functions of one operand.
const OF_ONE: [&str; 8] = [
    "MaxPooling2D",
    "AveragePooling2D",
    "Reshape",
    "Dropout",
    "ReLU",
    "Sigmoid",
    "Tanh",
    "Softmax",
];

impl Work<'_, '_> {
    fn forward(&mut self, record: &Record<'_>) -> Result<()> {
        let mut inputs = Vec::new();
        for (index, (id, _)) in record.inputs.iter().enumerate() {
            inputs.push(self.operand(record, index, *id)?);
        }
        let unary = |kind| Op::Unary(kind);
        let other = |count: usize| Error::unsupported(format!("operator {} with {count} inputs", record.class));
        let window = |name: &str| {
            let windows = self.solution.windows.get(&record.rank);
            windows
                .copied()
                .ok_or_else(|| Error::internal(format!("a {name} without a window")))
        };
        let op = match record.class {
            CONVOLUTION => {
                record.only(&["sy", "sx", "ph", "pw", "dy", "dx", "groups", "cover_all"])?;
                let (rows, columns) = window("convolution")?;
                Op::Conv2d(Conv2dAttrs {
                    layout: Layout::Nchw,
                    stride: [rows.stride, columns.stride],
                    dilation: [rows.dilation, columns.dilation],
                    padding: padding(&rows, &columns),
                    groups: record.size("groups", 1)?,
                    activation: Activation::None,
                })
            }
            class if OF_ONE.contains(&class) && inputs.len() != 1 => return Err(other(inputs.len())),
            "MaxPooling2D" | "AveragePooling2D" => {
                record.only(&["kh", "kw", "sy", "sx", "ph", "pw", "cover_all", "return_indices"])?;
                let (rows, columns) = window("pooling")?;
                let is_max = record.class == "MaxPooling2D";
                let (ph, pw) = (record.size("ph", 0)?, record.size("pw", 0)?);
                if ph >= rows.kernel || pw >= columns.kernel {
                    return Err(Error::input(format!(
                        "padding {ph}, {pw} makes windows of padding alone"
                    )));
                }
                if !is_max && (rows.after != ph || columns.after != pw) {
                    return Err(Error::unsupported("an average over windows that stick out (cover_all)"));
                }
                let attrs = PoolAttrs {
                    layout: Layout::Nchw,
                    kernel: [rows.kernel, columns.kernel],
                    stride: [rows.stride, columns.stride],
                    padding: padding(&rows, &columns),
                    // Chainer divides by the window's size, padding included.
                    count_include_pad: !is_max,
                    activation: Activation::None,
                };
                if is_max {
                    Op::MaxPool2d(attrs)
                } else {
                    Op::AvgPool2d(attrs)
                }
            }
            "LinearFunction" => {
                record.only(&[])?;
                self.flatten(record, &mut inputs)?;
                Op::Linear {
                    activation: Activation::None,
                }
            }
            "Reshape" => Op::Reshape,
            "Dropout" => Op::Identity,
            "ReLU" => unary(UnaryKind::Relu),
            "Sigmoid" => unary(UnaryKind::LOGISTIC),
            "Tanh" => unary(UnaryKind::TANH),
            "Add" if inputs.len() == 2 => Op::Binary {
                kind: BinaryOp::Add,
                activation: Activation::None,
            },
            "Softmax" => Op::Softmax {
                axis: record.attrs.get("axis").map_or(Ok(1), |axis| axis.size(1..=3))?,
                beta: 1.0,
            },
            "Concat" => Op::Concat {
                axis: record.size("axis", 1)?,
                activation: Activation::None,
            },
            _ => return Err(other(inputs.len())),
        };
        let output = *record
            .outputs
            .first()
            .ok_or_else(|| Error::internal("it has no output"))?;
        let shape = self.shape(output)?;
        let inputs: Vec<_> = inputs.into_iter().map(Some).collect();
        let name = format!("{}-{}", record.class, record.rank);
        let is_reshape = op == Op::Reshape;
        let node = NewNode {
            name: &name,
            kind: record.class,
            op,
            inputs: &inputs,
            output: &format!("buffer{output}"),
            origin: origin(record),
        };
        let id = if is_reshape {
            self.builder.node_of_shape(node, &shape)?
        } else {
            self.builder.node(node)?
        };
        if self.builder.shape(id) != shape {
            return Err(Error::internal(format!(
                "{shape:?} was solved, {:?} inferred",
                self.builder.shape(id)
            )));
        }
        self.tensors.insert(output, id);
        Ok(())
    }

    /// A linear layer right behind an image reads its elements in a row, as Chainer does.
    fn flatten(&mut self, record: &Record<'_>, inputs: &mut [TensorId]) -> Result<()> {
        let Some(x) = inputs.first_mut() else { return Ok(()) };
        let shape = self.builder.shape(*x);
        if shape.len() == 2 {
            return Ok(());
        }
        let flat = [self.batch, shape.iter().skip(1).product()];
        let name = format!("{}-{}.flatten", record.class, record.rank);
        let node = NewNode {
            name: &name,
            kind: IMPLIED,
            op: Op::Reshape,
            inputs: &[Some(*x)],
            output: &format!(
                "{}.flat",
                record.outputs.first().map_or(String::new(), |id| format!("buffer{id}"))
            ),
            origin: origin(record),
        };
        *x = self.builder.node_of_shape(node, &flat)?;
        Ok(())
    }

    fn operand(&mut self, record: &Record<'_>, index: usize, id: u64) -> Result<TensorId> {
        if let BufferName::Parameter(name) = &self.trace.buffer(id)?.name {
            let traced = self.solution.shapes.get(&id);
            let traced = traced.ok_or_else(|| Error::unsupported(format!("parameter `{name}` as operand {index}")))?;
            let weights = match (record.class, index) {
                (CONVOLUTION, 1) => Weights::Moved {
                    shape: traced.clone(),
                    perm: vec![0, 2, 3, 1],
                },
                _ => Weights::Same,
            };
            return self.builder.param(name, traced, &weights);
        }
        let tensor = self.tensors.get(&id).copied();
        tensor.ok_or_else(|| Error::internal(format!("it reads buffer {id}, which the loss writes")))
    }

    /// A record that inference does not need, with its edges.
    fn outside(&mut self, record: &Record<'_>, role: Role) {
        let mut inputs = Vec::new();
        for (id, tag) in &record.inputs {
            let map = if *tag == "gradient" {
                &self.gradients
            } else {
                &self.tensors
            };
            let tensor = match map.get(id) {
                Some(&tensor) => tensor,
                None => self.new_outside(*id, *tag == "gradient"),
            };
            inputs.push(tensor);
        }
        let is_gradient = role == Role::Backward;
        let outputs: Vec<_> = record
            .outputs
            .iter()
            .map(|&id| self.new_outside(id, is_gradient))
            .collect();
        let name = format!(
            "{}-{}{}",
            record.class,
            record.rank,
            if is_gradient { ".backward" } else { "" }
        );
        self.builder
            .opaque(&name, record.class, role, &inputs, &outputs, origin(record));
    }

    fn new_outside(&mut self, id: u64, is_gradient: bool) -> TensorId {
        let bytes = self.trace.buffers.get(&id).map_or(0, |b| b.bytes);
        let suffix = if is_gradient { ".gradient" } else { "" };
        let tensor = self
            .builder
            .outside(&format!("buffer{id}{suffix}"), &[bytes / 4], DType::F32);
        let map = if is_gradient {
            &mut self.gradients
        } else {
            &mut self.tensors
        };
        map.insert(id, tensor);
        tensor
    }

    fn shape(&self, id: u64) -> Result<Vec<usize>> {
        let shape = self
            .solution
            .shapes
            .get(&id)
            .ok_or_else(|| Error::internal(format!("buffer {id} is not solved")))?;
        Ok(std::iter::once(self.batch).chain(shape.iter().copied()).collect())
    }

    fn is_forward_result(&self, id: TensorId) -> bool {
        let mut nodes = self.builder.graph().nodes.iter();
        nodes.any(|node| node.role == Role::Forward && node.outputs.contains(&id))
    }

    fn unread(&self) -> Vec<TensorId> {
        let graph = self.builder.graph();
        let forward = || graph.nodes.iter().filter(|node| node.role == Role::Forward);
        let read: std::collections::HashSet<_> = forward().flat_map(|node| node.inputs.iter().flatten()).collect();
        let written = forward().flat_map(|node| node.outputs.iter());
        written.filter(|id| !read.contains(id)).copied().collect()
    }
}

fn origin(record: &Record<'_>) -> Origin {
    Origin {
        line: Some(record.line),
        path: String::new(),
    }
}
