//! One arm an operator of the schema: its attributes and operands, as a node of the graph.

use arenite::ops::binary::SpecialBinaryOp;
use arenite::ops::pointwise::Function;

use super::fields::Role;
use super::form::axis;
use super::trace::{Operator, origin};
use super::work::Work;
use crate::build::{NewNode, Weights};
use crate::error::{Error, Result};
use crate::graph::train::MOMENTUM;
use crate::graph::{Activation, BinaryOp, DType, Data, Op, ReduceKind, Tensor, TensorId, UnaryKind};

impl<'a> Work<'_, 'a, '_> {
    /// Adds one operator; false where its kind is not known.
    pub(super) fn operator(&mut self, o: &Operator<'a>) -> Result<bool> {
        let Some(row) = o.row else { return Ok(false) };
        o.check(&row)?;
        let unary = |kind| Op::Unary(kind);
        let id = match o.kind.as_str() {
            "conv2d" => self.conv2d(o)?,
            "conv_transpose2d" => self.conv_transpose2d(o)?,
            "linear" => self.linear(o)?,
            "matmul" => self.matmul(o)?,
            "embedding" => self.embedding(o)?,
            "max_pool2d" | "avg_pool2d" => self.pool2d(o)?,
            "relu" => self.unary(o, unary(UnaryKind::Relu))?,
            "clamp" => {
                let bound = |name: &str, default: f32| match o.given(name)? {
                    Some(_) => o.number(name),
                    None => Ok::<f32, Error>(default),
                };
                let (min, max) = (bound("min", f32::NEG_INFINITY)?, bound("max", f32::INFINITY)?);
                if min > max || (min == f32::NEG_INFINITY && max == f32::INFINITY) {
                    return Err(o
                        .json
                        .error(format!("clamp from {min} to {max}"))
                        .expected("min <= max, not both null"));
                }
                let kind = match (min, max) {
                    (0.0, f32::INFINITY) => UnaryKind::Relu,
                    (0.0, 6.0) => UnaryKind::Relu6,
                    (-1.0, 1.0) => UnaryKind::ReluN1To1,
                    _ => UnaryKind::Clamp { min, max },
                };
                self.unary(o, unary(kind))?
            }
            "leaky_relu" => {
                let alpha = o.number("negative_slope")?;
                self.unary(o, unary(UnaryKind::LeakyRelu { alpha }))?
            }
            "prelu" => self.prelu(o)?,
            "silu" => self.silu(o)?,
            "identity" | "dropout" => self.unary(o, Op::Identity)?,
            "batch_norm" => self.batch_norm(o)?,
            "softmax" => {
                let (x, axis) = self.along_axis(o)?;
                self.node(o, Op::Softmax { axis, beta: 1.0 }, &[x])?
            }
            "log_softmax" => {
                let (x, axis) = self.along_axis(o)?;
                self.node(o, Op::LogSoftmax { axis }, &[x])?
            }
            "mean" => self.reduce(o, ReduceKind::Mean)?,
            "sum" => self.reduce(o, ReduceKind::Sum)?,
            "max" => self.reduce(o, ReduceKind::Max)?,
            "min" => self.reduce(o, ReduceKind::Min)?,
            "argmax" => self.arg_max(o)?,
            "resize_nearest" | "resize_bilinear" => self.resize(o)?,
            "rfft" => self.rfft(o)?,
            "cast" => self.cast(o)?,
            "quantize" => self.quantize(o)?,
            "dequantize" => self.dequantize(o)?,
            "reshape" => self.reshape(o)?,
            "flatten" => self.flatten(o)?,
            "transpose" => self.transpose(o)?,
            "pad" => self.pad(o)?,
            "concat" => self.concat(o)?,
            "slice" => self.slice(o)?,
            other if let Some((function, _)) = Function::rows().find(|(_, names)| names.trace == Some(other)) => {
                self.unary(o, unary(UnaryKind::Function(function)))?
            }
            other if let Some((kind, _)) = BinaryOp::ROWS.iter().find(|(_, names)| names.trace == Some(other)) => {
                self.binary(o, *kind)?
            }
            other if let Some((kind, _)) = SpecialBinaryOp::ROWS.iter().find(|(_, n)| n.trace == Some(other)) => {
                let inputs = [self.f32_input(o, 0)?, self.f32_input(o, 1)?];
                self.node(o, Op::SpecialBinary { kind: *kind }, &inputs)?
            }
            _ => return Ok(false),
        };
        let declared = self.trace.declared(&o.output, &o.json)?;
        let tensor = self.builder.graph().tensor(id);
        if (self.rebatch.is_none() && tensor.shape != declared.shape) || tensor.dtype != declared.dtype {
            return Err(declared
                .json
                .error(format!(
                    "`{}` is {} {:?}",
                    o.output,
                    declared.dtype.name(),
                    declared.shape
                ))
                .expected(format!(
                    "{} {:?}, which operator `{}` gives",
                    tensor.dtype.name(),
                    tensor.shape,
                    o.name
                )));
        }
        if let Some(quant) = &declared.quant {
            self.builder.set_quant(id, quant.clone());
        }
        self.tensors.insert(o.output.clone(), id);
        Ok(true)
    }

    /// A tensor as declared, for the result of an operator of no known kind.
    pub(super) fn stand_in(&mut self, o: &Operator<'_>) -> Result<()> {
        let declared = self.trace.declared(&o.output, &o.json)?;
        let tensor = Tensor::activation(&o.output, &declared.shape, declared.dtype);
        let id = self.builder.tensor(tensor)?;
        self.tensors.insert(o.output.clone(), id);
        Ok(())
    }

    fn linear(&mut self, o: &Operator<'_>) -> Result<TensorId> {
        let x = self.f32_input(o, 0)?;
        self.weights_shape(o, 1, "OI", 2)?;
        let mut inputs = vec![x, self.f32_input(o, 1)?];
        if o.has(2) {
            inputs.push(self.f32_input(o, 2)?);
            let shape = |i: usize| inputs.get(i).map_or(&[][..], |&id| self.builder.shape(id));
            if shape(2) != [shape(1)[0]] {
                let message = format!("the weights have shape {:?}, the bias {:?}", shape(1), shape(2));
                return Err(o.json.error(message));
            }
        }
        let activation = Activation::None;
        self.node(o, Op::Linear { activation }, &inputs)
    }

    fn unary(&mut self, o: &Operator<'_>, op: Op) -> Result<TensorId> {
        let x = match op {
            Op::Identity => self.input(o, 0)?,
            _ => self.f32_input(o, 0)?,
        };
        self.node(o, op, &[x])
    }

    fn binary(&mut self, o: &Operator<'_>, kind: BinaryOp) -> Result<TensorId> {
        let mut inputs = [self.f32_input(o, 0)?, self.f32_input(o, 1)?];
        if kind.names().commutes && self.builder.graph().tensor(inputs[0]).is_const() {
            inputs.reverse();
        }
        let activation = Activation::None;
        self.node(o, Op::Binary { kind, activation }, &inputs)
    }

    fn prelu(&mut self, o: &Operator<'_>) -> Result<TensorId> {
        let x = self.f32_input(o, 0)?;
        let shape = self.builder.shape(x).to_vec();
        let slope = self.weights_shape(o, 1, "", 1)?[0];
        if slope != 1 && shape.get(1) != Some(&slope) {
            let message = format!("{slope} slopes for an operand of shape {shape:?}");
            return Err(o.json.error(message).expected("one, or one for each index of axis 1"));
        }
        // Axis 1 of x, aligned from the end for broadcasting.
        let mut view = vec![slope];
        view.resize(shape.len().saturating_sub(1).max(1), 1);
        let perm = (0..view.len()).collect();
        let slope = self.weights(o, 1, &Weights::Moved { shape: view, perm })?;
        let (kind, activation) = (BinaryOp::Prelu, Activation::None);
        self.node(o, Op::Binary { kind, activation }, &[x, slope])
    }

    /// x * sigmoid(x)
    fn silu(&mut self, o: &Operator<'_>) -> Result<TensorId> {
        let x = self.f32_input(o, 0)?;
        let sigmoid = self.part(o, "sigmoid", Op::Unary(UnaryKind::LOGISTIC), &[x])?;
        let (kind, activation) = (BinaryOp::Mul, Activation::None);
        self.node(o, Op::Binary { kind, activation }, &[x, sigmoid])
    }

    fn batch_norm(&mut self, o: &Operator<'_>) -> Result<TensorId> {
        let x = self.f32_input(o, 0)?;
        let rank = self.builder.shape(x).len();
        let axis = o.axis("axis", rank)?;
        let channels = self.builder.shape(x).get(axis).copied().unwrap_or(0);
        let mut inputs = vec![x];
        for (index, default) in [(1, Some(1.0)), (2, Some(0.0)), (3, None), (4, None)] {
            let id = match default.filter(|_| !o.has(index)) {
                Some(value) => {
                    let name = format!("{}.{}", o.name, if index == 1 { "weight" } else { "bias" });
                    let data = Data::from_f32(&vec![value; channels]);
                    self.builder.constant(&name, &[channels], DType::F32, data)
                }
                None => self.f32_input(o, index)?,
            };
            inputs.push(id);
        }
        let epsilon = o.number("eps")?;
        let op = Op::BatchNorm {
            axis,
            epsilon,
            momentum: MOMENTUM,
            trained: false,
        };
        self.node(o, op, &inputs)
    }

    fn along_axis(&mut self, o: &Operator<'_>) -> Result<(TensorId, usize)> {
        let x = self.f32_input(o, 0)?;
        let axis = o.axis("axis", self.builder.shape(x).len())?;
        Ok((x, axis))
    }

    fn reduce(&mut self, o: &Operator<'_>, kind: ReduceKind) -> Result<TensorId> {
        let x = self.f32_input(o, 0)?;
        let rank = self.builder.shape(x).len();
        let json = o.attr("axes")?;
        let mut axes: Vec<usize> = json
            .array()?
            .iter()
            .map(|a| axis(a, a.integer()?, rank))
            .collect::<Result<_>>()?;
        axes.sort_unstable();
        if axes.is_empty() || axes.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(json
                .error(format!("axes {axes:?}"))
                .expected("one or more, none of them twice"));
        }
        let keep_dims = o.flag("keepdims")?;
        self.node(o, Op::Reduce { kind, axes, keep_dims }, &[x])
    }

    fn reshape(&mut self, o: &Operator<'_>) -> Result<TensorId> {
        let x = self.input(o, 0)?;
        let json = o.attr("shape")?;
        let mut shape = json.integers()?;
        if let (Some((from, to)), Some(first)) = (self.rebatch, shape.first_mut())
            && usize::try_from(*first) == Ok(from)
        {
            *first = to as i64;
            let reason = format!("its shape states the traced batch {from} as its first extent");
            self.assumptions.record("reshape.batch", to, &o.name, &reason);
        }
        let elements = self.builder.graph().tensor(x).elements();
        let shape = crate::build::resolve(&shape, elements)
            .ok_or_else(|| json.error(format!("{:?} cannot be reshaped into {shape:?}", self.builder.shape(x))))?;
        self.node_of_shape(o, Op::Reshape, &[x], &shape)
    }

    fn flatten(&mut self, o: &Operator<'_>) -> Result<TensorId> {
        let x = self.input(o, 0)?;
        let shape = self.builder.shape(x).to_vec();
        let (start, end) = (o.axis("start_axis", shape.len())?, o.axis("end_axis", shape.len())?);
        let (Some(before), Some(joined), Some(after), true) = (
            shape.get(..start),
            shape.get(start..=end),
            shape.get(end + 1..),
            start <= end,
        ) else {
            return Err(o
                .json
                .error(format!("flatten from axis {start} to {end}"))
                .expected("start_axis <= end_axis"));
        };
        let joined = joined.iter().product();
        let shape: Vec<usize> = before
            .iter()
            .copied()
            .chain([joined])
            .chain(after.iter().copied())
            .collect();
        self.node_of_shape(o, Op::Reshape, &[x], &shape)
    }

    fn transpose(&mut self, o: &Operator<'_>) -> Result<TensorId> {
        let x = self.input(o, 0)?;
        let perm = o.attr("perm")?.sizes(0..=usize::MAX)?;
        self.node(o, Op::Transpose { perm }, &[x])
    }

    fn pad(&mut self, o: &Operator<'_>) -> Result<TensorId> {
        let value = o.number("value")?;
        let x = if value == 0.0 {
            self.input(o, 0)?
        } else {
            self.f32_input(o, 0)?
        };
        let pads = o.attr("padding")?.array()?;
        let pads = pads.iter().map(|pair| match *pair.sizes(0..=usize::MAX)?.as_slice() {
            [before, after] => Ok((before, after)),
            _ => Err(pair.error("a padding").expected("[before, after]")),
        });
        let pads = pads.collect::<Result<_>>()?;
        self.node(o, Op::Pad { pads, value }, &[x])
    }

    fn concat(&mut self, o: &Operator<'_>) -> Result<TensorId> {
        let inputs: Result<Vec<_>> = (0..o.inputs.len()).map(|i| self.input(o, i)).collect();
        let inputs = inputs?;
        let first = self.builder.graph().tensor(inputs[0]);
        let (rank, dtype) = (first.shape.len(), first.dtype);
        if inputs.iter().any(|&id| self.builder.graph().tensor(id).dtype != dtype) {
            return Err(o.json.error("operands of different dtypes"));
        }
        let axis = o.axis("axis", rank)?;
        let activation = Activation::None;
        self.node(o, Op::Concat { axis, activation }, &inputs)
    }

    fn slice(&mut self, o: &Operator<'_>) -> Result<TensorId> {
        let x = self.input(o, 0)?;
        let mut shape = self.builder.shape(x).to_vec();
        let axis = o.axis("axis", shape.len())?;
        let length = shape.get(axis).copied().unwrap_or(0);
        let start = o.attr("start")?.size(0..=length)?;
        let stop = match o.given("stop")? {
            Some(json) => json.size(0..=length)?,
            None => length,
        };
        let step = o.size("step")?;
        let Some(taken) = stop.checked_sub(start).filter(|&n| n > 0) else {
            return Err(o
                .json
                .error(format!("a slice from {start} to {stop}"))
                .expected("0 <= start < stop"));
        };
        let mut begin = vec![0; shape.len()];
        let mut stride = vec![1; shape.len()];
        begin[axis] = start;
        stride[axis] = step as isize;
        shape[axis] = taken.div_ceil(step);
        self.node_of_shape(o, Op::Slice { begin, stride }, &[x], &shape)
    }

    pub(super) fn node(&mut self, o: &Operator<'_>, op: Op, inputs: &[TensorId]) -> Result<TensorId> {
        let inputs: Vec<_> = inputs.iter().copied().map(Some).collect();
        self.builder.node(new_node(o, op, &inputs))
    }

    pub(super) fn node_of_shape(
        &mut self,
        o: &Operator<'_>,
        op: Op,
        inputs: &[TensorId],
        shape: &[usize],
    ) -> Result<TensorId> {
        let inputs: Vec<_> = inputs.iter().copied().map(Some).collect();
        self.builder.node_of_shape(new_node(o, op, &inputs), shape)
    }

    /// A step of an operator that takes several nodes.
    pub(super) fn part(&mut self, o: &Operator<'_>, step: &str, op: Op, inputs: &[TensorId]) -> Result<TensorId> {
        let inputs: Vec<_> = inputs.iter().copied().map(Some).collect();
        let (name, kind) = (format!("{}.{step}", o.name), crate::graph::facts::IMPLIED);
        let output = format!("{}.{step}", o.output);
        self.builder.node(NewNode {
            name: &name,
            kind,
            op,
            inputs: &inputs,
            output: &output,
            origin: origin(&o.json),
        })
    }

    pub(super) fn input(&mut self, o: &Operator<'_>, index: usize) -> Result<TensorId> {
        self.weights(o, index, &Weights::Same)
    }

    pub(super) fn f32_input(&mut self, o: &Operator<'_>, index: usize) -> Result<TensorId> {
        let id = self.input(o, index)?;
        match self.builder.graph().tensor(id).dtype {
            DType::F32 => Ok(id),
            dtype => Err(o
                .json
                .error(format!("operand {index} is {}", dtype.name()))
                .expected("f32")),
        }
    }

    pub(super) fn weights(&mut self, o: &Operator<'_>, index: usize, view: &Weights) -> Result<TensorId> {
        let (name, at) = o.named(index)?;
        if view != &Weights::Same || index > 0 {
            let declared = self.trace.declared(name, at)?;
            if view != &Weights::Same && declared.dtype != DType::F32 && declared.quant.is_none() {
                return Err(at
                    .error(format!("`{name}` is {}", declared.dtype.name()))
                    .expected("f32"));
            }
        }
        self.view(name, at, view)
    }

    /// The shape of an operand that must be a parameter or a constant of this layout and rank.
    pub(super) fn weights_shape(
        &self,
        o: &Operator<'_>,
        index: usize,
        layout: &str,
        rank: usize,
    ) -> Result<Vec<usize>> {
        let (name, at) = o.named(index)?;
        let declared = self.trace.declared(name, at)?;
        if !matches!(declared.role, Role::Parameter | Role::Constant) {
            return Err(at.locate(Error::unsupported(format!(
                "`{name}`, which the network computes, as weights"
            ))));
        }
        if declared.shape.len() != rank {
            return Err(at
                .error(format!("`{name}` has shape {:?}", declared.shape))
                .expected(format!("{rank} axes")));
        }
        if !layout.is_empty() {
            self.check_layout(o, index, layout)?;
        }
        Ok(declared.shape.clone())
    }

    pub(super) fn check_layout(&self, o: &Operator<'_>, index: usize, wanted: &str) -> Result<()> {
        let (name, at) = o.named(index)?;
        match &self.trace.declared(name, at)?.layout {
            Some(stated) if stated != wanted => Err(at
                .error(format!("`{name}` states layout {stated}"))
                .expected(format!("{wanted}, which `{}` reads", o.kind))),
            _ => Ok(()),
        }
    }
}

fn new_node<'n>(o: &'n Operator<'_>, op: Op, inputs: &'n [Option<TensorId>]) -> NewNode<'n> {
    NewNode {
        name: &o.name,
        kind: &o.kind,
        op,
        inputs,
        output: &o.output,
        origin: origin(&o.json),
    }
}
