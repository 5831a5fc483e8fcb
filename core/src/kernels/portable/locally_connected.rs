//! Locally connected layers: accumulates whole output rows, so that input, weights and output are all read along rows.

use super::clamp;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::locally_connected::{LocallyConnectedF32, LocallyConnectedS8};
use crate::quant::Multiplier;

/// f32; weights `[out, in, kh, kw, oh, ow]`.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = LocallyConnectedF32;

    fn run(op: &LocallyConnectedF32, mem: &Mem<'_>) -> Option<()> {
        let shape = op.shape();
        let input = mem.src::<f32>(op.input, shape.input_len()?)?;
        let output = mem.dst::<f32>(op.output, shape.output_len()?)?;
        let weights = mem.weights::<f32>(op.weights, shape.weights_len()?)?;
        let bias = mem.weights::<f32>(op.bias, shape.bias_len()?)?;
        let [c, h, w] = op.input_shape.map(usize::from);
        let [o, oh, ow] = op.output_shape().map(usize::from);
        let [kh, kw] = op.kernel.map(usize::from);
        for image in 0..usize::from(op.batch) {
            for channel in 0..o {
                for y in 0..oh {
                    let row = output.slice(((image * o + channel) * oh + y) * ow, ow)?;
                    row.cells().iter().for_each(|y| y.set(0.0));
                    for (cin, ky, kx) in (0..c).flat_map(|c| (0..kh).flat_map(move |y| (0..kw).map(move |x| (c, y, x))))
                    {
                        let x = input.slice(((image * c + cin) * h + y + ky) * w + kx, ow)?;
                        let at = ((((channel * c + cin) * kh + ky) * kw + kx) * oh + y) * ow;
                        let k = weights.get(at..)?.get(..ow)?;
                        for ((sum, x), k) in row.cells().iter().zip(x.iter()).zip(k) {
                            sum.set(sum.get() + x * k);
                        }
                    }
                    let bias = bias.get((channel * oh + y) * ow..)?;
                    for (sum, b) in row.cells().iter().zip(bias) {
                        sum.set(clamp(sum.get() * op.gain + b, op.clamp));
                    }
                }
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {}

/// Columns whose sums are made together.
const COLUMNS: usize = 16;

/// int8; weights `[out, in, kh, kw, oh, ow]`.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = LocallyConnectedS8;

    fn run(op: &LocallyConnectedS8, mem: &Mem<'_>) -> Option<()> {
        let shape = op.shape();
        let input = mem.src::<i8>(op.input, shape.input_len()?)?;
        let output = mem.dst::<i8>(op.output, shape.output_len()?)?;
        let weights = mem.weights::<i8>(op.weights, shape.weights_len()?)?;
        let bias = mem.weights::<i32>(op.bias, shape.bias_len()?)?;
        let multipliers = mem.weights::<i32>(op.multipliers, u32::from(op.channels).checked_mul(2)?)?;
        let [c, h, w] = op.input_shape.map(usize::from);
        let [o, oh, ow] = op.output_shape().map(usize::from);
        let [kh, kw] = op.kernel.map(usize::from);
        let zero_point = i32::from(op.input_zero_point);
        let [low, high] = op.clamp.map(i32::from);
        for image in 0..usize::from(op.batch) {
            for (channel, &[mantissa, shift]) in (0..o).zip(multipliers.as_chunks().0) {
                let multiplier = Multiplier {
                    mantissa,
                    shift: shift as i8,
                };
                for y in 0..oh {
                    let mut first = 0;
                    while first < ow {
                        let columns = COLUMNS.min(ow - first);
                        let mut sums = [0_i32; COLUMNS];
                        let bias = bias.get((channel * oh + y) * ow + first..)?;
                        sums.iter_mut().zip(bias).for_each(|(sum, &bias)| *sum = bias);
                        for (cin, ky) in (0..c).flat_map(|c| (0..kh).map(move |ky| (c, ky))) {
                            let row = ((image * c + cin) * h + y + ky) * w + first;
                            let taps = (((channel * c + cin) * kh + ky) * kw * oh + y) * ow + first;
                            for kx in 0..kw {
                                let x = input.slice(row + kx, columns)?;
                                let k = weights.get(taps + kx * oh * ow..)?.get(..columns)?;
                                for ((sum, x), &k) in sums.iter_mut().zip(x.iter()).zip(k) {
                                    *sum = sum.wrapping_add((i32::from(x) - zero_point) * i32::from(k));
                                }
                            }
                        }
                        let place = output.slice(((image * o + channel) * oh + y) * ow + first, columns)?;
                        for (y, &sum) in place.cells().iter().zip(&sums) {
                            let stored = multiplier.apply(sum).wrapping_add(i32::from(op.output_zero_point));
                            y.set(stored.max(low).min(high) as i8);
                        }
                        first += columns;
                    }
                }
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {}
