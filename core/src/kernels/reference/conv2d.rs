//! Convolution of f32, int8 and int16, grouped and depthwise included: [`crate::ops::conv2d`]. Weights OHWI.

use super::{at, constant, indices, len, read, within, written};
use crate::arena::Mem;
use crate::ops::conv2d::{Conv2dF32, Conv2dS8, Conv2dS16};
use crate::ops::pointwise::clamp;
use crate::ops::window::Window2d;
use crate::quant::Multiplier;

/// Images, rows, columns and channels of the input.
pub(super) fn input_shape(window: &Window2d) -> [usize; 4] {
    let [rows, columns, channels] = window.input.map(usize::from);
    [window.batch.into(), rows, columns, channels]
}

/// The same of the output.
pub(super) fn output_shape(window: &Window2d) -> [usize; 4] {
    let [rows, columns, channels] = window.output.map(usize::from);
    [window.batch.into(), rows, columns, channels]
}

/// The input's row or column under tap `tap` of the window at `out`; `None` in the padding.
fn inside(window: &Window2d, axis: usize, out: usize, tap: usize) -> Option<usize> {
    let of = |pair: &[u8; 2]| pair.get(axis).copied().map(usize::from);
    let place = out * of(&window.stride)? + tap * of(&window.dilation)?;
    let extent = usize::from(*window.input.get(axis)?);
    place.checked_sub(of(&window.padding)?).filter(|&place| place < extent)
}

/// Calls `pixel([ky, kx], [iy, ix])` for each tap of the window at `[oy, ox]` that lies inside the input.
pub(super) fn taps(
    window: &Window2d,
    [oy, ox]: [usize; 2],
    mut pixel: impl FnMut([usize; 2], [usize; 2]) -> Option<()>,
) -> Option<()> {
    let [rows, columns] = window.kernel.map(usize::from);
    for ky in 0..rows {
        for kx in 0..columns {
            if let (Some(iy), Some(ix)) = (inside(window, 0, oy, ky), inside(window, 1, ox, kx)) {
                pixel([ky, kx], [iy, ix])?;
            }
        }
    }
    Some(())
}

/// Calls `product(input element, weight)` with the indices of all products of output `[n, oy, ox, o]`; of the weights with those of its filter alone.
pub(super) fn products(
    window: &Window2d,
    groups: u16,
    [n, oy, ox, o]: [usize; 4],
    mut product: impl FnMut(usize, usize) -> Option<()>,
) -> Option<()> {
    let [rows, columns] = window.kernel.map(usize::from);
    let (inputs, outputs) = (usize::from(window.input[2]), usize::from(window.output[2]));
    let channels = inputs.checked_div(groups.into())?;
    let group = o.checked_div(outputs.checked_div(groups.into())?)?;
    taps(window, [oy, ox], |[ky, kx], [iy, ix]| {
        for c in 0..channels {
            let x = at(input_shape(window), [n, iy, ix, group * channels + c]);
            product(x, at([rows, columns, channels], [ky, kx, c]))?;
        }
        Some(())
    })
}

/// Weights of an output.
pub(super) fn filter(window: &Window2d, groups: u16) -> Option<usize> {
    let [rows, columns] = window.kernel.map(usize::from);
    Some(rows * columns * usize::from(window.input[2]).checked_div(groups.into())?)
}

pub(crate) fn f32(op: &Conv2dF32, mem: &Mem<'_>) -> Option<()> {
    let (window, filter) = (&op.window, filter(&op.window, op.groups)?);
    let (from, to) = (input_shape(window), output_shape(window));
    let input = read::<f32>(mem, op.input, len(&from))?;
    let output = written::<f32>(mem, op.output, len(&to))?;
    let weights = constant::<f32>(mem, op.weights, to[3] * filter)?;
    for i in 0..len(&to) {
        let index = indices(to, i);
        let [.., o] = index;
        let mut sum = match op.bias {
            Some(bias) => *constant::<f32>(mem, bias, to[3])?.get(o)?,
            None => 0.0,
        };
        products(window, op.groups, index, |x, w| {
            sum += input.get(x)? * weights.get(o * filter + w)?;
            Some(())
        })?;
        if let Some(residual) = op.residual {
            sum += read::<f32>(mem, residual, len(&to))?.get(i)?;
        }
        output.set(i, clamp(sum, op.clamp))?;
    }
    Some(())
}

pub(crate) fn s8(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
    let (window, filter) = (&op.window, filter(&op.window, op.groups)?);
    let (from, to) = (input_shape(window), output_shape(window));
    let input = read::<i8>(mem, op.input, len(&from))?;
    let output = written::<i8>(mem, op.output, len(&to))?;
    let weights = constant::<i8>(mem, op.weights, to[3] * filter)?;
    let records = constant::<i32>(mem, op.channels, to[3] * 3)?;
    let zero_point = i32::from(op.input_zero_point);
    for i in 0..len(&to) {
        let index = indices(to, i);
        let [.., o] = index;
        let record = |field: usize| records.get(at([to[3], 3], [o, field])).copied();
        let mut sum = record(0)?;
        products(window, op.groups, index, |x, w| {
            let (x, w) = (i32::from(input.get(x)?), i32::from(*weights.get(o * filter + w)?));
            sum = sum.wrapping_add((x - zero_point) * w);
            Some(())
        })?;
        let multiplier = Multiplier {
            mantissa: record(1)?,
            shift: record(2)? as i8,
        };
        let stored = multiplier.apply(sum).wrapping_add(op.output_zero_point.into());
        output.set(i, within(stored, op.clamp.map(i32::from)) as i8)?;
    }
    Some(())
}

pub(crate) fn s16(op: &Conv2dS16, mem: &Mem<'_>) -> Option<()> {
    let (window, filter) = (&op.window, filter(&op.window, op.groups)?);
    let (from, to) = (input_shape(window), output_shape(window));
    let input = read::<i16>(mem, op.input, len(&from))?;
    let output = written::<i16>(mem, op.output, len(&to))?;
    let weights = constant::<i8>(mem, op.weights, to[3] * filter)?;
    let bias = constant::<i64>(mem, op.bias, to[3])?;
    let records = constant::<i32>(mem, op.channels, to[3] * 2)?;
    for i in 0..len(&to) {
        let index = indices(to, i);
        let [.., o] = index;
        let mut sum = *bias.get(o)?;
        products(window, op.groups, index, |x, w| {
            sum = sum.wrapping_add(i64::from(input.get(x)?) * i64::from(*weights.get(o * filter + w)?));
            Some(())
        })?;
        let record = |field: usize| records.get(at([to[3], 2], [o, field])).copied();
        let multiplier = Multiplier {
            mantissa: record(0)?,
            shift: record(1)? as i8,
        };
        output.set(i, within(multiplier.apply_wide(sum), op.clamp.map(i32::from)) as i16)?;
    }
    Some(())
}
