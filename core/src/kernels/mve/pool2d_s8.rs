//! Pooling of int8: averages of the elements inside the input, rounded half away from zero, and maxima.
//!
//! Eight channels are summed at a time in 16-bit lanes, which hold 256 elements; larger windows are summed in parts.

use super::args::{Mean, Pool};
use super::clip;
use super::loops::{maximum, mean, sum};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::ops::pool2d::PoolInt;
use crate::ops::window::Window2d;
use crate::tensor::DType;

/// int8 average.
#[derive(Debug)]
pub struct AvgS8;

/// int8 maximum.
#[derive(Debug)]
pub struct MaxS8;

#[cfg(any(test, packing))]
impl Candidate for AvgS8 {
    const JOB: Option<JobKind> = Some(JobKind::AvgPoolInt);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PoolInt<P>> {
        job.avg_pool_int()
    }

    fn bound(op: &PoolInt, _: &Machine) -> Option<u64> {
        Some(bound(&op.window, true))
    }
}

#[cfg(any(test, packing))]
impl Candidate for MaxS8 {
    const JOB: Option<JobKind> = Some(JobKind::MaxPoolInt);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PoolInt<P>> {
        job.max_pool_int()
    }

    fn bound(op: &PoolInt, _: &Machine) -> Option<u64> {
        Some(bound(&op.window, false))
    }
}

/// int8, with an element inside the input in every window.
fn has_elements(op: &PoolInt) -> bool {
    let window = &op.window;
    let inside = (0..2).all(|axis| {
        let at = |pair: &[u8; 2]| u32::from(pair.get(axis).copied().unwrap_or(0));
        let wide = |extents: &[u16]| u32::from(extents.get(axis).copied().unwrap_or(0));
        // The first and the last window have an element inside the input.
        let last = wide(&window.output).saturating_sub(1) * at(&window.stride);
        at(&window.padding) < wide(&window.kernel) && last < wide(&window.input) + at(&window.padding)
    });
    op.dtype == DType::I8 && inside && limits(op).is_some()
}

fn limits(op: &PoolInt) -> Option<[i8; 2]> {
    Some([i8::try_from(op.clamp[0]).ok()?, i8::try_from(op.clamp[1]).ok()?])
}

fn operands<'a>(op: &PoolInt, mem: &Mem<'a>) -> Option<(Src<'a, i8>, Dst<'a, i8>)> {
    let int8 = op.dtype == DType::I8;
    let input = mem.src::<i8>(op.input, op.window.input_len().filter(|_| int8)?)?;
    Some((input, mem.dst::<i8>(op.output, op.window.output_len()?)?))
}

impl Kernel for AvgS8 {
    type Op = PoolInt;

    fn supports(op: &PoolInt) -> bool {
        has_elements(op) && op.sums_fit()
    }

    fn distance(op: &PoolInt, index: usize) -> Option<i64> {
        (index == 1).then(|| distance(&op.window))
    }

    fn run(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
        let (input, output) = operands(op, mem)?;
        average(&op.window, input, output, limits(op)?)
    }
}

impl Kernel for MaxS8 {
    type Op = PoolInt;

    fn supports(op: &PoolInt) -> bool {
        has_elements(op)
    }

    fn distance(op: &PoolInt, index: usize) -> Option<i64> {
        (index == 1).then(|| distance(&op.window))
    }

    fn run(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
        let (input, output) = operands(op, mem)?;
        max(&op.window, input, output, limits(op)?)
    }
}

/// Channels summed at a time.
const SUMS: usize = 8;

/// Channels of a maximum at a time.
const MAXIMA: usize = 16;

/// Elements that a 16-bit sum holds.
const FULL: usize = 256;

/// Average pooling within limits. `None` where the operands are not of the window's sizes.
pub fn average(window: &Window2d, input: Src<'_, i8>, output: Dst<'_, i8>, limits: [i8; 2]) -> Option<()> {
    let [low, high] = limits.map(i32::from);
    // SAFETY: `each_window` calls the closure with a patch that lies in the input and has an output for each channel.
    each_window(window, input, output, |patch| unsafe {
        match patch.rows * patch.columns {
            // The mean of one element is its maximum.
            1 => patch.maxima(low, high),
            2..=FULL => patch.mean(low, high),
            _ => patch.mean_of_parts(low, high),
        }
    })
}

/// Max pooling within limits. `None` where the operands are not of the window's sizes.
pub fn max(window: &Window2d, input: Src<'_, i8>, output: Dst<'_, i8>, limits: [i8; 2]) -> Option<()> {
    let [low, high] = limits.map(i32::from);
    // SAFETY: `each_window` calls the closure with a patch that lies in the input and has an output for each channel.
    each_window(window, input, output, |patch| unsafe { patch.maxima(low, high) })
}

/// Least distance of the output below the input; see [`crate::kernels::api::kernel::Kernel::distance`]. Channels of a pixel are written in turn.
pub fn distance(window: &Window2d) -> i64 {
    window.consumed_distance(1, u32::from(window.output[2]))
}

/// The least instructions of an average or maximum over windows that lie inside the input.
fn bound(window: &Window2d, average: bool) -> u64 {
    let [h, w, c] = window.output.map(u64::from);
    let [kh, kw] = window.kernel.map(u64::from);
    let pixels = u64::from(window.batch) * h * w;
    if average {
        // The division, rounding, clamp and store of eight channels.
        pixels * c.div_ceil(SUMS as u64) * (kh * kw * 5 + 20)
    } else {
        pixels * c.div_ceil(MAXIMA as u64) * kh * kw * 5
    }
}

/// The part of a window that lies inside the input.
struct Patch {
    /// The first pixel's channels.
    src: *const i8,
    rows: usize,
    columns: usize,
    /// Bytes from row to row of the input.
    pitch: usize,
    channels: usize,
    /// As many outputs.
    dst: *mut i8,
}

/// All its methods' safety: the patch lies in the input, and there is room for an output of each channel.
impl Patch {
    #[inline(always)]
    unsafe fn maxima(&self, low: i32, high: i32) {
        let mut part = self.part(0, self.rows, self.columns);
        let mut left = self.channels;
        while left > 0 {
            let lanes = left.min(MAXIMA);
            part.lanes = lanes as u32;
            // SAFETY: `part` is the patch from a channel on of which `left >= lanes` channels remain, each with an output (docs of the methods).
            unsafe { maximum(&part, low, high) };
            part.src = part.src.wrapping_add(MAXIMA);
            part.dst = part.dst.wrapping_add(MAXIMA);
            left -= lanes;
        }
    }

    /// The mean of 2 to [`FULL`] elements.
    #[inline(always)]
    unsafe fn mean(&self, low: i32, high: i32) {
        let all = self.part(0, self.rows, self.columns);
        let count = ((self.rows * self.columns) as u32).max(1);
        // SAFETY: the patch and its outputs are valid for all `self.channels` (docs of the methods).
        unsafe {
            mean(&Mean {
                src: all.src,
                step: all.step,
                columns: all.columns,
                skip: all.skip,
                channels: self.channels as u32,
                rows: all.rows,
                dst: all.dst,
                reciprocal: u32::MAX / count + 1,
                half: count / 2,
                low,
                high,
            })
        };
    }

    #[inline(never)]
    unsafe fn mean_of_parts(&self, low: i32, high: i32) {
        // Never 0, which the compiler does not see.
        let rows_at_once = (FULL / self.columns.max(1)).min(self.rows).max(1);
        let count = ((self.rows * self.columns) as i32).max(1);
        for first in (0..self.channels).step_by(SUMS) {
            let lanes = (self.channels - first).min(SUMS);
            let mut sums = [0i32; SUMS];
            for row in (0..self.rows).step_by(rows_at_once) {
                let rows = (self.rows - row).min(rows_at_once);
                for column in (0..self.columns).step_by(FULL) {
                    let columns = (self.columns - column).min(FULL);
                    let from = row * self.pitch + column * self.channels + first;
                    let mut partial = [0i16; SUMS];
                    let part = Pool {
                        lanes: lanes as u32,
                        dst: partial.as_mut_ptr().cast(),
                        ..self.part(from, rows, columns)
                    };
                    // SAFETY: rows, columns and `lanes` channels of the part lie in the patch (docs of the methods); `partial` has room for eight sums.
                    unsafe { sum(&part) };
                    for (sum, partial) in sums.iter_mut().zip(partial) {
                        *sum += i32::from(partial);
                    }
                }
            }
            for (i, sum) in sums.into_iter().take(lanes).enumerate() {
                let half = if sum > 0 { count / 2 } else { -(count / 2) };
                let mean = (sum + half).wrapping_div(count).max(low).min(high) as i8;
                // SAFETY: `first + i < self.channels`, the outputs that are writable at `dst` (docs of the methods).
                unsafe { self.dst.add(first + i).write(mean) };
            }
        }
    }

    /// A part of the patch; no channels of it yet.
    #[inline(always)]
    fn part(&self, from: usize, rows: usize, columns: usize) -> Pool {
        Pool {
            src: self.src.wrapping_add(from),
            step: self.channels as u32,
            columns: columns as u32,
            skip: self.pitch.wrapping_sub(columns.wrapping_mul(self.channels)) as u32,
            rows: rows as u32,
            lanes: 0,
            dst: self.dst,
        }
    }
}

/// Calls `pool` for every output pixel in order; what it is given has an element at least.
#[inline(always)]
fn each_window(window: &Window2d, input: Src<'_, i8>, output: Dst<'_, i8>, pool: impl Fn(&Patch)) -> Option<()> {
    let sizes = input.len() == window.input_len()? as usize && output.cells().len() == window.output_len()? as usize;
    if !sizes || window.input[2] != window.output[2] {
        return None;
    }
    let [ih, iw, c] = window.input.map(usize::from);
    let [oh, ow, _] = window.output.map(usize::from);
    let [kh, kw] = window.kernel.map(usize::from);
    let [sh, sw] = window.stride.map(usize::from);
    let [top, left] = window.padding.map(usize::from);
    let mut dst = output.as_mut_ptr();
    for image in 0..usize::from(window.batch) {
        for y in 0..oh {
            let row = (y * sh) as isize - top as isize;
            let (skip_rows, rows) = clip(row, kh, ih);
            let line = (image * ih).wrapping_add((row + skip_rows as isize) as usize) * iw;
            for x in 0..ow {
                let column = (x * sw) as isize - left as isize;
                let (skip, columns) = clip(column, kw, iw);
                if rows == 0 || columns == 0 {
                    return None;
                }
                let from = line.wrapping_add((column + skip as isize) as usize).wrapping_mul(c);
                pool(&Patch {
                    src: input.as_ptr().wrapping_add(from),
                    rows,
                    columns,
                    pitch: iw * c,
                    channels: c,
                    dst,
                });
                dst = dst.wrapping_add(c);
            }
        }
    }
    Some(())
}
