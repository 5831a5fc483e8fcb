//! f32 depthwise convolution: sixteen channels of a pixel at a time, straight from the input (`taps`), and what is left by four, the last four of a pixel
//! where fewer are left: so two blocks may have channels in common, and none reads or writes beyond a pixel. Weights: `[kh, kw, channels]`.

use super::args::DepthwiseF32;
use super::loops::{depthwise_f32, fill};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::dwconv_indirection::{ADDRESS, Table};
use crate::ops::conv2d::Conv2dF32;
use crate::ops::operator::Needs;

/// Channels of a block.
const BLOCK: usize = 16;

/// Channels of a block of what is left, and the fewest of a step.
const LANES: u16 = 4;

/// f32, one input channel a group and as many outputs, four or more. Limits turn a NaN into a number.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = Conv2dF32;

    fn supports(op: &Conv2dF32) -> bool {
        let [_, _, channels] = op.window.input;
        channels == op.groups && channels == op.window.output[2] && channels >= LANES
    }

    fn needs(op: &Conv2dF32) -> Needs {
        if !Self::supports(op) {
            return Needs::UNSUPPORTED;
        }
        Needs {
            scratch: op
                .window
                .taps()
                .saturating_mul(ADDRESS)
                .saturating_add(4 * u32::from(op.window.output[2])),
            weights: op.weights_len().unwrap_or(u32::MAX).saturating_mul(4),
        }
    }

    fn distance(op: &Conv2dF32, index: usize) -> Option<i64> {
        // A block is read at all taps before it is written, and later reads of the pixel are further on by as much, but for channels that two blocks have.
        let twice = u32::from(op.window.output[2].wrapping_neg() % LANES);
        match (index, op.residual) {
            (1, _) => Some(op.window.consumed_distance(4, twice)),
            (2, Some(_)) => Some(4 * i64::from(twice)),
            _ => None,
        }
    }

    fn run(op: &Conv2dF32, mem: &Mem<'_>) -> Option<()> {
        let window = &op.window;
        let needs = Self::needs(op);
        let outputs = window.output_len()?;
        let input = mem.src::<f32>(op.input, window.input_len()?)?;
        let output = mem.dst::<f32>(op.output, outputs)?.as_mut_ptr();
        let weights = mem.weights::<f32>(op.weights, needs.weights / 4)?;
        let bias = op.biases(mem)?;
        let residual = match op.residual {
            Some(slot) => mem.src::<f32>(slot, outputs)?.as_ptr(),
            None => core::ptr::null(),
        };
        let scratch = mem.dst::<u8>(op.scratch, needs.scratch)?.as_mut_ptr();
        let channels = usize::from(window.output[2]);
        let taps = window.taps();
        let outside = scratch.wrapping_add((taps * ADDRESS) as usize).cast::<i8>();
        // SAFETY: `needs` counts a pixel of `4 * channels` bytes behind the table of addresses, and scratch was taken with that length.
        unsafe { fill(outside, 0, 4 * channels) };
        let table = Table {
            input: input.as_ptr().cast(),
            outside,
            entries: scratch.cast(),
            element: 4,
        };
        let mut args = DepthwiseF32 {
            entries: scratch.cast(),
            taps: taps as usize,
            weights: weights.as_ptr(),
            out: output,
            pixels: 1,
            step: usize::from(window.stride[1]) * channels * 4,
            bytes: channels * 4,
            blocks: channels / BLOCK,
            quads: (channels % BLOCK).div_ceil(usize::from(LANES)),
            bias: if bias.is_empty() {
                core::ptr::null()
            } else {
                bias.as_ptr()
            },
            residual,
            limits: op.clamp,
        };
        #[cfg(target_arch = "x86_64")]
        let apart = {
            let read = input.as_ptr()..input.as_ptr().wrapping_add(input.len());
            let overlaps = |range: core::ops::Range<*const f32>| {
                range.start < output.wrapping_add(outputs as usize).cast_const() && output.cast_const() < range.end
            };
            !overlaps(read) && (residual.is_null() || !overlaps(residual..residual.wrapping_add(outputs as usize)))
        };
        // SAFETY: scratch is aligned for any kernel and has as many addresses as taps; a run's taps and outputs lie in the input, in scratch and in the output;
        // blocks end where a pixel does.
        unsafe {
            table.each_run(window, |pixel, pixels| {
                args.out = output.wrapping_add(pixel * channels);
                if !residual.is_null() {
                    args.residual = residual.wrapping_add(pixel * channels);
                }
                args.pixels = pixels;
                #[cfg(target_arch = "x86_64")]
                depthwise_f32(&args, apart, mem.rounding.fused);
                #[cfg(not(target_arch = "x86_64"))]
                depthwise_f32(&args);
            });
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

    /// Two taps of sixteen channels in 17 instructions, what is around them in 24; of four channels a tap in 7, the rest in 13.
    fn bound(op: &Conv2dF32, _: &Machine) -> Option<u64> {
        let taps = u64::from(op.window.taps());
        let [rows, columns, channels] = op.window.output.map(u64::from);
        let (blocks, quads) = (channels / 16, (channels % 16).div_ceil(4));
        let pixel = blocks * (taps / 2 * 17 + taps % 2 * 8 + 24) + quads * (taps * 7 + 13);
        Some(u64::from(op.window.batch) * rows * columns * pixel)
    }
}

/// Packs weights `[channels, kh, kw]`, little-endian, into the kernel's `needs(op).weights` bytes. `None` where a slice has the wrong length.
pub(super) fn pack(op: &Conv2dF32, weights: &[f32], packed: &mut [[u8; 4]]) -> Option<()> {
    let (taps, channels) = (op.window.taps() as usize, usize::from(op.window.output[2]));
    if weights.len() != taps * channels || packed.len() != weights.len() {
        return None;
    }
    for (tap, places) in packed.chunks_exact_mut(channels).enumerate() {
        for (channel, place) in places.iter_mut().enumerate() {
            *place = weights.get(channel * taps + tap)?.to_le_bytes();
        }
    }
    Some(())
}
