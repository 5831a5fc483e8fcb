//! int8 fully connected layers, and pointwise convolutions of few pixels: pixel by pixel, two channels' weights in a word.
//!
//! Four output channels at a time; the input is read in place, byte by byte. Twice the flash of [`super::conv2d`], and nothing to unpack.
//!
//! **Weights**: for every four output channels (the last ones filled up with zeros) and every input two words, `w0 + (w1 << 16)` and
//! `w2 + (w3 << 16)`; inputs are filled up to a multiple of 4. **Channels**: [records](Record) in order; the four of a group name the same block.

use super::accumulate::accumulate_any;
use super::args::{Job, LANES};
use super::conv2d::{limit, packed_records, pointwise_pixels, records};
use super::four::four;
use super::pack;
use super::record::{BLOCK, CONSTANT, GENERAL, Record, SINGLE, padded};
use super::{Core, requant, rows};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::blocks::{blocks, last};
#[cfg(any(test, packing))]
use crate::kernels::candidate::{Candidate, Job as Wanted, JobKind, Machine};
use crate::kernels::kernel::Kernel;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;

/// int8, 1 x 1 windows.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        op.groups == 1 && pointwise_pixels(&op.window).is_some()
    }

    fn needs(op: &Conv2dS8) -> Needs {
        let [_, _, inputs] = op.window.input.map(u32::from);
        let groups = u32::from(op.window.output[2]).div_ceil(4);
        Needs {
            scratch: if inputs.is_multiple_of(4) { 0 } else { padded(inputs) },
            weights: padded(inputs).saturating_mul(8).saturating_mul(groups),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        // A pixel's groups before its last one are written before that one reads.
        let lead = if op.window.input[2].is_multiple_of(4) {
            (u32::from(op.window.output[2]) - 1) / 4 * 4
        } else {
            0
        };
        (index == 1).then(|| op.window.consumed_distance(1, lead))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        let (inputs, mem) = (usize::from(op.window.input[2]), Mem::of_weights(weights));
        let words = padded(inputs as u32);
        let (Some(records), Some(weights)) = (
            packed_records(op, words, &mem),
            mem.weights::<i32>(op.weights, Self::needs(op).weights / 4),
        ) else {
            return false;
        };
        // The four channels of a group share a block; a dense layer has no places.
        let block = |group: &[Record]| group.first().map_or(0, |record| record[2] & BLOCK);
        let plain = |group: &[Record]| {
            group
                .iter()
                .all(|record| record[2] as u32 >> 16 == 0 && record[2] & BLOCK == block(group))
        };
        let zero = |words: &[i32]| words.iter().all(|&w| w == 0);
        let padding = |group: &[i32]| group.get(2 * inputs..).is_some_and(zero);
        let group = words as usize * 2;
        records.chunks(4).all(plain)
            && (inputs.is_multiple_of(4) || blocks(weights, group).all(padding))
            && last(weights, group).is_some_and(|group| lanes_are_zero(group, records.len() % 4))
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let needs = Self::needs(op);
        let pixels = pointwise_pixels(&op.window)? as usize;
        let input = mem.src::<i8>(op.input, op.window.input_len()?)?;
        let output = mem.dst::<i8>(op.output, op.window.output_len()?)?;
        let weights = mem.weights::<i32>(op.weights, needs.weights / 4)?;
        let [_, _, inputs] = op.window.input.map(usize::from);
        let records = records(op, padded(inputs as u32), mem)?;
        let scratch = mem.dst::<i8>(op.scratch, needs.scratch)?;
        let words = padded(inputs as u32) as usize;
        for pixel in 0..pixels {
            let mut x = input.slice(pixel * inputs, inputs)?;
            if needs.scratch > 0 {
                scratch.cells().iter().zip(x.iter()).for_each(|(cell, x)| cell.set(x));
                x = scratch.as_src();
            }
            let y = output.slice(pixel * records.len(), records.len())?;
            // SAFETY: two words and a byte for each of `words` inputs, as often as there are four channels or what is left of them: `needs`. Padding in scratch
            // meets weights of zero. Records are valid.
            unsafe { outputs(op, words, x.as_ptr(), weights.as_ptr(), records, y.as_mut_ptr()) };
        }
        limit(output, op.clamp);
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    const RECORDS: bool = true;

    fn step<P: Place>(job: &Wanted<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, _) = job.conv2d_s8()?;
        op.is_one_pixel().then_some(op)
    }

    fn pack(job: &Wanted<'_>, _: &Conv2dS8, packed: &mut [u8], records: &mut [Record]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed, records)
    }

    fn varies(op: &Conv2dS8, at: usize) -> bool {
        super::conv2d::is_code(op, at)
    }

    fn bound(op: &Conv2dS8, on: &Machine) -> Option<u64> {
        Some(bound(op, Core::of(on.target)))
    }
}

/// Packs for this kernel; as [`super::conv2d::pack`], with this layout. `None` also where the window is not 1 x 1 at stride 1 without padding.
pub(super) fn pack(
    op: &Conv2dS8,
    weights: &[i8],
    channels: &[Record],
    packed: &mut [u8],
    packed_records: &mut [Record],
) -> Option<()> {
    let inputs = usize::from(op.window.input[2]);
    let count = usize::from(op.window.output[2]);
    let lengths = weights.len() == inputs * count && channels.len() == count && packed_records.len() == count;
    let fits = pointwise_pixels(&op.window).is_some() && op.groups == 1;
    if !fits || !lengths || packed.len() != S8::needs(op).weights as usize {
        return None;
    }
    let groups = weights
        .chunks(inputs * 4)
        .zip(channels.chunks(4))
        .zip(packed_records.chunks_mut(4));
    for (((rows, channels), records), out) in groups.zip(packed.chunks_exact_mut(padded(inputs as u32) as usize * 8)) {
        let block = pack::block(inputs, rows.chunks_exact(inputs).map(|row| row.iter().copied()))?;
        for ((row, &channel), place) in rows.chunks_exact(inputs).zip(channels).zip(records) {
            let [bias, multiplier, code] = pack::channel(op, row.iter().copied(), channel, 0);
            *place = [bias, multiplier, code | block];
        }
        for (i, words) in out.chunks_exact_mut(8).enumerate() {
            let w = |c: usize| {
                if i < inputs {
                    rows.get(c * inputs + i).map_or(0, |&w| i32::from(w))
                } else {
                    0
                }
            };
            for (pair, word) in words.chunks_exact_mut(4).enumerate() {
                let value = w(2 * pair).wrapping_add(w(2 * pair + 1) << 16);
                word.copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    Some(())
}

/// As [`super::conv2d::bound`].
fn bound(op: &Conv2dS8, core: Core) -> u64 {
    let outputs = op.window.output_len().map_or(0, u64::from);
    outputs * u64::from(op.window.input[2]) * core.rows() / 16 + outputs * core.requantize()
}

/// Whether a group of `channels` channels (0: four) has no weights beyond them.
fn lanes_are_zero(group: &[i32], channels: usize) -> bool {
    let (pairs, _) = group.as_chunks::<2>();
    // The upper half of a word is its second channel; the first one's sign is borrowed from it.
    let single = |w: i32| w == i32::from(w as i16);
    match channels {
        1 => pairs.iter().all(|&[a, b]| single(a) && b == 0),
        2 => pairs.iter().all(|&[_, b]| b == 0),
        3 => pairs.iter().all(|&[_, b]| single(b)),
        _ => true,
    }
}

/// The outputs of one pixel, four channels at a time.
///
/// # Safety
/// `x` has `words` bytes, `weights` two words for each of them and every four of the valid records; `y` takes as many outputs as there are records.
// A function by itself: in one with all kernels the loop would have no registers.
#[inline(never)]
unsafe fn outputs(op: &Conv2dS8, words: usize, x: *const i8, weights: *const i32, records: &[Record], y: *mut i8) {
    let mut product = Product::new(words);
    let twice = 2 * i32::from(op.output_zero_point) + 1;
    let (mut weights, mut record, mut y, mut left) = (weights, records.as_ptr(), y, records.len());
    while left >= 4 {
        // SAFETY: passed on: four records, which have one block, and four outputs. By pointers, for the checks of slices take as long as an output.
        unsafe {
            let sums = product.of(weights, x, (*record)[2]);
            let [a, b, c, d] = &*record.cast::<[Record; 4]>();
            if (a[2] | b[2] | c[2] | d[2]) & (SINGLE | GENERAL | CONSTANT) == 0 {
                four(sums.as_ptr(), record, y, twice);
            } else {
                some(op, record, sums, y, 4);
            }
        }
        weights = weights.wrapping_add(2 * words);
        record = record.wrapping_add(4);
        y = y.wrapping_add(4);
        left -= 4;
    }
    if left > 0 {
        // SAFETY: likewise, of those that are left.
        unsafe { some(op, record, product.of(weights, x, (*record)[2]), y, left) };
    }
}

/// As many outputs of the four, of any forms.
///
/// # Safety
/// So many records and outputs.
#[inline(never)]
unsafe fn some(op: &Conv2dS8, record: *const Record, sums: &[i32; 4], y: *mut i8, count: usize) {
    for (i, &sum) in sums.iter().enumerate().take(count) {
        // SAFETY: below the count.
        unsafe { y.add(i).write(finish(op, &*record.add(i), sum)) };
    }
}

/// An output from the sum of its products.
#[cold]
#[inline(never)]
fn finish(op: &Conv2dS8, record: &Record, sum: i32) -> i8 {
    let [bias, _, code] = *record;
    let sum = if code & CONSTANT == 0 {
        sum.wrapping_add(bias)
    } else {
        bias
    };
    requant::any(sum, record, op.output_zero_point, op.clamp)
}

/// The sums of four channels.
struct Product {
    job: Job,
    /// Of the general form, so that the loop hands the sums back and stores nothing.
    record: Record,
}

impl Product {
    fn new(inputs: usize) -> Self {
        let job = Job {
            out: core::ptr::null_mut(),
            stride: 0,
            end: core::ptr::null(),
            twice: 0,
            inputs,
            sums: [[0; 4]; LANES],
            half: 0,
            left: 0,
            right: 0,
        };
        let record = [0, 0, GENERAL];
        Self { job, record }
    }

    /// # Safety
    /// As for [`super::accumulate::accumulate`] with the job's inputs; the block of `code` divides them.
    #[inline(always)]
    unsafe fn of(&mut self, words: *const i32, x: *const i8, code: i32) -> &[i32; 4] {
        if LANES > 1 {
            // The loop would take the one row of bytes twice.
            // SAFETY: passed on.
            self.job.sums[0] = unsafe { accumulate_any(words, x, self.job.inputs, 0, code & BLOCK) };
        } else {
            self.record[2] = (code & BLOCK) | GENERAL;
            let record = &raw const self.record;
            self.job.end = record.wrapping_add(1);
            // SAFETY: one row of bytes; its channel is of the general form, so that nothing is stored.
            unsafe { rows::rows(words, x, record, &mut self.job) };
        }
        &self.job.sums[0]
    }
}
