//! Functions of one stored operand as tables: each of its 256 values dequantised, computed in f32, and quantised with ties to even, as ONNX's QuantizeLinear
//! has it. TensorFlow Lite's integer arithmetic rounds twice on the way; its files keep that.

use arenite::DType;

use crate::graph::composite::{Composite, Links};
use crate::graph::{Activation, Graph, Op, TensorId, TensorKind, UnaryKind};
use crate::weights::Weights;

/// The functions that end at a node, from the smallest to the largest.
pub(super) fn functions(graph: &Graph, links: &Links, weights: &Weights, end: usize) -> Vec<Composite> {
    let number = |id: TensorId| {
        let tensor = graph.tensor(id);
        match &tensor.kind {
            // Where it cannot be read, writing the file says so.
            TensorKind::Const(data) if tensor.elements() == 1 && tensor.dtype == DType::F32 => {
                weights.evaluate(&data.to_expr(&tensor.shape)).ok()?.first().copied()
            }
            _ => None,
        }
    };
    Composite::ending_at(graph, links, end, &number)
}

/// The name of what a node computes, if it computes element by element; `None` of clamps on one grid, which layers take over.
pub(super) fn name(op: &Op, same_grid: bool) -> Option<&'static str> {
    match op {
        Op::Unary(UnaryKind::Relu | UnaryKind::Relu6 | UnaryKind::ReluN1To1 | UnaryKind::Clamp { .. }) if same_grid => {
            None
        }
        Op::Unary(kind) => Some(kind.name()),
        Op::Binary {
            kind,
            activation: Activation::None,
        } => Some(kind.names().name),
        Op::Binary { .. } => Some("function"),
        Op::SpecialBinary { kind } => Some(kind.names().name),
        _ => None,
    }
}

/// Whether an operator only clamps.
pub(super) const fn is_clamp(op: &Op) -> bool {
    matches!(
        op,
        Op::Unary(UnaryKind::Relu | UnaryKind::Relu6 | UnaryKind::ReluN1To1 | UnaryKind::Clamp { .. })
    )
}
