//! int8 depthwise convolution: a tap of several pixels at a time, in as many channels as a vector has room for, straight from the input (`indirection`).

use super::args::ConvArgs;
use super::indirection::Table;
use super::loops::depthwise;
use super::packed;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::dwconv_indirection::ADDRESS;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;

/// int8, one input channel a group and as many outputs.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        let [_, _, channels] = op.window.input;
        channels == op.groups && channels == op.window.output[2]
    }

    fn needs(op: &Conv2dS8) -> Needs {
        let (taps, channels) = (op.window.taps(), u32::from(op.window.output[2]));
        Needs {
            scratch: taps.saturating_mul(ADDRESS).saturating_add(channels),
            weights: packed::bytes(channels, taps),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        let lead = packed::lead(op.window.output[2].into());
        (index == 1).then(|| op.window.consumed_distance(1, lead))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        packed::is_packed(op, weights, Self::needs(op).weights)
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let window = &op.window;
        let needs = Self::needs(op);
        let input = mem.src::<i8>(op.input, window.input_len()?)?;
        let output = mem.dst::<i8>(op.output, window.output_len()?)?.as_mut_ptr();
        let (words, weights) = packed::parts(mem, op, needs.weights)?;
        let scratch = mem.dst::<u8>(op.scratch, needs.scratch)?.as_mut_ptr();
        let (taps, channels) = (window.taps(), usize::from(window.output[2]));
        let outside = scratch.wrapping_add((taps * ADDRESS) as usize).cast::<i8>();
        // SAFETY: `needs` counts a pixel of `channels` bytes behind the table of addresses, and scratch was taken with that length.
        unsafe { outside.write_bytes(op.input_zero_point as u8, channels) };
        let table = Table {
            input: input.as_ptr(),
            outside,
            entries: scratch.cast(),
        };
        let [low, high] = op.clamp.map(i32::from);
        let mut args = ConvArgs {
            entries: table.entries,
            taps: taps as usize,
            elements: 1,
            weights: weights.as_ptr(),
            table: words.as_ptr(),
            out: output,
            pixels: 1,
            step: usize::from(window.stride[1]) * channels,
            channels,
            outside,
            zero_point: i32::from(op.output_zero_point),
            low,
            high,
        };
        // SAFETY: scratch is aligned for any kernel and has as many addresses as taps; a run's taps and outputs lie in the input, in scratch and in the output.
        unsafe {
            table.each_run(window, false, |run| {
                args.out = output.wrapping_add(run.first * channels);
                args.pixels = run.count;
                depthwise(&args);
            });
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, _) = job.conv2d_s8()?;
        op.is_depthwise().then_some(op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed)
    }

    /// Of every tap of a tile: its address and its weights, loaded, widened and passed, and for every pixel an address, a load, a widening and a product.
    fn bound(op: &Conv2dS8, on: &Machine) -> Option<u64> {
        let [rows, columns, channels] = op.window.output.map(u64::from);
        let pixels = u64::from(op.window.batch) * rows * columns;
        let taps = u64::from(op.window.taps());
        Some(packed::bound(pixels, channels, on.vector_bits, |tile| {
            taps * (4 + 4 * tile)
        }))
    }
}

/// Packs weights `[channels, kh, kw]` and the channel records `{ bias, mantissa, shift }`; `dst` has the kernel's `needs(op).weights` bytes. `None` where a
/// slice is too short.
pub(super) fn pack(op: &Conv2dS8, weights: &[i8], channels: &[[i32; 3]], dst: &mut [u8]) -> Option<()> {
    let channels = channels.get(..usize::from(op.window.output[2]))?;
    let taps = op.window.taps() as usize;
    let weight = |channel: usize, tap: usize| weights.get(channel * taps + tap).copied();
    packed::pack(taps, op.input_zero_point, channels, weight, dst)
}
