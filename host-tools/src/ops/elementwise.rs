//! Elementwise operators.

use arenite::ops::elementwise::{BinaryF32, BinaryOp, Loop, MAX_LOOPS, UnaryF32};
use arenite::ops::pointwise::{Function, UnaryOp};
use arenite::{DType, Step};

use super::{clamp, fit, input, output, want_f32};
use crate::error::{Error, Result};
use crate::graph::{Activation, BinaryKind, Node, UnaryKind};
use crate::program::{Lower, Place};

/// Lowers an operator of two operands.
pub(super) fn lower_binary(lower: &mut Lower<'_>, node: &Node, kind: BinaryKind, activation: Activation) -> Result<()> {
    if lower.graph().tensor(input(node, 0)?).dtype != DType::F32 {
        return super::elementwise_int::lower_binary(lower, node, kind, activation);
    }
    want_f32(lower.graph(), node)?;
    let (a, b, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let graph = lower.graph();
    let loops = loops(&graph.tensor(y).shape, &graph.tensor(a).shape, &graph.tensor(b).shape)?;
    let (op, name) = match kind {
        BinaryKind::Add => (BinaryOp::Add, "add"),
        BinaryKind::Sub => (BinaryOp::Sub, "sub"),
        BinaryKind::Mul => (BinaryOp::Mul, "mul"),
        BinaryKind::Div => (BinaryOp::Div, "div"),
        BinaryKind::Minimum => (BinaryOp::Minimum, "minimum"),
        BinaryKind::Maximum => (BinaryOp::Maximum, "maximum"),
        BinaryKind::SquaredDifference => (BinaryOp::SquaredDifference, "squared_difference"),
        BinaryKind::Prelu => (BinaryOp::Prelu, "prelu"),
    };
    let step = BinaryF32 {
        output: Place::Tensor(y, 0),
        a: lower.place(a)?,
        b: lower.place(b)?,
        loops,
        op,
        clamp: clamp(activation),
    };
    lower.push(node, name, Step::BinaryF32(step), 0);
    Ok(())
}

/// Lowers an operator of one operand.
pub(super) fn lower_unary(lower: &mut Lower<'_>, node: &Node, kind: UnaryKind) -> Result<()> {
    if lower.graph().tensor(input(node, 0)?).dtype != DType::F32 {
        return super::elementwise_int::lower_unary(lower, node, kind);
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

/// The fewest axes that walk two broadcast operands: neighbours merge where both operands continue from one to the other.
pub(super) fn loops(output: &[usize], a: &[usize], b: &[usize]) -> Result<heapless::Vec<Loop, MAX_LOOPS>> {
    let (strides_a, strides_b) = (strides(output, a), strides(output, b));
    let mut merged: Vec<[usize; 3]> = Vec::new();
    for axis in (0..output.len()).filter(|&axis| output[axis] != 1) {
        let next = [output[axis], strides_a[axis], strides_b[axis]];
        match merged.last_mut() {
            Some(last) if last[1] == next[0] * next[1] && last[2] == next[0] * next[2] => {
                *last = [last[0] * next[0], next[1], next[2]];
            }
            _ => merged.push(next),
        }
    }
    let mut loops = heapless::Vec::new();
    for [count, a, b] in merged {
        let axis = Loop {
            count: fit(count, "an extent")?,
            a: fit(a, "a stride")?,
            b: fit(b, "a stride")?,
        };
        loops
            .push(axis)
            .map_err(|_| Error::unsupported(format!("broadcasting {output:?} needs more than {MAX_LOOPS} axes")))?;
    }
    Ok(loops)
}

/// Elements between neighbours along each axis of the output; 0 where the operand is broadcast.
fn strides(output: &[usize], operand: &[usize]) -> Vec<usize> {
    let mut strides = vec![0; output.len()];
    let mut step = 1;
    for (axis, &extent) in operand.iter().enumerate().rev() {
        if extent != 1 {
            strides[output.len() - operand.len() + axis] = step;
        }
        step *= extent;
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(output: &[usize], a: &[usize], b: &[usize]) -> Vec<(u32, u32, u32)> {
        loops(output, a, b)
            .unwrap()
            .iter()
            .map(|l| (l.count, l.a, l.b))
            .collect()
    }

    #[test]
    fn equal_shapes_are_one_loop() {
        assert_eq!(walk(&[1, 8, 8, 4], &[1, 8, 8, 4], &[1, 8, 8, 4]), [(256, 1, 1)]);
    }

    #[test]
    fn a_bias_is_two_loops() {
        assert_eq!(walk(&[1, 8, 8, 4], &[1, 8, 8, 4], &[4]), [(64, 4, 0), (4, 1, 1)]);
    }

    #[test]
    fn an_outer_product_broadcasts_both() {
        assert_eq!(walk(&[3, 5], &[3, 1], &[1, 5]), [(3, 1, 0), (5, 0, 1)]);
    }

    #[test]
    fn scalars_are_no_loop() {
        assert_eq!(walk(&[1], &[1], &[]), []);
    }
}
