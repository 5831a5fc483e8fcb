//! A matrix product with a constant second operand is a linear layer.

use std::sync::Arc;

use super::rewrite::is_const;
use crate::error::Result;
use crate::graph::{Activation, DType, Data, Expr, Graph, Op, Tensor, TensorKind};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    for index in 0..graph.nodes.len() {
        let Op::MatMul {
            transpose_a: false,
            transpose_b,
        } = graph.nodes[index].op
        else {
            continue;
        };
        let [Some(_), Some(weights)] = graph.nodes[index].inputs[..] else {
            continue;
        };
        let real = graph.tensor(weights).dtype == DType::F32;
        if !real || !is_const(graph, weights) || graph.tensor(weights).shape.len() != 2 {
            continue;
        }
        let old = graph.tensor(weights).clone();
        let weights = match (transpose_b, &old.kind) {
            (false, TensorKind::Const(data)) => {
                let expr = Expr::Permute {
                    of: data.to_expr(&old.shape),
                    perm: vec![1, 0],
                };
                graph.add_tensor(Tensor {
                    name: format!("{} (transposed for {})", old.name, graph.nodes[index].name),
                    shape: expr.shape(),
                    kind: TensorKind::Const(Data::Lazy(Arc::new(expr))),
                    ..old
                })
            }
            _ => weights,
        };
        graph.nodes[index].inputs[1] = Some(weights);
        graph.nodes[index].op = Op::Linear {
            activation: Activation::None,
        };
    }
    Ok(())
}
