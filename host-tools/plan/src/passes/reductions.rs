//! Reductions in the form that stands for all: of the tensor that a transpose was made of, and with the axes that a reshape behind them gives back.

use super::rewrite::{Rewriter, rewrite_all};
use super::simplify;
use crate::error::Result;
use crate::graph::{Graph, Node, NodeId, Op, ReduceKind, TensorId};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    rewrite_all(graph, |net, id| of_transpose(net, id) || keeping(net, id).is_some());
    Ok(())
}

/// A reduction of a transposed tensor, whose other axes are in the order of before, is one of the tensor itself; sums go past the elements in the same order.
fn of_transpose(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let Some((node, kind, axes, x)) = dropping(net.graph, id) else {
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
    if !others.is_sorted() || !reduced.is_sorted() {
        return false;
    }
    let op = Op::Reduce {
        kind,
        axes: reduced,
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
    let (node, kind, axes, x) = dropping(net.graph, before)?;
    let mut kept = net.graph.tensor(x).shape.clone();
    axes.iter().for_each(|&axis| kept[axis] = 1);
    let (from, to) = (net.graph.tensor(short), net.graph.tensor(y));
    if to.shape != kept || from.dtype != to.dtype || from.quant != to.quant {
        return None;
    }
    let op = Op::Reduce {
        kind,
        axes,
        keep_dims: true,
    };
    let outputs = vec![y];
    net.merge(before, id, Node { op, outputs, ..node });
    Some(())
}

/// A reduction that drops its axes: the node, what it reduces by, its axes and its operand.
fn dropping(graph: &Graph, id: NodeId) -> Option<(Node, ReduceKind, Vec<usize>, TensorId)> {
    let node = graph.nodes[id.0].clone();
    match (&node.op, &node.inputs[..]) {
        (
            Op::Reduce {
                kind,
                axes,
                keep_dims: false,
            },
            &[Some(x)],
        ) => {
            let (kind, axes) = (*kind, axes.clone());
            Some((node, kind, axes, x))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::Net;
    use super::*;

    fn reduce(axes: &[usize], keep_dims: bool) -> Op {
        Op::Reduce {
            kind: ReduceKind::Mean,
            axes: axes.to_vec(),
            keep_dims,
        }
    }

    /// A mean of the operand `[2, 3]` as `[1, 2, 3]`, moved by `perm`.
    fn of_moved(perm: [usize; 3], axes: &[usize]) -> Op {
        let (mut net, x) = Net::new();
        let x = net.shaped(Op::Reshape, &[x], &[1, 2, 3]);
        let moved = perm.map(|axis| [1, 2, 3][axis]);
        let y = net.shaped(Op::Transpose { perm: perm.to_vec() }, &[x], &moved);
        let rest: Vec<usize> = (0..3)
            .filter(|axis| !axes.contains(axis))
            .map(|axis| moved[axis])
            .collect();
        let y = net.shaped(reduce(axes, false), &[y], &rest);
        net.after(&[y], run).pop().expect("a reduction")
    }

    #[test]
    fn a_mean_of_a_transposed_tensor_is_one_of_the_tensor() {
        assert_eq!(of_moved([0, 2, 1], &[1]), reduce(&[2], false));
        assert_eq!(of_moved([1, 0, 2], &[0, 2]), reduce(&[1, 2], false));
        // The elements would be added in another order, or the results would stand in one.
        assert_eq!(of_moved([0, 2, 1], &[1, 2]), reduce(&[1, 2], false));
        assert_eq!(of_moved([0, 2, 1], &[0]), reduce(&[0], false));
    }

    #[test]
    fn a_reshape_that_gives_the_axes_back_is_part_of_the_reduction() {
        for (back, ops) in [(vec![2, 1], 1), (vec![1, 2], 2)] {
            let (mut net, x) = Net::new();
            let y = net.shaped(reduce(&[1], false), &[x], &[2]);
            let y = net.shaped(Op::Reshape, &[y], &back);
            let found = net.after(&[y], run);
            assert_eq!(found.len(), ops, "{back:?}");
            assert_eq!(found[0], reduce(&[1], ops == 1), "{back:?}");
        }
    }
}
