//! Rows of activations times packed weights.
//!
//! **Layout.** Output channels come in groups of eight, K in blocks of 16; both are padded with zeros. A group is its even channels
//! (0, 2, 4, 6), its odd channels (1, 3, 5, 7) and its tables. A half is, block after block, 16 weights of each of its four channels. The
//! tables are four times eight words, even channels first: bias, left shift, mantissa, right shift (0 or negative). The bias holds the
//! correction for the input's zero point: bias - zero point * sum of the weights, so that activations are multiplied as stored.
//!
//! Weights of four bits: in the place of two channels' 16 weights, those of lanes 0 and 1, or 2 and 3, 16 bytes `16 w1 + w0`. Shifted left by 4 they are
//! `16 w0`, so that one load and one shift serve two channels, as many instructions as two loads. The sums, 16 times too large and the second one by the
//! first, take 6 instructions more for eight.
//!
//! With even and odd channels apart, narrowing puts one half into the lower parts of the lanes and the other into the upper ones, which
//! is the order of memory. `vmladava` over 16 elements needs one load of weights for two rows and one load of a row for four
//! channels; three rows by two channels, the only smaller ratio that fits seven accumulators and a loop counter, costs the same.

use super::args::Product;
use super::loops::{
    rows1_fast, rows1_general, rows1_w4_fast, rows1_w4_general, rows2_fast, rows2_general, rows2_k16_fast,
    rows2_k16_general, rows2_k32_fast, rows2_k32_general, rows2_k48_fast, rows2_k48_general, rows2_k64_fast,
    rows2_k64_general, rows2_w4_fast, rows2_w4_general, rows2_w4_k16_fast, rows2_w4_k16_general, rows2_w4_k32_fast,
    rows2_w4_k32_general, rows4_k16_fast, rows4_k16_right,
};
use super::{HEADER, Output, header, pack_header};
use crate::blocks::{blocks, last};
use crate::cells::cast_slice;

/// Elements of a block.
pub(super) const BLOCK: usize = 16;

/// Output channels of a group.
pub(super) const GROUP: usize = 8;

pub(super) const TABLE: usize = 128;

/// K rounded up to whole blocks; saturates.
pub(super) const fn padded(k: u32) -> u32 {
    k.saturating_add(BLOCK as u32 - 1) & !(BLOCK as u32 - 1)
}

/// Channels of a byte of weights: of four bits two.
const fn shared<const W4: bool>() -> usize {
    if W4 { 2 } else { 1 }
}

/// Bytes of half a group's weights.
pub(super) const fn half_bytes<const W4: bool>(k: usize) -> usize {
    padded(k as u32) as usize * GROUP / 2 / shared::<W4>()
}

/// Bytes of packed weights; saturates.
pub(super) const fn packed_bytes<const W4: bool>(channels: u32, k: u32) -> u32 {
    let weights = padded(k).saturating_mul((GROUP / shared::<W4>()) as u32);
    let group = weights.saturating_add(TABLE as u32);
    channels
        .div_ceil(GROUP as u32)
        .saturating_mul(group)
        .saturating_add(HEADER as u32)
}

/// Packs weights `[out][k]`, read through `weight(out, k)`; `None` where a slice is too short. See the module for the layout.
pub(super) fn pack<const W4: bool>(
    k: usize,
    input_zero_point: i8,
    channels: &[[i32; 3]],
    weight: impl Fn(usize, usize) -> Option<i8>,
    dst: &mut [u8],
) -> Option<()> {
    pack_header(channels, dst)?;
    let (half, shared) = (half_bytes::<W4>(k), shared::<W4>());
    let groups = dst.get_mut(HEADER..)?.chunks_exact_mut(2 * half + TABLE);
    for (group, dst) in groups.enumerate().take(channels.len().div_ceil(GROUP)) {
        dst.fill(0);
        let (weights, table) = dst.split_at_mut(2 * half);
        for within in 0..GROUP {
            let channel = group * GROUP + within;
            let Some(&[bias, mantissa, shift]) = channels.get(channel) else {
                break;
            };
            let (odd, lane) = (within % 2, within / 2);
            let mut sum = 0i32;
            for i in 0..k {
                let value = weight(channel, i)?;
                sum = sum.wrapping_add(i32::from(value));
                let vector = i / BLOCK * (4 / shared) + lane / shared;
                let byte = weights.get_mut(odd * half + vector * BLOCK + i % BLOCK)?;
                *byte = byte.wrapping_add((value as u8) << (lane % shared * 4));
            }
            let bias = bias.wrapping_sub(i32::from(input_zero_point).wrapping_mul(sum));
            for (part, value) in [bias, shift.max(0), mantissa, shift.min(0)].into_iter().enumerate() {
                let at = part * 32 + odd * 16 + lane * 4;
                table.get_mut(at..at + 4)?.copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    Some(())
}

/// Mask of the padding in a channel's last block of 16 weights, by words: ones in the bytes beyond K.
pub(super) fn beyond(k: usize) -> [u32; 4] {
    let used = if k.is_multiple_of(BLOCK) { BLOCK } else { k % BLOCK };
    core::array::from_fn(|word| match used.saturating_sub(4 * word) {
        4.. => 0,
        used => u32::MAX << (8 * used),
    })
}

/// Whether weights of [`packed_bytes`] are as [`pack`] writes them in what the loops trust: shifts that are shifts, to the left only where the
/// header says so, and zeros beyond K, where rows are read as well, and beyond the channels.
pub(super) fn is_packed<const W4: bool>(weights: &[u8], channels: usize, k: usize) -> bool {
    let half = half_bytes::<W4>(k);
    let (Some(left), Some(groups)) = (header(weights), weights.get(HEADER..).and_then(cast_slice::<u32>)) else {
        return false;
    };
    let zero = |words: &[u32]| words.iter().all(|&word| word == 0);
    let beyond = beyond(k);
    let (mut lefts, mut rights) = (0, 0);
    let group = (2 * half + TABLE) / 4;
    let tables = blocks(groups, group).all(|group| {
        let Some((weights, table)) = group.split_at_checked(half / 2) else {
            return false;
        };
        if let Some((_, table)) = table.split_first_chunk::<8>()
            && let (Some(left), Some(right)) = (table.first_chunk::<8>(), table.last_chunk::<8>())
        {
            lefts |= left.iter().fold(0, |bits, shift| bits | shift);
            rights |= right.iter().fold(0, |bits, shift| bits | shift.wrapping_neg());
        }
        // The last 16 weights of every channel of either half.
        k.is_multiple_of(BLOCK)
            || blocks(weights, half / 4).all(|half| {
                let (_, words) = half.as_rchunks::<4>();
                let beyond_k = |words: &[u32; 4]| {
                    let beyond = words.iter().zip(beyond).map(|(word, beyond)| word & beyond);
                    beyond.fold(0, |bits, word| bits | word)
                };
                last(words, 4 / shared::<W4>())
                    .is_some_and(|words| words.iter().fold(0, |bits, words| bits | beyond_k(words)) == 0)
            })
    });
    let missing = last(groups, group).is_some_and(|group| {
        let Some((weights, table)) = group.split_at_checked(half / 2) else {
            return false;
        };
        let lanes = (channels - 1) % GROUP + 1..GROUP;
        lanes.into_iter().all(|within| {
            let (odd, lane) = (within % 2, within / 2);
            let row = weights
                .get(odd * half / 4..)
                .and_then(|weights| weights.get(..half / 4));
            // Absent channels have zero weights; those of four bits (`W4`) may have been made of any halves of bytes.
            let no_weights = |row: &[u32]| {
                let (blocks, _) = row.as_chunks::<16>();
                blocks
                    .iter()
                    .all(|block| block.as_chunks::<4>().0.get(lane).is_some_and(|words| zero(words)))
            };
            row.is_some_and(|row| W4 || no_weights(row))
                && table.iter().skip(odd * 4 + lane).step_by(8).all(|&word| word == 0)
        })
    });
    tables && missing && (lefts | rights) & !31 == 0 && (left || lefts == 0)
}

/// Packed weights and what they are multiplied to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix<'a, const W4: bool> {
    weights: &'a [u8],
    k: usize,
    channels: usize,
    output: Output,
    copied: bool,
}

impl<'a, const W4: bool> Matrix<'a, W4> {
    /// `weights` are [`packed_bytes`]; `None` where there are none.
    pub(super) fn new(weights: &'a [u8], k: usize, channels: usize, zero_point: i8, limits: [i8; 2]) -> Option<Self> {
        let left = *weights.first()? != 0;
        Some(Self {
            weights: weights.get(HEADER..)?,
            k,
            channels,
            output: Output::new(zero_point, limits, left),
            copied: false,
        })
    }

    /// For rows that are copies of the input, where `copied`: these may be read in any order.
    pub(super) fn of_copies(self, copied: bool) -> Self {
        Self { copied, ..self }
    }

    /// Multiplies `rows` rows of x, `x_stride` bytes apart, to `rows` rows of contiguous outputs.
    ///
    /// Rows of the input are done in order, in pairs; before the last read of a row all earlier rows and less than two more rows are written, or as many as
    /// lie over none that is still read. (Fours of one block are read before the first of their outputs is written.)
    ///
    /// # Safety
    /// Every row of x is valid for reads up to the next multiple of 16 bytes after its K elements; what lies beyond K is multiplied
    /// by zero. `out` is valid for writes of `rows` times the channels.
    pub(super) unsafe fn multiply(&self, x: *const i8, x_stride: usize, rows: usize, out: *mut i8) {
        let (full, rest) = (self.channels / GROUP, self.channels % GROUP);
        if rest == 0 {
            // SAFETY: `groups` has the contract of this function; without a rest, `full` are all groups.
            unsafe { self.groups(0, full, GROUP, x, x_stride, rows, out) };
            return;
        }
        // The last group has lanes of its own, and reads its rows again: to keep the order, as many of the input go together as their outputs do not lie over.
        let mut row = 0;
        while row < rows {
            let (x, out) = (x.wrapping_add(row * x_stride), out.wrapping_add(row * self.channels));
            let count = if self.copied {
                rows - row
            } else {
                self.rows_apart(x.addr(), x_stride, rows - row, out.addr())
            };
            // SAFETY: `row + count <= rows`: these rows at `x` and their outputs are valid by this function's contract (`# Safety`).
            unsafe {
                if full > 0 {
                    self.groups(0, full, GROUP, x, x_stride, count, out);
                }
                self.groups(full, 1, rest, x, x_stride, count, out);
            }
            row += count;
        }
    }

    /// Number of the `rows` rows at address `x` whose outputs, from `out` on, lie over none of them: at least two, or the last one.
    fn rows_apart(&self, x: usize, x_stride: usize, rows: usize, out: usize) -> usize {
        let read = (rows - 1) * x_stride + self.k;
        if out.wrapping_sub(x) as isize >= read as isize {
            return rows;
        }
        let below = (x.wrapping_sub(out) as isize).max(0) as usize;
        (below / self.channels.max(1)).max(2).min(rows)
    }

    /// Eight channels' weights and tables, for [`Matrix::groups`] alone, of `channels` in all.
    pub(super) fn of_group(weights: &'a [u8], k: usize, channels: usize, output: Output) -> Self {
        Self {
            weights,
            k,
            channels,
            output,
            copied: false,
        }
    }

    /// [`Matrix::multiply`] for groups that write `lanes` channels each.
    ///
    /// # Safety
    /// As for [`Matrix::multiply`]; groups `first` to `first + groups` are of the packed weights, and there is one at least.
    #[expect(clippy::too_many_arguments, reason = "the extents of a matrix product")]
    pub(super) unsafe fn groups(
        &self,
        first: usize,
        groups: usize,
        lanes: usize,
        x: *const i8,
        x_stride: usize,
        rows: usize,
        out: *mut i8,
    ) {
        let blocks = self.k.div_ceil(BLOCK);
        let mut args = Product {
            x,
            x_stride: x_stride as u32,
            pairs: (rows / 2) as u32,
            // In bounds: `new` has got all groups.
            weights: self
                .weights
                .as_ptr()
                .wrapping_add(first * (blocks * 128 / shared::<W4>() + TABLE)),
            groups: groups as u32,
            blocks_less_one: blocks as u32 - 1,
            out: out.wrapping_add(first * GROUP),
            out_stride: self.channels as u32,
            zero_point: self.output.zero_point,
            lanes: lanes as u32,
            low: self.output.low,
            high: self.output.high,
            factors: 0,
        };
        let mut rows = rows;
        let words = (out.addr() | self.channels).is_multiple_of(4);
        if !W4 && blocks == 1 && rows >= 4 && lanes == GROUP && !self.output.left && words {
            args.pairs = (rows / 4) as u32;
            // SAFETY: at least four rows, and groups of one block; the rows at `x` and their outputs are valid (fn docs).
            unsafe {
                if self.output.fast {
                    rows4_k16_fast(&args)
                } else {
                    rows4_k16_right(&args)
                }
            };
            let done = rows & !3;
            args.x = args.x.wrapping_add(done * x_stride);
            args.out = args.out.wrapping_add(done * self.channels);
            rows %= 4;
            args.pairs = (rows / 2) as u32;
        }
        if rows >= 2 {
            // SAFETY: at least one pair of rows, one group and one block; the rows at `x` and their outputs are valid (fn docs).
            unsafe {
                match (blocks, self.output.fast) {
                    (1, true) if W4 => rows2_w4_k16_fast(&args),
                    (1, false) if W4 => rows2_w4_k16_general(&args),
                    (2, true) if W4 => rows2_w4_k32_fast(&args),
                    (2, false) if W4 => rows2_w4_k32_general(&args),
                    (_, true) if W4 => rows2_w4_fast(&args),
                    (_, false) if W4 => rows2_w4_general(&args),
                    (1, true) => rows2_k16_fast(&args),
                    (1, false) => rows2_k16_general(&args),
                    (2, true) => rows2_k32_fast(&args),
                    (2, false) => rows2_k32_general(&args),
                    (3, true) => rows2_k48_fast(&args),
                    (3, false) => rows2_k48_general(&args),
                    (4, true) => rows2_k64_fast(&args),
                    (4, false) => rows2_k64_general(&args),
                    (_, true) => rows2_fast(&args),
                    (_, false) => rows2_general(&args),
                }
            }
        }
        if rows % 2 == 1 {
            args.x = args.x.wrapping_add((rows - 1) * x_stride);
            args.out = args.out.wrapping_add((rows - 1) * self.channels);
            // SAFETY: the last row, of which `args.x` and `args.out` are the start, and its outputs are valid (fn docs); at least one group and one block.
            unsafe {
                match self.output.fast {
                    true if W4 => rows1_w4_fast(&args),
                    false if W4 => rows1_w4_general(&args),
                    true => rows1_fast(&args),
                    false => rows1_general(&args),
                }
            }
        }
    }
}

/// The least instructions of a product: blocks, and requantising of the outputs.
pub(super) fn bound(rows: u64, k: u32, channels: u64, fast: bool) -> u64 {
    let blocks = (padded(k) / BLOCK as u32) as u64;
    let (two_rows, one_row, four_rows) = if fast { (36, 23, 113) } else { (63, 37, 144) };
    // Of a group of eight channels; rows are loaded once for both halves, of many blocks the first two.
    let group = match blocks {
        1..=3 => blocks * 26,
        _ => blocks * 28 - 4,
    };
    let pairs = |rows: u64| (rows / 2) * (group + two_rows) + (rows % 2) * (blocks * 17 + one_row);
    // Whole groups of one block take four rows, where each row's outputs begin at a word.
    let whole = if blocks == 1 && channels.is_multiple_of(4) {
        (rows / 4) * four_rows + pairs(rows % 4)
    } else {
        pairs(rows)
    };
    let (groups, rest) = (channels / GROUP as u64, channels % GROUP as u64);
    groups * whole + if rest > 0 { pairs(rows) } else { 0 }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;

    use super::*;

    #[test]
    fn rows_go_together_whose_outputs_lie_over_none_of_them() {
        for (k, channels, x_stride) in [(5, 3, 5), (4, 12, 4), (16, 12, 20), (40, 9, 40), (7, 30, 14), (1, 9, 1)] {
            let weights = vec![0; packed_bytes::<false>(channels as u32, k as u32) as usize];
            let matrix = Matrix::<false>::new(&weights, k, channels, 0, [-128, 127]).unwrap();
            let (x, rows) = (4000, 11);
            for out in x - 11 * channels - 30..x + 11 * x_stride + 30 {
                let count = matrix.rows_apart(x, x_stride, rows, out);
                let apart = |count: usize| out + count * channels <= x || out >= x + (count - 1) * x_stride + k;
                assert!((2..=rows).contains(&count), "{out}");
                assert!(count == 2 || apart(count), "{out}: {count} of {k} by {channels}");
                // No fewer than there might be, where the outputs are below.
                assert!(
                    count == rows || out >= x || !apart(count + 1),
                    "{out}: {count} of {k} by {channels}"
                );
            }
            assert_eq!(matrix.rows_apart(x, x_stride, 1, x), 1);
        }
    }
}
