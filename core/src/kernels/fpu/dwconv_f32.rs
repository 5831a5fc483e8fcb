//! f32 depthwise convolution, eight channels of a pixel at a time. Weights: `[kh, kw, channels]`.

use super::dwconv_f32_loops::Pixel;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::portable::taps;
use crate::ops::conv2d::Conv2dF32;
use crate::ops::operator::Needs;

/// f32, one input channel a group.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = Conv2dF32;

    fn supports(op: &Conv2dF32) -> bool {
        let [_, _, channels] = op.window.input;
        channels == op.groups && channels == op.window.output[2]
    }

    fn needs(op: &Conv2dF32) -> Needs {
        let weights = if Self::supports(op) {
            op.weights_len().and_then(|len| len.checked_mul(4))
        } else {
            // Not computed by this kernel: more than any file has.
            None
        };
        Needs {
            scratch: 0,
            weights: weights.unwrap_or(u32::MAX),
        }
    }

    fn distance(op: &Conv2dF32, index: usize) -> Option<i64> {
        match (index, op.residual) {
            // A block of channels is written when it has been read, and later reads of the pixel are as much further on.
            (1, _) => Some(op.window.consumed_distance(4, 0)),
            (2, Some(_)) => Some(0),
            _ => None,
        }
    }

    fn run(op: &Conv2dF32, mem: &Mem<'_>) -> Option<()> {
        let window = &op.window;
        let input = mem.src::<f32>(op.input, window.input_len()?)?;
        let output = mem.dst::<f32>(op.output, window.output_len()?)?;
        let residual = match op.residual {
            Some(slot) => Some(mem.src::<f32>(slot, window.output_len()?)?),
            None => None,
        };
        let weights = mem.weights::<f32>(op.weights, op.weights_len()?)?;
        let bias = op.biases(mem)?;
        let [height, width, channels] = window.input.map(usize::from);
        let [out_height, out_width, _] = window.output.map(usize::from);
        let kernel_columns = usize::from(window.kernel[1]);
        let [row_step, column_step] = window.dilation.map(usize::from);
        let (steps, weights_row) = (
            [row_step * width * channels, column_step * channels],
            kernel_columns * channels,
        );
        let mut at = 0;
        for image in 0..usize::from(window.batch) {
            for y in 0..out_height {
                let (ky, rows, top) = taps(y, window, 0)?;
                let line = (image * height + top) * width;
                for x in 0..out_width {
                    let (kx, columns, left) = taps(x, window, 1)?;
                    // A window whose taps all lie in the padding may begin behind the input.
                    let from = ((line + left) * channels).min(input.len());
                    let pixel = Pixel {
                        input: input.slice(from, input.len() - from)?,
                        weights: weights.get((ky * kernel_columns + kx) * channels..).unwrap_or_default(),
                        bias,
                        output: output.slice(at, channels)?,
                        residual: match residual {
                            Some(residual) => Some(residual.slice(at, channels)?),
                            None => None,
                        },
                        taps: [rows, columns],
                        steps,
                        weights_row,
                        limits: op.clamp,
                    };
                    pixel.compute()?;
                    at += channels;
                }
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dF32);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dF32<P>> {
        job.conv2d_f32().map(|(op, _)| op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dF32, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, weights) = job.conv2d_f32()?;
        pack(&op, weights, packed.as_chunks_mut().0)
    }

    fn bound(op: &Conv2dF32, on: &Machine) -> Option<u64> {
        Some(bound(op, on.vectors))
    }
}

/// The fewest instructions that the step can take on a Cortex-M with an FPU: 14 for eight MACs inside the input, a store for eight outputs. `vectors`: on
/// AArch64 two loads, a multiplication and an addition for four MACs, a load and a store for four outputs.
fn bound(op: &Conv2dF32, vectors: bool) -> u64 {
    let outputs = op.window.output_len().map_or(0, u64::from);
    let [rows, columns] = [0, 1].map(|axis| {
        let places = 0..op.window.output.get(axis).map_or(0, |&n| usize::from(n));
        places
            .map(|at| taps(at, &op.window, axis).map_or(0, |(_, count, _)| count as u64))
            .sum::<u64>()
    });
    let macs = u64::from(op.window.batch) * rows * columns * u64::from(op.window.output[2]);
    if vectors {
        macs + outputs / 2
    } else {
        macs * 7 / 4 + outputs / 8
    }
}

/// Packs weights `[channels, kh, kw]` into `packed`, of the same length, little-endian. `None` where a slice has the wrong length.
pub(super) fn pack(op: &Conv2dF32, weights: &[f32], packed: &mut [[u8; 4]]) -> Option<()> {
    let window = &op.window;
    let [rows, columns] = window.kernel.map(usize::from);
    let (taps, channels) = (rows * columns, usize::from(window.output[2]));
    if !F32::supports(op) || weights.len() != taps * channels || packed.len() != weights.len() {
        return None;
    }
    for (tap, packed) in packed.chunks_exact_mut(channels.max(1)).enumerate() {
        for (channel, packed) in packed.iter_mut().enumerate() {
            *packed = weights.get(channel * taps + tap).copied().unwrap_or(0.0).to_le_bytes();
        }
    }
    Some(())
}
