//! Recognises a softmax that is written out: x - max(x), exp, sum, division, along one axis.

use crate::error::Result;
use crate::graph::{Activation, BinaryOp, Graph, NodeId, Op, ReduceKind, TensorId, UnaryKind};

/// Replaces each written-out softmax whose intermediate results nobody else reads by one [`Op::Softmax`], in place of its
/// division. The maximum may be missing: it does not change the value.
///
/// # Errors
/// None; it shares the signature of all passes.
pub fn run(graph: &mut Graph) -> Result<()> {
    // A softmax that is found changes who reads its operand alone, which no other match asks for.
    let (producers, consumers) = (graph.producers(), graph.consumers());
    let mut removed = vec![false; graph.nodes.len()];
    for index in 0..graph.nodes.len() {
        let is_division = matches!(
            graph.nodes[index].op,
            Op::Binary {
                kind: BinaryOp::Div,
                activation: Activation::None
            }
        );
        if is_division && let Some(Match { x, axis, parts }) = find(graph, &producers, &consumers, NodeId(index)) {
            for part in parts {
                removed[part.0] = true;
            }
            let node = &mut graph.nodes[index];
            node.op = Op::Softmax { axis, beta: 1.0 };
            node.inputs = vec![Some(x)];
            node.kind = "Softmax".to_string();
        }
    }
    let mut index = 0;
    graph.nodes.retain(|_| {
        index += 1;
        !removed[index - 1]
    });
    super::prune::remove_unmentioned_tensors(graph);
    Ok(())
}

struct Match {
    x: TensorId,
    axis: usize,
    /// All nodes but the division.
    parts: Vec<NodeId>,
}

fn find(graph: &Graph, producers: &[Option<NodeId>], consumers: &[Vec<NodeId>], division: NodeId) -> Option<Match> {
    let writer = |id: TensorId| producers.get(id.0).copied().flatten();
    let op = |id: NodeId| &graph.nodes[id.0].op;
    let input = |id: NodeId, i: usize| graph.nodes[id.0].inputs.get(i).copied().flatten();
    let output = |id: NodeId| graph.nodes[id.0].outputs.first().copied();
    // An intermediate result that exactly these nodes read, and that is no output of the network.
    let private = |id: NodeId, readers: &[NodeId]| {
        output(id).is_some_and(|out| consumers[out.0] == readers && !graph.outputs.contains(&out))
    };
    let binary = |id: NodeId, wanted: BinaryOp| matches!(op(id), Op::Binary { kind, activation: Activation::None } if *kind == wanted);
    let reduced = |id: NodeId, wanted: ReduceKind| match op(id) {
        Op::Reduce {
            kind,
            axes,
            keep_dims: true,
        } if *kind == wanted && axes.len() == 1 => axes.first().copied(),
        _ => None,
    };

    let exp = writer(input(division, 0)?)?;
    let sum = writer(input(division, 1)?)?;
    let axis = reduced(sum, ReduceKind::Sum)?;
    if *op(exp) != Op::Unary(UnaryKind::EXP) || writer(input(sum, 0)?)? != exp {
        return None;
    }
    if !private(sum, &[division]) || !private(exp, &[sum, division]) {
        return None;
    }
    let argument = input(exp, 0)?;
    let with_maximum = || {
        let difference = writer(argument)?;
        let x = input(difference, 0)?;
        let maximum = writer(input(difference, 1)?)?;
        let fits = binary(difference, BinaryOp::Sub)
            && reduced(maximum, ReduceKind::Max)? == axis
            && input(maximum, 0)? == x
            && private(difference, &[exp])
            && private(maximum, &[difference]);
        fits.then_some((x, vec![maximum, difference, exp, sum]))
    };
    let (x, parts) = with_maximum().unwrap_or((argument, vec![exp, sum]));
    Some(Match { x, axis, parts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{DType, Node, Origin, Role, Tensor, TensorKind, check::check};

    fn written_out(axis_of_sum: usize) -> Graph {
        let mut graph = Graph::default();
        let mut tensor = |name: &str, shape: &[usize]| graph.add_tensor(Tensor::activation(name, shape, DType::F32));
        let x = tensor("x", &[2, 5]);
        let max = tensor("max", &[2, 1]);
        let sub = tensor("sub", &[2, 5]);
        let exp = tensor("exp", &[2, 5]);
        let sum = tensor("sum", if axis_of_sum == 1 { &[2, 1] } else { &[1, 5] });
        let y = tensor("y", &[2, 5]);
        graph.tensors[x.0].kind = TensorKind::Input;
        let reduce = |kind, axis| Op::Reduce {
            kind,
            axes: vec![axis],
            keep_dims: true,
        };
        let binary = |kind| Op::Binary {
            kind,
            activation: Activation::None,
        };
        for (op, inputs, output) in [
            (reduce(ReduceKind::Max, 1), vec![x], max),
            (binary(BinaryOp::Sub), vec![x, max], sub),
            (Op::Unary(UnaryKind::EXP), vec![sub], exp),
            (reduce(ReduceKind::Sum, axis_of_sum), vec![exp], sum),
            (binary(BinaryOp::Div), vec![exp, sum], y),
        ] {
            let name = graph.tensor(output).name.clone();
            graph.add_node(Node {
                kind: name.clone(),
                name,
                op,
                inputs: inputs.into_iter().map(Some).collect(),
                outputs: vec![output],
                role: Role::Forward,
                origin: Origin::default(),
            });
        }
        graph.inputs = vec![x];
        graph.outputs = vec![y];
        check(&graph).unwrap();
        graph
    }

    #[test]
    fn the_five_steps_become_one() {
        let mut graph = written_out(1);
        run(&mut graph).unwrap();
        assert_eq!(graph.nodes.len(), 1);
        assert_eq!(graph.nodes[0].op, Op::Softmax { axis: 1, beta: 1.0 });
        assert_eq!(graph.nodes[0].kind, "Softmax");
        assert_eq!(graph.tensors.len(), 2);
        check(&graph).unwrap();
    }

    /// Then the maximum belongs to nothing, and stays: the rest is a softmax of the difference.
    #[test]
    fn a_maximum_along_another_axis_stays() {
        let mut graph = written_out(0);
        run(&mut graph).unwrap();
        assert_eq!(graph.nodes.len(), 3);
        assert_eq!(graph.nodes[2].op, Op::Softmax { axis: 0, beta: 1.0 });
        check(&graph).unwrap();
    }

    #[test]
    fn an_intermediate_that_is_an_output_stays() {
        let mut graph = written_out(1);
        graph.outputs.push(TensorId(3));
        run(&mut graph).unwrap();
        assert_eq!(graph.nodes.len(), 5);
    }
}
