//! Elementwise operators.

use arenite::ops::binary::{Pairwise, SpecialBinaryOp};
use arenite::ops::elementwise::{BinaryF32, UnaryF32};
use arenite::ops::pointwise::{Function, UnaryOp};
use arenite::{DType, Step};

use super::context::{Lower, fit, input, output, want_f32};
use super::elementwise_int;
use super::loops::loops;
use crate::error::{Error, Result};
use crate::graph::{Activation, BinaryOp, Node, UnaryKind};
use crate::program::Place;

/// Lowers an operator of two operands.
pub(super) fn lower_binary(lower: &mut Lower<'_>, node: &Node, kind: BinaryOp, activation: Activation) -> Result<()> {
    if lower.graph().tensor(input(node, 0)?).dtype != DType::F32 {
        return elementwise_int::lower_binary(lower, node, kind, activation);
    }
    let step = binary(lower, node, kind, activation.bounds())?;
    lower.push(node, kind.names().name, Step::BinaryF32(step), 0);
    Ok(())
}

/// Lowers an operator of two f32 operands that fewer networks use.
pub(super) fn lower_special_binary(lower: &mut Lower<'_>, node: &Node, kind: SpecialBinaryOp) -> Result<()> {
    let step = binary(lower, node, kind, Activation::None.bounds())?;
    lower.push(node, kind.names().name, Step::SpecialBinaryF32(step), 0);
    Ok(())
}

fn binary<F: Pairwise>(lower: &mut Lower<'_>, node: &Node, op: F, clamp: [f32; 2]) -> Result<BinaryF32<Place, F>> {
    want_f32(lower.graph(), node)?;
    let (a, b, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let graph = lower.graph();
    let loops = loops(&graph.tensor(y).shape, &graph.tensor(a).shape, &graph.tensor(b).shape)?;
    Ok(BinaryF32 {
        output: Place::Tensor(y, 0),
        a: lower.place(a)?,
        b: lower.place(b)?,
        loops,
        op,
        clamp,
    })
}

/// Lowers an operator of one operand.
pub(super) fn lower_unary(lower: &mut Lower<'_>, node: &Node, kind: UnaryKind) -> Result<()> {
    if lower.graph().tensor(input(node, 0)?).dtype != DType::F32 {
        return elementwise_int::lower_unary(lower, node, kind);
    }
    want_f32(lower.graph(), node)?;
    let (x, y) = (input(node, 0)?, output(node)?);
    let count = fit(lower.graph().tensor(x).elements(), "the number of elements")?;
    let at = [Place::Tensor(y, 0), lower.place(x)?];
    let clamp = |min, max| Ok(step(at, count, UnaryOp::Clamp { min, max }, Step::UnaryF32));
    let step = match kind {
        UnaryKind::Relu => clamp(0.0, f32::INFINITY),
        UnaryKind::Relu6 => clamp(0.0, 6.0),
        UnaryKind::ReluN1To1 => clamp(-1.0, 1.0),
        UnaryKind::Clamp { min, max } => clamp(min, max),
        UnaryKind::LeakyRelu { alpha } => Ok(step(at, count, UnaryOp::LeakyRelu { alpha }, Step::UnaryF32)),
        UnaryKind::Function(Function::Basic(op)) => Ok(step(at, count, op, Step::UnaryF32)),
        UnaryKind::Function(Function::Special(op)) => Ok(step(at, count, op, Step::SpecialF32)),
        UnaryKind::Elu => Err(Error::unsupported("elu of f32 in one step").expected("int8")),
    }?;
    lower.push(node, kind.name(), step, 0);
    Ok(())
}

fn step<F>([output, input]: [Place; 2], count: u32, op: F, step: fn(UnaryF32<Place, F>) -> Step<Place>) -> Step<Place> {
    step(UnaryF32 {
        output,
        input,
        count,
        op,
    })
}
