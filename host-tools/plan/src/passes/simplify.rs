//! Operators that leave their operand as it is, and those that only change its extents, become identities and reshapes. Consecutive reshapes become one.

use super::constants::{known, value};
use super::identity;
use super::layout::moves_nothing;
use crate::error::Result;
use crate::graph::{Activation, BinaryOp, DType, Graph, Layout, Node, Op, Padding2d, PoolAttrs, ReduceKind, TensorId};

/// The largest constant that is looked at for whether it changes anything.
const MOST_CHANNELS: usize = 1 << 16;

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    for index in 0..graph.nodes.len() {
        if let Some(op) = simpler(graph, &graph.nodes[index]) {
            let node = &mut graph.nodes[index];
            node.op = op;
            node.inputs.truncate(1);
        } else if let Some(x) = neutral(graph, &graph.nodes[index]) {
            let node = &mut graph.nodes[index];
            node.op = Op::Identity;
            node.inputs = vec![Some(x)];
        } else if let Some(op) = plainer(graph, &graph.nodes[index]) {
            graph.nodes[index].op = op;
        }
    }
    join_reshapes(graph);
    identity::run(graph)
}

/// Returns the operator that replaces one which only hands on its first operand.
fn simpler(graph: &Graph, node: &Node) -> Option<Op> {
    let (&Some(x), &[y]) = (node.inputs.first()?, &node.outputs[..]) else {
        return None;
    };
    let (x, y) = (graph.tensor(x), graph.tensor(y));
    if x.dtype != y.dtype || x.quant != y.quant {
        return None;
    }
    let same = x.shape == y.shape;
    let hands_on = match &node.op {
        Op::Transpose { perm } if !moves_nothing(perm, &x.shape) => return None,
        Op::Transpose { .. } | Op::Reshape => true,
        Op::Reduce { axes, .. } => axes.iter().all(|&axis| x.shape[axis] == 1),
        Op::Slice { begin, stride } => {
            same && begin.iter().all(|&at| at == 0)
                && stride.iter().zip(&x.shape).all(|(&step, &n)| step == 1 || n == 1)
        }
        Op::Pad { pads, .. } => pads.iter().all(|&pad| pad == (0, 0)),
        Op::Concat {
            activation: Activation::None,
            ..
        } => node.inputs.len() == 1,
        Op::MaxPool2d(attrs) | Op::AvgPool2d(attrs) => same && one_element(attrs),
        Op::Broadcast | Op::ResizeNearest { .. } | Op::ResizeBilinear { .. } | Op::Cast => same,
        _ => false,
    };
    hands_on.then_some(if same { Op::Identity } else { Op::Reshape })
}

/// The operand of a product with ones, or of a sum with zeros, for each channel: what exporters write of a normalisation that scales behind its groups.
/// Exact, but that a sum of -0 and 0 is 0 and a copy of -0 is not.
fn neutral(graph: &Graph, node: &Node) -> Option<TensorId> {
    let (&Op::Binary { kind, activation }, &[Some(a), Some(b)], &[y]) = (&node.op, &node.inputs[..], &node.outputs[..])
    else {
        return None;
    };
    let (number, commutes) = match kind {
        BinaryOp::Mul => (1.0, true),
        BinaryOp::Add => (0.0, true),
        BinaryOp::Div => (1.0, false),
        BinaryOp::Sub => (0.0, false),
        _ => return None,
    };
    let (x, constant) = if commutes && graph.tensor(a).is_const() {
        (b, a)
    } else {
        (a, b)
    };
    let same = graph.tensor(x).shape == graph.tensor(y).shape && !graph.tensor(x).is_const();
    if !same || activation != Activation::None || graph.tensor(constant).elements() > MOST_CHANNELS {
        return None;
    }
    let values = known(&*value(graph, constant)?)?;
    values.iter().all(|&value| value == number).then_some(x)
}

/// The same operator in the form that stands for all: reductions name no axis of extent 1, and a maximum over the whole plane is a reduction.
fn plainer(graph: &Graph, node: &Node) -> Option<Op> {
    let x = graph.tensor(*node.inputs.first()?.as_ref()?);
    match &node.op {
        Op::Reduce {
            kind,
            axes,
            keep_dims: true,
        } => {
            let long: Vec<usize> = axes.iter().copied().filter(|&axis| x.shape[axis] > 1).collect();
            (long.len() < axes.len() && !long.is_empty()).then_some(Op::Reduce {
                kind: *kind,
                axes: long,
                keep_dims: true,
            })
        }
        Op::MaxPool2d(attrs) if x.dtype == DType::F32 && attrs.activation == Activation::None => {
            let axes = match attrs.layout {
                Layout::Nchw => [2, 3],
                Layout::Nhwc => [1, 2],
            };
            let whole = attrs.kernel == axes.map(|axis| x.shape[axis]) && attrs.padding == Padding2d::default();
            whole.then_some(Op::Reduce {
                kind: ReduceKind::Max,
                axes: axes.to_vec(),
                keep_dims: true,
            })
        }
        _ => None,
    }
}

fn one_element(attrs: &PoolAttrs) -> bool {
    let window = attrs.kernel == [1, 1] && attrs.stride == [1, 1];
    window && attrs.padding == Padding2d::default() && attrs.activation == Activation::None
}

/// A reshape of a reshape reads what that reads; those that nobody reads any more go.
fn join_reshapes(graph: &mut Graph) {
    let producers = graph.producers();
    for index in 0..graph.nodes.len() {
        let Some((source, y)) = reshaped(graph, index) else {
            continue;
        };
        let before = producers[source.0].and_then(|node| reshaped(graph, node.0));
        let Some((source, _)) = before else { continue };
        let (from, to) = (graph.tensor(source), graph.tensor(y));
        if from.dtype != to.dtype || from.quant != to.quant {
            continue;
        }
        let same = from.shape == to.shape;
        let node = &mut graph.nodes[index];
        node.op = if same { Op::Identity } else { Op::Reshape };
        node.inputs = vec![Some(source)];
    }
    drop_unread(graph);
}

/// Reshapes that nobody reads go.
pub(super) fn drop_unread(graph: &mut Graph) {
    let mut reads = vec![0_usize; graph.tensors.len()];
    let read = graph.nodes.iter().flat_map(|node| node.inputs.iter().flatten());
    read.chain(&graph.outputs).for_each(|id| reads[id.0] += 1);
    let mut gone = vec![false; graph.nodes.len()];
    for index in (0..graph.nodes.len()).rev() {
        if let Some((source, _)) = reshaped(graph, index).filter(|(_, y)| reads[y.0] == 0) {
            reads[source.0] -= 1;
            gone[index] = true;
        }
    }
    let mut gone = gone.into_iter();
    graph.nodes.retain(|_| !gone.next().unwrap_or(false));
}

/// Returns the operand and result of a reshape.
pub(super) fn reshaped(graph: &Graph, index: usize) -> Option<(TensorId, TensorId)> {
    match (
        &graph.nodes[index].op,
        &graph.nodes[index].inputs[..],
        &graph.nodes[index].outputs[..],
    ) {
        (Op::Reshape, &[Some(x)], &[y]) => Some((x, y)),
        _ => None,
    }
}
