//! A factor for each channel is a depthwise convolution of one tap: integers then have a scale for each of the factors.

use std::sync::Arc;

use super::rewrite::{is_const, rewrite_all};
use crate::error::Result;
use crate::graph::{BinaryOp, Conv2dAttrs, DType, Data, Expr, Graph, Layout, Node, Op, Padding2d, Tensor, TensorKind};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    rewrite_all(graph, |net, id| {
        let node = net.graph.nodes[id.0].clone();
        match convolution(net.graph, &node) {
            Some(convolution) => {
                net.set(id, convolution);
                true
            }
            None => false,
        }
    });
    Ok(())
}

fn convolution(graph: &mut Graph, node: &Node) -> Option<Node> {
    let (
        Op::Binary {
            kind: BinaryOp::Mul,
            activation,
        },
        &[Some(a), Some(b)],
        &[y],
    ) = (&node.op, &node.inputs[..], &node.outputs[..])
    else {
        return None;
    };
    let (x, factors) = if is_const(graph, b) { (a, b) } else { (b, a) };
    let (tensor, factor) = (graph.tensor(x), graph.tensor(factors));
    let &[_, _, _, channels] = &graph.tensor(y).shape[..] else {
        return None;
    };
    let whole = tensor.shape == graph.tensor(y).shape && !is_const(graph, x);
    let each = channels > 1 && factor.shape.last() == Some(&channels) && factor.elements() == channels;
    let real = tensor.dtype == DType::F32 && factor.dtype == DType::F32;
    let TensorKind::Const(data) = &factor.kind else {
        return None;
    };
    if !(whole && each && real) {
        return None;
    }
    let expr = Expr::Reshape {
        of: data.to_expr(&factor.shape),
        shape: vec![channels, 1, 1, 1],
    };
    let weights = Tensor {
        kind: TensorKind::Const(Data::Lazy(Arc::new(expr))),
        ..Tensor::activation(
            format!("{} (weights of {})", factor.name, node.name),
            &[channels, 1, 1, 1],
            DType::F32,
        )
    };
    let attrs = Conv2dAttrs {
        layout: Layout::Nhwc,
        stride: [1, 1],
        dilation: [1, 1],
        padding: Padding2d::default(),
        groups: channels,
        activation: *activation,
    };
    let weights = graph.add_tensor(weights);
    Some(Node {
        op: Op::Conv2d(attrs),
        inputs: vec![Some(x), Some(weights)],
        ..node.clone()
    })
}
