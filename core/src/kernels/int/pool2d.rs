//! int8 pooling: averages of the elements inside the input, rounded half away from zero, and maxima. Padding takes no part in either.

use core::num::NonZeroU32;

use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::candidate::{Candidate, Job, JobKind};
use crate::kernels::kernel::Kernel;
use crate::kernels::scalar::pool2d::{AvgInt, MaxInt};
use crate::kernels::scalar::taps;
use crate::ops::pool2d::PoolInt;
use crate::ops::window::Window2d;
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

/// Average pooling within limits. `None` where the operands are not of the window's sizes.
pub fn average(window: &Window2d, input: Src<'_, i8>, output: Dst<'_, i8>, [low, high]: [i8; 2]) -> Option<()> {
    each_window(window, input, output, |patch| {
        // A window of padding alone has the sum 0.
        let count = NonZeroU32::new((patch.rows * patch.columns) as u32).unwrap_or(NonZeroU32::MIN);
        let sum = patch.fold(0i32, |sum, x| sum.wrapping_add(i32::from(x)));
        let mean = ((sum.unsigned_abs() + count.get() / 2) / count) as i32;
        let mean = if sum < 0 { -mean } else { mean };
        Some(mean.max(i32::from(low)).min(i32::from(high)) as i8)
    })
}

/// Max pooling within limits. `None` where the operands are not of the window's sizes.
pub fn max(window: &Window2d, input: Src<'_, i8>, output: Dst<'_, i8>, [low, high]: [i8; 2]) -> Option<()> {
    each_window(window, input, output, |patch| {
        Some(patch.fold(i8::MIN, i8::max).max(low).min(high))
    })
}

/// One channel of a window, as far as it lies inside the input.
struct Patch {
    first: *const i8,
    rows: usize,
    columns: usize,
    /// Bytes between columns, and from the end of a row to the next one.
    right: usize,
    down: usize,
}

impl Patch {
    #[inline(always)]
    fn fold<T>(&self, initial: T, f: impl Fn(T, i8) -> T) -> T {
        let (mut value, mut at) = (initial, self.first);
        // Rows of the whole width are one.
        let (rows, columns) = match self.down {
            0 => (1, self.rows * self.columns),
            _ => (self.rows, self.columns),
        };
        for _ in 0..rows {
            let mut left = columns;
            while left >= 4 {
                for _ in 0..4 {
                    // SAFETY: `each_window` clips the patch to the input.
                    value = f(value, unsafe { *at });
                    at = at.wrapping_add(self.right);
                }
                left -= 4;
            }
            while left > 0 {
                // SAFETY: as above.
                value = f(value, unsafe { *at });
                at = at.wrapping_add(self.right);
                left -= 1;
            }
            at = at.wrapping_add(self.down);
        }
        value
    }
}

#[inline(always)]
fn each_window(
    window: &Window2d,
    input: Src<'_, i8>,
    output: Dst<'_, i8>,
    f: impl Fn(&Patch) -> Option<i8>,
) -> Option<()> {
    let [height, width, channels] = window.input.map(usize::from);
    let [out_height, out_width, _] = window.output.map(usize::from);
    let right = window.dilation[0] == 1 && window.dilation[1] == 1 && window.output[2] == window.input[2];
    let sizes = input.len() == window.input_len()? as usize && output.cells().len() == window.output_len()? as usize;
    if !right || !sizes {
        return None;
    }
    let mut outputs = output.cells().iter();
    for image in 0..usize::from(window.batch) {
        for y in 0..out_height {
            let (_, rows, top) = taps(y, window, 0)?;
            for x in 0..out_width {
                let (_, columns, left) = taps(x, window, 1)?;
                if top + rows > height || left + columns > width {
                    return None;
                }
                let first = ((image * height + top) * width + left) * channels;
                for channel in 0..channels {
                    let patch = Patch {
                        first: input.as_ptr().wrapping_add(first + channel),
                        rows,
                        columns,
                        right: channels,
                        down: (width - columns) * channels,
                    };
                    outputs.next()?.set(f(&patch)?);
                }
            }
        }
    }
    Some(())
}
