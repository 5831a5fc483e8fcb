//! int8 fully connected layers, and pointwise convolutions of few pixels: pixel by pixel, four output channels at a time; the input is read in place, byte by
//! byte.
//!
//! **Weights**: for every four output channels (the last ones filled up with zeros) and every input two words, `w0 + (w1 << 16)` and
//! `w2 + (w3 << 16)`, which take twice the flash and nothing to unpack, or the four bytes from which the loops make them (`dense_layout`);
//! inputs are filled up to a multiple of 4. **Channels**: [records](Record) in order; the four of a group name the same block, of up to 32
//! inputs (`dense_sums`).

use core::marker::PhantomData;

use super::channel_record::{BLOCK, BLOCK2, BLOCK4, BLOCK8, CONSTANT, GENERAL, Record, SINGLE, padded};
use super::conv2d_s8::{limit, pointwise_pixels};
use super::linear_s8_dot::{DOUBLED_AT, divisors, number};
#[cfg(kernel_isa = "strict_align")]
use super::linear_s8_groups::LinearGroupsArgs;
#[cfg(kernel_isa = "armv6m")]
use super::linear_s8_groups::armv6m::fours;
#[cfg(kernel_isa = "rv32im")]
use super::linear_s8_groups::rv32im::fours;
use super::linear_s8_layout::{Bytes, Halves, Layout};
use super::linear_s8_single_loop::SingleLoopArgs;
use super::requantize_4_channels_s8::four;
use super::{Core, channel_record, linear_s8_dot, pack, requantize};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::blocks::blocks;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Job as Wanted;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;

/// int8, 1 x 1 windows: weights of 16 bits.
pub type S8 = Dense<Halves>;

/// Weights of 8 bits.
pub type Narrow = Dense<Bytes>;

/// In either layout of weights.
#[derive(Debug)]
pub struct Dense<L>(PhantomData<L>);

impl<L: Layout> Kernel for Dense<L> {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        op.groups == 1 && pointwise_pixels(&op.window).is_some()
    }

    fn needs(op: &Conv2dS8) -> Needs {
        let [_, _, inputs] = op.window.input.map(u32::from);
        let groups = u32::from(op.window.output[2]).div_ceil(4);
        Needs {
            scratch: if inputs.is_multiple_of(4) { 0 } else { padded(inputs) },
            weights: padded(inputs).saturating_mul(4 * L::WORDS).saturating_mul(groups),
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
            records(op, &mem),
            mem.weights::<i32>(op.weights, Self::needs(op).weights / 4),
        ) else {
            return false;
        };
        let (divisors, per_input) = (divisors(words as usize) & L::BLOCKS, L::WORDS as usize);
        let block = |record: &Record| record[2] & (BLOCK | -1 << DOUBLED_AT);
        let is_packed =
            |record: &Record| record[2] & SINGLE == 0 && channel_record::is_packed(record, words, op.output_zero_point);
        let mut groups = blocks(weights, words as usize * per_input).zip(records.chunks(4));
        groups.all(|(weights, records)| {
            // The four channels of a group share a block.
            let first = records.first().map_or(0, block);
            let number = number(first);
            let filling = weights.get(per_input * inputs..).unwrap_or(&[]);
            linear_s8_dot::is_packed(first)
                && divisors >> number & 1 == 1
                && records.iter().all(|record| block(record) == first && is_packed(record))
                && L::are_zero(filling, number, 0)
                && (records.len() == 4 || L::are_zero(weights, number, records.len()))
        })
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        Self::run_pieces(op, mem, u32::MAX)
    }

    const PIECES: bool = true;

    #[inline(always)]
    fn run_pieces(op: &Conv2dS8, mem: &Mem<'_>, pieces: u32) -> Option<()> {
        let needs = Self::needs(op);
        let pixels = pointwise_pixels(&op.window)? as usize;
        let input = mem.src::<i8>(op.input, op.window.input_len()?)?;
        let output = mem.dst::<i8>(op.output, op.window.output_len()?)?;
        let weights = mem.weights::<i32>(op.weights, needs.weights / 4)?;
        let [_, _, inputs] = op.window.input.map(usize::from);
        let records = records(op, mem)?;
        let scratch = mem.dst::<i8>(op.scratch, needs.scratch)?;
        let words = padded(inputs as u32) as usize;
        for pixel in 0..pixels {
            let mut x = input.slice(pixel * inputs, inputs)?;
            if pieces == u32::MAX && needs.scratch > 0 {
                scratch.cells().iter().zip(x.iter()).for_each(|(cell, x)| cell.set(x));
                x = scratch.as_src();
            } else if pieces & FILLED != 0 && needs.scratch > 0 {
                for (cell, x) in scratch.cells().iter().zip(x.iter()) {
                    cell.set(x);
                    // Nothing, but the compiler makes a `memmove` of no loop that holds it: 1.5 KB that a small program needs for nothing else.
                    core::hint::black_box(());
                }
                x = scratch.as_src();
            }
            let y = output.slice(pixel * records.len(), records.len())?;
            if pieces & MANY == 0 {
                let weights = (weights.as_ptr(), x.as_ptr(), words);
                let outputs = (records.as_ptr(), y.as_mut_ptr(), records.len());
                let twice = requantize::twice(op.output_zero_point);
                let mut args = SingleLoopArgs::new(weights, least_block(pieces), outputs, twice);
                // SAFETY: as below. All records are short, and all of a block's sums fit: `pieces`.
                unsafe { L::single_loop(&mut args) };
                continue;
            }
            // SAFETY: the words and a byte for each of `words` inputs, as often as there are four channels or what is left of them: `needs`. Padding in scratch
            // meets weights of zero.
            unsafe {
                outputs::<L>(
                    op,
                    words,
                    x.as_ptr(),
                    weights.as_ptr(),
                    records,
                    (y.as_mut_ptr(), pieces),
                )
            }?;
        }
        if pieces & LIMITED != 0 {
            limit(output, op.clamp);
        }
        Some(())
    }
}

/// Pieces of the code, behind a bit for each [number](linear_s8_dot::number) of a block: inputs that are filled up, channels of other forms than the short,
/// outputs that are limited, groups of fewer than four channels, loops that are unrolled.
const FILLED: u32 = 1 << 8;
const OTHERS: u32 = 1 << 9;
const LIMITED: u32 = 1 << 10;
const FEWER: u32 = 1 << 11;
const MANY: u32 = 1 << 12;

/// Blocks of 2, 4, 8, 16 and 32 inputs, from this bit on: those whose sums fit 16 bits, the largest of each group of four channels.
const BLOCKS_AT: u32 = 13;

/// Products and 16 for each output up to which the [single loop](super::linear_s8_single_loop) takes no more than a compiled step saves beside a loaded one.
#[cfg(any(test, packing))]
const SINGLE_LOOP: u64 = 600;

/// The least block that the pieces have, which fits where a larger one does.
#[inline(always)]
fn least_block(pieces: u32) -> usize {
    2 << (pieces >> BLOCKS_AT).trailing_zeros().min(4)
}

/// A block's number; of those that the pieces have, where they are known. By arms, so that the compiler leaves out the loops of all others.
#[inline(always)]
fn chosen(number: u32, pieces: u32) -> u32 {
    let has = |number: u32| pieces >> number & 1 == 1;
    match number {
        0 if has(0) => 0,
        1 if has(1) => 1,
        2 if has(2) => 2,
        3 if has(3) => 3,
        4 if has(4) => 4,
        5 if has(5) => 5,
        _ if pieces == u32::MAX => number,
        _ => pieces.trailing_zeros(),
    }
}

/// The pieces that a step takes.
#[cfg(any(test, packing))]
fn pieces<L: Layout>(op: &Conv2dS8, weights: &[u8]) -> u32 {
    let mem = Mem::of_weights(weights);
    let Some(records) = records(op, &mem) else {
        return u32::MAX;
    };
    let numbers = records.iter().fold(0, |bits, record| bits | 1 << number(record[2]));
    let mut others = records.iter().map(|record| record[2]);
    let others = others.any(|code| code & (SINGLE | GENERAL | CONSTANT) != 0);
    let outputs = op.window.output_len().map_or(0, u64::from);
    let is_small = outputs * u64::from(padded(op.window.input[2].into()) + 16) <= SINGLE_LOOP;
    let blocks = if is_small && !others {
        blocks_of::<L>(op, weights, records)
    } else {
        None
    };
    let is = |holds: bool, piece: u32| if holds { piece } else { 0 };
    numbers
        | is(Dense::<L>::needs(op).scratch > 0, FILLED)
        | is(others, OTHERS)
        | is(records.len() % 4 != 0, FEWER)
        | is(op.clamp != [i8::MIN, i8::MAX], LIMITED)
        | blocks.map_or(MANY, |blocks| blocks << BLOCKS_AT)
}

/// The largest blocks of the groups, as [`BLOCKS_AT`] has them; `None` where a group has none.
#[cfg(any(test, packing))]
fn blocks_of<L: Layout>(op: &Conv2dS8, weights: &[u8], records: &[Record]) -> Option<u32> {
    let words = padded(op.window.input[2].into()) as usize;
    let weights = Mem::of_weights(weights).weights::<i32>(op.weights, Dense::<L>::needs(op).weights / 4)?;
    let mut groups = blocks(weights, words * L::WORDS as usize).zip(records.chunks(4));
    groups.try_fold(0, |found, (weights, records)| {
        let number = number(records.first()?[2]);
        let fits = |power: &u32| {
            let fits = |channel| pack::blocks_fit(L::channel(weights, number, channel), 2 << power);
            words.is_multiple_of(2 << power) && (0..4).all(fits)
        };
        Some(found | 1 << (0..5).rev().find(fits)?)
    })
}

#[cfg(any(test, packing))]
impl<L: Layout> Candidate for Dense<L> {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    const RECORDS: bool = true;

    fn step<P: Place>(job: &Wanted<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, _) = job.conv2d_s8()?;
        op.is_one_pixel().then_some(op)
    }

    fn pack(job: &Wanted<'_>, _: &Conv2dS8, packed: &mut [u8], records: &mut [Record]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack::<L>(&op, plain.weights, plain.channels, packed, records)
    }

    fn pieces(op: &Conv2dS8, weights: &[u8]) -> u32 {
        pieces::<L>(op, weights)
    }

    fn varies(op: &Conv2dS8, at: usize) -> bool {
        super::conv2d_s8::is_code(op, at)
    }

    fn bound(op: &Conv2dS8, on: &Machine) -> Option<u64> {
        Some(bound(op, Core::of(on.target)))
    }
}

/// Packs for this kernel; as [`super::conv2d_s8::pack`], with this layout. `None` also where the window is not 1 x 1 at stride 1 without padding.
pub(super) fn pack<L: Layout>(
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
    if !fits || !lengths || packed.len() != Dense::<L>::needs(op).weights as usize {
        return None;
    }
    let groups = weights
        .chunks(inputs * 4)
        .zip(channels.chunks(4))
        .zip(packed_records.chunks_mut(4));
    let per_input = 4 * L::WORDS as usize;
    for (((rows, channels), records), out) in
        groups.zip(packed.chunks_exact_mut(padded(inputs as u32) as usize * per_input))
    {
        let block = largest::<L>(inputs, rows)?;
        for ((row, &channel), place) in rows.chunks_exact(inputs).zip(channels).zip(records) {
            let [bias, multiplier, code] = pack::channel(op, row.iter().copied(), channel, 0);
            *place = [bias, multiplier, code | block];
        }
        for (i, words) in out.chunks_exact_mut(per_input).enumerate() {
            let of = |channel: usize| {
                let row = rows.get(channel * inputs..).and_then(|row| row.get(..inputs));
                row.and_then(|row| row.get(i)).copied().unwrap_or(0)
            };
            L::put([0, 1, 2, 3].map(of), number(block), words);
        }
    }
    Some(())
}

/// The code of the largest block whose products with any int8 fit 16 bits in all of four rows; `None` where not even two do.
fn largest<L: Layout>(inputs: usize, rows: &[i8]) -> Option<i32> {
    // Half a group has half the products without blocks.
    let halved = rows.len() <= 2 * inputs;
    let fits = |block: usize| {
        let mut rows = rows.chunks_exact(inputs);
        (padded(inputs as u32) as usize).is_multiple_of(block)
            && rows.all(|row| pack::blocks_fit(row.iter().copied(), block))
    };
    let doubled = |times: i32| BLOCK8 | times << DOUBLED_AT;
    let codes = [
        (32, doubled(2)),
        (16, doubled(1)),
        (8, BLOCK8),
        (4, BLOCK4),
        (2, BLOCK2),
    ];
    let has = |code: i32| L::BLOCKS >> number(code) & 1 == 1;
    codes
        .into_iter()
        .find(|&(block, code)| match L::PLAIN {
            Some(plain) if halved || plain == number(code) => plain == number(code),
            _ => has(code) && fits(block),
        })
        .map(|(_, code)| code)
}

/// As [`super::conv2d_s8::bound`].
fn bound(op: &Conv2dS8, core: Core) -> u64 {
    let outputs = op.window.output_len().map_or(0, u64::from);
    outputs * u64::from(op.window.input[2]) * core.rows() / 16 + outputs * core.requantize()
}

/// The records of a step.
fn records<'a>(op: &Conv2dS8, mem: &Mem<'a>) -> Option<&'a [Record]> {
    let count = u32::from(op.window.output[2]);
    let (records, _) = mem.weights::<i32>(op.channels, count.checked_mul(3)?)?.as_chunks::<3>();
    Some(records)
}

/// The outputs of one pixel, four channels at a time; `None` at a block that does not divide the inputs.
///
/// # Safety
/// `x` has `words` bytes, `weights` the layout's words for each of them and every four of the records; `y` takes as many outputs as there are records.
// A function by itself: in one with all kernels the loop would have no registers.
#[inline(never)]
unsafe fn outputs<L: Layout>(
    op: &Conv2dS8,
    words: usize,
    x: *const i8,
    weights: *const i32,
    records: &[Record],
    (y, pieces): (*mut i8, u32),
) -> Option<()> {
    let divisors = divisors(words) & L::BLOCKS;
    let divides = |number: u32| number < u32::BITS && divisors >> number & 1 == 1;
    let twice = requantize::twice(op.output_zero_point);
    let (mut weights, mut record, mut y, mut left) = (weights, records.as_ptr(), y, records.len());
    let mut found = [0; 4];
    while left > 0 {
        // SAFETY: `left > 0` records and outputs remain, and the layout's words of their group of four, padded (fn docs). The loops take the block of the
        // group's first record, which divides the inputs. Pointers, since the checks of slices take as long as an output.
        unsafe {
            let number = chosen(number((*record)[2]), pieces);
            if !divides(number) {
                return None;
            }
            #[cfg(kernel_isa = "strict_align")]
            // The record behind the loop's first group must fit the loop as well, or entering it takes longer than it saves.
            if L::WORDS == 2 && left >= 8 && LinearGroupsArgs::takes([(*record)[2], (*record.add(4))[2]], number) {
                let mut groups = LinearGroupsArgs::new((weights, x, words), (record, y, left / 4), twice, number);
                fours(&mut groups);
                // None where another record of the first group is not for it.
                if groups.records != record {
                    left -= groups.y.offset_from(y) as usize;
                    (weights, record, y) = (groups.words, groups.records, groups.y);
                    continue;
                }
            }
            L::sums(weights, x, words, (number, left), &mut found);
            if pieces & (OTHERS | FEWER) == 0 {
                four(found.as_ptr(), record, y, twice);
            } else if left < 4 {
                some(op, record, &found, y, left);
                break;
            }
            let [a, b, c, d] = &*record.cast::<[Record; 4]>();
            if (a[2] | b[2] | c[2] | d[2]) & (SINGLE | GENERAL | CONSTANT) == 0 {
                four(found.as_ptr(), record, y, twice);
            } else {
                some(op, record, &found, y, 4);
            }
        }
        weights = weights.wrapping_add(L::WORDS as usize * words);
        record = record.wrapping_add(4);
        y = y.wrapping_add(4);
        left -= 4;
    }
    Some(())
}

/// As many outputs of the four, of any forms.
///
/// # Safety
/// `count` records are readable at `record`, and `count` outputs writable at `y`.
#[inline(never)]
unsafe fn some(op: &Conv2dS8, record: *const Record, sums: &[i32; 4], y: *mut i8, count: usize) {
    for (i, &sum) in sums.iter().enumerate().take(count) {
        // SAFETY: `i < count`, the records at `record` and the outputs at `y` (fn docs).
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
    requantize::any(sum, record, op.output_zero_point, op.clamp)
}
