//! Training through poolings: [`crate::ops::pool2d_train`].

use super::conv2d::{input_shape, output_shape, taps};
use super::{at, indices, len, read, written};
use crate::arena::Mem;
use crate::ops::pointwise::clamp;
use crate::ops::pool2d_train::{AvgPoolGradF32, MaxPoolGradF32, MaxPoolPositionsF32};
use crate::ops::window::Window2d;

/// Calls `element(tap, element of the input)` for each tap inside the input of the window of output `i`.
fn under(window: &Window2d, i: usize, mut element: impl FnMut(usize, usize) -> Option<()>) -> Option<()> {
    let [n, oy, ox, c] = indices(output_shape(window), i);
    let kernel = window.kernel.map(usize::from);
    taps(window, [oy, ox], |tap, [iy, ix]| {
        element(at(kernel, tap), at(input_shape(window), [n, iy, ix, c]))
    })
}

pub(crate) fn max_positions(op: &MaxPoolPositionsF32, mem: &Mem<'_>) -> Option<()> {
    let (from, to) = (len(&input_shape(&op.window)), len(&output_shape(&op.window)));
    let (input, output) = (read::<f32>(mem, op.input, from)?, written::<f32>(mem, op.output, to)?);
    let positions = written::<u8>(mem, op.positions, to)?;
    for i in 0..to {
        let mut best: Option<(f32, usize)> = None;
        under(&op.window, i, |tap, element| {
            let x = input.get(element)?;
            if best.is_none_or(|(max, _)| x > max || x.is_nan()) {
                best = Some((x, tap));
            }
            Some(())
        })?;
        let (max, tap) = best?;
        output.set(i, clamp(max, op.clamp))?;
        positions.set(i, tap as u8)?;
    }
    Some(())
}

pub(crate) fn max_grad(op: &MaxPoolGradF32, mem: &Mem<'_>) -> Option<()> {
    let (from, to) = (len(&input_shape(&op.window)), len(&output_shape(&op.window)));
    let output = written::<f32>(mem, op.output, from)?;
    let gradient = read::<f32>(mem, op.gradient, to)?;
    let positions = read::<u8>(mem, op.positions, to)?;
    for x in 0..from {
        let mut sum = 0.0;
        for i in 0..to {
            let position = usize::from(positions.get(i)?);
            under(&op.window, i, |tap, element| {
                if (tap, element) == (position, x) {
                    sum += gradient.get(i)?;
                }
                Some(())
            })?;
        }
        output.set(x, sum)?;
    }
    Some(())
}

pub(crate) fn average_grad(op: &AvgPoolGradF32, mem: &Mem<'_>) -> Option<()> {
    let (from, to) = (len(&input_shape(&op.window)), len(&output_shape(&op.window)));
    let output = written::<f32>(mem, op.output, from)?;
    let gradient = read::<f32>(mem, op.gradient, to)?;
    let [rows, columns] = op.window.kernel.map(usize::from);
    for x in 0..from {
        let mut sum = 0.0_f64;
        for i in 0..to {
            let (mut count, mut is_under) = (0, false);
            under(&op.window, i, |_, element| {
                count += 1;
                is_under |= element == x;
                Some(())
            })?;
            let divisor = if op.count_include_pad { rows * columns } else { count };
            if is_under {
                sum += f64::from(gradient.get(i)?) / divisor as f64;
            }
        }
        output.set(x, sum as f32)?;
    }
    Some(())
}
