//! `y = gain * x + bias` with a scalar gain: into the locally connected layer before it, which has both; elsewhere a product
//! and a sum.

use super::rewrite::{feeder, merge};
use crate::error::{Error, Result};
use crate::graph::{Activation, BinaryKind, Graph, Node, NodeId, Op, Tensor};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    let mut index = 0;
    while index < graph.nodes.len() {
        if graph.nodes[index].op == Op::Affine {
            expand(graph, NodeId(index))?;
        }
        index += 1;
    }
    Ok(())
}

fn expand(graph: &mut Graph, id: NodeId) -> Result<()> {
    let node = graph.nodes[id.0].clone();
    let [Some(x), Some(gain), Some(bias)] = node.inputs[..] else {
        return Err(Error::input("an affine operator needs x, gain and bias").at(&node.origin));
    };
    let units: usize = graph.tensor(x).shape.iter().skip(1).product();
    if let Some(before) = feeder(graph, x, id)
        && let first = &graph.nodes[before.0]
        && matches!(
            first.op,
            Op::LocallyConnected2d {
                activation: Activation::None
            }
        )
        && first.inputs.len() == 2
        && graph.tensor(bias).elements() == units
    {
        let inputs = vec![first.inputs[0], first.inputs[1], Some(bias), Some(gain)];
        let merged = Node {
            inputs,
            outputs: node.outputs,
            ..first.clone()
        };
        merge(graph, before, id, merged);
        return Ok(());
    }
    let shape = graph.tensor(x).shape.clone();
    let scaled = Tensor::activation(format!("{}:scaled", node.name), &shape, graph.tensor(x).dtype);
    let scaled = graph.add_tensor(scaled);
    let binary = |kind| Op::Binary {
        kind,
        activation: Activation::None,
    };
    let product = Node {
        name: format!("{}:gain", node.name),
        op: binary(BinaryKind::Mul),
        inputs: vec![Some(x), Some(gain)],
        outputs: vec![scaled],
        ..node.clone()
    };
    graph.nodes[id.0] = Node {
        op: binary(BinaryKind::Add),
        inputs: vec![Some(scaled), Some(bias)],
        ..node
    };
    graph.nodes.insert(id.0, product);
    Ok(())
}
