//! Drops what does not serve inference: the training half by its role, then whatever feeds no output.

use crate::error::Result;
use crate::graph::{Graph, Node, Op, Role, TensorId, TensorKind};

pub use crate::graph::facts::UNUSED;

/// Prunes, and counts the dropped nodes in [`Graph::pruned`]: by [`Role::name`], and [`UNUSED`] for forward operators without effect. Tensors
/// that nothing mentions any more go with them; network inputs stay.
///
/// # Errors
/// None; it shares the signature of all passes.
pub fn run(graph: &mut Graph) -> Result<()> {
    let live = live_nodes(graph);
    let pruned = &mut graph.pruned;
    let mut count = |kind: &str| *pruned.entry(kind.to_string()).or_insert(0) += 1;
    let mut index = 0;
    graph.nodes.retain(|node| {
        let is_live = live.get(index).copied().unwrap_or(false);
        index += 1;
        match (node.role, is_live) {
            (Role::Forward, true) => return true,
            (Role::Forward, false) => count(UNUSED),
            (role, _) => count(role.name()),
        }
        false
    });
    remove_unmentioned_tensors(graph);
    Ok(())
}

/// Forward nodes whose results reach an output or a state, by node index.
fn live_nodes(graph: &Graph) -> Vec<bool> {
    let producers = graph.producers();
    let mut live = vec![false; graph.nodes.len()];
    let mut wanted: Vec<TensorId> = graph.outputs.clone();
    let writes_state = |node: &Node| {
        node.op == Op::AssignState
            || (node.inputs.iter().flatten())
                .any(|&id| !matches!(node.op, Op::ReadState) && matches!(graph.tensor(id).kind, TensorKind::State(_)))
    };
    for (index, node) in graph.nodes.iter().enumerate() {
        if node.role == Role::Forward && writes_state(node) {
            live[index] = true;
            wanted.extend(node.inputs.iter().flatten());
        }
    }
    while let Some(id) = wanted.pop() {
        let Some(producer) = producers[id.0] else { continue };
        let node = &graph.nodes[producer.0];
        if node.role == Role::Forward && !std::mem::replace(&mut live[producer.0], true) {
            wanted.extend(node.inputs.iter().flatten());
        }
    }
    live
}

/// Of each tensor, whether a node, an input or an output mentions it.
pub(crate) fn mentioned(graph: &Graph) -> Vec<bool> {
    let mut mentioned = vec![false; graph.tensors.len()];
    let of_nodes = graph
        .nodes
        .iter()
        .flat_map(|node| node.inputs.iter().flatten().chain(&node.outputs));
    for id in of_nodes.chain(&graph.inputs).chain(&graph.outputs) {
        mentioned[id.0] = true;
    }
    mentioned
}

/// Removes tensors that no node, input or output mentions, and renumbers the rest.
pub(crate) fn remove_unmentioned_tensors(graph: &mut Graph) {
    let mentioned = mentioned(graph);
    let mut kept = 0;
    let renumbered: Vec<TensorId> = mentioned
        .iter()
        .map(|&mentioned| {
            kept += usize::from(mentioned);
            TensorId(kept.saturating_sub(1))
        })
        .collect();
    let mut index = 0;
    graph.tensors.retain(|_| {
        index += 1;
        mentioned[index - 1]
    });
    let of_nodes = graph
        .nodes
        .iter_mut()
        .flat_map(|node| node.inputs.iter_mut().flatten().chain(&mut node.outputs));
    for id in of_nodes.chain(&mut graph.inputs).chain(&mut graph.outputs) {
        *id = renumbered[id.0];
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::graph::{DType, Origin, Tensor, UnaryKind};

    #[test]
    fn training_and_dead_nodes_go_and_ids_follow() {
        let mut graph = Graph::default();
        let mut tensor = |name: &str| graph.add_tensor(Tensor::activation(name, &[1, 2], DType::F32));
        let [x, gradient, dead, y] = ["x", "gradient", "dead", "y"].map(&mut tensor);
        graph.tensors[x.0].kind = TensorKind::Input;
        let node = |name: &str, op: Op, role: Role, from: TensorId, to: TensorId| Node {
            name: name.to_string(),
            kind: name.to_string(),
            op,
            inputs: vec![Some(from)],
            outputs: vec![to],
            role,
            origin: Origin::default(),
        };
        let relu = || Op::Unary(UnaryKind::Relu);
        graph.add_node(node("backward", Op::Opaque, Role::Backward, y, gradient));
        graph.add_node(node("dead", relu(), Role::Forward, x, dead));
        graph.add_node(node("live", relu(), Role::Forward, x, y));
        graph.inputs = vec![x];
        graph.outputs = vec![y];

        run(&mut graph).unwrap();
        assert_eq!(
            graph.pruned,
            BTreeMap::from([("backward".to_string(), 1), (UNUSED.to_string(), 1)])
        );
        let names: Vec<_> = graph.tensors.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["x", "y"]);
        assert_eq!(graph.nodes[0].outputs, graph.outputs);
        crate::graph::check::check(&graph).unwrap();
    }
}
