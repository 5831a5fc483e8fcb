//! Which operators have a form on integers, and what that asks of the scales of their tensors.

use arenite::DType;
use arenite::ops::elementwise_int::IntOp;
use arenite::quant::LrnI8;

use super::activations::Activations;
use crate::graph::{Activation, BinaryOp, Graph, Layout, Node, Op, ReduceKind, TensorId, UnaryKind};

/// Requirements of an operator's integer form on its operands' and its result's scales.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Form {
    /// Nothing: it rescales.
    Free,
    /// The stored numbers of all activations mean the same.
    Shared,
    /// The result's scale and zero point are these.
    Fixed(f32, i32),
    /// The result is no real number.
    Index,
}

/// An activation of real numbers: what gets a scale.
pub(super) fn is_real(graph: &Graph, id: TensorId) -> bool {
    let tensor = graph.tensor(id);
    tensor.dtype == DType::F32 && !tensor.is_const()
}

/// The activations that a node reads and writes.
pub(crate) fn activations<'g>(graph: &'g Graph, node: &'g Node) -> impl Iterator<Item = TensorId> + 'g {
    let all = node.inputs.iter().flatten().chain(&node.outputs).copied();
    all.filter(|&id| is_real(graph, id))
}

/// Whether real numbers flow through a node at all; others stay as they are.
pub(super) fn concerns(graph: &Graph, node: &Node) -> bool {
    activations(graph, node).next().is_some()
}

/// The form of a node on such activations.
///
/// # Errors
/// Why it has none, for people.
pub(super) fn form(graph: &Graph, node: &Node, activations: Activations) -> Result<Form, String> {
    match (&node.op, activations) {
        // Both operands are activations: see `parts`.
        (Op::MatMul { .. }, _) => Ok(Form::Free),
        (
            Op::Binary {
                kind: BinaryOp::Div, ..
            },
            Activations::Int8,
        ) => Ok(Form::Free),
        (_, Activations::Int8) => on_int8(graph, node),
        (_, Activations::Int16) => on_int16(graph, node),
    }
}

/// The forms that int16 has: fewer functions, and results of functions with other scales.
fn on_int16(graph: &Graph, node: &Node) -> Result<Form, String> {
    match &node.op {
        Op::Unary(UnaryKind::LOGISTIC | UnaryKind::TANH) | Op::Softmax { .. } => Ok(Form::Fixed(1.0 / 32768.0, 0)),
        Op::LogSoftmax { .. }
        | Op::ArgMax { .. }
        | Op::ResizeNearest { .. }
        | Op::ResizeBilinear { .. }
        | Op::LocallyConnected2d { .. }
        | Op::Lrn { .. } => Err("int16 has no such operator".into()),
        Op::Reduce {
            kind: ReduceKind::Mean | ReduceKind::Sum,
            ..
        } if too_many_terms(graph, node) => Err("its sums have more than 32 bits".into()),
        _ => on_int8(graph, node).map_err(|reason| reason.replace("int8", "int16")),
    }
}

/// Whether sums of so many int16 numbers can leave 32 bits.
fn too_many_terms(graph: &Graph, node: &Node) -> bool {
    let elements = |id: Option<TensorId>| id.map_or(0, |id| graph.tensor(id).elements());
    let input = elements(node.inputs.first().copied().flatten());
    let output = elements(node.outputs.first().copied()).max(1);
    input / output > i32::MAX as usize / 32768
}

/// The form of a node on int8.
///
/// # Errors
/// Why it has none, for people.
pub(crate) fn on_int8(graph: &Graph, node: &Node) -> Result<Form, String> {
    let constant = |index: usize| {
        let id = node.inputs.get(index).copied().flatten();
        id.is_none_or(|id| graph.tensor(id).is_const())
    };
    match &node.op {
        Op::Conv2d(_) if constant(1) && constant(2) && node.inputs.len() > 3 => Err("it adds a residual".into()),
        Op::Conv2d(_) | Op::Linear { .. } | Op::LocallyConnected2d { .. } if !(1..4).all(constant) => {
            Err("its weights are computed at run time".into())
        }
        Op::Conv2d(attrs) if attrs.layout != Layout::Nhwc => Err("its channels are not innermost".into()),
        Op::Conv2d(_) | Op::Linear { .. } | Op::LocallyConnected2d { .. } => Ok(Form::Free),
        &Op::Lrn {
            axis,
            radius,
            bias,
            alpha,
            beta,
        } => normalises(graph, node, (axis, radius), [bias, alpha, beta]),
        Op::AvgPool2d(attrs) if attrs.count_include_pad && attrs.padding != Default::default() => {
            Err("its averages count padding".into())
        }
        Op::MaxPool2d(_) | Op::AvgPool2d(_) => Ok(Form::Shared),
        Op::Binary { kind, activation } => match kind.names().integer {
            Some(IntOp::Minimum | IntOp::Maximum) if *activation != Activation::None => {
                Err("it clamps its result".into())
            }
            Some(IntOp::Minimum | IntOp::Maximum) => Ok(Form::Shared),
            Some(IntOp::Prelu) if !constant(1) => Err("its slopes are computed at run time".into()),
            Some(_) => Ok(Form::Free),
            None => Err("int8 has no such operation of two operands".into()),
        },
        // A clamp of stored numbers.
        Op::Unary(UnaryKind::Relu6) => Ok(Form::Shared),
        Op::Unary(UnaryKind::LOGISTIC) => Ok(Form::Fixed(1.0 / 256.0, -128)),
        Op::Unary(UnaryKind::TANH) => Ok(Form::Fixed(1.0 / 128.0, 0)),
        Op::Unary(_) => Ok(Form::Free),
        Op::Softmax { .. } => Ok(Form::Fixed(1.0 / 256.0, -128)),
        Op::LogSoftmax { .. } => Ok(Form::Fixed(1.0 / 16.0, 127)),
        Op::Reduce { kind, .. } => Ok(match kind {
            ReduceKind::Mean | ReduceKind::Sum => Form::Free,
            ReduceKind::Max | ReduceKind::Min => Form::Shared,
        }),
        Op::ArgMax { .. } => Ok(Form::Index),
        Op::Pad { value, .. } if !value.is_finite() => Err(format!("it pads with {value}")),
        Op::Concat { activation, .. } if *activation != Activation::None => Err("it clamps its result".into()),
        Op::Reshape
        | Op::Transpose { .. }
        | Op::Identity
        | Op::Slice { .. }
        | Op::Pad { .. }
        | Op::Concat { .. }
        | Op::ResizeNearest { .. }
        | Op::ResizeBilinear { .. } => Ok(Form::Shared),
        Op::Quantize | Op::Dequantize | Op::Cast => Err("it changes the element type by itself".into()),
        _ => Err("int8 has no such operator".into()),
    }
}

/// The form of a local response normalisation: over the last axis, with constants that [`LrnI8`] takes at some scale.
fn normalises(graph: &Graph, node: &Node, (axis, radius): (usize, usize), values: [f32; 3]) -> Result<Form, String> {
    let x = node.inputs.first().copied().flatten();
    let shape = x.map_or(&[][..], |id| &graph.tensor(id).shape);
    if axis + 1 != shape.len() {
        return Err("it does not normalise along the last axis".into());
    }
    let near = u32::try_from((2 * radius + 1).min(shape[axis]));
    let fits = near.is_ok_and(|near| LrnI8::new(values, [f32::MIN_POSITIVE, 1.0], near).is_some());
    if fits {
        return Ok(Form::Free);
    }
    let [bias, alpha, beta] = values;
    Err(format!(
        "its bias is {bias}, alpha {alpha}, beta {beta} over {} channels: int8 wants a bias above 0, an alpha of 0 or above, a beta of 0 to 4 and at most \
         66,051 channels",
        2 * radius + 1
    ))
}

/// Whether a node is a convolution with a group for each channel: its weights are few, and it minds their rounding most.
pub(super) fn is_depthwise(graph: &Graph, node: &Node) -> bool {
    let x = node.inputs.first().copied().flatten();
    let channels = x.and_then(|id| graph.tensor(id).shape.last().copied());
    matches!(&node.op, Op::Conv2d(attrs) if attrs.groups > 1 && Some(attrs.groups) == channels)
}

/// Returns the tensor that an output's noise is measured at (the operand of a last softmax, whose result says little where it is near 0 or 1) and its reader.
pub(super) fn before_softmax(graph: &Graph, output: TensorId) -> (TensorId, Option<&Node>) {
    let producers = graph.producers();
    let mut found = (output, None);
    while let Some(node) = producers[found.0.0].map(|node| &graph.nodes[node.0]) {
        match (&node.op, node.inputs.first()) {
            (Op::Softmax { .. } | Op::LogSoftmax { .. } | Op::Reshape | Op::Identity, Some(&Some(before)))
                if is_real(graph, before) =>
            {
                found = (before, Some(node));
            }
            _ => break,
        }
    }
    found
}
