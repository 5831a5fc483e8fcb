//! Drops nodes that compute nothing at inference, dropout first of all.

use crate::error::Result;
use crate::graph::{Graph, Op, TensorId, TensorKind};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    let mut is_output = vec![false; graph.tensors.len()];
    for id in &graph.outputs {
        is_output[id.0] = true;
    }
    // Name of each tensor from now on.
    let mut called: Vec<TensorId> = (0..graph.tensors.len()).map(TensorId).collect();
    let mut gone = vec![false; graph.nodes.len()];
    for (node, gone) in graph.nodes.iter().zip(&mut gone) {
        let (Op::Identity, [Some(input), ..], [output]) = (&node.op, &node.inputs[..], &node.outputs[..]) else {
            continue;
        };
        let (input, output) = (resolve(&called, *input), *output);
        if !is_output[output.0] {
            called[output.0] = input;
        } else if !is_output[input.0] && matches!(graph.tensor(input).kind, TensorKind::Activation) {
            // The network's output keeps its name: whoever writes the input writes it directly.
            called[input.0] = output;
        } else {
            // An input that is an output, and a second output of one tensor, need the copy: each keeps its own name.
            continue;
        }
        *gone = true;
    }
    let mut gone = gone.into_iter();
    graph.nodes.retain(|_| !gone.next().unwrap_or(false));
    for node in &mut graph.nodes {
        for id in node.inputs.iter_mut().flatten().chain(&mut node.outputs) {
            *id = resolve(&called, *id);
        }
    }
    Ok(())
}

fn resolve(called: &[TensorId], mut id: TensorId) -> TensorId {
    while called[id.0] != id {
        id = called[id.0];
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{DType, Node, Origin, Role, Tensor, UnaryKind, check::check};

    /// `x`, and nodes `(operand, result)`: the first computes, the others copy.
    fn network(nodes: &[(&str, &str)], outputs: &[&str]) -> Graph {
        let mut graph = Graph::default();
        let mut names = vec!["x"];
        names.extend(nodes.iter().map(|(_, to)| to));
        for name in &names {
            graph.add_tensor(Tensor::activation(*name, &[1, 3], DType::F32));
        }
        graph.tensors[0].kind = TensorKind::Input;
        let id = |name: &str| TensorId(names.iter().position(|n| *n == name).unwrap());
        for (index, (from, to)) in nodes.iter().enumerate() {
            graph.add_node(Node {
                name: to.to_string(),
                kind: "node".to_string(),
                op: if index == 0 {
                    Op::Unary(UnaryKind::Relu)
                } else {
                    Op::Identity
                },
                inputs: vec![Some(id(from))],
                outputs: vec![id(to)],
                role: Role::Forward,
                origin: Origin::default(),
            });
        }
        graph.inputs = vec![TensorId(0)];
        graph.outputs = outputs.iter().map(|name| id(name)).collect();
        check(&graph).unwrap();
        graph
    }

    fn after(mut graph: Graph) -> (usize, Vec<String>) {
        run(&mut graph).unwrap();
        check(&graph).unwrap();
        let names = graph.outputs.iter().map(|id| graph.tensor(*id).name.clone());
        (graph.nodes.len(), names.collect())
    }

    #[test]
    fn outputs_keep_their_names() {
        let one = network(&[("x", "y"), ("y", "a"), ("a", "b")], &["b"]);
        assert_eq!(after(one), (1, vec!["b".to_string()]));
        // One of them is the tensor itself, the other a copy.
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let two = network(&[("x", "y"), ("y", "a"), ("y", "b")], &["a", "b"]);
        assert_eq!(after(two), (2, names(&["a", "b"])));
        let itself = network(&[("x", "y"), ("y", "a"), ("a", "b")], &["b", "y"]);
        assert_eq!(after(itself), (2, names(&["b", "y"])));
        let input = network(&[("x", "y"), ("x", "a")], &["y", "a"]);
        assert_eq!(after(input), (2, names(&["y", "a"])));
    }
}
