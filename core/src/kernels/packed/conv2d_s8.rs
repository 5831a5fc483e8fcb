//! int8 convolution of one group.
//!
//! Four output pixels at a time: their windows are unpacked side by side into scratch (`rows` says why), the border as the input's zero
//! point, and every output channel's row of weights goes past them.
//!
//! **Weights**: a row of bytes for each output channel in the order `[kh, kw, in]`, zeros up to a multiple of 4, and zeros alone for a constant
//! channel. **Channels**: [records](Record), one a row. The rows are sorted by the size of their blocks, so that neighbours run the same loop; a
//! record knows its channel.

use super::channel_record::{BLOCK, BLOCK2, BLOCK3, BLOCK4, BLOCK8, CONSTANT, Record, padded};
use super::conv2d_s8_pieces as pieces;
use super::dot_s8_rows::Rows;
use super::im2col_4_pixels::Patches;
use super::requantize::Rounding;
use super::unpack_4_pixels::{UnpackLines, unpack};
use super::{Core, channel_record, pack};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::blocks::blocks;
use crate::cells::Dst;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;
use crate::ops::window::Window2d;

/// int8, one group.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        op.groups == 1
    }

    fn needs(op: &Conv2dS8) -> Needs {
        let inputs = padded(inputs(op));
        let border = padded(u32::from(op.window.input[2]));
        Needs {
            scratch: inputs.saturating_mul(8).saturating_add(border),
            weights: inputs.saturating_mul(u32::from(op.window.output[2])),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        // Four windows are read before their pixels are written.
        (index == 1).then(|| match pointwise_pixels(&op.window) {
            None => op.window.consumed_distance(1, 0),
            Some(pixels) => {
                let grows = i64::from(op.window.output[2]) - i64::from(op.window.input[2]);
                let last = i64::from((pixels - 1) / 4 * 4);
                (last * grows).max(0)
            }
        })
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        let (row, mem) = (inputs(op), Mem::of_weights(weights));
        let inputs = padded(row);
        let (Some(records), Some(weights)) = (
            packed_records(op, inputs, &mem),
            mem.weights::<u32>(op.weights, Self::needs(op).weights / 4),
        ) else {
            return false;
        };
        if !name_each_channel_once(records) {
            return false;
        }
        // The loops take whole words, and a constant channel's row beside another one's.
        let beyond = beyond(row);
        let rows = blocks(weights, inputs as usize / 4);
        records.iter().zip(rows).all(|(record, weights)| {
            let constant = record[2] & CONSTANT != 0;
            weights.last().is_some_and(|word| word & beyond == 0)
                && (!constant || weights.iter().all(|&word| word == 0))
        })
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        Self::run_pieces(op, mem, u32::MAX)
    }

    const PIECES: bool = true;

    #[inline(always)]
    fn run_pieces(op: &Conv2dS8, mem: &Mem<'_>, pieces: u32) -> Option<()> {
        let needs = Self::needs(op);
        let input = mem.src::<i8>(op.input, op.window.input_len()?)?;
        let output = mem.dst::<i8>(op.output, op.window.output_len()?)?;
        let weights = mem.weights::<i8>(op.weights, needs.weights)?;
        let records = if pieces & pieces::RECORDS != 0 {
            records(op, padded(inputs(op)), mem)?
        } else {
            known_records(op, mem)?
        };
        let scratch = mem.dst::<i32>(op.scratch, needs.scratch / 4)?;
        // SAFETY: input and output were taken with the window's lengths, weights and scratch with those of `needs`; the records were read as valid ones.
        unsafe {
            convolve(
                op,
                input.as_ptr(),
                weights.as_ptr(),
                records,
                output.as_mut_ptr(),
                scratch.as_mut_ptr(),
                pieces,
            )
        };
        if pieces & pieces::LIMITED != 0 {
            limit(output, op.clamp);
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    const RECORDS: bool = true;

    /// Of more than one pixel: [`super::linear_s8`] takes that.
    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, _) = job.conv2d_s8()?;
        (!op.is_one_pixel()).then_some(op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], records: &mut [Record]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed, records)
    }

    fn varies(op: &Conv2dS8, at: usize) -> bool {
        // RV32 takes two channels of different blocks by the smaller one: what a weight is too large for overflows elsewhere and not there.
        let weights = op.weights as usize..op.weights as usize + Self::needs(op).weights as usize;
        is_code(op, at) || weights.contains(&at)
    }

    fn pieces(op: &Conv2dS8, weights: &[u8]) -> u32 {
        let Some(records) = known_records(op, &Mem::of_weights(weights)) else {
            return u32::MAX;
        };
        let window = &op.window;
        let others = records
            .iter()
            .any(|record| record[2] & (channel_record::GENERAL | CONSTANT) != 0);
        let is = |holds: bool, piece: u32| if holds { piece } else { 0 };
        let mut pieces = is(others, pieces::OTHERS) | is(op.clamp != [i8::MIN, i8::MAX], pieces::LIMITED);
        let (pixels, points) = match pointwise_pixels(window) {
            Some(pixels) => (pixels as usize, true),
            None => (usize::from(window.output[0]) * usize::from(window.output[1]), false),
        };
        // As the loop goes that takes two channels at a time; others do not ask.
        for pair in records.chunks(2) {
            let block = |record: &Record| record[2] & channel_record::BLOCK;
            let same = pair.iter().all(|record| block(record) == block(&pair[0]));
            pieces |= match block(&pair[0]) {
                channel_record::BLOCK3 if same => pieces::BY_3,
                channel_record::BLOCK4 if same => pieces::BY_4,
                channel_record::BLOCK8 if same => pieces::BY_8,
                _ => pieces::BY_2,
            };
        }
        pieces |= is(matches!(pixels % 4, 2 | 3), pieces::SOME) | if points { pieces::POINTS } else { pieces::WINDOWS };
        if !points {
            let nowhere = core::ptr::null();
            let mut patches = Patches::new(window, nowhere, nowhere, 0);
            let mut left = pixels;
            while left > 0 {
                let count = left.min(4);
                pieces |= patches.pieces(count);
                left -= count;
            }
        }
        pieces
    }

    fn bound(op: &Conv2dS8, on: &Machine) -> Option<u64> {
        Some(bound(op, Core::of(on.target)))
    }
}

/// Packs for this kernel: OHWI `weights` and the scalar kernel's `channels` (`[bias, mantissa, shift]`) into `packed`, of [`Kernel::needs`]'s bytes,
/// and `records`, as many as there are output channels. `None` where a length is wrong or this kernel does not compute `op`: more
/// than one group, or neighbouring weights of -128. On failure the destinations hold anything.
pub(super) fn pack(
    op: &Conv2dS8,
    weights: &[i8],
    channels: &[Record],
    packed: &mut [u8],
    records: &mut [Record],
) -> Option<()> {
    let inputs = inputs(op) as usize;
    let count = usize::from(op.window.output[2]);
    let lengths = weights.len() == inputs.checked_mul(count)? && channels.len() == count && records.len() == count;
    if op.groups != 1 || !lengths || packed.len() != S8::needs(op).weights as usize {
        return None;
    }
    let bits = pack::bits(op, weights, channels);
    let kind = |row: &[i8], channel: Record| {
        let record = pack::channel(op, row.iter().copied(), channel, bits);
        match record[2] & CONSTANT {
            0 => pack::block(inputs, core::iter::once(row.iter().copied())).map(|block| (record, block)),
            _ => Some((record, CONSTANT)),
        }
    };
    let mut places = packed.chunks_exact_mut(padded(inputs as u32) as usize).zip(records);
    for wanted in [BLOCK2, BLOCK3, BLOCK4, BLOCK8, CONSTANT] {
        for (c, (row, &channel)) in weights.chunks_exact(inputs).zip(channels).enumerate() {
            let (record, found) = kind(row, channel)?;
            if found != wanted {
                continue;
            }
            let (bytes, place) = places.next()?;
            // Loops that take two channels at a time go past a constant one's row with the other's.
            let row = if found == CONSTANT { &[][..] } else { row };
            let padding = core::iter::repeat(0);
            for (byte, w) in bytes.iter_mut().zip(row.iter().map(|&w| w as u8).chain(padding)) {
                *byte = w;
            }
            let [bias, multiplier, code] = record;
            *place = [bias, multiplier, code | (found & BLOCK) | (c as i32) << 16];
        }
    }
    Some(())
}

/// The fewest instructions of the step: its MACs in blocks of 4, and the least requantising of every output. Constant channels have no MACs, larger
/// blocks cost less: a model that has many of them can stay below it.
fn bound(op: &Conv2dS8, core: Core) -> u64 {
    let outputs = op.window.output_len().map_or(0, u64::from);
    outputs * u64::from(inputs(op)) * core.rows() / 16 + outputs * core.requantize()
}

/// The records of a step as load wants them: [`records`], with every bit as a packer writes it.
pub(super) fn packed_records<'a>(op: &Conv2dS8, inputs: u32, mem: &Mem<'a>) -> Option<&'a [Record]> {
    let window = channel_record::window(op);
    let packed = |record: &Record| channel_record::is_packed(record, window, op.output_zero_point);
    let same = |records: &[Record]| {
        let bits = channel_record::bits_of(op, records);
        records.iter().all(|record| channel_record::has_bits(record, bits))
    };
    records(op, inputs, mem).filter(|records| records.iter().all(packed) && same(records))
}

/// The most runs of rows in the order of their channels: those of each block, and the constant ones.
const RUNS: usize = 5;

/// Whether each channel's output is written, and once. [`pack`] keeps the order of the channels among the rows of a block, so the records are a few ascending
/// runs: every channel in turn is the next one of some run.
#[inline(never)]
fn name_each_channel_once(records: &[Record]) -> bool {
    let place = |record: &Record| record[2] as u32 >> 16;
    let mut runs: [&[Record]; RUNS] = [&[]; RUNS];
    let mut rest = records;
    for run in &mut runs {
        let following = rest.iter().zip(rest.iter().skip(1));
        let ascending = following.take_while(|(one, next)| place(one) < place(next)).count();
        let len = rest.len().min(ascending + 1);
        (*run, rest) = rest.split_at_checked(len).unwrap_or_default();
    }
    let next_in = |run: &mut &[Record], channel| match run.split_first() {
        Some((first, others)) if place(first) == channel => {
            *run = others;
            true
        }
        _ => false,
    };
    rest.is_empty()
        && (0..)
            .zip(records)
            .all(|(channel, _)| runs.iter_mut().any(|run| next_in(run, channel)))
}

/// Whether byte `at` of the weights is of a record's code: cores that put two products in one word take different runs of inputs where the block in it is
/// too long.
pub(super) fn is_code(op: &Conv2dS8, at: usize) -> bool {
    at.checked_sub(op.channels as usize).is_some_and(|at| at % 12 >= 8)
}

/// The bytes of a row's last word that lie beyond `row` bytes.
pub(super) const fn beyond(row: u32) -> u32 {
    match row % 4 {
        0 => 0,
        used => u32::MAX << (8 * used),
    }
}

/// The records of a step, checked for what memory safety rests on.
pub(super) fn records<'a>(op: &Conv2dS8, inputs: u32, mem: &Mem<'a>) -> Option<&'a [Record]> {
    let (records, count) = (known_records(op, mem)?, u32::from(op.window.output[2]));
    let divisors = channel_record::divisors(inputs as usize);
    let valid = |record: &Record| channel_record::is_valid(record, divisors, count);
    records.iter().all(valid).then_some(records)
}

/// The records of a step that load has checked.
fn known_records<'a>(op: &Conv2dS8, mem: &Mem<'a>) -> Option<&'a [Record]> {
    let count = u32::from(op.window.output[2]);
    Some(
        mem.weights::<i32>(op.channels, count.checked_mul(3)?)?
            .as_chunks::<3>()
            .0,
    )
}

/// The loops saturate at the type's limits; an activation with others is applied afterwards.
pub(super) fn limit(output: Dst<'_, i8>, [low, high]: [i8; 2]) {
    if [low, high] != [i8::MIN, i8::MAX] {
        output.cells().iter().for_each(|y| y.set(y.get().max(low).min(high)));
    }
}

/// Inputs of one window.
fn inputs(op: &Conv2dS8) -> u32 {
    let [rows, columns] = op.window.kernel.map(u32::from);
    rows.saturating_mul(columns)
        .saturating_mul(u32::from(op.window.input[2]))
}

/// The pixels of all images, where an output pixel needs its own input pixel alone.
pub(super) fn pointwise_pixels(window: &Window2d) -> Option<u32> {
    let unpadded = window.input[..2] == window.output[..2] && window.padding == [0, 0];
    (window.kernel == [1, 1] && window.stride == [1, 1] && unpadded)
        .then(|| u32::from(window.batch) * u32::from(window.input[0]) * u32::from(window.input[1]))
}

/// # Safety
/// The operands have the lengths of the window and of [`S8::needs`]; the records are valid.
#[inline(always)]
unsafe fn convolve(
    op: &Conv2dS8,
    input: *const i8,
    weights: *const i8,
    records: &[Record],
    output: *mut i8,
    scratch: *mut i32,
    pieces: u32,
) {
    let window = &op.window;
    let inputs = inputs(op) as usize;
    let padded = padded(inputs as u32) as usize;
    let [height, width, channels] = window.input.map(usize::from);
    let [out_height, out_width, out_channels] = window.output.map(usize::from);
    let rounding = Rounding::new(op.output_zero_point, channel_record::bits_of(op, records));
    // SAFETY: `needs` counts `2 * padded` words of scratch and a pixel of `channels` bytes behind them.
    let border = unsafe {
        (2 * inputs..2 * padded).for_each(|i| scratch.add(i).write(0));
        let border = scratch.add(2 * padded).cast::<i8>();
        (0..channels).for_each(|i| border.add(i).write(op.input_zero_point));
        border
    };
    let operands = (scratch.cast_const(), weights);
    let mut rows = Rows::new(operands, padded, records, out_channels, op.output_zero_point, rounding);
    let mut out = output;
    if pieces & pieces::POINTS != 0
        && let Some(pixels) = pointwise_pixels(window)
    {
        let (mut x, mut left) = (input, pixels as usize);
        while left > 0 {
            let count = left.min(4);
            let at = |i: usize| x.wrapping_add(if count == 4 { i } else { i.min(count - 1) } * channels);
            // SAFETY: `count` of the `left` pixels are read, the last of them again for missing ones, and as many are written at `out`.
            unsafe {
                unpack([at(0), at(1), at(2), at(3)], UnpackLines::one(channels), scratch);
                rows.multiply(out, count, pieces);
            }
            x = x.wrapping_add(4 * channels);
            out = out.wrapping_add(count * out_channels);
            left -= count;
        }
        return;
    }
    if pieces & pieces::WINDOWS == 0 {
        return;
    }
    let mut image = input;
    for _ in 0..window.batch {
        let mut patches = Patches::new(window, image, border, op.input_zero_point);
        let mut left = out_height * out_width;
        while left > 0 {
            let count = left.min(4);
            // SAFETY: `count` of the `left` windows are unpacked, the last of them again for missing ones, into scratch; as many pixels are written at `out`.
            unsafe {
                patches.unpack(count, scratch, pieces);
                rows.multiply(out, count, pieces);
            }
            out = out.wrapping_add(count * out_channels);
            left -= count;
        }
        image = image.wrapping_add(height * width * channels);
    }
}
