//! Depthwise convolution of f32: four channels a vector, tap by tap, any window and dilation 1.

use super::args::DepthwiseF32;
use super::loops::depthwise_f32;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::portable::taps;
use crate::ops::conv2d::Conv2dF32;
use crate::ops::operator::Needs;

/// f32, one input channel a group, as many output channels. Packed weights of `pack`; limits turn a NaN into a number.
#[derive(Debug)]
pub struct F32;

#[cfg(any(test, packing))]
impl Candidate for F32 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dF32);
    const BIAS: bool = true;

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dF32<P>> {
        job.conv2d_f32().map(|(op, _)| op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dF32, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, weights) = job.conv2d_f32()?;
        pack(&op, weights, packed.as_chunks_mut().0)
    }

    fn bound(op: &Conv2dF32, _: &Machine) -> Option<u64> {
        Some(bound(op))
    }
}

/// Packs OHWI weights, i.e. `[channels, kh, kw, 1]`, as `[kh, kw, channels]`, little-endian; `None` where a slice is too short.
pub(super) fn pack(op: &Conv2dF32, weights: &[f32], dst: &mut [[u8; 4]]) -> Option<()> {
    let channels = usize::from(op.window.output[2]);
    let taps = op.window.taps() as usize;
    for (tap, places) in dst.chunks_exact_mut(channels).enumerate().take(taps) {
        for (channel, place) in places.iter_mut().enumerate() {
            *place = weights.get(channel * taps + tap)?.to_le_bytes();
        }
    }
    Some(())
}

/// The least instructions of a step.
fn bound(op: &Conv2dF32) -> u64 {
    let [h, w, c] = op.window.output.map(u64::from);
    let [kh, kw] = op.window.kernel.map(u64::from);
    u64::from(op.window.batch) * h * w * c.div_ceil(4) * (kh * kw * 6 + 12)
}

impl Kernel for F32 {
    type Op = Conv2dF32;

    /// Its sums start from a bias in memory.
    fn supports(op: &Conv2dF32) -> bool {
        let window = &op.window;
        op.groups == window.input[2]
            && window.input[2] == window.output[2]
            && window.dilation == [1, 1]
            && op.bias.is_some()
    }

    fn needs(op: &Conv2dF32) -> Needs {
        Needs {
            scratch: 0,
            // No blob is that large: load refuses the step.
            weights: if Self::supports(op) {
                op.weights_len().unwrap_or(u32::MAX).saturating_mul(4)
            } else {
                u32::MAX
            },
        }
    }

    fn distance(op: &Conv2dF32, index: usize) -> Option<i64> {
        match (index, op.residual) {
            // A pixel is written vector by vector.
            (1, _) => Some(op.window.consumed_distance(4, u32::from(op.window.output[2]))),
            (2, Some(_)) => Some(0),
            _ => None,
        }
    }

    fn run(op: &Conv2dF32, mem: &Mem<'_>) -> Option<()> {
        let window = &op.window;
        let [ih, iw, c] = window.input.map(usize::from);
        let [oh, ow, _] = window.output.map(usize::from);
        let kw = usize::from(window.kernel[1]);
        let outputs = window.output_len()?;
        let input = mem.src::<f32>(op.input, window.input_len()?)?;
        let output = mem.dst::<f32>(op.output, outputs)?;
        let weights = mem.weights::<f32>(op.weights, op.weights_len()?)?;
        let bias = mem.weights::<f32>(op.bias?, u32::from(window.output[2]))?;
        let residual = match op.residual {
            Some(slot) => Some(mem.src::<f32>(slot, outputs)?),
            None => None,
        };
        let mut at = 0;
        for image in 0..usize::from(window.batch) {
            for y in 0..oh {
                let (ky, rows, iy) = taps(y, window, 0)?;
                for x in 0..ow {
                    let (kx, columns, ix) = taps(x, window, 1)?;
                    // A window without a tap inside is the bias alone: one tap of weight, none of x, cannot be said to the loop.
                    if rows == 0 || columns == 0 {
                        return None;
                    }
                    let from = ((image * ih + iy) * iw + ix) * c;
                    let x = input.slice(from, ((rows - 1) * iw + columns) * c)?;
                    let w = weights
                        .get((ky * kw + kx) * c..)?
                        .get(..((rows - 1) * kw + columns) * c)?;
                    let out = output.slice(at, c)?;
                    let args = DepthwiseF32 {
                        x: x.as_ptr(),
                        weights: w.as_ptr(),
                        bias: bias.as_ptr(),
                        out: out.as_mut_ptr(),
                        residual: match residual {
                            Some(residual) => residual.slice(at, c)?.as_ptr(),
                            None => core::ptr::null(),
                        },
                        channels: c as u32,
                        rows: rows as u32,
                        columns: columns as u32,
                        step: (c * 4) as u32,
                        x_skip: ((iw - columns) * c * 4) as u32,
                        weights_skip: ((kw - columns) * c * 4) as u32,
                        limits: op.clamp,
                    };
                    // SAFETY: the slices were taken with `rows` rows of `columns` pixels, and with one output pixel.
                    unsafe { depthwise_f32(&args) };
                    at += c;
                }
            }
        }
        Some(())
    }
}
