//! Folds a batch norm into the convolution or fully connected layer before it: `w' = w * s`, `b' = (b - mean) * s + beta` with
//! `s = gamma / sqrt(variance + epsilon)`. One that follows none becomes a product and a sum.

use std::sync::Arc;

use super::constants::{binary, constant, reshape, states_integers, value};
use super::rewrite::Rewriter;
use crate::error::{Error, Result};
use crate::graph::data::ExprOp;
use crate::graph::{Activation, BinaryOp, DType, Expr, Graph, Layout, Node, NodeId, Op, Tensor, TensorId};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    let nodes = graph.nodes.len();
    let mut net = Rewriter::new(graph);
    for index in 0..nodes {
        if let Op::BatchNorm {
            axis,
            epsilon,
            trained: false,
            ..
        } = net.graph.nodes[index].op
        {
            fold(&mut net, NodeId(index), axis, epsilon)?;
        }
    }
    net.finish();
    Ok(())
}

/// Folds the batch norm at `id`, or expands it into two nodes.
fn fold(net: &mut Rewriter<'_>, id: NodeId, axis: usize, epsilon: f32) -> Result<()> {
    let graph = &mut *net.graph;
    let node = graph.nodes[id.0].clone();
    let operand = |i: usize| node.inputs.get(i).copied().flatten();
    let x = operand(0).ok_or_else(|| Error::internal("a batch norm has no operand").at(&node.origin))?;
    let parameter = |i: usize| lazy(graph, operand(i), &node.name);
    let (gamma, beta, mean, variance) = (parameter(1)?, parameter(2)?, parameter(3)?, parameter(4)?);
    let scale = binary(
        ExprOp::Mul,
        gamma,
        Arc::new(Expr::RsqrtEpsilon { of: variance, epsilon }),
    );

    let before = net.feeder(x, id);
    let graph = &mut *net.graph;
    if let Some(before) = before
        && let first = graph.nodes[before.0].clone()
        && takes(graph, &first, axis)
    {
        let channels = scale.shape();
        let weights = lazy(graph, first.inputs[1], &first.name)?;
        let mut column = vec![1; weights.shape().len()];
        column[0] = channels[0];
        let column = reshape(&scale, column);
        let weights = constant(
            graph,
            format!("{}:folded weights", first.name),
            binary(ExprOp::Mul, weights, column),
        );
        let bias = match first.inputs.get(2).copied().flatten() {
            Some(bias) => lazy(graph, Some(bias), &first.name)?,
            None => Arc::new(Expr::Literal {
                values: vec![0.0; channels[0]],
                shape: channels,
            }),
        };
        let centred = binary(ExprOp::Sub, bias, mean);
        let bias = binary(ExprOp::Add, binary(ExprOp::Mul, centred, scale), beta);
        let bias = constant(graph, format!("{}:folded bias", first.name), bias);
        let inputs = vec![first.inputs[0], Some(weights), Some(bias)];
        net.merge(
            before,
            id,
            Node {
                inputs,
                outputs: node.outputs,
                ..first
            },
        );
        return Ok(());
    }

    // y = x * s + (beta - mean * s), broadcast along the channels' axis.
    let shape = graph.tensor(x).shape.clone();
    let broadcast: Vec<usize> = (0..shape.len()).map(|a| if a == axis { shape[a] } else { 1 }).collect();
    let offset = binary(ExprOp::Sub, beta, binary(ExprOp::Mul, mean, Arc::clone(&scale)));
    let scale = constant(
        graph,
        format!("{}:scale", node.name),
        reshape(&scale, broadcast.clone()),
    );
    let offset = constant(graph, format!("{}:offset", node.name), reshape(&offset, broadcast));
    let scaled = graph.add_tensor(Tensor::activation(format!("{}:scaled", node.name), &shape, DType::F32));
    let step = |name: &str, kind, inputs: [TensorId; 2], output| Node {
        name: format!("{}{name}", node.name),
        op: Op::Binary {
            kind,
            activation: Activation::None,
        },
        inputs: inputs.map(Some).to_vec(),
        outputs: vec![output],
        ..node.clone()
    };
    let product = step(":scale", BinaryOp::Mul, [x, scale], scaled);
    net.set(id, step("", BinaryOp::Add, [scaled, offset], node.outputs[0]));
    net.insert_before(id, product);
    Ok(())
}

/// Whether the weights and bias of a layer are known, and its result's channels along this axis.
fn takes(graph: &Graph, layer: &Node, axis: usize) -> bool {
    let rank = graph.tensor(layer.outputs[0]).shape.len();
    let channels = match &layer.op {
        Op::Conv2d(attrs) if attrs.activation == Activation::None => match attrs.layout {
            Layout::Nchw => 1,
            Layout::Nhwc => 3,
        },
        Op::Linear {
            activation: Activation::None,
        } if !states_integers(graph) => rank - 1,
        _ => return false,
    };
    let known = |at: usize| {
        layer
            .inputs
            .get(at)
            .copied()
            .flatten()
            .is_some_and(|id| value(graph, id).is_some())
    };
    let bias = layer.inputs.get(2).copied().flatten();
    axis == channels && layer.inputs.len() <= 3 && known(1) && (bias.is_none() || known(2))
}

fn lazy(graph: &Graph, id: Option<TensorId>, node: &str) -> Result<Arc<Expr>> {
    let id = id.ok_or_else(|| Error::internal("a parameter is missing").at(format_args!("`{node}`")))?;
    value(graph, id).ok_or_else(|| {
        Error::unsupported(format!(
            "`{}`, a parameter of `{node}`, is computed by the network",
            graph.tensor(id).name
        ))
        .expected("a constant of f32")
    })
}
