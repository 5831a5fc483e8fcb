//! A clamp after an operator that can clamp its own result becomes part of it.

use super::rewrite::{Rewriter, rewrite_all};
use crate::error::Result;
use crate::graph::{Activation, Graph, NodeId, Op, UnaryKind};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    rewrite_all(graph, fuse);
    Ok(())
}

fn fuse(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let graph = &*net.graph;
    let node = &graph.nodes[id.0];
    let (Op::Unary(kind), [Some(x)]) = (&node.op, &node.inputs[..]) else {
        return false;
    };
    let activation = match kind {
        UnaryKind::Relu => Activation::Relu,
        UnaryKind::Relu6 => Activation::Relu6,
        UnaryKind::ReluN1To1 => Activation::ReluN1To1,
        _ => return false,
    };
    // A quantised clamp may also requantise; only with the same scale and zero point does it clamp the stored numbers.
    if graph.tensor(*x).quant != graph.tensor(node.outputs[0]).quant {
        return false;
    }
    let Some(before) = net.feeder(*x, id) else {
        return false;
    };
    let mut merged = graph.nodes[before.0].clone();
    let slot = match &mut merged.op {
        Op::Conv2d(attrs) => &mut attrs.activation,
        Op::MaxPool2d(attrs) | Op::AvgPool2d(attrs) => &mut attrs.activation,
        Op::Linear { activation } | Op::LocallyConnected2d { activation } | Op::Binary { activation, .. } => activation,
        _ => return false,
    };
    if *slot != Activation::None {
        return false;
    }
    *slot = activation;
    merged.outputs = node.outputs.clone();
    net.merge(before, id, merged);
    true
}
