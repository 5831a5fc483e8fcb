//! From the network's structure to the graph, at any batch.

use std::collections::HashMap;

use super::edges::{Edges, Layout, Source};
use super::rows::{Field, Kernel, Trace, at};
use super::windows::{Lrn, Windows};
use crate::build::{Builder, NewNode, Weights, line};
use crate::error::{Error, Result};
use crate::graph::facts::IMPLIED;
use crate::graph::{Activation, BinaryOp, Conv2dAttrs, DType, Graph, Op, PoolAttrs, TensorId, UnaryKind};
use crate::solve::padding;

/// All that is known of the network.
pub(super) struct Plan<'p, 'a> {
    pub(super) trace: &'p Trace<'a>,
    pub(super) edges: &'p Edges<'a>,
    pub(super) windows: &'p Windows,
    pub(super) lrn: Lrn,
}

impl Plan<'_, '_> {
    /// The traced batch.
    pub(super) fn batch(&self) -> Result<usize> {
        let first = self.edges.input.1.first().copied();
        first.ok_or_else(|| Error::internal(format!("`{}` is a scalar", self.edges.input.0)))
    }

    /// The whole step at the traced batch, checking every stated shape, or at another one.
    pub(super) fn build(&self, name: &str, batch: Option<usize>) -> Result<Graph> {
        let mut work = Work {
            plan: self,
            builder: Builder::new(name),
            tensors: HashMap::new(),
            transposed: HashMap::new(),
        };
        let (input, shape) = &self.edges.input;
        let mut shape = shape.clone();
        if let (Some(batch), Some(first)) = (batch, shape.first_mut()) {
            *first = batch;
        }
        let id = work.builder.input(input, &shape)?;
        work.tensors.insert(Source::Input, id);
        for &index in &self.edges.order {
            let node = &self.trace.forward[index];
            let id = work
                .node(index)
                .map_err(|e| e.at(format!("line {} (`{}`)", node.line, node.name)))?;
            let inferred = work.builder.shape(id);
            if batch.is_none() && inferred != node.output {
                return Err(
                    at(node.line, format!("`{}` gives {:?}", node.name, node.output)).expected(format!("{inferred:?}"))
                );
            }
            work.tensors.insert(Source::Node(index), id);
        }
        work.outside();
        let output = work.tensors.get(&Source::Node(self.edges.output)).copied();
        work.builder
            .finish(&[output.ok_or_else(|| Error::internal("the output was not built"))?])
    }
}

struct Work<'w, 'p, 'a> {
    plan: &'w Plan<'p, 'a>,
    builder: Builder,
    tensors: HashMap<Source, TensorId>,
    /// Results in the layout that is not their own.
    transposed: HashMap<Source, TensorId>,
}

impl Work<'_, '_, '_> {
    fn node(&mut self, index: usize) -> Result<TensorId> {
        let edges = self.plan.edges;
        let node = &self.plan.trace.forward[index];
        let layout = edges.layouts[index];
        let mut inputs = vec![Some(self.source(edges.sources[index], layout)?)];
        let activation = Activation::None;
        let window = || {
            let window = self.plan.windows.get(&index).copied();
            window.ok_or_else(|| Error::internal("a window was not found"))
        };
        let parameter = edges.parameters[index].unwrap_or_default();
        let op = match (node.op, node.parameter.as_deref()) {
            (Kernel::Conv2d, Some(filter @ &[_, _, cin, cout])) => {
                let (rows, columns) = window()?;
                let weights = Weights::Moved {
                    shape: filter.to_vec(),
                    perm: vec![3, 0, 1, 2],
                };
                inputs.push(Some(self.builder.param(parameter, filter, &weights)?));
                let channels = node.input[if layout == Layout::Nchw { 1 } else { 3 }];
                let groups = channels / cin.max(1);
                if groups == 0 || !cout.is_multiple_of(groups) {
                    return Err(Error::input(format!("{channels} channels and a filter {filter:?}")));
                }
                Op::Conv2d(Conv2dAttrs {
                    layout,
                    stride: [rows.stride, columns.stride],
                    dilation: [1, 1],
                    padding: padding(&rows, &columns),
                    groups,
                    activation,
                })
            }
            (Kernel::BiasAdd, Some(bias @ &[channels])) => {
                let weights = match layout {
                    Layout::Nchw => Weights::Moved {
                        shape: vec![channels, 1, 1],
                        perm: vec![0, 1, 2],
                    },
                    Layout::Nhwc => Weights::Same,
                };
                inputs.push(Some(self.builder.param(parameter, bias, &weights)?));
                let kind = BinaryOp::Add;
                Op::Binary { kind, activation }
            }
            (Kernel::Relu, _) => Op::Unary(UnaryKind::Relu),
            (Kernel::Lrn, _) => {
                let Lrn {
                    radius,
                    bias,
                    alpha,
                    beta,
                } = self.plan.lrn;
                Op::Lrn {
                    axis: 3,
                    radius,
                    bias,
                    alpha,
                    beta,
                }
            }
            (Kernel::MaxPool | Kernel::AvgPool, _) => {
                let (rows, columns) = window()?;
                let attrs = PoolAttrs {
                    layout,
                    kernel: [rows.kernel, columns.kernel],
                    stride: [rows.stride, columns.stride],
                    padding: padding(&rows, &columns),
                    // TensorFlow averages over the elements inside the input.
                    count_include_pad: false,
                    activation,
                };
                match node.op {
                    Kernel::MaxPool => Op::MaxPool2d(attrs),
                    _ => Op::AvgPool2d(attrs),
                }
            }
            _ => return Err(Error::internal(format!("parameters of shape {:?}", node.parameter))),
        };
        self.builder.node(NewNode {
            name: node.name,
            kind: node.kind,
            op,
            inputs: &inputs,
            output: node.name,
            origin: line(node.line),
        })
    }

    /// A result in the layout that its reader wants.
    fn source(&mut self, source: Source, wanted: Layout) -> Result<TensorId> {
        let own = match source {
            Source::Input => Layout::Nhwc,
            Source::Node(index) => self.plan.edges.layouts[index],
        };
        let missing = || Error::internal("a source was not built");
        let id = self.tensors.get(&source).copied().ok_or_else(missing)?;
        if own == wanted {
            return Ok(id);
        }
        if let Some(&id) = self.transposed.get(&source) {
            return Ok(id);
        }
        let (suffix, perm) = match wanted {
            Layout::Nchw => ("nchw", vec![0, 3, 1, 2]),
            Layout::Nhwc => ("nhwc", vec![0, 2, 3, 1]),
        };
        let (name, number) = match source {
            Source::Input => (self.plan.edges.input.0, 0),
            Source::Node(index) => (self.plan.trace.forward[index].name, self.plan.trace.forward[index].line),
        };
        let name = format!("{name}.{suffix}");
        let id = self.builder.node(NewNode {
            name: &name,
            kind: IMPLIED,
            op: Op::Transpose { perm },
            inputs: &[Some(id)],
            output: &name,
            origin: line(number),
        })?;
        self.transposed.insert(source, id);
        Ok(id)
    }

    /// All other rows, with the edges that their control inputs state.
    fn outside(&mut self) {
        let nodes = self.plan.trace.forward.iter().enumerate();
        let by_name: HashMap<&str, Source> = nodes.map(|(i, n)| (n.name, Source::Node(i))).collect();
        for (row, role) in &self.plan.trace.outside {
            let control = row
                .control
                .iter()
                .filter_map(|name| self.tensors.get(by_name.get(name)?));
            let inputs: Vec<TensorId> = control.copied().collect();
            let outputs = match &row.output {
                Field::Shape(shape) => vec![self.builder.outside(&format!("{}:0", row.name), shape, DType::F32)],
                _ => Vec::new(),
            };
            let kind = row.name.rsplit(['/', ':']).next().unwrap_or(row.name);
            self.builder
                .opaque(row.name, kind, *role, &inputs, &outputs, line(row.line));
        }
    }
}
