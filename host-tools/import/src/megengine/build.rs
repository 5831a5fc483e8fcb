//! From the operators of the dump to the graph.

use std::collections::{BTreeSet, HashMap};

use super::attributes::{self, Elemwise, Pooling};
use super::dump::{CONSTANT, Dump, Operator, SINK, SOURCES};
use super::work::{Work, origin};
use crate::assume::Assumptions;
use crate::build::{Builder, NewNode, Weights, elements, refuse_unknown, resolve};
use crate::error::{Error, Result};
use crate::graph::{Activation, DType, Graph, Op, Role, TensorId};

/// A graph, and the batch that it has.
pub(super) struct Built {
    pub(super) graph: Graph,
    pub(super) batch: usize,
    pub(super) warnings: Vec<String>,
}

/// Builds the graph at the traced batch, checking all that is stated, or rebuilds it `(from, to)` another batch.
pub(super) fn build(
    trace: &Dump<'_>,
    name: &str,
    images: &HashMap<String, Vec<usize>>,
    rebatch: Option<(usize, usize)>,
    assumptions: &mut Assumptions<'_>,
) -> Result<Built> {
    // Of all, so that no message depends on the order in which a map gives them.
    let batches: Option<BTreeSet<usize>> = images.values().map(|shape| shape.first().copied()).collect();
    let batches = batches.ok_or_else(|| Error::input("an image has no axes"))?;
    let (Some(&batch), 1) = (batches.first(), batches.len()) else {
        let text = format!("the network's inputs have {} batches", batches.len());
        return Err(Error::input(text).expected("one batch for all"));
    };
    let read = (trace.operators.iter()).flat_map(|o| o.inputs.iter().map(String::as_str));
    let mut work = Work {
        trace,
        builder: Builder::new(name),
        images,
        rebatch,
        assumptions,
        read: read.collect(),
        tensors: HashMap::new(),
        integers: HashMap::new(),
        constants: HashMap::new(),
        outputs: Vec::new(),
        unknown: Vec::new(),
        workspaces: 0,
    };
    for operator in &trace.operators {
        if let Err(error) = work.operator(operator) {
            refuse(std::mem::take(&mut work.unknown))?;
            return Err(operator.locate(error));
        }
    }
    refuse(std::mem::take(&mut work.unknown))?;
    let outputs = work.network_outputs()?;
    let warnings = match work.workspaces {
        0 => Vec::new(),
        n => vec![format!(
            "{n} workspace outputs are dropped: they hold scratch memory of the traced kernels, and no operator reads them"
        )],
    };
    Ok(Built {
        graph: work.builder.finish(&outputs)?,
        batch: rebatch.map_or(batch, |(_, to)| to),
        warnings,
    })
}

fn refuse(unknown: Vec<(String, String)>) -> Result<()> {
    refuse_unknown(
        unknown,
        "build the network from other operators, or trace it in another dialect",
    )
}

impl<'a, 't> Work<'a, 't, '_> {
    fn operator(&mut self, operator: &'a Operator<'t>) -> Result<()> {
        match operator.kind.as_str() {
            CONSTANT => self.constant(operator),
            kind if SOURCES.contains(&kind) => self.source(operator),
            SINK => self.sink(operator),
            "GetVarShape" | "Subtensor" => self.shape_arithmetic(operator),
            "Concat" if operator.inputs.iter().all(|id| self.is_integers(id)) => self.shape_arithmetic(operator),
            _ => self.compute(operator),
        }
    }

    fn constant(&mut self, operator: &'a Operator<'t>) -> Result<()> {
        let [output] = operator.outputs.as_slice() else {
            return Err(operator.error("a constant has one output"));
        };
        let variable = self.trace.variable(operator, output)?;
        if let (Some(shape), Some(bytes)) = (&variable.shape, variable.bytes)
            && elements(shape)? as u64 * 4 != bytes
        {
            let message = format!("shape {shape:?} and {bytes} bytes of memory do not fit together");
            return Err(operator.error(message).expected("four bytes an element"));
        }
        if let Some(footprint) = &operator.footprint
            && footprint.out_shapes.first() != variable.shape.as_ref()
        {
            let spelled = |shape: Option<&Vec<usize>>| shape.map_or("none".to_string(), |shape| format!("{shape:?}"));
            return Err(operator.error(format!(
                "its footprint gives shape {}, its variable {}",
                spelled(footprint.out_shapes.first()),
                spelled(variable.shape.as_ref())
            )));
        }
        self.constants.insert(output, (operator, variable));
        Ok(())
    }

    /// An image, or a transfer of something that no kernel reads.
    fn source(&mut self, operator: &'a Operator<'t>) -> Result<()> {
        let inputs = self.edges(&operator.inputs);
        let mut outputs = Vec::new();
        for id in operator.outputs.iter().filter(|id| self.read.contains(id.as_str())) {
            let Some(shape) = self.images.get(id) else { continue };
            let mut shape = shape.clone();
            if let (Some((_, to)), Some(first)) = (self.rebatch, shape.first_mut()) {
                *first = to;
            }
            let variable = self.trace.variable(operator, id)?;
            let tensor = self.builder.input(&variable.name, &shape)?;
            self.tensors.insert(id, tensor);
            outputs.push(tensor);
        }
        self.bookkeeping(operator, &inputs, &outputs);
        Ok(())
    }

    fn sink(&mut self, operator: &'a Operator<'t>) -> Result<()> {
        let inputs = self.edges(&operator.inputs);
        // A constant that an operator reads has a tensor as well.
        let is_constant = |id: &String| self.constants.contains_key(id.as_str());
        if inputs.len() != operator.inputs.len() || operator.inputs.iter().any(is_constant) {
            return Err(operator.error("it returns a variable that no kernel computes"));
        }
        self.outputs.extend(&inputs);
        self.bookkeeping(operator, &inputs, &[]);
        Ok(())
    }

    /// A kernel: a node of the graph, checked against its footprint.
    fn compute(&mut self, operator: &'a Operator<'t>) -> Result<()> {
        let (output, workspaces) = operator
            .outputs
            .split_first()
            .ok_or_else(|| operator.error("it has no output"))?;
        if let Some(id) = workspaces.iter().find(|id| self.read.contains(id.as_str())) {
            return Err(operator.error(format!(
                "its second output, variable {id}, is its workspace, but an operator reads it"
            )));
        }
        self.workspaces += workspaces.len();
        let name = operator.name.as_str();
        let tensor = match operator.kind.as_str() {
            "ConvolutionForward" => self.convolution(operator, name)?,
            "Elemwise" => self.elemwise(operator, name)?,
            "PoolingForward" => {
                let op = match attributes::pooling(operator)? {
                    (Pooling::Max, attrs) => Op::MaxPool2d(attrs),
                    (Pooling::Average, attrs) => Op::AvgPool2d(attrs),
                };
                let x = self.operands::<1>(operator)?;
                self.node(operator, op, &x, name)?
            }
            "Reduce" => {
                let x = self.operands::<1>(operator)?;
                let rank = x.first().map_or(0, |&x| self.builder.shape(x).len());
                let (kind, axis) = attributes::reduce(operator, rank)?;
                let (axes, keep_dims) = (vec![axis], true);
                self.node(operator, Op::Reduce { kind, axes, keep_dims }, &x, name)?
            }
            "Reshape" => self.reshape(operator, name)?,
            "MatrixMul" => self.matrix_mul(operator, name)?,
            "Concat" => {
                let axis = operator.footprint()?.param.need("axis")?.size(0..=7)?;
                let mut inputs = Vec::new();
                for id in &operator.inputs {
                    inputs.push(self.operand(operator, id)?);
                }
                let activation = Activation::None;
                self.node(operator, Op::Concat { axis, activation }, &inputs, name)?
            }
            kind => {
                let line = format!("line {}", operator.json.line());
                self.unknown.push((kind.to_string(), line));
                let variable = self.trace.variable(operator, output)?;
                let shape = variable.shape.clone().unwrap_or_default();
                let tensor = self.builder.outside(&variable.name, &shape, DType::F32);
                self.tensors.insert(output, tensor);
                return Ok(());
            }
        };
        self.tensors.insert(output, tensor);
        match self.rebatch {
            None => self.check_footprint(operator, output, tensor),
            Some(_) => Ok(()),
        }
    }

    fn convolution(&mut self, operator: &'a Operator<'t>, name: &str) -> Result<TensorId> {
        let [x, w] = operator.inputs.as_slice() else {
            return Err(operator.error("a convolution reads an image and weights"));
        };
        let x = self.operand(operator, x)?;
        let (source, variable) = *(self.constants.get(w.as_str()))
            .ok_or_else(|| operator.locate(Error::unsupported("weights that the network computes")))?;
        let shape = (variable.shape.as_deref()).ok_or_else(|| source.error("a constant without a shape"))?;
        // Groups are an axis of their own: [groups, out, in, rows, columns].
        let (groups, out, rest) = match (attributes::is_grouped(operator)?, shape) {
            (false, [out, rest @ ..]) => (1, *out, rest),
            (true, [groups, out, rest @ ..]) => (*groups, groups.saturating_mul(*out), rest),
            _ => (1, 0, shape),
        };
        let [per_group, rows, columns] = *rest else {
            let axes = "[out, in, rows, columns], with the groups in front for a grouped convolution";
            return Err(source.error(format!("weights of shape {shape:?}")).expected(axes));
        };
        let weights = Weights::Moved {
            shape: vec![out, per_group, rows, columns],
            perm: vec![0, 2, 3, 1],
        };
        let w = self.builder.param(&source.name, shape, &weights)?;
        let attrs = attributes::convolution(operator, groups)?;
        self.node(operator, Op::Conv2d(attrs), &[x, w], name)
    }

    fn elemwise(&mut self, operator: &'a Operator<'t>, name: &str) -> Result<TensorId> {
        match attributes::elemwise(operator)? {
            Elemwise::Unary(kind) => {
                let x = self.operands::<1>(operator)?;
                self.node(operator, Op::Unary(kind), &x, name)
            }
            Elemwise::Binary(kind, activation) => {
                let mut inputs = self.operands::<2>(operator)?;
                let first_is_const = inputs
                    .first()
                    .is_some_and(|&id| self.builder.graph().tensor(id).is_const());
                if kind.names().commutes && first_is_const {
                    inputs.reverse();
                }
                self.node(operator, Op::Binary { kind, activation }, &inputs, name)
            }
        }
    }

    fn reshape(&mut self, operator: &'a Operator<'t>, name: &str) -> Result<TensorId> {
        let [x, target] = operator.inputs.as_slice() else {
            return Err(operator.error("a reshape reads a tensor and a shape"));
        };
        operator.footprint()?.param.only(&["axis"])?;
        let mut target = self
            .integers_of(target)
            .ok_or_else(|| operator.locate(Error::unsupported("a reshape to a shape that the network computes")))?;
        let x = self.operand(operator, x)?;
        if let (Some((from, to)), Some(first)) = (self.rebatch, target.first_mut())
            && first.literal
            && usize::try_from(first.value) == Ok(from)
        {
            first.value = to as i64;
            let reason = format!("the shape states the traced batch {from} as its first extent");
            self.assumptions.record("reshape.batch", to, &operator.name, &reason);
        }
        let values: Vec<i64> = target.iter().map(|i| i.value).collect();
        let elements = self.builder.graph().tensor(x).elements();
        let shape = resolve(&values, elements).ok_or_else(|| {
            operator.error(format!(
                "{:?} cannot be reshaped into {values:?}",
                self.builder.shape(x)
            ))
        })?;
        let new = NewNode {
            name: &operator.name,
            kind: &operator.kind,
            op: Op::Reshape,
            inputs: &[Some(x)],
            output: name,
            origin: origin(operator),
        };
        self.builder.node_of_shape(new, &shape)
    }

    fn matrix_mul(&mut self, operator: &'a Operator<'t>, name: &str) -> Result<TensorId> {
        let (transpose_a, transpose_b) = attributes::transposes(operator)?;
        let [a, b] = operator.inputs.as_slice() else {
            return Err(operator.error("a matrix product reads two matrices"));
        };
        match self.constants.get(b.as_str()) {
            Some(&(source, variable)) if !transpose_a => {
                let shape = (variable.shape.as_deref()).ok_or_else(|| source.error("a constant without a shape"))?;
                let weights = if transpose_b {
                    Weights::Same
                } else {
                    Weights::Moved {
                        shape: shape.to_vec(),
                        perm: vec![1, 0],
                    }
                };
                if shape.len() != 2 {
                    return Err(source
                        .error(format!("a matrix of shape {shape:?}"))
                        .expected("two axes"));
                }
                let a = self.operand(operator, a)?;
                let w = self.builder.param(&source.name, shape, &weights)?;
                let activation = Activation::None;
                self.node(operator, Op::Linear { activation }, &[a, w], name)
            }
            _ => {
                let inputs = self.operands::<2>(operator)?;
                let op = Op::MatMul {
                    transpose_a,
                    transpose_b,
                };
                self.node(operator, op, &inputs, name)
            }
        }
    }

    /// Returns the outputs that the callbacks return; without callbacks, tensors that nobody reads.
    fn network_outputs(&mut self) -> Result<Vec<TensorId>> {
        if !self.outputs.is_empty() {
            return Ok(std::mem::take(&mut self.outputs));
        }
        let graph = self.builder.graph();
        let consumers = graph.consumers();
        let forward = graph.nodes.iter().filter(|node| node.role == Role::Forward);
        let unread = forward.flat_map(|node| node.outputs.iter().copied());
        let unread: Vec<TensorId> = unread
            .filter(|id| consumers.get(id.0).is_none_or(Vec::is_empty))
            .collect();
        match unread.as_slice() {
            [only] => {
                let name = graph.tensor(*only).name.clone();
                let reason = "the trace has no OutputCallback, and nobody reads this";
                self.assumptions.record("output", &name, &name, reason);
                Ok(unread)
            }
            _ => Err(Error::input(format!(
                "no OutputCallback, and {} results that nobody reads",
                unread.len()
            ))),
        }
    }
}
