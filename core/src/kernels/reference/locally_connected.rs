//! Locally connected layers: [`crate::ops::locally_connected`]. Activations NCHW, weights `[out, in, kh, kw, oh, ow]`.

use super::{at, constant, indices, len, read, within, written};
use crate::arena::Mem;
use crate::ops::locally_connected::{LocallyConnectedF32, LocallyConnectedS8};
use crate::ops::pointwise::clamp;
use crate::quant::Multiplier;

/// Extents that all types have.
pub(super) struct Extents {
    pub(super) input: [usize; 4],
    pub(super) output: [usize; 4],
    pub(super) weights: [usize; 6],
}

impl Extents {
    pub(super) fn new(batch: u16, input: [u16; 3], output: [u16; 3], kernel: [u16; 2]) -> Self {
        let ([c, h, w], [o, oh, ow]) = (input.map(usize::from), output.map(usize::from));
        let [kh, kw] = kernel.map(usize::from);
        Self {
            input: [batch.into(), c, h, w],
            output: [batch.into(), o, oh, ow],
            weights: [o, c, kh, kw, oh, ow],
        }
    }

    /// Calls `product(input element, weight)` for all products of output `[n, o, oy, ox]`.
    pub(super) fn products(
        &self,
        [n, o, oy, ox]: [usize; 4],
        mut product: impl FnMut(usize, usize) -> Option<()>,
    ) -> Option<()> {
        let [_, channels, rows, columns, ..] = self.weights;
        for c in 0..channels {
            for ky in 0..rows {
                for kx in 0..columns {
                    let x = at(self.input, [n, c, oy + ky, ox + kx]);
                    product(x, at(self.weights, [o, c, ky, kx, oy, ox]))?;
                }
            }
        }
        Some(())
    }
}

pub(crate) fn f32(op: &LocallyConnectedF32, mem: &Mem<'_>) -> Option<()> {
    let extents = Extents::new(op.batch, op.input_shape, op.output_shape(), op.kernel);
    let [_, outputs, rows, columns] = extents.output;
    let input = read::<f32>(mem, op.input, len(&extents.input))?;
    let output = written::<f32>(mem, op.output, len(&extents.output))?;
    let weights = constant::<f32>(mem, op.weights, len(&extents.weights))?;
    let bias = constant::<f32>(mem, op.bias, outputs * rows * columns)?;
    for i in 0..len(&extents.output) {
        let index = indices(extents.output, i);
        let mut sum = 0.0;
        extents.products(index, |x, w| {
            sum += input.get(x)? * weights.get(w)?;
            Some(())
        })?;
        let [_, o, oy, ox] = index;
        let bias = bias.get(at([outputs, rows, columns], [o, oy, ox]))?;
        output.set(i, clamp(sum * op.gain + bias, op.clamp))?;
    }
    Some(())
}

pub(crate) fn s8(op: &LocallyConnectedS8, mem: &Mem<'_>) -> Option<()> {
    let extents = Extents::new(op.batch, op.input_shape, op.output_shape(), op.kernel);
    let [_, outputs, rows, columns] = extents.output;
    let input = read::<i8>(mem, op.input, len(&extents.input))?;
    let output = written::<i8>(mem, op.output, len(&extents.output))?;
    let weights = constant::<i8>(mem, op.weights, len(&extents.weights))?;
    let bias = constant::<i32>(mem, op.bias, outputs * rows * columns)?;
    let multipliers = constant::<i32>(mem, op.multipliers, outputs * 2)?;
    let zero_point = i32::from(op.input_zero_point);
    for i in 0..len(&extents.output) {
        let index = indices(extents.output, i);
        let [_, o, oy, ox] = index;
        let mut sum = *bias.get(at([outputs, rows, columns], [o, oy, ox]))?;
        extents.products(index, |x, w| {
            let (x, w) = (i32::from(input.get(x)?), i32::from(*weights.get(w)?));
            sum = sum.wrapping_add((x - zero_point) * w);
            Some(())
        })?;
        let multiplier = Multiplier {
            mantissa: *multipliers.get(at([outputs, 2], [o, 0]))?,
            shift: *multipliers.get(at([outputs, 2], [o, 1]))? as i8,
        };
        let stored = multiplier.apply(sum).wrapping_add(op.output_zero_point.into());
        output.set(i, within(stored, op.clamp.map(i32::from)) as i8)?;
    }
    Some(())
}
