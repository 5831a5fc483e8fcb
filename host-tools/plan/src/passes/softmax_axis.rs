//! Kernels sum along the innermost axis: a softmax or a local response normalisation along another one gets a transpose before and after it.

use super::rewrite::{Rewriter, rewrite_all};
use crate::error::Result;
use crate::graph::{Graph, Node, NodeId, Op, Tensor, TensorId, TensorKind};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    rewrite_all(graph, move_inside);
    Ok(())
}

fn move_inside(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let graph = &mut *net.graph;
    let mut node = graph.nodes[id.0].clone();
    let (Op::Softmax { axis, .. } | Op::LogSoftmax { axis } | Op::Lrn { axis, .. }) = &mut node.op else {
        return false;
    };
    let (Some(&Some(x)), Some(&y)) = (node.inputs.first(), node.outputs.first()) else {
        return false;
    };
    let shape = &graph.tensor(x).shape;
    let (rank, from) = (shape.len(), *axis);
    if shape[from + 1..].iter().all(|&extent| extent == 1) {
        return false;
    }
    *axis = rank - 1;
    let inwards: Vec<usize> = (0..rank).filter(|&axis| axis != from).chain([from]).collect();
    let back: Vec<usize> = (0..rank)
        .map(|axis| inwards.iter().position(|&a| a == axis).expect("a permutation"))
        .collect();
    let (x_moved, y_moved) = (moved(graph, x, &inwards, &node), moved(graph, y, &inwards, &node));
    let transpose = |perm: Vec<usize>, from, to, when: &str| Node {
        name: format!("{} (transpose {when})", node.name),
        op: Op::Transpose { perm },
        inputs: vec![Some(from)],
        outputs: vec![to],
        ..node.clone()
    };
    let before = transpose(inwards, x, x_moved, "before");
    let behind = transpose(back, y_moved, y, "after");
    let inside = Node {
        inputs: vec![Some(x_moved)],
        outputs: vec![y_moved],
        ..node
    };
    net.set(id, inside);
    net.insert_before(id, before);
    net.insert_behind(id, behind);
    true
}

/// A tensor like `of`, its axes permuted.
fn moved(graph: &mut Graph, of: TensorId, perm: &[usize], node: &Node) -> TensorId {
    let tensor = graph.tensor(of);
    let moved = Tensor {
        name: format!("{} (transposed for {})", tensor.name, node.name),
        shape: perm.iter().map(|&axis| tensor.shape[axis]).collect(),
        kind: TensorKind::Activation,
        traced_perm: Default::default(),
        ..tensor.clone()
    };
    graph.add_tensor(moved)
}
