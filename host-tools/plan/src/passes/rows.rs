//! A linear layer between two reshapes, of which one makes rows of its operand and the other gives the rows their axes again, needs neither: it takes an
//! operand of any axes. Exporters write products of more than two axes so, and what is added behind the second reshape is the layer's bias.

use super::rewrite::{Rewriter, is_const, rewrite_all};
use super::simplify;
use crate::error::Result;
use crate::graph::{DType, Graph, Node, NodeId, Op, TensorId};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    rewrite_all(graph, unite);
    // The first reshape may have no reader left.
    simplify::drop_unread(graph);
    Ok(())
}

/// `id` is the second reshape.
fn unite(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let Some((y, wide)) = simplify::reshaped(net.graph, id.0) else {
        return false;
    };
    let Some(layer) = net.feeder(y, id) else {
        return false;
    };
    let node = &net.graph.nodes[layer.0];
    let (Op::Linear { .. }, &[Some(rows), Some(weights), ..]) = (&node.op, &node.inputs[..]) else {
        return false;
    };
    let Some((source, _)) = net
        .producer(rows)
        .and_then(|before| simplify::reshaped(net.graph, before.0))
    else {
        return false;
    };
    let tensor = |id: TensorId| net.graph.tensor(id);
    let ([before @ .., k], [behind @ .., n]) = (&tensor(source).shape[..], &tensor(wide).shape[..]) else {
        return false;
    };
    let own = [source, rows, y, wide].map(tensor);
    let plain = own
        .iter()
        .all(|tensor| tensor.dtype == DType::F32 && tensor.quant.is_none());
    if !plain || !is_const(net.graph, weights) || before != behind || tensor(weights).shape != [*n, *k] {
        return false;
    }
    let mut inputs = node.inputs.clone();
    inputs[0] = Some(source);
    let united = Node {
        inputs,
        outputs: vec![wide],
        ..node.clone()
    };
    net.merge(layer, id, united);
    true
}
