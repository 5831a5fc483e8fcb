//! Operators that leave their operand as it is, and those that only change its extents, become identities and reshapes. Consecutive reshapes become one.

use super::identity;
use super::layout::moves_nothing;
use crate::error::Result;
use crate::graph::{Activation, Graph, Node, Op, Padding2d, PoolAttrs, TensorId};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    for index in 0..graph.nodes.len() {
        if let Some(op) = simpler(graph, &graph.nodes[index]) {
            let node = &mut graph.nodes[index];
            node.op = op;
            node.inputs.truncate(1);
        }
    }
    join_reshapes(graph);
    identity::run(graph)
}

/// What an operator is that only hands on its first operand.
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

/// What a reshape reads and writes.
fn reshaped(graph: &Graph, index: usize) -> Option<(TensorId, TensorId)> {
    match (
        &graph.nodes[index].op,
        &graph.nodes[index].inputs[..],
        &graph.nodes[index].outputs[..],
    ) {
        (Op::Reshape, &[Some(x)], &[y]) => Some((x, y)),
        _ => None,
    }
}
