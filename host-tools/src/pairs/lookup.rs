//! Operators of one stored operand as tables: each of its 256 values dequantised, computed in f32, and quantised with ties to even, as ONNX's QuantizeLinear
//! has it. TensorFlow Lite's integer arithmetic rounds twice on the way; its files keep that.

use arenite::DType;
use arenite::ops::binary::{BinaryVisitor, Pairwise};
use arenite::ops::pointwise::{Function, Pointwise, UnaryOp};
use arenite::quant::dequantize;

use crate::error::Result;
use crate::graph::{Activation, Graph, Node, Op, Quant, TensorId, TensorKind, UnaryKind};
use crate::lower::numbers::clamp;
use crate::weights::Weights;

/// What a node computes of its one stored operand, as a table.
pub(super) struct Lookup {
    /// The operand's index among the node's inputs.
    pub(super) operand: usize,
    name: &'static str,
    function: Box<dyn Fn(f32) -> f32>,
    /// Whether results lie on the operand's own grid, so that a layer ahead may take them over as its clamp.
    clamps: bool,
}

impl Lookup {
    /// Of a function of one operand, or of two of which one is a constant number; `None` for any other.
    ///
    /// # Errors
    /// A constant that cannot be read.
    pub(super) fn of(graph: &Graph, weights: &Weights, node: &Node) -> Result<Option<Self>> {
        match node.op {
            Op::Unary(kind) => Ok(Some(Self {
                operand: 0,
                name: kind.name(),
                function: Box::new(move |x| real(kind, x)),
                clamps: is_clamp(kind),
            })),
            Op::Binary { kind, activation } => {
                let name = kind.names().name;
                with_a_number(graph, weights, node, (name, kind), activation)
            }
            Op::SpecialBinary { kind } => {
                let name = kind.names().name;
                with_a_number(graph, weights, node, (name, kind), Activation::None)
            }
            _ => Ok(None),
        }
    }

    /// The operator that looks results up, of an operand and a result of these scales; `None` for clamps on one grid, which layers take over.
    pub(super) fn op(&self, from: &Quant, to: &Quant) -> Option<Op> {
        if self.clamps && from == to {
            return None;
        }
        let (scale, zero) = (to.scale[0], to.zero_point[0]);
        let mut table = Box::new([0; 256]);
        for q in i8::MIN..=i8::MAX {
            let real = (self.function)(dequantize(q.into(), from.scale[0], from.zero_point[0]));
            // What is no number is stored as the zero point.
            let stored = ((real / scale).round_ties_even() as i32).saturating_add(zero);
            table[usize::from(q as u8)] = stored.clamp(-128, 127) as u8;
        }
        Some(Op::Lookup { name: self.name, table })
    }
}

/// A function of two numbers with one of them known.
fn with_a_number<F: Pairwise>(
    graph: &Graph,
    weights: &Weights,
    node: &Node,
    (name, kind): (&'static str, F),
    activation: Activation,
) -> Result<Option<Lookup>> {
    let &[Some(a), Some(b)] = &node.inputs[..] else {
        return Ok(None);
    };
    let [low, high] = clamp(activation);
    let bounded = move |y: f32| if y < low { low } else if y > high { high } else { y };
    let shape = |id: TensorId| &graph.tensor(id).shape;
    let lookup = |operand, function| {
        Some(Lookup {
            operand,
            name,
            function,
            clamps: false,
        })
    };
    Ok(match (number(graph, weights, a)?, number(graph, weights, b)?) {
        (None, Some(b)) if shape(a) == shape(node.outputs[0]) => {
            lookup(0, Box::new(move |a| bounded(kind.visit(Call(a, b)))))
        }
        (Some(a), None) if shape(b) == shape(node.outputs[0]) => {
            lookup(1, Box::new(move |b| bounded(kind.visit(Call(a, b)))))
        }
        _ => None,
    })
}

/// The value of a constant of one element in f32.
fn number(graph: &Graph, weights: &Weights, id: TensorId) -> Result<Option<f32>> {
    let tensor = graph.tensor(id);
    match &tensor.kind {
        TensorKind::Const(data) if tensor.elements() == 1 && tensor.dtype == DType::F32 => {
            Ok(weights.evaluate(&data.to_expr(&tensor.shape))?.first().copied())
        }
        _ => Ok(None),
    }
}

/// Whether a function only clamps.
const fn is_clamp(kind: UnaryKind) -> bool {
    matches!(
        kind,
        UnaryKind::Relu | UnaryKind::Relu6 | UnaryKind::ReluN1To1 | UnaryKind::Clamp { .. }
    )
}

/// The function of real numbers.
fn real(kind: UnaryKind, x: f32) -> f32 {
    let clamped = |min, max| UnaryOp::Clamp { min, max }.apply(x);
    match kind {
        UnaryKind::Relu => clamped(0.0, f32::INFINITY),
        UnaryKind::Relu6 => clamped(0.0, 6.0),
        UnaryKind::ReluN1To1 => clamped(-1.0, 1.0),
        UnaryKind::Clamp { min, max } => clamped(min, max),
        UnaryKind::LeakyRelu { alpha } => UnaryOp::LeakyRelu { alpha }.apply(x),
        UnaryKind::Elu if x < 0.0 => f64::from(x).exp_m1() as f32,
        UnaryKind::Elu => x,
        UnaryKind::Function(Function::Basic(function)) => function.apply(x),
        UnaryKind::Function(Function::Special(function)) => function.apply(x),
    }
}

/// Calls a function of two numbers.
struct Call(f32, f32);

impl BinaryVisitor for Call {
    type Output = f32;
    fn visit(self, f: impl Fn(f32, f32) -> f32) -> f32 {
        f(self.0, self.1)
    }
}
