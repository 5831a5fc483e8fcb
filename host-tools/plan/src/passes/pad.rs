//! Zero padding before a convolution or max pooling becomes the operator's own, as far as every window still meets the input: kernels
//! need that, and what a trace pads beyond it becomes a pad of its own.
//!
//! A max pooling ignores its own padding, an explicit zero takes part: the two agree where no input is below zero, as after a ReLU.

use super::rewrite::Rewriter;
use crate::error::Result;
use crate::graph::{Activation, Graph, Layout, Node, NodeId, Op, Padding2d, TensorId, TensorKind, UnaryKind};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    let mut net = Rewriter::new(graph);
    net.until_stable(fold);
    net.until_stable(unfold);
    net.finish();
    Ok(())
}

fn fold(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let graph = &*net.graph;
    let mut node = graph.nodes[id.0].clone();
    let Some(&Some(x)) = node.inputs.first() else {
        return false;
    };
    let (layout, padding, zero_takes_part) = match &mut node.op {
        Op::Conv2d(attrs) => (attrs.layout, &mut attrs.padding, true),
        Op::MaxPool2d(attrs) => (attrs.layout, &mut attrs.padding, false),
        _ => return false,
    };
    let Some(before) = net.feeder(x, id) else {
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
    if *value != zero_point as f32 || !same_quant || !(zero_takes_part || never_negative(net, *input)) {
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
    if excess(graph, &node).is_some() {
        return false;
    }
    net.merge(before, id, node);
    true
}

/// Takes the rows and columns out of a convolution's padding in which a window would see nothing else.
fn unfold(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let graph = &mut *net.graph;
    let mut node = graph.nodes[id.0].clone();
    let Some(excess) = excess(graph, &node) else {
        return false;
    };
    let (Op::Conv2d(attrs), Some(&Some(x))) = (&mut node.op, node.inputs.first()) else {
        return false;
    };
    for (have, excess) in sides(&mut attrs.padding).into_iter().zip(excess) {
        *have -= excess;
    }
    let [top, bottom, left, right] = excess;
    let pads = match attrs.layout {
        Layout::Nchw => vec![(0, 0), (0, 0), (top, bottom), (left, right)],
        Layout::Nhwc => vec![(0, 0), (top, bottom), (left, right), (0, 0)],
    };
    let tensor = graph.tensor(x);
    let mut padded = tensor.clone();
    padded.kind = TensorKind::Activation;
    padded.name = format!("{} (padded for {})", tensor.name, node.name);
    for (extent, (before, after)) in padded.shape.iter_mut().zip(&pads) {
        *extent += before + after;
    }
    let value = padded.quant.as_ref().and_then(|q| q.zero_point.first().copied());
    let padded = graph.add_tensor(padded);
    let pad = Node {
        name: format!("{} (padding)", node.name),
        op: Op::Pad {
            pads,
            value: value.unwrap_or(0) as f32,
        },
        inputs: vec![Some(x)],
        outputs: vec![padded],
        ..node.clone()
    };
    node.inputs[0] = Some(padded);
    net.set(id, node);
    net.insert_before(id, pad);
    true
}

/// By how much a convolution's or pooling's padding exceeds what its windows can bridge, on each side; `None` where it does nowhere.
fn excess(graph: &Graph, node: &Node) -> Option<[usize; 4]> {
    let mut reach = [0; 2];
    let mut padding = match (&node.op, node.inputs.get(1)) {
        (Op::Conv2d(attrs), Some(&Some(w))) => {
            let shape = &graph.tensor(w).shape;
            for (axis, reach) in reach.iter_mut().enumerate() {
                *reach = attrs.dilation[axis] * (shape[1 + axis] - 1);
            }
            attrs.padding
        }
        (Op::MaxPool2d(attrs), _) => {
            reach = attrs.kernel.map(|extent| extent - 1);
            attrs.padding
        }
        _ => return None,
    };
    let [rows, columns] = reach;
    let mut excess = [0; 4];
    for ((excess, have), reach) in (excess.iter_mut().zip(sides(&mut padding))).zip([rows, rows, columns, columns]) {
        *excess = have.saturating_sub(reach);
    }
    (excess != [0; 4]).then_some(excess)
}

fn sides(padding: &mut Padding2d) -> [&mut usize; 4] {
    [
        &mut padding.top,
        &mut padding.bottom,
        &mut padding.left,
        &mut padding.right,
    ]
}

fn never_negative(net: &Rewriter<'_>, tensor: TensorId) -> bool {
    let relu = |a: &Activation| matches!(a, Activation::Relu | Activation::Relu6);
    if net.graph.tensor(tensor).quant.is_some() {
        return false;
    }
    match net.producer(tensor).map(|id| &net.graph.nodes[id.0].op) {
        Some(Op::Conv2d(attrs)) => relu(&attrs.activation),
        Some(Op::MaxPool2d(attrs) | Op::AvgPool2d(attrs)) => relu(&attrs.activation),
        Some(Op::Linear { activation } | Op::Binary { activation, .. }) => relu(activation),
        Some(Op::Unary(UnaryKind::Relu | UnaryKind::Relu6 | UnaryKind::LOGISTIC | UnaryKind::EXP)) => true,
        Some(Op::Softmax { .. }) => true,
        _ => false,
    }
}
