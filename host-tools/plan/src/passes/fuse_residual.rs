//! An f32 addition of a convolution's result becomes part of the convolution, which then writes the sum (in place, where the
//! planner finds it worth it). Quantised additions rescale both operands and stay steps of their own.

use super::rewrite::{Rewriter, is_const, rewrite_all};
use crate::error::Result;
use crate::graph::{Activation, BinaryOp, Conv2dAttrs, DType, Graph, Node, NodeId, Op};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    rewrite_all(graph, fuse);
    Ok(())
}

fn fuse(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let graph = &*net.graph;
    let node = graph.nodes[id.0].clone();
    let (
        Op::Binary {
            kind: BinaryOp::Add,
            activation,
        },
        [Some(a), Some(b)],
    ) = (&node.op, &node.inputs[..])
    else {
        return false;
    };
    if graph.tensor(*a).dtype != DType::F32 || graph.tensor(*a).shape != graph.tensor(*b).shape || a == b {
        return false;
    }
    // Of two convolutions the later one takes the sum: the other operand is complete by then.
    let candidates = [(*a, *b), (*b, *a)].into_iter().filter_map(|(x, other)| {
        let before = net.feeder(x, id)?;
        let first = &graph.nodes[before.0];
        let fits = matches!(&first.op, Op::Conv2d(attrs) if attrs.activation == Activation::None);
        (fits && first.inputs.len() <= 3 && !is_const(graph, other)).then_some((before, other))
    });
    let Some((before, residual)) = candidates.max() else {
        return false;
    };
    let first = graph.nodes[before.0].clone();
    let Op::Conv2d(attrs) = &first.op else { return false };
    let mut inputs = first.inputs.clone();
    inputs.resize(3, None);
    inputs.push(Some(residual));
    let op = Op::Conv2d(Conv2dAttrs {
        activation: *activation,
        ..attrs.clone()
    });
    net.merge(
        before,
        id,
        Node {
            op,
            inputs,
            outputs: node.outputs,
            ..first
        },
    );
    true
}
