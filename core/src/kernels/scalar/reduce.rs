//! Reductions straight from the formula.

use super::int::Int;
use crate::arena::Mem;
use crate::cells::Src;
#[cfg(any(test, packing))]
use crate::kernels::candidate::Candidate;
use crate::kernels::kernel::Kernel;
use crate::ops::reduce::{ReduceF32, ReduceInt, Reduction};
use crate::ops::size::size;
use crate::tensor::DType;

/// f32.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = ReduceF32;

    fn run(op: &ReduceF32, mem: &Mem<'_>) -> Option<()> {
        let [a, r, b, s, c] = op.shape.map(|n| n as usize);
        let input = mem.src::<f32>(op.input, size(&op.shape)?)?;
        let output = mem.dst::<f32>(op.output, op.output_len())?;
        let mut at = 0;
        for i in 0..a {
            for j in 0..b {
                for k in 0..c {
                    let start = input.get((i * r * b + j) * s * c + k)?;
                    let mut value = match op.kind {
                        Reduction::Mean | Reduction::Sum => 0.0,
                        Reduction::Max | Reduction::Min => start,
                    };
                    for p in 0..r {
                        for q in 0..s {
                            let x = input.get((((i * r + p) * b + j) * s + q) * c + k)?;
                            value = match op.kind {
                                Reduction::Mean | Reduction::Sum => value + x,
                                Reduction::Max if x > value => x,
                                Reduction::Min if x < value => x,
                                Reduction::Max | Reduction::Min => value,
                            };
                        }
                    }
                    if op.kind == Reduction::Mean {
                        value /= (r * s) as f32;
                    }
                    output.set(at, value)?;
                    at += 1;
                }
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {}

/// int8 or int16.
#[derive(Debug)]
pub struct Quantised;

impl Kernel for Quantised {
    type Op = ReduceInt;

    fn supports(op: &ReduceInt) -> bool {
        // Sums have 32 bits.
        let elements = i64::from(op.shape[1]) * i64::from(op.shape[3]);
        let (low, high) = if op.dtype == DType::I16 {
            (-32768, 32767)
        } else {
            (-128, 127)
        };
        let zero = i64::from(op.zero_in);
        let largest = (zero - low).max(high - zero);
        // The size of the operand has been checked: the product is far below 64 bits.
        matches!(op.kind, Reduction::Max | Reduction::Min) || elements * largest <= i64::from(i32::MAX)
    }

    fn run(op: &ReduceInt, mem: &Mem<'_>) -> Option<()> {
        match op.dtype {
            DType::I16 => quantised::<i16>(op, mem, (-32768, 32767)),
            _ => quantised::<i8>(op, mem, (-128, 127)),
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for Quantised {}

fn quantised<T: Int>(op: &ReduceInt, mem: &Mem<'_>, (low, high): (i32, i32)) -> Option<()> {
    let [a, r, b, s, c] = op.shape.map(|n| n as usize);
    let input = mem.src::<T>(op.input, size(&op.shape)?)?;
    let [na, _, nb, _, nc] = op.shape;
    let output = mem.dst::<T>(op.output, size(&[na, nb, nc])?)?;
    let mut at = 0;
    for i in 0..a {
        for j in 0..b {
            for k in 0..c {
                let start = (i * r * b + j) * s * c + k;
                let axes = [r, b * s * c, s, c];
                let mut value = match op.kind {
                    Reduction::Mean | Reduction::Sum => fold(input, start, axes, 0, |sum, x| {
                        sum.wrapping_add(x.wrapping_sub(op.zero_in))
                    })?,
                    Reduction::Max => fold(input, start, axes, i32::MIN, i32::max)?,
                    Reduction::Min => fold(input, start, axes, i32::MAX, i32::min)?,
                };
                if matches!(op.kind, Reduction::Mean | Reduction::Sum) {
                    value = op.multiplier.apply(value).wrapping_add(op.zero_out);
                }
                output.set(at, T::narrow(value.clamp(low, high)))?;
                at += 1;
            }
        }
    }
    Some(())
}

/// Folds what lies at `start` and from there on along two axes of (extent, step).
#[inline(always)]
fn fold<T: Int>(
    input: Src<'_, T>,
    start: usize,
    [rows, row, columns, column]: [usize; 4],
    first: i32,
    f: impl Fn(i32, i32) -> i32,
) -> Option<i32> {
    let (mut value, mut line) = (first, start);
    for _ in 0..rows {
        let mut at = line;
        for _ in 0..columns {
            value = f(value, input.get(at)?.widen());
            at += column;
        }
        line += row;
    }
    Some(value)
}
