//! int8 depthwise convolution: sixteen channels of a pixel at a time, straight from the input (`taps`).
//!
//! **Layout.** Channels come in blocks of sixteen; what is left is a block of the last eight, with one of the eight before where more than eight are left: so
//! blocks may overlap, and compute a channel twice, and none reads or writes beyond a pixel. A block is the biases of its channels; for every tap the weights
//! of its channels; and for every four channels four shifts left, four mantissas and four shifts right (0 or negative). The bias holds the correction for the
//! input's zero point: bias - zero point * sum of the weights, so that activations are multiplied as stored, and padding is the zero point.

use super::args::Depthwise;
use super::loops::{depthwise, fill};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::blocks::blocks;
use crate::cells::cast_slice;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::dwconv_indirection::{ADDRESS, Table};
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;

/// Channels of a block.
const BLOCK: u32 = 16;

/// Channels of a block of what is left, and the fewest of a step.
const HALF: u32 = 8;

/// Channels of a vector of sums.
const LANES: usize = 4;

/// int8, one input channel a group and as many outputs, eight or more.
#[derive(Debug)]
pub struct S8;

/// The blocks of a step's channels.
struct Blocks {
    /// Of sixteen channels.
    whole: u32,
    /// Of eight.
    halves: u32,
    /// Channels in all.
    channels: u32,
}

impl Blocks {
    fn of(channels: u32) -> Self {
        Self {
            whole: channels / BLOCK,
            halves: (channels % BLOCK).div_ceil(HALF),
            channels,
        }
    }

    /// The first channel of the blocks of eight. The last of them is that of the last eight channels.
    fn first_half(&self) -> u32 {
        match self.halves {
            2 => self.whole * BLOCK,
            _ => self.channels - HALF,
        }
    }

    /// First channel and number of channels of every block.
    fn each(&self) -> impl Iterator<Item = (u32, u32)> {
        let whole = (0..self.whole).map(|block| (block * BLOCK, BLOCK));
        let halves = [self.first_half(), self.channels - HALF];
        let skip = 2 - self.halves as usize;
        whole.chain(halves.into_iter().skip(skip).map(|first| (first, HALF)))
    }

    /// Channels of all blocks.
    fn computed(&self) -> u32 {
        self.whole * BLOCK + self.halves * HALF
    }
}

/// Bytes of a channel: four words and the taps.
fn channel_bytes(op: &Conv2dS8) -> u32 {
    op.window.taps().saturating_add(16)
}

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        let [_, _, channels] = op.window.input;
        channels == op.groups && channels == op.window.output[2] && u32::from(channels) >= HALF
    }

    fn needs(op: &Conv2dS8) -> Needs {
        if !Self::supports(op) {
            return Needs::UNSUPPORTED;
        }
        let channels = u32::from(op.window.output[2]);
        Needs {
            scratch: op.window.taps().saturating_mul(ADDRESS).saturating_add(channels),
            weights: Blocks::of(channels).computed().saturating_mul(channel_bytes(op)),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        // A block is read at all taps before it is written, and later reads of the pixel are further on by as much, but for channels that two blocks have.
        let twice = u32::from(op.window.output[2]).wrapping_neg() % HALF;
        (index == 1).then(|| op.window.consumed_distance(1, twice))
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
        let weights = mem.weights::<u8>(op.weights, needs.weights)?.as_ptr();
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
        let blocks = Blocks::of(channels as u32);
        let [low, high] = op.clamp.map(i32::from);
        let mut args = Depthwise {
            entries: scratch.cast(),
            taps: taps as usize,
            weights,
            out: output,
            pixels: 1,
            step: usize::from(window.stride[1]) * channels,
            channels,
            blocks: blocks.whole as usize,
            halves: blocks.halves as usize,
            first_half: blocks.first_half() as usize,
            zero_point: i32::from(op.output_zero_point),
            low,
            high,
        };
        // SAFETY: scratch is aligned for any kernel and has as many addresses as taps; a run's taps and outputs lie in the input, in scratch and in the output;
        // blocks end where a pixel does.
        unsafe {
            table.each_run(window, |pixel, pixels| {
                args.out = output.wrapping_add(pixel * channels);
                args.pixels = pixels;
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
        let (op, plain) = job.conv2d_s8()?;
        // Two products of the least numbers would not fit 16 bits.
        (op.is_depthwise() && !plain.weights.contains(&i8::MIN)).then_some(op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed)
    }

    /// Two taps of sixteen channels in 16 instructions, requantising sixteen outputs in 43; half of the channels in 12 and 26.
    fn bound(op: &Conv2dS8, _: &Machine) -> Option<u64> {
        let blocks = Blocks::of(op.window.output[2].into());
        let taps = u64::from(op.window.taps());
        let pixel = u64::from(blocks.whole) * (taps * 8 + 43) + u64::from(blocks.halves) * (taps * 6 + 26);
        let [rows, columns, _] = op.window.output.map(u64::from);
        Some(u64::from(op.window.batch) * rows * columns * pixel)
    }
}

/// Packs weights `[channels, kh, kw]` and the channel records `{ bias, mantissa, shift }`; `dst` has the kernel's `needs(op).weights` bytes. `None` where a
/// slice is too short.
pub(super) fn pack(op: &Conv2dS8, weights: &[i8], channels: &[[i32; 3]], dst: &mut [u8]) -> Option<()> {
    let taps = op.window.taps() as usize;
    let mut rest = dst;
    for (first, count) in Blocks::of(op.window.output[2].into()).each() {
        let (first, count) = (first as usize, count as usize);
        let (biases, behind) = rest.split_at_mut_checked(4 * count)?;
        let (packed, behind) = behind.split_at_mut_checked(taps * count)?;
        let (table, behind) = behind.split_at_mut_checked(12 * count)?;
        rest = behind;
        let channels = channels.get(first..)?.get(..count)?;
        for (channel, &[bias, mantissa, shift]) in channels.iter().enumerate() {
            let window = weights.get((first + channel) * taps..)?.get(..taps)?;
            let sum = window.iter().fold(0i32, |sum, &weight| sum.wrapping_add(weight.into()));
            for (tap, &weight) in window.iter().enumerate() {
                *packed.get_mut(tap * count + channel)? = weight as u8;
            }
            let bias = bias.wrapping_sub(i32::from(op.input_zero_point).wrapping_mul(sum));
            put(biases, channel, bias)?;
            for (part, value) in [shift.max(0), mantissa, shift.min(0)].into_iter().enumerate() {
                put(table, (channel / LANES * 3 + part) * LANES + channel % LANES, value)?;
            }
        }
    }
    Some(())
}

/// Writes word `at`.
fn put(words: &mut [u8], at: usize, value: i32) -> Option<()> {
    words
        .get_mut(4 * at..)?
        .get_mut(..4)?
        .copy_from_slice(&value.to_le_bytes());
    Some(())
}

/// Whether packed weights are as [`pack`] writes them in what the loops trust: shifts that are shifts, to one side only.
fn is_packed(op: &Conv2dS8, weights: &[u8]) -> bool {
    let Some(mut rest) = cast_slice::<u32>(weights) else {
        return false;
    };
    let taps = op.window.taps() as usize;
    Blocks::of(op.window.output[2].into()).each().all(|(_, count)| {
        let count = count as usize;
        let parts = rest
            .split_at_checked(count + taps * count / 4)
            .and_then(|(_, behind)| behind.split_at_checked(3 * count));
        let Some((table, behind)) = parts else {
            return false;
        };
        rest = behind;
        shifts_are_packed(table)
    })
}

/// Whether the shifts of a table, of four shifts left, four mantissas and four shifts right for every four channels, are shifts, to one side only.
pub(in crate::kernels) fn shifts_are_packed(table: &[u32]) -> bool {
    let (mut shifts, mut both) = (0, 0);
    for table in blocks(table, 3 * LANES) {
        let (Some(left), Some(right)) = (table.first_chunk::<LANES>(), table.last_chunk::<LANES>()) else {
            return false;
        };
        for (&left, &right) in left.iter().zip(right) {
            shifts |= left | right.wrapping_neg();
            both |= u32::from(left != 0 && right != 0);
        }
    }
    shifts & !31 == 0 && both == 0
}
