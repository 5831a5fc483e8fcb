//! Pooling: [`crate::ops::pool2d`].

use super::conv2d::{input_shape, output_shape, taps};
use super::{IntsRead, IntsWritten, at, indices, len, read, within, written};
use crate::arena::Mem;
use crate::ops::pointwise::clamp;
use crate::ops::pool2d::{PoolF32, PoolInt};
use crate::ops::window::Window2d;

/// Calls `element` with the index of each element under the window of output `i`: how many there are.
fn under(window: &Window2d, i: usize, mut element: impl FnMut(usize) -> Option<()>) -> Option<usize> {
    let ([n, oy, ox, c], mut count) = (indices(output_shape(window), i), 0);
    taps(window, [oy, ox], |_, [iy, ix]| {
        count += 1;
        element(at(input_shape(window), [n, iy, ix, c]))
    })?;
    Some(count)
}

pub(crate) fn max_f32(op: &PoolF32, mem: &Mem<'_>) -> Option<()> {
    let (from, to) = (len(&input_shape(&op.window)), len(&output_shape(&op.window)));
    let (input, output) = (read::<f32>(mem, op.input, from)?, written::<f32>(mem, op.output, to)?);
    for i in 0..to {
        let mut max = f32::NEG_INFINITY;
        under(&op.window, i, |element| {
            let x = input.get(element)?;
            if x > max || x.is_nan() {
                max = x;
            }
            Some(())
        })?;
        output.set(i, clamp(max, op.clamp))?;
    }
    Some(())
}

pub(crate) fn average_f32(op: &PoolF32, mem: &Mem<'_>) -> Option<()> {
    let (from, to) = (len(&input_shape(&op.window)), len(&output_shape(&op.window)));
    let (input, output) = (read::<f32>(mem, op.input, from)?, written::<f32>(mem, op.output, to)?);
    let [rows, columns] = op.window.kernel.map(usize::from);
    for i in 0..to {
        let mut sum = 0.0;
        let count = under(&op.window, i, |element| {
            sum += input.get(element)?;
            Some(())
        })?;
        let divisor = if op.count_include_pad { rows * columns } else { count };
        output.set(i, clamp(sum / divisor as f32, op.clamp))?;
    }
    Some(())
}

pub(crate) fn max_int(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
    let (from, to) = (len(&input_shape(&op.window)), len(&output_shape(&op.window)));
    let input = IntsRead::new(mem, op.input, op.dtype, from)?;
    let output = IntsWritten::new(mem, op.output, op.dtype, to)?;
    for i in 0..to {
        let mut max = i32::MIN;
        under(&op.window, i, |element| {
            max = max.max(input.get(element)?);
            Some(())
        })?;
        output.set(i, within(max, op.clamp.map(i32::from)))?;
    }
    Some(())
}

pub(crate) fn average_int(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
    let (from, to) = (len(&input_shape(&op.window)), len(&output_shape(&op.window)));
    let input = IntsRead::new(mem, op.input, op.dtype, from)?;
    let output = IntsWritten::new(mem, op.output, op.dtype, to)?;
    for i in 0..to {
        let mut sum = 0_i64;
        let count = under(&op.window, i, |element| {
            sum += i64::from(input.get(element)?);
            Some(())
        })?;
        // The magnitude and a half, rounded down.
        let count = count as i64;
        let magnitude = (2 * sum.abs() + count).checked_div(2 * count)?;
        let mean = if sum < 0 { -magnitude } else { magnitude };
        output.set(i, within(mean as i32, op.clamp.map(i32::from)))?;
    }
    Some(())
}
