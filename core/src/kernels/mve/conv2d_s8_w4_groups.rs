//! Convolution with weights of four bits that share factors: -7 to 7 times 1 to 18.
//!
//! Four and more rows meet int8 weights: the products of a group of eight channels are written to scratch, 0.3 instructions each, and multiplied by the loops
//! of `gemm_s8.rs`. Rows are copied by sixteen at least, so that it is done once for so many. Fewer rows are multiplied as they are, sums ending with each
//! group of weights, which takes 14 instructions for eight channels besides.
//!
//! **Layout.** As in `gemm`, but for the factors: after the weights of the even channels of eight, those of the odd ones, in which after the blocks of each
//! group of weights, one or two, lie the group's factors, of the even channels and of the odd ones, a byte each. Then the tables.

use super::args::{Product as Args, Widen};
use super::conv2d::is_one_row;
use super::gemm_s8::{BLOCK, GROUP, TABLE, padded};
use super::geometry::{Geometry, Path};
use super::im2col::{Product, Rows, whole_blocks};
use super::loops::{rows1_g16_fast, rows1_g16_general, rows1_g32_fast, rows1_g32_general, widen_groups};
#[cfg(any(test, packing))]
use super::pack_header;
use super::{HEADER, Output, gemm_s8, header};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::blocks::{blocks, last};
use crate::cells::cast_slice;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, GroupsS8, Job, JobKind, Machine, PlainS8};
use crate::kernels::api::kernel::Kernel;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::low_bit::{GroupsConv2dS8, MOST_FACTOR};
use crate::ops::operator::Needs;

/// Rows of a call that are worth widening weights for.
pub const MANY: usize = 4;

/// Rows that are copied at a time, at least, where there are so many.
const COPIED: u32 = 16;

/// Elements of a row, at most: 16 times their sums, as products with int8 weights, are words.
const MOST: u32 = 8192;

/// int8, weights of -7 to 7, 16 or 32 of which share a factor of 1 to 18.
#[derive(Debug)]
pub struct S8;

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8Groups);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<GroupsConv2dS8<P>> {
        let (conv, plain, of) = job.conv2d_s8_groups()?;
        let share = [32, 16].into_iter().find(|&part| of.share.is_multiple_of(part))?;
        of.fit(&plain).then_some(GroupsConv2dS8 { conv, share })
    }

    fn pack(job: &Job<'_>, op: &GroupsConv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (conv, plain, of) = job.conv2d_s8_groups()?;
        pack(&conv, op.share, plain, of, packed)
    }

    fn bound(op: &GroupsConv2dS8, _: &Machine) -> Option<u64> {
        Some(super::conv2d::bound(&op.conv, false))
    }
}

impl Kernel for S8 {
    type Op = GroupsConv2dS8;

    fn supports(op: &GroupsConv2dS8) -> bool {
        op.conv.groups == 1 && op.conv.window.depth() <= MOST && [16, 32].contains(&op.share)
    }

    fn needs(op: &GroupsConv2dS8) -> Needs {
        if !Self::supports(op) {
            return Needs::UNSUPPORTED;
        }
        let groups = u32::from(op.conv.window.output[2]).div_ceil(GROUP as u32);
        let shape = Shape::of(op);
        Needs {
            scratch: widened_at(op).saturating_add(widened_bytes(op)),
            weights: groups
                .saturating_mul(shape.bytes() as u32)
                .saturating_add(HEADER as u32),
        }
    }

    fn distance(op: &GroupsConv2dS8, index: usize) -> Option<i64> {
        let geometry = geometry(&op.conv);
        // Rows that are read where they are have all outputs of eight channels written before the next eight read them.
        (index == 1 && geometry.path != Path::Pixels).then(|| geometry.distance(&op.conv.window, 1, 0))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &GroupsConv2dS8, weights: &[u8]) -> bool {
        let weights = Mem::of_weights(weights).weights::<u8>(op.conv.weights, Self::needs(op).weights);
        weights.and_then(|weights| is_packed(weights, op)) == Some(true)
    }

    fn run(op: &GroupsConv2dS8, mem: &Mem<'_>) -> Option<()> {
        let (conv, shape) = (&op.conv, Shape::of(op));
        let weights = mem.weights::<u8>(conv.weights, Self::needs(op).weights)?;
        let scratch = match Self::needs(op).scratch {
            0 => None,
            bytes => Some(mem.dst::<i8>(conv.scratch, bytes)?),
        };
        let widened = match (scratch, widened_bytes(op)) {
            (Some(scratch), bytes @ 1..) => scratch.slice(widened_at(op) as usize, bytes as usize)?.as_mut_ptr(),
            _ => core::ptr::null_mut(),
        };
        let product = Matrix {
            weights: weights.get(HEADER..)?,
            shape,
            channels: usize::from(conv.window.output[2]),
            output: Output::new(conv.output_zero_point, conv.clamp, *weights.first()? != 0),
            widened,
        };
        if is_one_row(conv) {
            let x = mem.src::<i8>(conv.input, shape.k as u32)?;
            let out = mem.dst::<i8>(conv.output, product.channels as u32)?;
            let row = whole_blocks(x, padded(shape.k as u32), || scratch)?;
            // SAFETY: `row` is one row of whole blocks (`whole_blocks`), and `out` was taken with the pixel's `channels` elements.
            unsafe { product.multiply(row, 0, 1, out.as_mut_ptr(), 0) };
            return Some(());
        }
        let geometry = geometry(conv);
        Rows {
            input: mem.src::<i8>(conv.input, conv.window.input_len()?)?,
            output: mem.dst::<i8>(conv.output, conv.window.output_len()?)?,
            scratch: match (scratch, geometry.scratch) {
                (Some(scratch), bytes @ 1..) => Some(scratch.slice(0, bytes as usize)?),
                _ => None,
            },
            padding: conv.input_zero_point,
            product,
            geometry: &geometry,
        }
        .run()
    }
}

#[inline]
fn geometry(op: &Conv2dS8) -> Geometry {
    Geometry::of_windows(&op.window, BLOCK as u32, COPIED)
}

/// Bytes of scratch for copies of rows.
pub fn copies(op: &GroupsConv2dS8) -> u32 {
    geometry(&op.conv).scratch
}

/// Offset of the widened weights in scratch, in bytes: behind the copies.
fn widened_at(op: &GroupsConv2dS8) -> u32 {
    copies(op).checked_next_multiple_of(16).unwrap_or(u32::MAX)
}

/// Their bytes; none where there are few rows.
fn widened_bytes(op: &GroupsConv2dS8) -> u32 {
    let window = &op.conv.window;
    let [rows, columns, _] = window.output.map(u32::from);
    match u32::from(window.batch).saturating_mul(rows * columns) {
        few if few < MANY as u32 => 0,
        _ => padded(window.depth())
            .saturating_mul(GROUP as u32)
            .saturating_add(TABLE as u32),
    }
}

/// Shape of the packed weights of eight channels.
#[derive(Debug, Clone, Copy)]
struct Shape {
    k: usize,
    /// Blocks of a row, and of a group of weights.
    blocks: usize,
    of_group: usize,
}

impl Shape {
    fn of(op: &GroupsConv2dS8) -> Self {
        let k = op.conv.window.depth();
        Self {
            k: k as usize,
            blocks: padded(k) as usize / BLOCK,
            of_group: (op.share as usize / BLOCK).max(1),
        }
    }

    fn groups(&self) -> usize {
        let begun = self.blocks + self.of_group - 1;
        begun.checked_div(self.of_group).unwrap_or(0)
    }

    /// Bytes of the factors, which lie in the second half.
    fn factors(&self) -> usize {
        self.groups() * GROUP
    }

    /// Bytes of half the weights.
    fn half(&self) -> usize {
        self.blocks * BLOCK * GROUP / 4
    }

    fn bytes(&self) -> usize {
        2 * self.half() + self.factors() + TABLE
    }

    /// Offset of block `block` in the second half, and of the factors behind it, if it is its group's last.
    fn odd(&self, block: usize) -> usize {
        self.half() + block * BLOCK * 2 + block.checked_div(self.of_group).unwrap_or(0) * GROUP
    }
}

/// Packs weights that are products; `dst` has the kernel's `needs(..).weights` bytes.
#[cfg(any(test, packing))]
fn pack(op: &Conv2dS8, share: u32, plain: PlainS8<'_>, of: GroupsS8<'_>, dst: &mut [u8]) -> Option<()> {
    let channels = plain.channels.get(..usize::from(op.window.output[2]))?;
    pack_header(channels, dst)?;
    let shape = Shape::of(&GroupsConv2dS8 { conv: *op, share });
    let parts = dst.get_mut(HEADER..)?.chunks_exact_mut(shape.bytes());
    for (first, dst) in (0..channels.len()).step_by(GROUP).zip(parts) {
        dst.fill(0);
        for within in 0..GROUP {
            let (channel, odd, lane) = (first + within, within % 2, within / 2);
            for block in 0..shape.blocks {
                // Behind the last block of a group.
                if !(block + 1).is_multiple_of(shape.of_group) && block + 1 < shape.blocks {
                    continue;
                }
                let factor = of.of(channel, block * BLOCK, shape.k).unwrap_or(1);
                *dst.get_mut(shape.odd(block) + 2 * BLOCK + odd * 4 + lane)? = factor as u8;
            }
            let Some(&[bias, mantissa, shift]) = channels.get(channel) else {
                continue;
            };
            let mut sum = 0i32;
            for i in 0..shape.k {
                let product = *plain.weights.get(channel * shape.k + i)?;
                sum = sum.wrapping_add(i32::from(product));
                let number = product.checked_div(of.of(channel, i, shape.k)?)?;
                let block = i / BLOCK;
                let from = if odd == 1 { shape.odd(block) } else { block * BLOCK * 2 };
                let byte = dst.get_mut(from + lane / 2 * BLOCK + i % BLOCK)?;
                *byte = byte.wrapping_add((number as u8) << (lane % 2 * 4));
            }
            let bias = bias.wrapping_sub(i32::from(op.input_zero_point).wrapping_mul(sum));
            let table = dst.get_mut(shape.bytes() - TABLE..)?;
            for (part, value) in [bias, shift.max(0), mantissa, shift.min(0)].into_iter().enumerate() {
                let at = part * 32 + odd * 16 + lane * 4;
                table.get_mut(at..at + 4)?.copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    Some(())
}

/// Whether the weights are as [`pack`] writes them in what the loops trust: as [`gemm_s8::is_packed`], and factors.
fn is_packed(weights: &[u8], op: &GroupsConv2dS8) -> Option<bool> {
    let (shape, channels) = (Shape::of(op), usize::from(op.conv.window.output[2]));
    let left = header(weights)?;
    let words = weights.get(HEADER..).and_then(cast_slice::<u32>)?;
    let (mut lefts, mut rights, mut beyond, mut right) = (0, 0, 0, true);
    let masks: [u32; 4] = gemm_s8::beyond(shape.k);
    for group in blocks(words, shape.bytes() / 4) {
        let table = last(group, TABLE / 4)?;
        lefts |= table.get(8..16)?.iter().fold(0, |bits, shift| bits | shift);
        rights |= table
            .get(24..)?
            .iter()
            .fold(0, |bits, shift| bits | shift.wrapping_neg());
        let block = shape.blocks - 1;
        for from in [block * BLOCK * 2, shape.odd(block)] {
            let vectors = group.get(from / 4..)?.get(..8)?.as_chunks::<4>().0;
            let bits = vectors.iter().flat_map(|vector| vector.iter().zip(masks));
            beyond |= bits.fold(0, |bits, (word, mask)| bits | word & mask);
        }
        let mut end = 0;
        while end < shape.blocks {
            end = (end + shape.of_group).min(shape.blocks);
            let factors = group.get((shape.odd(end - 1) + 2 * BLOCK) / 4..)?.get(..2)?;
            right &= factors
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .all(|factor| (1..=MOST_FACTOR).contains(&factor));
        }
    }
    let table = last(words, TABLE / 4)?;
    let missing = (channels - 1) % GROUP + 1..GROUP;
    for within in missing {
        let mut of = table.iter().skip(within % 2 * 4 + within / 2).step_by(8);
        right &= of.all(|&word| word == 0);
    }
    Some(right && beyond == 0 && (lefts | rights) & !31 == 0 && (left || lefts == 0))
}

/// Packed weights and what they are multiplied to.
struct Matrix<'a> {
    weights: &'a [u8],
    shape: Shape,
    channels: usize,
    output: Output,
    /// Eight channels' int8 weights and tables; null where no call has many rows.
    widened: *mut i8,
}

impl Matrix<'_> {
    /// One row, by groups of eight channels from `first` on, `lanes` of each.
    ///
    /// # Safety
    /// As for [`Product::multiply`], of one row; `first` is the first of `groups` groups whose weights and outputs are there.
    unsafe fn row(&self, first: usize, groups: usize, lanes: usize, x: *const i8, out: *mut i8) {
        if groups == 0 {
            return;
        }
        let args = Args {
            x,
            x_stride: 0,
            pairs: 0,
            weights: self.weights.as_ptr().wrapping_add(first * self.shape.bytes()),
            groups: groups as u32,
            blocks_less_one: self.shape.blocks as u32 - 1,
            out: out.wrapping_add(first * GROUP),
            out_stride: self.channels as u32,
            zero_point: self.output.zero_point,
            lanes: lanes as u32,
            low: self.output.low,
            high: self.output.high,
            factors: self.shape.factors() as u32,
        };
        // SAFETY: `groups > 0`, their weights lie from `args.weights` on, and the row and its outputs are valid (fn docs).
        unsafe {
            match (self.shape.of_group, self.output.fast) {
                (1, true) => rows1_g16_fast(&args),
                (1, false) => rows1_g16_general(&args),
                (_, true) => rows1_g32_fast(&args),
                (_, false) => rows1_g32_general(&args),
            }
        }
    }
}

impl Product for Matrix<'_> {
    unsafe fn multiply(&self, x: *const i8, stride: usize, rows: usize, out: *mut i8, _: usize) {
        let (full, rest) = (self.channels / GROUP, self.channels % GROUP);
        if rows < MANY || self.widened.is_null() {
            for row in 0..rows {
                let (x, out) = (x.wrapping_add(row * stride), out.wrapping_add(row * self.channels));
                // SAFETY: `row < rows`, whose inputs and outputs are valid (trait docs); the groups of the channels are those of the packed weights.
                unsafe {
                    self.row(0, full, GROUP, x, out);
                    self.row(full, rest.min(1), rest, x, out);
                }
            }
            return;
        }
        let bytes = self.shape.blocks * BLOCK * GROUP + TABLE;
        for group in 0..full + rest.min(1) {
            let lanes = if group < full { GROUP } else { rest };
            // SAFETY: the packed weights of eight channels, and room for as many of eight bits and the tables, which nothing else touches meanwhile.
            let weights = unsafe {
                widen_groups(&Widen {
                    src: self.weights.as_ptr().wrapping_add(group * self.shape.bytes()),
                    dst: self.widened,
                    blocks: self.shape.blocks as u32,
                    of_group: self.shape.of_group as u32,
                });
                core::slice::from_raw_parts(self.widened.cast::<u8>(), bytes)
            };
            let matrix = gemm_s8::Matrix::<false>::of_group(weights, self.shape.k, self.channels, self.output);
            // SAFETY: one group of widened weights; the rows at `x` and their outputs of these channels are valid (trait docs).
            unsafe { matrix.groups(0, 1, lanes, x, stride, rows, out.wrapping_add(group * GROUP)) };
        }
    }
}
