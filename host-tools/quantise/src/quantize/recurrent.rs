//! Unrolled recurrent layers in int16 inside an int8 network. Each step of such a layer reads what the step before it computed, so that roundings of bytes add
//! up over the steps.

use crate::graph::{Graph, Node, NodeId, Op, TensorId};

/// So many nodes that read the same weights, one behind the other, are steps of a layer; two are as well layers that share them.
const STEPS: usize = 3;

/// Of each node, whether it belongs to steps of a recurrent layer: matrices that several nodes read, one of which follows from another; what is computed from
/// their results before other weights are read; and the products of other weights that are added to theirs. Nodes that write outputs of the network do not.
pub(super) fn nodes(graph: &Graph, producers: &[Option<NodeId>], consumers: &[Vec<NodeId>]) -> Vec<bool> {
    let mut found = vec![false; graph.nodes.len()];
    for (index, tensor) in graph.tensors.iter().enumerate() {
        if tensor.is_const() {
            let reads = |reader: &&NodeId| weights(&graph.nodes[reader.0]) == Some(TensorId(index));
            let readers: Vec<NodeId> = consumers[index].iter().filter(reads).copied().collect();
            if readers.len() >= STEPS && is_followed(graph, &readers) {
                readers.into_iter().for_each(|reader| found[reader.0] = true);
            }
        }
    }
    if !found.contains(&true) {
        return found;
    }
    let steps = found.clone();
    for (index, node) in graph.nodes.iter().enumerate() {
        let read = || node.inputs.iter().flatten().filter_map(|id| producers[id.0]);
        if !has_weights(node) && read().any(|of| found[of.0]) {
            found[index] = true;
        }
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        if found[index] && !steps[index] {
            let all = node.inputs.iter().flatten();
            let behind: Vec<_> = all.flat_map(|id| products(graph, producers, *id)).collect();
            behind.into_iter().for_each(|of| found[of.0] = true);
        }
    }
    for id in &graph.outputs {
        if let Some(writer) = producers[id.0] {
            found[writer.0] = false;
        }
    }
    found
}

/// The weights that a node reads, where they are its second operand alone.
fn weights(node: &Node) -> Option<TensorId> {
    has_weights(node)
        .then(|| node.inputs.get(1).copied().flatten())
        .flatten()
}

fn has_weights(node: &Node) -> bool {
    matches!(
        node.op,
        Op::Conv2d(_) | Op::LocallyConnected2d { .. } | Op::Linear { .. } | Op::MatMul { .. }
    )
}

/// Whether one of these nodes follows from the first of them.
fn is_followed(graph: &Graph, readers: &[NodeId]) -> bool {
    let mut follows = vec![false; graph.tensors.len()];
    let Some(first) = readers.iter().map(|of| of.0).min() else {
        return false;
    };
    for (index, node) in graph.nodes.iter().enumerate().skip(first) {
        let after = node.inputs.iter().flatten().any(|id| follows[id.0]);
        if after && readers.contains(&NodeId(index)) {
            return true;
        }
        if after || index == first {
            node.outputs.iter().for_each(|id| follows[id.0] = true);
        }
    }
    false
}

/// The product of weights that a tensor is, with what cuts or copies it; nothing where it is something else.
fn products(graph: &Graph, producers: &[Option<NodeId>], mut id: TensorId) -> Vec<NodeId> {
    let mut passed = Vec::new();
    while let Some(of) = producers[id.0] {
        let node = &graph.nodes[of.0];
        passed.push(of);
        match (&node.op, node.inputs.first()) {
            _ if has_weights(node) => return passed,
            (Op::Reshape | Op::Slice { .. } | Op::Transpose { .. }, Some(&Some(read))) => id = read,
            _ => break,
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Activation, BinaryOp, DType, Data, Origin, Role, Tensor, TensorKind, UnaryKind};

    fn tensor(graph: &mut Graph, name: &str, shape: &[usize]) -> TensorId {
        graph.add_tensor(Tensor::activation(name, shape, DType::F32))
    }

    fn push(graph: &mut Graph, name: &str, op: Op, inputs: &[TensorId]) -> TensorId {
        let output = tensor(graph, name, &[1, 2]);
        graph.add_node(Node {
            name: name.to_owned(),
            kind: name.to_owned(),
            op,
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: vec![output],
            role: Role::Forward,
            origin: Origin::default(),
        });
        output
    }

    fn linear() -> Op {
        Op::Linear {
            activation: Activation::None,
        }
    }

    /// Three products of the same weights, of each other's results or all of the first one's operand, added to products of the input, and a layer behind them.
    fn network(is_recurrent: bool) -> Graph {
        let mut graph = Graph::default();
        let weights = |name: &str, graph: &mut Graph| {
            let id = tensor(graph, name, &[2, 2]);
            graph.tensors[id.0].kind = TensorKind::Const(Data::from_f32(&[1.0, 2.0, 3.0, 4.0]));
            id
        };
        let [own, of_input, last] = ["own", "of_input", "last"].map(|name| weights(name, &mut graph));
        let x = tensor(&mut graph, "x", &[1, 2]);
        let first = push(&mut graph, "first", Op::Unary(UnaryKind::Relu), &[x]);
        let (mut state, mut last_state) = (first, first);
        for step in ["1", "2", "3"] {
            let moved = push(&mut graph, &format!("product {step}"), linear(), &[state, own]);
            let input = push(&mut graph, &format!("input {step}"), linear(), &[x, of_input]);
            let cut = push(&mut graph, &format!("cut {step}"), Op::Reshape, &[input]);
            let sum = Op::Binary {
                kind: BinaryOp::Add,
                activation: Activation::None,
            };
            let sum = push(&mut graph, &format!("sum {step}"), sum, &[moved, cut]);
            let next = push(&mut graph, &format!("state {step}"), Op::Unary(UnaryKind::TANH), &[sum]);
            state = if is_recurrent { next } else { first };
            last_state = next;
        }
        let behind = push(&mut graph, "behind", linear(), &[last_state, last]);
        graph.outputs = vec![push(&mut graph, "result", Op::Unary(UnaryKind::TANH), &[behind])];
        graph
    }

    fn names(graph: &Graph) -> Vec<&str> {
        let own = nodes(graph, &graph.producers(), &graph.consumers());
        let own = graph.nodes.iter().zip(own).filter(|(_, own)| *own);
        own.map(|(node, _)| node.name.as_str()).collect()
    }

    #[test]
    fn steps_are_what_follows_from_products_of_the_same_weights() {
        let of_a_step = ["product", "input", "cut", "sum", "state"];
        let expected = ["1", "2", "3"].map(|step| of_a_step.map(|name| format!("{name} {step}")));
        assert_eq!(names(&network(true)), expected.concat());
    }

    #[test]
    fn branches_of_the_same_weights_are_no_steps() {
        assert_eq!(names(&network(false)), [""; 0]);
    }
}
