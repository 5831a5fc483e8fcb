//! Comparisons and logical operators, straight from the formula.

use crate::arena::Mem;
use crate::cells::Element;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::strided_copy::broadcast;
use crate::ops::compare::{Compare, Comparison};
use crate::ops::elementwise::{is_contiguous, operand_len, output_len};
use crate::tensor::DType;

/// f32, int8, int32 and bool.
#[derive(Debug)]
pub struct CompareKernel;

impl Kernel for CompareKernel {
    type Op = Compare;

    /// A result is no larger than the number that it comes from, so that none is overwritten before it is read.
    fn distance(op: &Compare, index: usize) -> Option<i64> {
        let in_step = match index {
            1 => is_contiguous(&op.loops, |l| l.a),
            2 => is_contiguous(&op.loops, |l| l.b),
            _ => false,
        };
        in_step.then_some(0)
    }

    fn run(op: &Compare, mem: &Mem<'_>) -> Option<()> {
        match op.dtype {
            DType::F32 => walk(op, mem, |a: f32, b: f32| holds(op.op, a, b)),
            DType::I32 => walk(op, mem, |a: i32, b: i32| holds(op.op, a, b)),
            DType::I8 => {
                let [m0, m1] = op.multipliers;
                let [z0, z1] = op.zero;
                let shifted = |x: i8, zero: i32| i32::from(x).wrapping_sub(zero).wrapping_shl(op.shift.into());
                walk(op, mem, |a: i8, b: i8| {
                    holds(op.op, m0.apply(shifted(a, z0)), m1.apply(shifted(b, z1)))
                })
            }
            _ => walk(op, mem, |a: u8, b: u8| match op.op {
                Comparison::And => a != 0 && b != 0,
                Comparison::Or => a != 0 || b != 0,
                other => holds(other, a != 0, b != 0),
            }),
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for CompareKernel {}

fn holds<T: PartialOrd>(op: Comparison, a: T, b: T) -> bool {
    match op {
        Comparison::Equal => a == b,
        Comparison::NotEqual => a != b,
        Comparison::Less => a < b,
        Comparison::LessOrEqual => a <= b,
        // Of truth values alone, which are no numbers.
        Comparison::And | Comparison::Or => false,
    }
}

fn walk<T: Element>(op: &Compare, mem: &Mem<'_>, f: impl Fn(T, T) -> bool) -> Option<()> {
    let output = mem.dst::<u8>(op.output, output_len(&op.loops)?)?;
    let a = mem.src::<T>(op.a, operand_len(&op.loops, |l| l.a)?)?;
    let b = mem.src::<T>(op.b, operand_len(&op.loops, |l| l.b)?)?;
    broadcast(&op.loops, output, a, b, |a, b| u8::from(f(a, b)))
}
