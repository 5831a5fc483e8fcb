//! int8 pooling: averages of the elements inside the input, rounded half away from zero, and maxima. Padding takes no part in either.

use core::num::NonZeroU32;

use super::conv2d_s8::limit;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::portable::pool2d::{AvgInt, MaxInt};
use crate::ops::pool2d::PoolInt;
use crate::ops::window::{Window2d, inside};
use crate::tensor::DType;

/// Average of int8.
#[derive(Debug)]
pub struct Average;

/// Maximum of int8.
#[derive(Debug)]
pub struct Max;

impl Kernel for Average {
    type Op = PoolInt;

    fn supports(op: &PoolInt) -> bool {
        is_plain(op) && op.sums_fit()
    }

    fn distance(op: &PoolInt, index: usize) -> Option<i64> {
        AvgInt::distance(op, index)
    }

    fn run(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
        let (input, output) = (op.window.input_len()?, op.window.output_len()?);
        average(
            &op.window,
            mem.src(op.input, input)?,
            mem.dst(op.output, output)?,
            limits(op),
        )
    }
}

impl Kernel for Max {
    type Op = PoolInt;

    fn supports(op: &PoolInt) -> bool {
        is_plain(op)
    }

    fn distance(op: &PoolInt, index: usize) -> Option<i64> {
        MaxInt::distance(op, index)
    }

    fn run(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
        let (input, output) = (op.window.input_len()?, op.window.output_len()?);
        max(
            &op.window,
            mem.src(op.input, input)?,
            mem.dst(op.output, output)?,
            limits(op),
        )
    }
}

#[cfg(any(test, packing))]
impl Candidate for Average {
    const JOB: Option<JobKind> = Some(JobKind::AvgPoolInt);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PoolInt<P>> {
        job.avg_pool_int()
    }
}

#[cfg(any(test, packing))]
impl Candidate for Max {
    const JOB: Option<JobKind> = Some(JobKind::MaxPoolInt);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PoolInt<P>> {
        job.max_pool_int()
    }
}

/// int8 without dilation.
fn is_plain(op: &PoolInt) -> bool {
    op.dtype == DType::I8 && op.window.dilation == [1, 1]
}

fn limits(op: &PoolInt) -> [i8; 2] {
    op.clamp.map(|n| n.clamp(-128, 127) as i8)
}

/// Channels that a window is read for at a time.
const LANES: usize = 4;

/// Averages are quotients of at most this many elements by a product, of which it is the power of two; see [`Divisor`].
const SHIFT: u32 = 24;

/// Of how many elements at most: 128 times as many, and half of them, times what the reciprocal is too large by, stay below 2^24.
const MOST: u32 = 256;

/// Average pooling within limits. `None` where the operands are not of the window's sizes.
pub fn average(window: &Window2d, input: Src<'_, i8>, output: Dst<'_, i8>, limits: [i8; 2]) -> Option<()> {
    let mean = |sum, divisor: Divisor| divisor.mean(sum) as i8;
    // Ties away from zero: below it the half is one less.
    let of_few = |sum: i32| ((sum + (sum >> 31) + 2) >> 2) as i8;
    each_window(window, input, output, 0, i32::wrapping_add, mean, of_few)?;
    limit(output, limits);
    Some(())
}

/// Max pooling within limits. `None` where the operands are not of the window's sizes.
pub fn max(window: &Window2d, input: Src<'_, i8>, output: Dst<'_, i8>, limits: [i8; 2]) -> Option<()> {
    each_window(
        window,
        input,
        output,
        i8::MIN.into(),
        i32::max,
        |max, _| max as i8,
        |max| max as i8,
    )?;
    limit(output, limits);
    Some(())
}

/// The elements of a window, as means divide by them.
#[derive(Clone, Copy)]
struct Divisor {
    count: NonZeroU32,
    /// 2^24 over them, rounded up; 0 where they are too many.
    reciprocal: u32,
}

impl Divisor {
    /// A window of padding alone has the sum 0.
    fn new(count: usize) -> Self {
        let count = NonZeroU32::new(count as u32).unwrap_or(NonZeroU32::MIN);
        let reciprocal = (count.get() - 1).wrapping_add(1 << SHIFT) / count;
        Self {
            count,
            reciprocal: if count.get() > MOST { 0 } else { reciprocal },
        }
    }

    /// Rounded half away from zero.
    #[inline(always)]
    fn mean(self, sum: i32) -> i32 {
        let total = sum.unsigned_abs().wrapping_add(self.count.get() / 2);
        let mean = match self.reciprocal {
            0 => total / self.count,
            reciprocal => total.wrapping_mul(reciprocal) >> SHIFT,
        } as i32;
        let sign = sum >> 31;
        (mean ^ sign).wrapping_sub(sign)
    }
}

/// Part of a window inside the input.
struct Patch {
    rows: usize,
    columns: usize,
    /// Bytes between columns, and from the end of a row to the next one.
    right: usize,
    down: usize,
}

impl Patch {
    /// `f` of all elements of neighbouring channels.
    ///
    /// # Safety
    /// `first` is the first element of the first of `N` channels; those channels of every column and row of the patch are readable.
    #[inline(always)]
    unsafe fn fold<const N: usize>(&self, first: *const i8, initial: i32, f: impl Fn(i32, i32) -> i32) -> [i32; N] {
        let (mut values, mut at) = ([initial; N], first);
        for _ in 0..self.rows {
            let mut left = self.columns;
            // One at least, in any row.
            loop {
                for (lane, value) in values.iter_mut().enumerate() {
                    // SAFETY: `lane < N`; `at` is a pixel of the patch, whose `N` channels this function's contract guarantees.
                    *value = f(*value, i32::from(unsafe { *at.add(lane) }));
                }
                at = at.wrapping_add(self.right);
                left = left.wrapping_sub(1);
                if left == 0 {
                    break;
                }
            }
            at = at.wrapping_add(self.down);
        }
        values
    }
}

/// Writes `finish` of what `fold` makes of four elements, for `count` neighbouring channels.
///
/// # Safety
/// `count` elements are readable at each of `from` and writable at `to`.
#[inline(always)]
unsafe fn fold_4_elements(
    from: [*const i8; 4],
    to: *mut i8,
    count: usize,
    fold: impl Fn(i32, i32) -> i32,
    finish: impl Fn(i32) -> i8,
) {
    for i in 0..count {
        // SAFETY: `i < count`, and this function's contract guarantees `count` elements at each of `from` and at `to`.
        unsafe {
            let [a, b, c, d] = from.map(|x| i32::from(x.add(i).read()));
            to.add(i).write(finish(fold(fold(a, b), fold(c, d))));
        }
    }
}

/// Every output in order: `finish` of what `fold` makes of the elements inside the input, from `initial` on, and of their number; of up to two rows of two
/// elements `of_few` of what it makes of these, twice of a single row or column.
#[inline(always)]
fn each_window(
    window: &Window2d,
    input: Src<'_, i8>,
    output: Dst<'_, i8>,
    initial: i32,
    fold: impl Fn(i32, i32) -> i32 + Copy,
    finish: impl Fn(i32, Divisor) -> i8,
    of_few: impl Fn(i32) -> i8 + Copy,
) -> Option<()> {
    let [height, width, channels] = window.input.map(usize::from);
    let [out_height, out_width, _] = window.output.map(usize::from);
    let right = window.dilation[0] == 1 && window.dilation[1] == 1 && window.output[2] == window.input[2];
    let sizes = input.len() == window.input_len()? as usize && output.cells().len() == window.output_len()? as usize;
    if !right || !sizes {
        return None;
    }
    let mut to = output.as_mut_ptr();
    let pitch = width * channels;
    let (mut counted, mut divisor) = (0, Divisor::new(0));
    for image in 0..usize::from(window.batch) {
        for y in 0..out_height {
            let (top, rows) = inside(y, window, 0)?;
            for x in 0..out_width {
                let (left, columns) = inside(x, window, 1)?;
                if top + rows > height || left + columns > width {
                    return None;
                }
                let first = ((image * height + top) * width + left) * channels;
                let (mut at, mut left) = (input.as_ptr().wrapping_add(first), channels);
                // SAFETY: all channels of the window's elements, which lie inside the input, and as many outputs, as the sizes say.
                unsafe {
                    match (rows, columns) {
                        (1 | 2, 1 | 2) => {
                            let below = at.wrapping_add(if rows == 2 { pitch } else { 0 });
                            let right = if columns == 2 { channels } else { 0 };
                            let corners = [at, at.wrapping_add(right), below, below.wrapping_add(right)];
                            fold_4_elements(corners, to, channels, fold, of_few);
                        }
                        _ => {
                            if counted != rows * columns {
                                counted = rows * columns;
                                divisor = Divisor::new(counted);
                            }
                            // Rows of the whole width are one; there are none without columns.
                            let patch = Patch {
                                rows: if columns == width { 1 } else { rows }.min(counted),
                                columns: if columns == width { counted } else { columns },
                                right: channels,
                                down: (width - columns) * channels,
                            };
                            let mut to = to;
                            while left >= LANES {
                                for value in patch.fold::<LANES>(at, initial, fold) {
                                    to.write(finish(value, divisor));
                                    to = to.wrapping_add(1);
                                }
                                at = at.wrapping_add(LANES);
                                left -= LANES;
                            }
                            while left > 0 {
                                let [value] = patch.fold(at, initial, fold);
                                to.write(finish(value, divisor));
                                to = to.wrapping_add(1);
                                at = at.wrapping_add(1);
                                left -= 1;
                            }
                        }
                    }
                }
                to = to.wrapping_add(channels);
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_make_the_quotients() {
        for count in 1..=MOST as i32 + 3 {
            let divisor = Divisor::new(count as usize);
            assert_eq!(divisor.reciprocal == 0, count > MOST as i32);
            for sum in -128 * count..=128 * count {
                let doubled = 2 * sum.abs() + count;
                assert_eq!(
                    divisor.mean(sum),
                    doubled / (2 * count) * sum.signum(),
                    "{sum} / {count}"
                );
            }
        }
    }
}
