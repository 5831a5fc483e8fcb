//! What passes share: who reads what, and the merging of two neighbours.

use crate::graph::{Graph, Node, NodeId, TensorId, TensorKind};

/// The only node that reads `tensor`, where there is just one reading operand and it is no output of the network.
pub(super) fn sole_reader(graph: &Graph, tensor: TensorId) -> Option<NodeId> {
    if graph.outputs.contains(&tensor) {
        return None;
    }
    let mut readers = (graph.nodes.iter().enumerate())
        .flat_map(|(index, node)| node.inputs.iter().flatten().map(move |id| (index, *id)))
        .filter(|(_, id)| *id == tensor);
    match (readers.next(), readers.next()) {
        (Some((reader, _)), None) => Some(NodeId(reader)),
        _ => None,
    }
}

/// The node that writes `tensor`.
pub(super) fn producer(graph: &Graph, tensor: TensorId) -> Option<NodeId> {
    graph
        .nodes
        .iter()
        .position(|node| node.outputs.contains(&tensor))
        .map(NodeId)
}

/// The node that writes `tensor`, where only the node `reader` reads it: the two can merge.
pub(super) fn feeder(graph: &Graph, tensor: TensorId, reader: NodeId) -> Option<NodeId> {
    producer(graph, tensor).filter(|_| sole_reader(graph, tensor) == Some(reader))
}

/// Removes nodes.
pub(super) fn remove(graph: &mut Graph, gone: &[NodeId]) {
    let mut index = 0;
    graph.nodes.retain(|_| {
        index += 1;
        !gone.contains(&NodeId(index - 1))
    });
}

/// Replaces the neighbours `first` and `second` by `merged`, at the place of `second`: its operands are all written by then.
pub(super) fn merge(graph: &mut Graph, first: NodeId, second: NodeId, merged: Node) {
    graph.nodes[second.0] = merged;
    remove(graph, &[first]);
}

/// Lets every reader of `from`, and the network's outputs, use `to`.
pub(super) fn replace(graph: &mut Graph, from: TensorId, to: TensorId) {
    for id in graph
        .nodes
        .iter_mut()
        .flat_map(|node| node.inputs.iter_mut().flatten())
        .chain(&mut graph.outputs)
    {
        if *id == from {
            *id = to;
        }
    }
}

/// Tries `rewrite` on every node until it applies nowhere; it says whether it changed the graph.
pub(super) fn until_stable(graph: &mut Graph, mut rewrite: impl FnMut(&mut Graph, NodeId) -> bool) {
    let mut index = 0;
    while index < graph.nodes.len() {
        // A merge moves what follows down by one, and may make its neighbour fusable.
        match rewrite(graph, NodeId(index)) {
            true => index = index.saturating_sub(1),
            false => index += 1,
        }
    }
}

/// Whether the tensor is a constant.
pub(super) fn is_const(graph: &Graph, id: TensorId) -> bool {
    matches!(graph.tensor(id).kind, TensorKind::Const(_))
}
