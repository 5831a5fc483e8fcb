//! Constants that passes compute from others.

use std::sync::Arc;

use crate::graph::data::ExprOp;
use crate::graph::infer::broadcast;
use crate::graph::{DType, Data, Expr, Graph, Op, Tensor, TensorId, TensorKind};
use crate::weights::Weights;

/// The value of a constant of f32; none for what is computed or of another type.
pub(super) fn value(graph: &Graph, id: TensorId) -> Option<Arc<Expr>> {
    let tensor = graph.tensor(id);
    match &tensor.kind {
        TensorKind::Const(data) if tensor.dtype == DType::F32 => Some(data.to_expr(&tensor.shape)),
        _ => None,
    }
}

/// Whether the network states integers of its own between floats: what rounds otherwise there may be a step away. Pictures of bytes that `--preprocess` takes
/// are none of it.
pub(super) fn states_integers(graph: &Graph) -> bool {
    let own = graph.nodes.iter().filter(|node| node.kind != "preprocess");
    own.map(|node| &node.op)
        .any(|op| matches!(op, Op::Quantize | Op::Dequantize))
}

/// The numbers of a value in which no parameter of the weights file takes part.
pub(super) fn known(expr: &Expr) -> Option<Vec<f32>> {
    Weights::nothing(&Graph::default()).ok()?.evaluate(expr).ok()
}

/// The number that a constant of f32 is everywhere, where no parameter takes part in it.
pub(super) fn number(graph: &Graph, id: TensorId) -> Option<f32> {
    const MOST: usize = 1 << 16;
    if graph.tensor(id).elements() > MOST {
        return None;
    }
    let values = known(&*value(graph, id)?)?;
    let &first = values.first()?;
    values.iter().all(|&value| value == first).then_some(first)
}

/// `a op b`, where `b` is broadcast to `a`.
pub(super) fn binary(op: ExprOp, a: Arc<Expr>, b: Arc<Expr>) -> Arc<Expr> {
    Arc::new(Expr::Binary { op, a, b })
}

/// `a op b`, where either may be broadcast; none where the shapes do not fit.
pub(super) fn either(op: ExprOp, a: Arc<Expr>, b: Arc<Expr>) -> Option<Arc<Expr>> {
    let shape = broadcast(&a.shape(), &b.shape()).ok()?;
    if a.shape() == shape {
        return Some(binary(op, a, b));
    }
    let zeros = filled(0.0, shape);
    Some(binary(op, binary(ExprOp::Add, zeros, a), b))
}

/// The same elements, other extents.
pub(super) fn reshape(of: &Arc<Expr>, shape: Vec<usize>) -> Arc<Expr> {
    let of = Arc::clone(of);
    Arc::new(Expr::Reshape { of, shape })
}

/// One number everywhere.
pub(super) fn filled(number: f32, shape: Vec<usize>) -> Arc<Expr> {
    let values = vec![number; shape.iter().product()];
    Arc::new(Expr::Literal { values, shape })
}

/// A constant tensor of this value.
pub(super) fn constant(graph: &mut Graph, name: String, expr: Arc<Expr>) -> TensorId {
    let shape = expr.shape();
    let kind = TensorKind::Const(Data::Lazy(expr));
    graph.add_tensor(Tensor {
        kind,
        ..Tensor::activation(name, &shape, DType::F32)
    })
}
