//! `y = gain * x + bias` with a scalar gain: into the locally connected layer before it, which has both; elsewhere a product
//! and a sum.

use super::rewrite::Rewriter;
use crate::error::{Error, Result};
use crate::graph::{Activation, BinaryOp, Graph, Node, NodeId, Op, Tensor};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    let nodes = graph.nodes.len();
    let mut net = Rewriter::new(graph);
    for index in 0..nodes {
        if net.graph.nodes[index].op == Op::Affine {
            expand(&mut net, NodeId(index))?;
        }
    }
    net.finish();
    Ok(())
}

fn expand(net: &mut Rewriter<'_>, id: NodeId) -> Result<()> {
    let graph = &mut *net.graph;
    let node = graph.nodes[id.0].clone();
    let [Some(x), Some(gain), Some(bias)] = node.inputs[..] else {
        return Err(Error::internal("an affine operator needs x, gain and bias").at(&node.origin));
    };
    let units: usize = graph.tensor(x).shape.iter().skip(1).product();
    let before = net.feeder(x, id);
    let graph = &mut *net.graph;
    if let Some(before) = before
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
        net.merge(before, id, merged);
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
        op: binary(BinaryOp::Mul),
        inputs: vec![Some(x), Some(gain)],
        outputs: vec![scaled],
        ..node.clone()
    };
    let sum = Node {
        op: binary(BinaryOp::Add),
        inputs: vec![Some(scaled), Some(bias)],
        ..node
    };
    net.set(id, sum);
    net.insert_before(id, product);
    Ok(())
}
