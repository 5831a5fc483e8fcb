//! Pooling straight from the formula.

use super::integers::Int;
#[cfg(feature = "rolling")]
use super::rows::Rows;
use super::{taps, within};
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::arena::{Mem, Slot};
use crate::cells::{Element, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind};
use crate::kernels::api::kernel::Kernel;
#[cfg(feature = "rolling")]
use crate::kernels::api::turn::Rolls;
use crate::kernels::primitives::reduce_f32::{Fold, Max, Sum, under_windows};
use crate::ops::pool2d::{PoolF32, PoolInt};
use crate::ops::window::{Window2d, three};
use crate::tensor::DType;

/// f32 maximum.
#[derive(Debug)]
pub struct MaxF32;

/// f32 average.
#[derive(Debug)]
pub struct AvgF32;

impl Kernel for MaxF32 {
    type Op = PoolF32;

    fn distance(op: &PoolF32, index: usize) -> Option<i64> {
        pool_distance(&op.window, 4, index)
    }

    fn run(op: &PoolF32, mem: &Mem<'_>) -> Option<()> {
        pool_f32::<Max>(op, mem, |max, _| max)
    }
}

#[cfg(any(test, packing))]
impl Candidate for MaxF32 {}

impl Kernel for AvgF32 {
    type Op = PoolF32;

    fn distance(op: &PoolF32, index: usize) -> Option<i64> {
        pool_distance(&op.window, 4, index)
    }

    fn run(op: &PoolF32, mem: &Mem<'_>) -> Option<()> {
        let [kh, kw] = op.window.kernel.map(f32::from);
        let whole = kh * kw;
        pool_f32::<Sum>(op, mem, |sum, n| {
            sum / if op.count_include_pad { whole } else { n as f32 }
        })
    }
}

#[cfg(any(test, packing))]
impl Candidate for AvgF32 {}

/// Applies `finish`, within the limits, to the fold of the elements inside the input and to their number.
#[inline(always)]
fn pool_f32<F: Fold>(op: &PoolF32, mem: &Mem<'_>, finish: impl Fn(f32, usize) -> f32) -> Option<()> {
    let input = mem.src::<f32>(op.input, op.window.input_len()?)?;
    let output = mem.dst::<f32>(op.output, op.window.output_len()?)?;
    under_windows::<F>(&op.window, input, output, finish)?;
    within(op.clamp, output);
    Some(())
}

/// Maximum of int8 or int16.
#[derive(Debug)]
pub struct MaxInt;

/// Average of int8 or int16, of any number of elements.
#[derive(Debug)]
pub struct AvgInt;

impl Kernel for MaxInt {
    type Op = PoolInt;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Rows;

    fn distance(op: &PoolInt, index: usize) -> Option<i64> {
        pool_distance(&op.window, op.dtype.bytes() as u32, index)
    }

    fn run(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
        match op.dtype {
            DType::I16 => maximum::<i16>(op, mem),
            _ => maximum::<i8>(op, mem),
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for MaxInt {
    const JOB: Option<JobKind> = Some(JobKind::MaxPoolInt);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PoolInt<P>> {
        job.max_pool_int()
    }
}

impl Kernel for AvgInt {
    type Op = PoolInt;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Rows;

    fn distance(op: &PoolInt, index: usize) -> Option<i64> {
        pool_distance(&op.window, op.dtype.bytes() as u32, index)
    }

    fn run(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
        match (op.dtype, op.sums_fit()) {
            (DType::I16, true) => average::<i16>(op, mem),
            (_, true) => average::<i8>(op, mem),
            (DType::I16, false) => average_of_many::<i16>(op, mem),
            (_, false) => average_of_many::<i8>(op, mem),
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for AvgInt {
    const JOB: Option<JobKind> = Some(JobKind::AvgPoolInt);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PoolInt<P>> {
        job.avg_pool_int()
    }
}

/// The largest element inside the input, clamped.
pub(crate) fn maximum<T: Int>(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
    pool_int::<T, i32>(op, mem, i32::MIN, i32::max, |max, _| max)
}

/// The mean of the elements inside the input, rounded half away from zero, clamped. Exact where [`PoolInt::sums_fit`].
pub(crate) fn average<T: Int>(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
    pool_int::<T, i32>(op, mem, 0, i32::wrapping_add, |sum, n| mean(sum, n as i32))
}

/// A sum over a count, at least 1, rounded half away from zero.
#[inline(always)]
pub(super) fn mean(sum: i32, count: i32) -> i32 {
    let n = count.max(1);
    let half = if sum > 0 { n / 2 } else { -(n / 2) };
    sum.wrapping_add(half).wrapping_div(n)
}

/// [`average`] in 64 bits.
fn average_of_many<T: Int>(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
    let add = |sum: i64, x: i32| sum.wrapping_add(i64::from(x));
    pool_int::<T, i64>(op, mem, 0, add, |sum, n| {
        let n = (n as i64).max(1);
        let half = if sum > 0 { n / 2 } else { -(n / 2) };
        sum.wrapping_add(half).wrapping_div(n) as i32
    })
}

fn pool_int<T: Int, A: Copy>(
    op: &PoolInt,
    mem: &Mem<'_>,
    initial: A,
    fold: impl Fn(A, i32) -> A,
    finish: impl Fn(A, usize) -> i32,
) -> Option<()> {
    let [low, high] = op.clamp.map(i32::from);
    each_output::<T, A>(
        (&op.window, op.input, op.output),
        mem,
        initial,
        |a, x| fold(a, x.widen()),
        |a, n| T::narrow(finish(a, n).max(low).min(high)),
    )
}

/// A channel reads only its own channel, but pixels share rows: the channels written before are the lead.
fn pool_distance(window: &Window2d, element: u32, index: usize) -> Option<i64> {
    (index == 1).then(|| window.consumed_distance(element, u32::from(window.output[2]) - 1))
}

/// Pooling of one row.
#[cfg(feature = "rolling")]
fn pool_of_row<T: Element, A: Copy>(
    (window, input, output): (&Window2d, Slot, Slot),
    mem: &Mem<'_>,
    initial: A,
    fold: impl Fn(A, T) -> A,
    finish: impl Fn(A, usize) -> T,
) -> Option<()> {
    let input = Rows::<T>::of(mem, input, window)?;
    let output = mem.dst::<T>(output, window.output_len()?)?;
    let [_, _, channels] = three::<_, usize>(window.input);
    let (_, rows, iy) = taps(0, window, 0)?;
    let mut at = 0;
    for x in 0..usize::from(window.output[1]) {
        let (_, columns, ix) = taps(x, window, 1)?;
        for channel in 0..channels {
            let mut value = initial;
            for r in 0..rows {
                let row = input.get(iy + r)?;
                for k in 0..columns {
                    value = fold(value, row.get((ix + k) * channels + channel)?);
                }
            }
            output.set(at, finish(value, rows * columns))?;
            at += 1;
        }
    }
    Some(())
}

fn each_output<T: Element, A: Copy>(
    (window, input, output): (&Window2d, Slot, Slot),
    mem: &Mem<'_>,
    initial: A,
    fold: impl Fn(A, T) -> A,
    finish: impl Fn(A, usize) -> T,
) -> Option<()> {
    #[cfg(feature = "rolling")]
    if input.region == Slot::ROLLED {
        return pool_of_row((window, input, output), mem, initial, fold, finish);
    }
    let input: Src<'_, T> = mem.src(input, window.input_len()?)?;
    let output = mem.dst::<T>(output, window.output_len()?)?;
    let [h, w, c] = three::<_, usize>(window.input);
    let [oh, ow, _] = three::<_, usize>(window.output);
    let mut at = 0;
    for image in 0..usize::from(window.batch) {
        for y in 0..oh {
            let (_, rows, iy) = taps(y, window, 0)?;
            for x in 0..ow {
                let (_, columns, ix) = taps(x, window, 1)?;
                for channel in 0..c {
                    let mut value = initial;
                    for r in 0..rows {
                        for k in 0..columns {
                            value = fold(value, input.get(((image * h + iy + r) * w + ix + k) * c + channel)?);
                        }
                    }
                    output.set(at, finish(value, rows * columns))?;
                    at += 1;
                }
            }
        }
    }
    Some(())
}
