//! Folds a batch norm into the convolution before it: `w' = w * s`, `b' = (b - mean) * s + beta` with
//! `s = gamma / sqrt(variance + epsilon)`. One that follows no convolution becomes a product and a sum.

use std::sync::Arc;

use super::rewrite::Rewriter;
use crate::error::{Error, Result};
use crate::graph::data::ExprOp;
use crate::graph::{Activation, BinaryOp, DType, Data, Expr, Graph, Node, NodeId, Op, Tensor, TensorId, TensorKind};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    let nodes = graph.nodes.len();
    let mut net = Rewriter::new(graph);
    for index in 0..nodes {
        if let Op::BatchNorm { axis, epsilon } = net.graph.nodes[index].op {
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
        && let Op::Conv2d(attrs) = &first.op
        && attrs.activation == Activation::None
        && first.inputs.len() <= 3
    {
        let channels = scale.shape();
        let weights = lazy(graph, first.inputs[1], &first.name)?;
        let column = reshape(&scale, vec![channels[0], 1, 1, 1]);
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

fn lazy(graph: &Graph, id: Option<TensorId>, node: &str) -> Result<Arc<Expr>> {
    let id = id.ok_or_else(|| Error::internal("a parameter is missing").at(format_args!("`{node}`")))?;
    let tensor = graph.tensor(id);
    match &tensor.kind {
        TensorKind::Const(data) => Ok(data.to_expr(&tensor.shape)),
        _ => Err(Error::unsupported(format!(
            "`{}`, a parameter of `{node}`, is computed by the network",
            tensor.name
        ))
        .expected("a constant")),
    }
}

fn binary(op: ExprOp, a: Arc<Expr>, b: Arc<Expr>) -> Arc<Expr> {
    Arc::new(Expr::Binary { op, a, b })
}

fn reshape(of: &Arc<Expr>, shape: Vec<usize>) -> Arc<Expr> {
    Arc::new(Expr::Reshape {
        of: Arc::clone(of),
        shape,
    })
}

fn constant(graph: &mut Graph, name: String, expr: Arc<Expr>) -> TensorId {
    let shape = expr.shape();
    let kind = TensorKind::Const(Data::Lazy(expr));
    graph.add_tensor(Tensor {
        kind,
        ..Tensor::activation(name, &shape, DType::F32)
    })
}
