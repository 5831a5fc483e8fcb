//! Operations of two integer operands that fewer networks use, straight from the formula.

use super::int::Int;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::candidate::Candidate;
use crate::kernels::kernel::Kernel;
use crate::kernels::runs::broadcast;
use crate::ops::elementwise::{is_contiguous, operand_len, output_len};
use crate::ops::special_int::{SpecialInt, SpecialIntOp};
use crate::quant::quotient;
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
            DType::I8 => walk::<i8>(op, mem),
            DType::I16 => walk::<i16>(op, mem),
            _ => walk::<i32>(op, mem),
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for Special {}

fn walk<T: Int>(op: &SpecialInt, mem: &Mem<'_>) -> Option<()> {
    let [m0, m1, m2] = op.multipliers;
    let [z0, z1, z2] = op.zero;
    let shift = u32::from(op.shift);
    let plain = op.dtype == DType::I32;
    let f = |a: i32, b: i32| match op.op {
        SpecialIntOp::SquaredDifference if plain => {
            let difference = a.wrapping_sub(b);
            difference.wrapping_mul(difference)
        }
        SpecialIntOp::SquaredDifference => {
            let left = m0.apply(a.wrapping_sub(z0).wrapping_shl(shift));
            let right = m1.apply(b.wrapping_sub(z1).wrapping_shl(shift));
            let difference = left.wrapping_sub(right);
            m2.apply(difference.wrapping_mul(difference)).wrapping_add(z2)
        }
        SpecialIntOp::Div => quotient(a.wrapping_sub(z0), b.wrapping_sub(z1), m2).wrapping_add(z2),
        SpecialIntOp::FloorDiv => floor_div(a, b),
        SpecialIntOp::FloorMod => a.wrapping_sub(b.wrapping_mul(floor_div(a, b))),
    };
    let f = |a: i32, b: i32| match op.op {
        SpecialIntOp::FloorMod if b == 0 => 0,
        _ => f(a, b),
    };
    let output = mem.dst::<T>(op.output, output_len(&op.loops)?)?;
    let a = mem.src::<T>(op.a, operand_len(&op.loops, |l| l.a)?)?;
    let b = mem.src::<T>(op.b, operand_len(&op.loops, |l| l.b)?)?;
    let [low, high] = op.clamp;
    broadcast(&op.loops, output, a, b, |a, b| {
        let y = f(a.widen(), b.widen());
        T::narrow(if y < low { low } else { y.min(high) })
    })
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
