//! An addition of a constant for each output channel is the bias of the convolution or linear layer before it, even where the
//! convolution has taken up a residual in between.

use std::sync::Arc;

use super::rewrite::{Rewriter, is_const, rewrite_all};
use crate::error::Result;
use crate::graph::{
    Activation, BinaryOp, Conv2dAttrs, DType, Data, Expr, Graph, Layout, Node, NodeId, Op, Tensor, TensorKind,
};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    rewrite_all(graph, fold);
    Ok(())
}

fn fold(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let graph = &*net.graph;
    let node = &graph.nodes[id.0];
    let (
        Op::Binary {
            kind: BinaryOp::Add,
            activation,
        },
        [Some(a), Some(b)],
    ) = (&node.op, &node.inputs[..])
    else {
        return false;
    };
    let activation = *activation;
    let (x, bias) = if is_const(graph, *b) { (*a, *b) } else { (*b, *a) };
    if !is_const(graph, bias) || graph.tensor(bias).dtype != DType::F32 {
        return false;
    }
    let Some(before) = net.feeder(x, id) else {
        return false;
    };
    let graph = &mut *net.graph;
    let first = graph.nodes[before.0].clone();
    if first.inputs.get(2).copied().flatten().is_some() {
        return false;
    }
    let rank = graph.tensor(x).shape.len();
    let (channel_axis, op) = match &first.op {
        Op::Conv2d(attrs) if attrs.activation == Activation::None => {
            let axis = if attrs.layout == Layout::Nchw { 1 } else { 3 };
            (
                axis,
                Op::Conv2d(Conv2dAttrs {
                    activation,
                    ..attrs.clone()
                }),
            )
        }
        Op::Linear {
            activation: Activation::None,
        } => (rank - 1, Op::Linear { activation }),
        _ => return false,
    };
    let channels = graph.tensor(x).shape[channel_axis];
    let shape = graph.tensor(bias).shape.clone();
    let along = |axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
    if shape.len() > rank || !(0..rank).all(|axis| along(axis) == if axis == channel_axis { channels } else { 1 }) {
        return false;
    }
    let bias = match &graph.tensor(bias).kind {
        _ if shape.len() == 1 => bias,
        TensorKind::Const(data) => {
            let expr = Expr::Reshape {
                of: data.to_expr(&shape),
                shape: vec![channels],
            };
            let name = format!("{} (bias of {})", graph.tensor(bias).name, first.name);
            let kind = TensorKind::Const(Data::Lazy(Arc::new(expr)));
            graph.add_tensor(Tensor {
                kind,
                ..Tensor::activation(name, &[channels], DType::F32)
            })
        }
        _ => return false,
    };
    let outputs = graph.nodes[id.0].outputs.clone();
    let mut inputs = first.inputs.clone();
    inputs.resize(inputs.len().max(3), None);
    inputs[2] = Some(bias);
    net.merge(
        before,
        id,
        Node {
            op,
            inputs,
            outputs,
            ..first
        },
    );
    true
}
