//! Zero padding before a convolution or max pooling becomes the operator's own.
//!
//! A max pooling ignores its own padding, an explicit zero takes part: the two agree where no input is below zero, as after a ReLU.

use super::rewrite::{feeder, merge, producer, until_stable};
use crate::error::Result;
use crate::graph::{Activation, Graph, Layout, NodeId, Op, Padding2d, TensorId, UnaryKind};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    until_stable(graph, fold);
    Ok(())
}

fn fold(graph: &mut Graph, id: NodeId) -> bool {
    let mut node = graph.nodes[id.0].clone();
    let Some(&Some(x)) = node.inputs.first() else {
        return false;
    };
    let (layout, padding, zero_takes_part) = match &mut node.op {
        Op::Conv2d(attrs) => (attrs.layout, &mut attrs.padding, true),
        Op::MaxPool2d(attrs) => (attrs.layout, &mut attrs.padding, false),
        _ => return false,
    };
    let Some(before) = feeder(graph, x, id) else {
        return false;
    };
    let first = &graph.nodes[before.0];
    let (Op::Pad { pads, value }, [Some(input), ..]) = (&first.op, &first.inputs[..]) else {
        return false;
    };
    let zero_point = graph
        .tensor(x)
        .quant
        .as_ref()
        .and_then(|q| q.zero_point.first().copied())
        .unwrap_or(0);
    let same_quant = graph.tensor(x).quant == graph.tensor(*input).quant;
    if *value != zero_point as f32 || !same_quant || !(zero_takes_part || never_negative(graph, *input)) {
        return false;
    }
    let (rows, columns) = match layout {
        Layout::Nchw => (2, 3),
        Layout::Nhwc => (1, 2),
    };
    if pads.len() != 4 || (0..4).any(|axis| axis != rows && axis != columns && pads[axis] != (0, 0)) {
        return false;
    }
    *padding = Padding2d {
        top: padding.top + pads[rows].0,
        bottom: padding.bottom + pads[rows].1,
        left: padding.left + pads[columns].0,
        right: padding.right + pads[columns].1,
    };
    node.inputs[0] = Some(*input);
    merge(graph, before, id, node);
    true
}

fn never_negative(graph: &Graph, tensor: TensorId) -> bool {
    let relu = |a: &Activation| matches!(a, Activation::Relu | Activation::Relu6);
    if graph.tensor(tensor).quant.is_some() {
        return false;
    }
    match producer(graph, tensor).map(|id| &graph.nodes[id.0].op) {
        Some(Op::Conv2d(attrs)) => relu(&attrs.activation),
        Some(Op::MaxPool2d(attrs) | Op::AvgPool2d(attrs)) => relu(&attrs.activation),
        Some(Op::Linear { activation } | Op::Binary { activation, .. }) => relu(activation),
        Some(Op::Unary(UnaryKind::Relu | UnaryKind::Relu6 | UnaryKind::Logistic | UnaryKind::Exp)) => true,
        Some(Op::Softmax { .. }) => true,
        _ => false,
    }
}
