//! Depthwise convolution with windows of any size: sixteen channels of a pixel at a time, straight from the input (`Table`).
//!
//! The loop multiplies bytes to halves, adds those of two taps, and widens the sums to words, even and odd channels apart: 25 instructions for two taps of
//! sixteen channels. The last block's lanes beyond the channels are neither read nor written.
//!
//! **Layout of the weights**: a header of 16 bytes; for each block of sixteen channels its biases, with the correction for the input's zero point; for every
//! tap sixteen weights; for each of the four sums four shifts left, four mantissas and four shifts right (0 or negative). A sum has every fourth channel: the
//! first 0, 4, 8, 12, the second 2, 6, 10, 14, the third and fourth the odd ones likewise. Parts of channels that are not there are zero.

use super::args::Taps;
use super::loops::{fill, taps_fast, taps_general};
use super::{HEADER, Output, header, pack_header};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::blocks::blocks;
use crate::cells::cast_slice;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::neon::dwconv_s8::shifts_are_packed;
use crate::kernels::primitives::dwconv_indirection::{ADDRESS, Table};
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;

/// Channels of a block.
const BLOCK: u32 = 16;

/// Bytes of a block's biases, and of its table.
const BIASES: u32 = 64;
const TABLE: u32 = 192;

/// int8, one input channel a group and as many outputs, windows of any size.
#[derive(Debug)]
pub struct S8;

/// Bytes of a block.
fn block_bytes(op: &Conv2dS8) -> u32 {
    op.window.taps().saturating_mul(BLOCK).saturating_add(BIASES + TABLE)
}

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        let [_, _, channels] = op.window.input;
        channels == op.groups && channels == op.window.output[2]
    }

    fn needs(op: &Conv2dS8) -> Needs {
        let channels = u32::from(op.window.output[2]);
        let blocks = channels.div_ceil(BLOCK).saturating_mul(block_bytes(op));
        Needs {
            scratch: op.window.taps().saturating_mul(ADDRESS).saturating_add(channels),
            weights: blocks.saturating_add(HEADER as u32),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        // A block is read at all taps before it is written, and later reads of the pixel are further on by as much.
        (index == 1).then(|| op.window.consumed_distance(1, 0))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        let packed = Mem::of_weights(weights).weights::<u8>(op.weights, Self::needs(op).weights);
        packed.is_some_and(|packed| is_packed(op, packed))
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let window = &op.window;
        let needs = Self::needs(op);
        let input = mem.src::<i8>(op.input, window.input_len()?)?;
        let output = mem.dst::<i8>(op.output, window.output_len()?)?.as_mut_ptr();
        let weights = mem.weights::<u8>(op.weights, needs.weights)?;
        let scratch = mem.dst::<u8>(op.scratch, needs.scratch)?.as_mut_ptr();
        let (taps, channels) = (window.taps(), usize::from(window.output[2]));
        let outside = scratch.wrapping_add((taps * ADDRESS) as usize).cast::<i8>();
        // SAFETY: `needs` counts a pixel of `channels` bytes behind the table of addresses, and scratch was taken with that length.
        unsafe { fill(outside, i32::from(op.input_zero_point), channels) };
        let table = Table {
            input: input.as_ptr(),
            outside,
            entries: scratch.cast(),
            element: 1,
        };
        let requantize = Output::new(op.output_zero_point, op.clamp, *weights.first()? != 0);
        let mut args = Taps {
            entries: scratch.cast(),
            pairs: taps / 2,
            odd: taps % 2,
            weights: weights.get(HEADER..)?.as_ptr(),
            out: output,
            pixels: 1,
            step: u32::from(window.stride[1]).wrapping_mul(channels as u32),
            channels: channels as u32,
            zero_point: requantize.zero_point,
            low: requantize.low,
            high: requantize.high,
        };
        // SAFETY: scratch is aligned for any kernel and has as many addresses as taps; a run's taps and outputs lie in the input, in scratch and in the output.
        unsafe {
            table.each_run(window, |pixel, pixels| {
                args.out = output.wrapping_add(pixel * channels);
                args.pixels = pixels as u32;
                if requantize.fast {
                    taps_fast(&args)
                } else {
                    taps_general(&args)
                }
            });
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, plain) = job.conv2d_s8()?;
        // Two products of the least numbers would not fit 16 bits.
        (op.is_depthwise() && !plain.weights.contains(&i8::MIN)).then_some(op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed)
    }

    /// The loop's instructions, and the least requantising of a block.
    fn bound(op: &Conv2dS8, _: &Machine) -> Option<u64> {
        let taps = u64::from(op.window.taps());
        let [rows, columns, channels] = op.window.output.map(u64::from);
        let pixel = channels.div_ceil(u64::from(BLOCK)) * (taps / 2 * 25 + taps % 2 * 15 + 41);
        Some(u64::from(op.window.batch) * rows * columns * pixel)
    }
}

/// Packs weights `[channels, kh, kw]` and the channel records `{ bias, mantissa, shift }`; `dst` has the kernel's `needs(op).weights` bytes. `None` where a
/// slice is too short.
pub(super) fn pack(op: &Conv2dS8, weights: &[i8], channels: &[[i32; 3]], dst: &mut [u8]) -> Option<()> {
    let taps = op.window.taps() as usize;
    let channels = channels.get(..usize::from(op.window.output[2]))?;
    pack_header(channels, dst)?;
    let packed = dst.get_mut(HEADER..)?;
    packed.fill(0);
    for (channel, &[bias, mantissa, shift]) in channels.iter().enumerate() {
        let block = packed.get_mut(channel / BLOCK as usize * block_bytes(op) as usize..)?;
        let at = channel % BLOCK as usize;
        // Even channels before odd ones, and so again.
        let (sum_of, lane) = (at % 2 * 2 + at / 2 % 2, at / 4);
        let window = weights.get(channel * taps..)?.get(..taps)?;
        let sum = window.iter().fold(0i32, |sum, &weight| sum.wrapping_add(weight.into()));
        for (tap, &weight) in window.iter().enumerate() {
            *block.get_mut(BIASES as usize + tap * BLOCK as usize + at)? = weight as u8;
        }
        let mut put = |word: usize, value: i32| {
            let place = block.get_mut(4 * word..)?.first_chunk_mut::<4>()?;
            *place = value.to_le_bytes();
            Some(())
        };
        put(
            4 * sum_of + lane,
            bias.wrapping_sub(i32::from(op.input_zero_point).wrapping_mul(sum)),
        )?;
        let table = (BIASES as usize + taps * BLOCK as usize) / 4 + 12 * sum_of + lane;
        put(table, shift.max(0))?;
        put(table + 4, mantissa)?;
        put(table + 8, shift.min(0))?;
    }
    Some(())
}

/// Whether packed weights are as [`pack`] writes them in what the loops trust: shifts that are shifts, to one side only, to the left only where the header
/// says so.
fn is_packed(op: &Conv2dS8, weights: &[u8]) -> bool {
    let (Some(left), Some(words)) = (header(weights), weights.get(HEADER..).and_then(cast_slice::<u32>)) else {
        return false;
    };
    blocks(words, block_bytes(op) as usize / 4).all(|block| {
        let (_, tables) = block.as_rchunks::<{ TABLE as usize / 4 }>();
        tables
            .last()
            .is_some_and(|table| shifts_are_packed(table) && (left || has_no_left(table)))
    })
}

/// Whether no sum of a table shifts left.
fn has_no_left(table: &[u32]) -> bool {
    let (sums, _) = table.as_chunks::<12>();
    sums.iter().fold(0, |bits, &[a, b, c, d, ..]| bits | a | b | c | d) == 0
}
