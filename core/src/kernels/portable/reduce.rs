//! Reductions straight from the formula.

use super::integers::Int;
use crate::arena::Mem;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::reduce::{Scaling, folds, means_s8, sums};
use crate::kernels::primitives::reduce_f32::{Max, Min, Sum, along_axes};
use crate::kernels::primitives::requantize::bounded::{Enlarge, Rescale};
use crate::ops::reduce::{ReduceF32, ReduceInt, Reduction};
use crate::ops::size::size;
use crate::tensor::DType;

/// f32.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = ReduceF32;

    fn run(op: &ReduceF32, mem: &Mem<'_>) -> Option<()> {
        let input = mem.src::<f32>(op.input, size(&op.shape)?)?;
        let output = mem.dst::<f32>(op.output, op.output_len())?;
        let [_, r, _, s, _] = op.shape;
        let elements = r.wrapping_mul(s) as f32;
        match op.kind {
            Reduction::Mean => along_axes::<Sum>(input, output, op.shape, |sum| sum / elements),
            Reduction::Sum => along_axes::<Sum>(input, output, op.shape, |sum| sum),
            Reduction::Max => along_axes::<Max>(input, output, op.shape, |largest| largest),
            Reduction::Min => along_axes::<Min>(input, output, op.shape, |smallest| smallest),
        }
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
            _ => {
                if matches!(op.kind, Reduction::Mean | Reduction::Sum) {
                    let [na, _, nb, _, nc] = op.shape;
                    let input = mem.src::<i8>(op.input, size(&op.shape)?)?;
                    let output = mem.dst::<i8>(op.output, size(&[na, nb, nc])?)?;
                    let scaling = Scaling {
                        zero_in: op.zero_in,
                        multiplier: op.multiplier,
                        zero_out: op.zero_out,
                    };
                    if means_s8(input, output, op.shape, &scaling)? {
                        return Some(());
                    }
                }
                quantised::<i8>(op, mem, (-128, 127))
            }
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for Quantised {}

fn quantised<T: Int + Into<i32>>(op: &ReduceInt, mem: &Mem<'_>, limits: (i32, i32)) -> Option<()> {
    let [na, _, nb, _, nc] = op.shape;
    let input = mem.src::<T>(op.input, size(&op.shape)?)?;
    let output = mem.dst::<T>(op.output, size(&[na, nb, nc])?)?;
    match op.kind {
        Reduction::Mean | Reduction::Sum => means(op, input, output, limits),
        Reduction::Max | Reduction::Min => {
            // The smallest one is the complement of complements' largest one.
            let turn = i32::from(op.kind == Reduction::Min).wrapping_neg();
            let larger = |largest: i32, x: i32| largest.max(x ^ turn);
            folds(input, output, op.shape, (i32::MIN, larger), |largest| {
                T::narrow(largest ^ turn)
            })
        }
    }
}

/// Sums and means.
fn means<T: Int + Into<i32>>(
    op: &ReduceInt,
    input: Src<'_, T>,
    output: Dst<'_, T>,
    (low, high): (i32, i32),
) -> Option<()> {
    // As many zero points have a sum that fits, as `supports` says.
    let [_, r, _, s, _] = op.shape;
    let elements = r.wrapping_mul(s);
    let zeros = op.zero_in.wrapping_mul(elements as i32);
    let magnitude = i64::from(elements) * (i64::from(high - low) + i64::from(op.zero_in).abs()) + 1;
    let twice = |sum: i32| sum.wrapping_sub(zeros) << 1;
    let rescale = Rescale::new(op.multiplier, magnitude, op.zero_out);
    let enlarge = Enlarge::new(op.multiplier, magnitude, op.zero_out);
    // One loop for all of them: with one for each, this kernel alone takes 20 KB of code on a Cortex-M55.
    sums(input, output, op.shape, |sum| {
        let scaled = match (&rescale, &enlarge) {
            (Some(rescale), _) => rescale.of_twice(twice(sum)),
            (None, Some(enlarge)) => enlarge.of_twice(twice(sum)),
            (None, None) => op.multiplier.apply(sum.wrapping_sub(zeros)).wrapping_add(op.zero_out),
        };
        T::narrow(scaled.max(low).min(high))
    })
}
