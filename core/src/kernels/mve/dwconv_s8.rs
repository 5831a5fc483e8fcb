//! Depthwise convolution with windows of at most 4 x 4.
//!
//! There is no vector multiply-accumulate of integers on Helium but the one that sums its lanes into a core register. So the lanes have to
//! be the taps of one channel: four rows of up to 16 channels are interleaved into scratch byte by byte, which `vst4` does in four
//! instructions, and one gather of four words then has a 4 x 4 window of one channel in its 16 lanes, column after column.
//!
//! At stride 1 and up to 3 x 3 that window holds four windows: two columns by two rows of outputs, from one gather and four `vmladav`.
//! Their weights are the same bytes read from one column (four bytes) and one row (one byte) earlier: the layout keeps five
//! zeros before them. At other strides or sizes a gather gives one output.
//!
//! An odd last column or row is computed without its neighbour; of three sets of rows and more, the last column four sets at a time. Three last rows are two
//! overlapping pairs, which costs the second row twice and saves a pass over all channels.
//!
//! **Layout of the weights**: a header of 16 bytes, for each channel 16 bytes (column by column, four rows each; zeros outside the
//! kernel), for each channel three words: bias - zero point * sum of the weights, mantissa, shift.
//!
//! **In cycles** a gather of four words takes four, as four loads would; two of its lanes' products a cycle still make it the cheapest
//! way to the taps of one channel.

use super::args::{Depthwise, Interleave, LastColumn, RowSet};
use super::loops::{
    depthwise_1x1_by_eight, depthwise_1x1_fast, depthwise_1x1_general, depthwise_2x2_by_eight,
    depthwise_2x2_by_eight_and_one, depthwise_2x2_fast, depthwise_2x2_general, fill, interleave,
};
use super::{HEADER, Output, clip, header, pack_header};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::cells::{Dst, Src, cast_slice};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::distance::furthest_of;
use crate::ops::operator::Needs;
use crate::ops::window::Window2d;

/// Bytes of interleaved rows that are worth their memory: more sets of rows save starts of the loop over channels.
const SCRATCH: usize = 2560;

/// The most sets of rows at a time.
const MOST: usize = 6;

/// Channels of a vector.
const VECTOR: usize = 16;

/// [`Depthwise::rest`] of eight outputs at a time, by the columns that are left: the first four outputs' lanes have even numbers. Two by two, then of one row.
const REST_2X2: [u32; 4] = [0, 0x4000_0033, 0x3333, 0x8000_33ff];
const REST_1X1: [u32; 8] = [0, 0x3, 0x33, 0x333, 0x3333, 0x8000_333f, 0x8000_33ff, 0x8000_3fff];

/// int8, one input channel a group, as many output channels, windows of at most 4 x 4, no dilation. Packed weights of `pack`; the
/// channel records are in them, and `channels` is the offset of the weights.
#[derive(Debug)]
pub struct S8;

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, _) = job.conv2d_s8()?;
        // Windows of one column fill no lanes.
        let narrow = [op.window.input[1], op.window.output[1]] == [1, 1];
        (op.is_depthwise() && !narrow).then_some(op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed)
    }

    /// Left shifts, which few channels have, only cost more.
    fn bound(op: &Conv2dS8, _: &Machine) -> Option<u64> {
        Some(bound(op, false))
    }
}

/// Packs OHWI weights, i.e. `[channels, kh, kw, 1]`, and the channel records `{ bias, mantissa, shift }`; `dst` has the kernel's
/// `needs(op).weights` bytes. `None` where a slice is too short.
pub(super) fn pack(op: &Conv2dS8, weights: &[i8], channels: &[[i32; 3]], dst: &mut [u8]) -> Option<()> {
    let [kh, kw] = op.window.kernel.map(usize::from);
    let count = usize::from(op.window.output[2]);
    let channels = channels.get(..count)?;
    pack_header(channels, dst)?;
    let (taps, table) = dst.get_mut(HEADER..)?.split_at_mut_checked(count * 16)?;
    let (taps, table) = (taps.as_chunks_mut::<16>().0, table.as_chunks_mut::<12>().0);
    for (channel, ((record, taps), table)) in channels.iter().zip(taps).zip(table).enumerate() {
        taps.fill(0);
        let mut sum = 0i32;
        for y in 0..kh {
            for x in 0..kw {
                let value = *weights.get((channel * kh + y) * kw + x)?;
                sum += i32::from(value);
                *taps.get_mut(x * 4 + y)? = value as u8;
            }
        }
        let [bias, mantissa, shift] = *record;
        let bias = bias.wrapping_sub(i32::from(op.input_zero_point) * sum);
        for (place, value) in table.as_chunks_mut::<4>().0.iter_mut().zip([bias, mantissa, shift]) {
            *place = value.to_le_bytes();
        }
    }
    Some(())
}

/// The least instructions of a step: units, and the interleaving.
fn bound(op: &Conv2dS8, left_shifts: bool) -> u64 {
    let [h, w, c] = op.window.output.map(u64::from);
    let outputs = u64::from(op.window.batch) * h * w * c;
    let columns = u64::from(op.window.batch) * h * u64::from(op.window.input[1]) * c;
    let fast = Output::new(op.output_zero_point, op.clamp, left_shifts).fast;
    // Eight outputs at a time, or four.
    let (two_by_two_of_8, others_of_8) = if fast { (29, 35) } else { (52, 58) };
    if two_by_two(&op.window) {
        outputs * two_by_two_of_8 / 8 + columns * 14 / 32
    } else {
        outputs * others_of_8 / 8 + columns * 14 / 16
    }
}

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        let window = &op.window;
        let fits = |axis: usize| {
            let kernel = window.kernel.get(axis).copied().unwrap_or(0);
            kernel <= 4 && u16::from(window.padding.get(axis).copied().unwrap_or(0)) < kernel
        };
        op.groups == window.input[2]
            && window.input[2] == window.output[2]
            && window.dilation == [1, 1]
            && fits(0)
            && fits(1)
    }

    fn needs(op: &Conv2dS8) -> Needs {
        if !Self::supports(op) {
            return Needs::UNSUPPORTED;
        }
        Needs {
            scratch: Layout::of(&op.window).bytes,
            weights: packed_bytes(op),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        (index == 1).then(|| distance(&op.window))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        let packed = Mem::of_weights(weights).weights::<u8>(op.weights, packed_bytes(op));
        packed.is_some_and(|weights| is_packed(op, weights))
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let layout = Layout::of(&op.window);
        let weights = mem.weights::<u8>(op.weights, packed_bytes(op))?;
        let step = Step {
            op,
            input: mem.src::<i8>(op.input, op.window.input_len()?)?,
            output: mem.dst::<i8>(op.output, op.window.output_len()?)?,
            scratch: mem.dst::<i8>(op.scratch, layout.bytes)?,
            layout,
            weights,
            requantize: Output::new(op.output_zero_point, op.clamp, *weights.first()? != 0),
        };
        step.run()
    }
}

/// Bytes of the packed weights.
fn packed_bytes(op: &Conv2dS8) -> u32 {
    HEADER as u32 + 28 * u32::from(op.window.output[2])
}

/// Whether packed weights are as [`pack`] writes them in what the loops trust: zeros outside the window, where they multiply whatever scratch holds, and shifts
/// that are shifts, to the left only where the header says so.
fn is_packed(op: &Conv2dS8, weights: &[u8]) -> bool {
    let [kh, kw] = op.window.kernel.map(usize::from);
    let (Some(left), Some(words)) = (header(weights), weights.get(HEADER..).and_then(cast_slice::<u32>)) else {
        return false;
    };
    let Some((taps, table)) = words.split_at_checked(4 * usize::from(op.window.output[2])) else {
        return false;
    };
    // A column is a word, its first row the lowest byte.
    let column = u32::MAX.checked_shl(8 * kh as u32).unwrap_or(0);
    let outside = [0, 1, 2, 3].map(|at: usize| if at < kw { column } else { u32::MAX });
    let (taps, table) = (taps.as_chunks::<4>().0, table.as_chunks::<3>().0);
    let [a, b, c, d] = outside;
    let beyond = taps.iter().fold(0, |bits, taps| {
        bits | taps[0] & a | taps[1] & b | taps[2] & c | taps[3] & d
    });
    let most = if left { 31 } else { 0 };
    beyond == 0
        && table
            .iter()
            .all(|&[_, _, shift]| (-31..=most).contains(&(shift as i32)))
}

/// Whether a gather gives 2 x 2 outputs.
fn two_by_two(window: &Window2d) -> bool {
    window.stride == [1, 1] && window.kernel.iter().all(|&k| k <= 3)
}

/// Rows that are computed together: `sets` sets of four input rows, for output rows from `row` in steps of `advance`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chunk {
    row: usize,
    sets: usize,
    advance: usize,
    /// Sets of two output rows have only one.
    single: bool,
}

/// Division of an image's rows, and use of scratch: `zero` bytes of zero point, then the sets.
struct Layout {
    two_by_two: bool,
    rows: usize,
    /// Bytes of a column.
    pitch: usize,
    columns: usize,
    /// Sets at a time.
    most: usize,
    zero: usize,
    bytes: u32,
}

impl Layout {
    fn of(window: &Window2d) -> Self {
        let [_, iw, c] = window.input.map(usize::from);
        let [oh, ow, _] = window.output.map(usize::from);
        let two_by_two = two_by_two(window);
        let pitch = 4 * if packed_columns(window) { c } else { VECTOR };
        let read = if two_by_two {
            ow.next_multiple_of(2) + 2
        } else {
            (ow.next_multiple_of(4) - 1) * usize::from(window.stride[1]) + 4
        };
        let columns = read.max(usize::from(window.padding[1]) + iw);
        let sets = if two_by_two { oh.div_ceil(2) } else { oh };
        // Never 0, which the compiler does not see.
        let most = (SCRATCH / (columns * pitch).max(1)).clamp(1, MOST).min(sets);
        // As few as make as many chunks, so that chunks are alike. (Of images as wide as before; others might have to keep another distance.)
        let most = if two_by_two && most >= 2 && iw == ow {
            let pairs = (if oh % 2 == 1 { oh.saturating_sub(3) } else { oh }) / 2;
            let chunks = pairs.div_ceil(most);
            pairs.div_ceil(chunks.max(1)).max(2)
        } else {
            most
        };
        let zero = c.next_multiple_of(VECTOR);
        Self {
            two_by_two,
            rows: oh,
            pitch,
            columns,
            most,
            zero,
            bytes: (zero + most * columns * pitch) as u32,
        }
    }

    fn set_bytes(&self) -> usize {
        self.columns * self.pitch
    }

    /// The chunk from output row `row`, and the row after it.
    fn chunk(&self, row: usize) -> (Chunk, usize) {
        let left = self.rows - row;
        let chunk = |sets, advance, single| Chunk {
            row,
            sets,
            advance,
            single,
        };
        if !self.two_by_two {
            let sets = left.min(self.most);
            return (chunk(sets, 1, false), row + sets);
        }
        match left {
            1 => (chunk(1, 2, true), row + 1),
            // Rows r, r + 1 and r + 1, r + 2.
            3 if self.most >= 2 => (chunk(2, 1, false), row + 3),
            _ => {
                let pairs = (left / 2).min(self.most);
                // Leave three and not one.
                let sets = if self.most >= 2 && left - 2 * pairs == 1 {
                    pairs - 1
                } else {
                    pairs
                };
                (chunk(sets, 2, false), row + 2 * sets)
            }
        }
    }
}

/// Whether neighbouring pixels fill whole vectors, so that a row is interleaved as one run of bytes.
fn packed_columns(window: &Window2d) -> bool {
    let [_, iw, c] = window.input.map(usize::from);
    c <= VECTOR && (iw * c).is_multiple_of(VECTOR)
}

/// See [`Kernel::distance`]. All rows of a chunk are read for one block of channels, then written, then read for the next block.
fn distance(window: &Window2d) -> i64 {
    let layout = Layout::of(window);
    let [ih, iw, c] = window.input.map(|n| usize::from(n) as isize);
    let [oh, ow, _] = window.output.map(|n| usize::from(n) as isize);
    let [stride, padding] = [window.stride[0], window.padding[0]].map(isize::from);
    let one_block = c <= VECTOR as isize;
    // All chunks have as many rows but the last ones.
    let rows = layout.most * if layout.two_by_two { 2 } else { 1 };
    let whole = layout.rows.saturating_sub(rows + 1).div_ceil(rows.max(1));
    let mut distance = isize::MIN;
    if whole > 0 {
        let step = rows as isize;
        // Never 0, as load has checked and the compiler does not see.
        let inside = usize::from(window.padding[0] / window.stride[0].max(1)) / rows.max(1);
        let furthest = furthest_of(
            whole as isize,
            inside as isize,
            stride * step,
            padding,
            [step * ow * c, iw * c],
        );
        distance = furthest + if one_block { 0 } else { step * ow * c };
    }
    let mut row = whole * rows;
    while row < layout.rows {
        let (chunk, next) = layout.chunk(row);
        let written = if one_block { chunk.row } else { next };
        let first = (chunk.row as isize * stride - padding).max(0);
        distance = distance.max(written as isize * ow * c - first * iw * c);
        row = next;
    }
    let grows = (oh * ow - ih * iw) * c;
    (distance + ((usize::from(window.batch) as isize - 1) * grows).max(0)) as i64
}

/// The operands of a step.
struct Step<'a> {
    op: &'a Conv2dS8,
    layout: Layout,
    input: Src<'a, i8>,
    output: Dst<'a, i8>,
    scratch: Dst<'a, i8>,
    weights: &'a [u8],
    requantize: Output,
}

impl Step<'_> {
    fn run(&self) -> Option<()> {
        let window = &self.op.window;
        let [ih, iw, c] = window.input.map(usize::from);
        let [oh, ow, _] = window.output.map(usize::from);
        // Padding, and what last units read beyond it, keeps this value.
        // SAFETY: pointer and length are those of `self.scratch`.
        unsafe {
            fill(
                self.scratch.as_mut_ptr(),
                i32::from(self.op.input_zero_point),
                self.scratch.cells().len(),
            )
        };
        for image in 0..usize::from(window.batch) {
            let input = self.input.slice(image * ih * iw * c, ih * iw * c)?;
            let output = self.output.slice(image * oh * ow * c, oh * ow * c)?;
            let mut row = 0;
            while row < oh {
                let (chunk, next) = self.layout.chunk(row);
                self.chunk(chunk, input, output)?;
                row = next;
            }
        }
        Some(())
    }

    fn chunk(&self, chunk: Chunk, input: Src<'_, i8>, output: Dst<'_, i8>) -> Option<()> {
        let window = &self.op.window;
        let [ih, iw, c] = window.input.map(usize::from);
        let packed = packed_columns(window);
        let vectors = if packed { iw * c / VECTOR } else { iw };
        let step = if packed { VECTOR } else { c };
        let zero = self.scratch.slice(0, self.layout.zero)?.as_src().as_ptr();
        let row_bytes = iw * c;
        let mut sets = [RowSet {
            rows: [zero; 4],
            steps: [0; 4],
        }; MOST];
        for (set, index) in sets.iter_mut().zip(0..chunk.sets) {
            let top = ((chunk.row + index * chunk.advance) * usize::from(window.stride[0])) as isize
                - isize::from(window.padding[0]);
            let (skip, inside) = clip(top, 4, ih);
            let mut row = input
                .slice((top + skip as isize) as usize * row_bytes, inside * row_bytes)?
                .as_ptr();
            let places = set.rows.iter_mut().zip(&mut set.steps).skip(skip).take(inside);
            for (place, by) in places {
                *place = row;
                *by = step as u32;
                row = row.wrapping_add(row_bytes);
            }
        }
        let left = usize::from(window.padding[1]) * self.layout.pitch;
        let written = vectors * 4 * VECTOR;
        let dst = self.scratch.tail(self.layout.zero + left)?.as_mut_ptr();
        for first in (0..c).step_by(VECTOR) {
            let lanes = if packed { VECTOR } else { (c - first).min(VECTOR) };
            // SAFETY: rows hold `vectors` vectors `step` bytes apart, of which `lanes` bytes from `first` are read; rows outside
            // the image are `zero` bytes long and do not move. The sets lie in scratch.
            unsafe {
                interleave(&Interleave {
                    sets: sets.as_ptr(),
                    dst,
                    count: chunk.sets as u32,
                    vectors: vectors as u32,
                    lanes: lanes as u32,
                    offset: first as u32,
                    dst_skip: (self.layout.set_bytes() - written) as u32,
                })
            };
            self.channels(chunk, first, (c - first).min(VECTOR), output)?;
        }
        Some(())
    }

    /// The outputs of a chunk for channels `first..first + count`.
    fn channels(&self, chunk: Chunk, first: usize, count: usize, output: Dst<'_, i8>) -> Option<()> {
        let window = &self.op.window;
        let c = usize::from(window.output[2]);
        let ow = usize::from(window.output[1]);
        let row = ow * c;
        let layout = &self.layout;
        // Of all weights: what lies before a channel's taps is read as well.
        let before = HEADER + first * 16 - 1;
        self.weights.get(before..)?;
        let taps = self.weights.as_ptr().wrapping_add(before);
        let table = HEADER + c * 16 + first * 12;
        let pitch = layout.pitch as u32;
        let (columns, x_step, outputs) = if layout.two_by_two {
            let below = if chunk.single { 0 } else { row };
            (2, 2 * layout.pitch, [0, below, c, below + c])
        } else {
            let x_step = usize::from(window.stride[1]) * layout.pitch;
            (4, x_step, [0, c, 2 * c, 3 * c])
        };
        // Eight outputs at a time, whose offsets are of 16 bits.
        let eight = self.requantize.fast && outputs.iter().all(|at| at + columns * c <= 0xffff);
        let by = if eight { 2 * columns } else { columns };
        // A power of two.
        let (units, left) = (ow >> by.trailing_zeros(), ow & (by - 1));
        let rest = match (eight, layout.two_by_two) {
            (true, true) => *REST_2X2.get(left)?,
            (true, false) => *REST_1X1.get(left)?,
            (false, true) => left as u32 * 2,
            (false, false) => left as u32,
        };
        // One column that is left, of sets of rows enough to compute it four at a time.
        let (set, to_set) = (layout.set_bytes() as u32, chunk.advance * row);
        let column = eight && layout.two_by_two && left == 1 && chunk.sets >= 3 && 3 * to_set + row <= 0xffff;
        let rest = if column { 0 } else { rest };
        let (out_step, moved) = (by * c, units * by * x_step / if layout.two_by_two { 2 } else { 1 });
        let last = column.then(|| {
            // Offsets of a set's outputs: of three sets, the last one's twice.
            let at = |set: usize| (set.min(chunk.sets - 1) * to_set) as u32 * 0x1_0001 + ((row as u32) << 16);
            let sets = chunk.sets as u32;
            LastColumn {
                x: (moved as u32).wrapping_sub(4),
                out: ((units * out_step) as u32).wrapping_sub(1),
                set,
                last: if sets > 3 { set } else { 0 },
                again: u32::from(sets > 4),
                again_x: sets.wrapping_sub(7).wrapping_mul(set),
                again_out: sets.wrapping_sub(4).wrapping_mul(to_set as u32),
                outputs: [at(0), at(2), at(1), at(3)],
            }
        });
        let args = Depthwise {
            weights: taps.wrapping_add(1),
            lower_weights: taps.wrapping_add(usize::from(chunk.single)),
            table: self.weights.get(table..table + count * 12)?.as_ptr(),
            x: self
                .scratch
                .slice(layout.zero, chunk.sets * layout.set_bytes())?
                .as_src()
                .as_ptr(),
            out: output.tail(chunk.row * row + first)?.as_mut_ptr(),
            channels: count as u32,
            sets: chunk.sets as u32,
            units: units as u32,
            x_step: x_step as u32,
            out_step: out_step as u32,
            x_skip: (layout.set_bytes() as u32).wrapping_sub(moved as u32),
            out_skip: ((chunk.advance * row) as u32).wrapping_sub((units * out_step) as u32),
            zero_point: self.requantize.zero_point,
            rest,
            columns: &[0, pitch, 2 * pitch, 3 * pitch],
            outputs: &outputs.map(|at| at as u32 | if eight { ((at + columns * c) as u32) << 16 } else { 0 }),
            low: self.requantize.low,
            high: self.requantize.high,
            column: last.as_ref().map_or(core::ptr::null(), core::ptr::from_ref),
        };
        // SAFETY: the sets have the columns that the units read (`Layout::of`); the outputs are rows of the chunk; weights and table
        // have `count` channels, with five zeros or the weights' zero end before the first.
        unsafe {
            match (layout.two_by_two, self.requantize.fast) {
                (true, _) if column => depthwise_2x2_by_eight_and_one(&args),
                (true, _) if eight => depthwise_2x2_by_eight(&args),
                (false, _) if eight => depthwise_1x1_by_eight(&args),
                (true, true) => depthwise_2x2_fast(&args),
                (true, false) => depthwise_2x2_general(&args),
                (false, true) => depthwise_1x1_fast(&args),
                (false, false) => depthwise_1x1_general(&args),
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, chunk by chunk.
    fn walked(window: &Window2d) -> i64 {
        let layout = Layout::of(window);
        let [ih, iw, c] = window.input.map(i64::from);
        let [oh, ow, _] = window.output.map(i64::from);
        let (mut distance, mut row) = (i64::MIN, 0);
        while row < layout.rows {
            let (chunk, next) = layout.chunk(row);
            let written = if c <= VECTOR as i64 { chunk.row } else { next };
            let first = (chunk.row as i64 * i64::from(window.stride[0]) - i64::from(window.padding[0])).clamp(0, ih);
            distance = distance.max(written as i64 * ow * c - first * iw * c);
            row = next;
        }
        let grows = (oh * ow - ih * iw) * c;
        distance + ((i64::from(window.batch) - 1) * grows).max(0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 16))]

        #[test]
        fn the_closed_form_of_the_distance_is_the_walk(
            batch in 1u16..4, rows in prop_oneof![1u16..40, 1000u16..65535], columns in 1u16..60, channels in 1u16..40,
            kernel in [1u16..5, 1u16..5], down in prop_oneof![Just(1u8), 1u8..5, 1u8..], right in 1u8..4, padding: [u8; 2], shares: [u16; 2],
        ) {
            let stride = [down, right];
            let padding = [0, 1].map(|i| (u16::from(padding[i]) % kernel[i]) as u8);
            let extent = |i: usize| {
                let most = (u32::from([rows, columns][i]) + u32::from(padding[i]) - 1) / u32::from(stride[i]) + 1;
                (1 + u32::from(shares[i]) % most).min(65535) as u16
            };
            let window = Window2d {
                batch,
                input: [rows, columns, channels],
                output: [extent(0), extent(1), channels],
                kernel,
                stride,
                dilation: [1, 1],
                padding,
            };
            window.check().unwrap();
            prop_assert_eq!(distance(&window), walked(&window), "{:?}", window);
        }
    }
}
