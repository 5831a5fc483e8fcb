//! Operations of two integer operands that fewer networks use, straight from the formula.

use super::integers::Int;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::requantize::bounded::Either;
use crate::kernels::primitives::strided_copy::broadcast;
use crate::ops::elementwise::{is_contiguous, operand_len, output_len};
use crate::ops::special_int::{SpecialInt, SpecialIntOp};
use crate::quant::{Multiplier, quotient};
use crate::tensor::DType;

/// int8, int16 and int32.
#[derive(Debug)]
pub struct Special;

impl Kernel for Special {
    type Op = SpecialInt;

    fn distance(op: &SpecialInt, index: usize) -> Option<i64> {
        let in_step = match index {
            1 => is_contiguous(&op.loops, |l| l.a),
            2 => is_contiguous(&op.loops, |l| l.b),
            _ => false,
        };
        in_step.then_some(0)
    }

    fn run(op: &SpecialInt, mem: &Mem<'_>) -> Option<()> {
        match op.dtype {
            DType::I8 => square(op, mem).unwrap_or_else(|| walk::<i8>(op, mem)),
            DType::I16 => walk::<i16>(op, mem),
            _ => walk::<i32>(op, mem),
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for Special {}

fn walk<T: Int>(op: &SpecialInt, mem: &Mem<'_>) -> Option<()> {
    let [_, _, m2] = op.multipliers;
    let [z0, z1, z2] = op.zero;
    let plain = op.dtype == DType::I32;
    let f = |a: i32, b: i32| match op.op {
        SpecialIntOp::SquaredDifference if plain => {
            let difference = a.wrapping_sub(b);
            difference.wrapping_mul(difference)
        }
        SpecialIntOp::SquaredDifference => squared(op, a, b, op.multipliers.map(|m| move |x| m.apply(x))),
        SpecialIntOp::Div => quotient(a.wrapping_sub(z0), b.wrapping_sub(z1), m2).wrapping_add(z2),
        SpecialIntOp::FloorDiv => floor_div(a, b),
        SpecialIntOp::FloorMod => a.wrapping_sub(b.wrapping_mul(floor_div(a, b))),
    };
    let f = |a: i32, b: i32| match op.op {
        SpecialIntOp::FloorMod if b == 0 => 0,
        _ => f(a, b),
    };
    each::<T>(op, mem, f)
}

/// Writes what `f` makes of what meets, clamped.
#[inline(always)]
fn each<T: Int>(op: &SpecialInt, mem: &Mem<'_>, f: impl Fn(i32, i32) -> i32) -> Option<()> {
    let output = mem.dst::<T>(op.output, output_len(&op.loops)?)?;
    let a = mem.src::<T>(op.a, operand_len(&op.loops, |l| l.a)?)?;
    let b = mem.src::<T>(op.b, operand_len(&op.loops, |l| l.b)?)?;
    let [low, high] = op.clamp;
    broadcast(&op.loops, output, a, b, |a, b| {
        let y = f(a.widen(), b.widen());
        T::narrow(if y < low { low } else { y.min(high) })
    })
}

/// A squared difference of numbers that are scaled, and its square, by these.
#[inline(always)]
fn squared(op: &SpecialInt, a: i32, b: i32, [scale_a, scale_b, scale]: [impl Fn(i32) -> i32; 3]) -> i32 {
    let ([z0, z1, z2], shift) = (op.zero, u32::from(op.shift));
    let left = scale_a(a.wrapping_sub(z0).wrapping_shl(shift));
    let right = scale_b(b.wrapping_sub(z1).wrapping_shl(shift));
    let difference = left.wrapping_sub(right);
    scale(difference.wrapping_mul(difference)).wrapping_add(z2)
}

/// Squared differences of int8; `None` of what has no short form. Its frame is not that of the other loops.
#[inline(never)]
fn square(op: &SpecialInt, mem: &Mem<'_>) -> Option<Option<()>> {
    let scales = short(op)?;
    let apply = scales.each_ref().map(|scale| |x| scale.apply(x));
    Some(each::<i8>(op, mem, |a, b| squared(op, a, b, apply)))
}

/// Scales of the operands and the square of a squared difference of int8 whose square has 30 bits; `None` for another operation, or where the multipliers
/// or zero points are not those of a quantised one.
fn short(op: &SpecialInt) -> Option<[Either; 3]> {
    let [za, zb, _] = op.zero.map(|zero| i8::try_from(zero).is_ok());
    if op.op != SpecialIntOp::SquaredDifference || op.shift > 16 || !za || !zb {
        return None;
    }
    let magnitude = 255_i64 << op.shift;
    let [a, b, square] = op.multipliers;
    // No more than that of a scaled operand; without a shift to the left, it is no larger than the operand.
    let largest = |m: Multiplier| {
        let scaled = (magnitude * i64::from(m.mantissa)) >> 31;
        (m.shift <= 0).then_some((scaled >> m.shift.unsigned_abs().min(31)) + 2)
    };
    let difference = largest(a)? + largest(b)?;
    Some([
        Either::new(a, magnitude)?,
        Either::new(b, magnitude)?,
        Either::new(square, difference * difference)?,
    ])
}

/// The largest integer <= a / b; 0 where b is 0.
fn floor_div(a: i32, b: i32) -> i32 {
    match (a.checked_rem(b), a.checked_div(b)) {
        (Some(rest), Some(quotient)) if rest != 0 && (rest < 0) != (b < 0) => quotient.wrapping_sub(1),
        (_, Some(quotient)) => quotient,
        // The least number by -1 wraps to itself.
        _ if b != 0 => a,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arena::Slot;

    proptest! {
        /// A short form, where there is one, gives the general form's results.
        #[test]
        fn squares_of_int8_are_the_formula(
            mantissas in [1_i32 << 30..=i32::MAX, 1_i32 << 30..=i32::MAX, 1_i32 << 30..=i32::MAX], shifts in [-4..3_i8, -4..3_i8, -31..3_i8],
            zeros: [i8; 3], shift in 0..18_u8,
        ) {
            let multipliers = [0, 1, 2].map(|i| Multiplier { mantissa: mantissas[i], shift: shifts[i] });
            let op = SpecialInt {
                output: Slot::default(), a: Slot::default(), b: Slot::default(), loops: heapless::Vec::new(), op: SpecialIntOp::SquaredDifference,
                dtype: DType::I8, multipliers, zero: zeros.map(i32::from), shift, clamp: [-128, 127],
            };
            let Some(scales) = short(&op) else {
                let [a, b, _] = shifts;
                prop_assert!(shift > 4 || a > -1 || b > -1 || shifts[2] > -1, "{:?}", op);
                return Ok(());
            };
            for (a, b) in (i8::MIN..=i8::MAX).step_by(5).flat_map(|a| (i8::MIN..=i8::MAX).step_by(3).map(move |b| (a.into(), b.into()))) {
                let [scaled, expected] = [
                    squared(&op, a, b, scales.each_ref().map(|scale| |x| scale.apply(x))),
                    squared(&op, a, b, multipliers.map(|m| move |x| m.apply(x))),
                ];
                prop_assert_eq!(scaled, expected, "{} {} {:?}", a, b, op);
            }
        }
    }
}
