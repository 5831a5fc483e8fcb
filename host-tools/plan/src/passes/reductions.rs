//! Reductions in the form that stands for all: of the tensor that a transpose was made of, and with the axes that a reshape behind them gives back.

use super::rewrite::{Rewriter, rewrite_all};
use super::simplify;
use crate::error::Result;
use crate::graph::{Graph, Node, NodeId, Op, ReduceKind};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    rewrite_all(graph, |net, id| of_transpose(net, id) || keeping(net, id).is_some());
    Ok(())
}

/// A reduction of a transposed tensor, whose other axes are in the order of before, is one of the tensor itself; sums go past the elements in the same order.
fn of_transpose(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let node = net.graph.nodes[id.0].clone();
    let (
        Op::Reduce {
            kind,
            axes,
            keep_dims: false,
        },
        &[Some(x)],
    ) = (&node.op, &node.inputs[..])
    else {
        return false;
    };
    let Some(before) = net.producer(x).map(|before| &net.graph.nodes[before.0]) else {
        return false;
    };
    let (Op::Transpose { perm }, &[Some(source)]) = (&before.op, &before.inputs[..]) else {
        return false;
    };
    let of_source = |reduced: bool| -> Vec<usize> {
        let axes = (0..perm.len()).filter(|axis| axes.contains(axis) == reduced);
        axes.map(|axis| perm[axis]).collect()
    };
    let (reduced, others) = (of_source(true), of_source(false));
    let any_order = matches!(kind, ReduceKind::Max | ReduceKind::Min);
    if !others.is_sorted() || !(reduced.is_sorted() || any_order) {
        return false;
    }
    let mut axes = reduced;
    axes.sort_unstable();
    let op = Op::Reduce {
        kind: *kind,
        axes,
        keep_dims: false,
    };
    net.set(
        id,
        Node {
            op,
            inputs: vec![Some(source)],
            ..node
        },
    );
    true
}

/// A reshape that gives a reduction its axes back, as ones, is part of it.
fn keeping(net: &mut Rewriter<'_>, id: NodeId) -> Option<()> {
    let (short, y) = simplify::reshaped(net.graph, id.0)?;
    let before = net.feeder(short, id)?;
    let node = net.graph.nodes[before.0].clone();
    let (
        Op::Reduce {
            kind,
            axes,
            keep_dims: false,
        },
        &[Some(x)],
    ) = (&node.op, &node.inputs[..])
    else {
        return None;
    };
    let mut kept = net.graph.tensor(x).shape.clone();
    axes.iter().for_each(|&axis| kept[axis] = 1);
    let (from, to) = (net.graph.tensor(short), net.graph.tensor(y));
    if to.shape != kept || from.dtype != to.dtype || from.quant != to.quant {
        return None;
    }
    let op = Op::Reduce {
        kind: *kind,
        axes: axes.clone(),
        keep_dims: true,
    };
    let outputs = vec![y];
    net.merge(before, id, Node { op, outputs, ..node });
    Some(())
}
