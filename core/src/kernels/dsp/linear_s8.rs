//! int8 fully connected layers on the DSP extension that `conv2d_s8_paired.rs` serves badly: of many channels that are requantised alike, whose records would
//! make the file larger, and of many inputs, which it would widen all at once.
//!
//! The weights of two channels are in one number, as there, and one row of activations is multiplied at a time: 14 instructions for 16 MACs.
//!
//! **Alike** ([`Form::Positive`], [`Form::Signed`]), of at most `WIDENED` inputs: the activations are widened whole. The stream: one record
//! (`channel_record.rs`); the biases of every two channels, `b0` and `256 b1 + b0`; for every two channels a word for each pair of activations, as that kernel
//! has them. Exact while the sums of second channels fit 24 bits.
//!
//! **By tiles** ([`Form::General`]), of more inputs: `TILE` pairs of activations are widened at a time, multiplied with the weights of all channels, and
//! added to sums in scratch. No tile's sums leave 24 bits. The stream: a record for each channel, an odd last one's twice; the biases; and for each tile, for
//! every two channels, its words.

use super::channel::Channel;
use super::channel_record::WORDS;
use super::conv2d_s8::Plain;
use super::conv2d_s8_paired::{half, sums_fit};
use super::im2col_s16::widen;
use super::linear_s8_loops::{LinearS8Args, multiply};
use super::requantize::{PAIRS_SHIFT, Short};
use super::windows::{Layout, staged_stride};
use super::{channel_record, conv2d_s8};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::blocks::blocks;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;
use crate::ops::packed_conv2d::{Form, PackedConv2dS8};
use crate::ops::window::Window2d;

/// Inputs that are widened at once, at most.
const WIDENED: u32 = 1024;

/// Pairs of activations of a tile: 512 bytes.
const TILE: u32 = 128;

/// Bytes of a stream that its records have to save: what this kernel adds to a program.
#[cfg(any(test, packing))]
const LEAST_SAVED: u32 = 1024;

/// Pieces of the code: rows that are widened whole, and by tiles.
const WHOLE: u32 = 1;
const TILES: u32 = 2;

/// int8, one pixel.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = PackedConv2dS8;

    fn supports(op: &PackedConv2dS8) -> bool {
        let window = &op.window;
        let form = match op.form {
            Form::Positive | Form::Signed => !by_tiles(window),
            Form::General => by_tiles(window),
            Form::Folded => false,
        };
        form && is_one_pixel(window)
    }

    fn needs(op: &PackedConv2dS8) -> Needs {
        let Sizes { records, pairs, words } = Sizes::of(&op.window);
        let weights = u64::from(records) + u64::from(pairs) * (2 + u64::from(words));
        let beside = if by_tiles(&op.window) {
            pairs * 8
        } else {
            staged_stride(op.window.output[2].into()).next_multiple_of(4)
        };
        Needs {
            scratch: widened(&op.window) * 4 + beside,
            weights: u32::try_from(weights * 4).unwrap_or(u32::MAX),
        }
    }

    fn distance(op: &PackedConv2dS8, index: usize) -> Option<i64> {
        // A pixel is read before its outputs are written; before the last one, all others are.
        let grows = i64::from(op.window.output[2]) - i64::from(op.window.input[2]);
        (index == 1).then(|| ((i64::from(op.window.batch) - 1) * grows).max(0))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &PackedConv2dS8, weights: &[u8]) -> bool {
        is_packed(op, weights) == Some(true)
    }

    fn run(op: &PackedConv2dS8, mem: &Mem<'_>) -> Option<()> {
        Self::run_pieces(op, mem, u32::MAX)
    }

    const PIECES: bool = true;

    #[inline(always)]
    fn run_pieces(op: &PackedConv2dS8, mem: &Mem<'_>, pieces: u32) -> Option<()> {
        let needs = Self::needs(op);
        let input = mem.src::<i8>(op.input, op.window.input_len()?)?;
        let output = mem.dst::<i8>(op.output, op.window.output_len()?)?;
        let weights = mem.weights::<u32>(op.weights, needs.weights / 4)?;
        let scratch = mem.dst::<u32>(op.scratch, needs.scratch / 4)?;
        let [inputs, outputs] = [op.window.input[2], op.window.output[2]].map(usize::from);
        for pixel in 0..usize::from(op.window.batch) {
            let (x, y) = (
                input.slice(pixel * inputs, inputs)?,
                output.slice(pixel * outputs, outputs)?,
            );
            // SAFETY: `x` and `y` were sliced to a pixel of inputs and of outputs; weights and scratch were taken with the lengths of `needs`.
            unsafe {
                if pieces & WHOLE == 0 || pieces & TILES != 0 && by_tiles(&op.window) {
                    tiles(
                        &op.window,
                        x.as_ptr(),
                        y.as_mut_ptr(),
                        weights.as_ptr(),
                        scratch.as_mut_ptr(),
                    );
                } else {
                    whole(op, x.as_ptr(), y.as_mut_ptr(), weights, scratch.as_mut_ptr())?;
                }
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PackedConv2dS8<P>> {
        let (op, plain) = job.conv2d_s8()?;
        Some(PackedConv2dS8::of(&op, form(&op, (plain.weights, plain.channels))?))
    }

    fn pack(job: &Job<'_>, _: &PackedConv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed).map(|_| ())
    }

    fn pieces(op: &PackedConv2dS8, _: &[u8]) -> u32 {
        if by_tiles(&op.window) { TILES } else { WHOLE }
    }

    fn bound(op: &PackedConv2dS8, _: &Machine) -> Option<u64> {
        Some(conv2d_s8::bound(op, [14, 14]))
    }
}

/// Whether a step is worth a kernel that a program may not have otherwise: for the scratch of its tiles, or the bytes of its records.
#[cfg(any(test, packing))]
pub fn pays<P>(op: &PackedConv2dS8<P>) -> bool {
    let records = u32::from(op.window.output[2]) * WORDS as u32 * 4;
    by_tiles(&op.window) || records >= LEAST_SAVED
}

/// Packs `op` for this kernel, as [`super::conv2d_s8::pack`]; for `None` see [`form`].
pub(super) fn pack(op: &Conv2dS8, weights: &[i8], channels: &[[i32; 3]], stream: &mut [u8]) -> Option<PackedConv2dS8> {
    let plain = (weights, channels);
    let packed = PackedConv2dS8::of(op, form(op, plain)?);
    let count = usize::from(op.window.output[2]);
    let Sizes { words, .. } = Sizes::of(&op.window);
    if stream.len() != S8::needs(&packed).weights as usize {
        return None;
    }
    let mut places = stream.chunks_exact_mut(4);
    let mut put = |word: u32| {
        if let Some(place) = places.next() {
            place.copy_from_slice(&word.to_le_bytes());
        }
    };
    let firsts = || (0..count).step_by(2);
    let tile = if by_tiles(&op.window) {
        for c in firsts().flat_map(|first| [first, (first + 1).min(count - 1)]) {
            channel_record::from_general(&channel_of(op, plain, c).requantize)
                .into_iter()
                .for_each(&mut put);
        }
        for [b0, b1] in firsts().map(|first| biases(op, plain, first, 0)) {
            put(b0);
            put(b1);
        }
        TILE
    } else {
        let short = alike(op, plain, packed.form == Form::Signed)?;
        channel_record::from_short(&short).into_iter().for_each(&mut put);
        for [b0, b1] in firsts().map(|first| biases(op, plain, first, short.offset)) {
            put(b0);
            put(b0.wrapping_add(b1 << 8));
        }
        words
    };
    for from in (0..words).step_by(tile as usize) {
        for first in firsts() {
            (from..words.min(from + tile)).for_each(|at| put(word_of(op, plain, first, at).unwrap_or(0)));
        }
    }
    Some(packed)
}

/// The form of `op` for this kernel. `None` where it is no layer for it, where channels are not alike, or where two weights or sums do not fit their halves.
fn form<P>(op: &Conv2dS8<P>, plain: Plain<'_>) -> Option<Form> {
    conv2d_s8::form(op, plain.0, plain.1)?;
    let count = usize::from(op.window.output[2]);
    let Sizes { words, .. } = Sizes::of(&op.window);
    let fit = || {
        (0..count)
            .step_by(2)
            .all(|first| (0..words).all(|at| word_of(op, plain, first, at).is_some()))
    };
    if !is_one_pixel(&op.window) || !fit() {
        return None;
    }
    if by_tiles(&op.window) {
        return Some(Form::General);
    }
    let forms = [(Form::Positive, false), (Form::Signed, true)];
    let sums_fit = |short: &Short| {
        (0..count).step_by(2).all(|first| {
            let [_, bias] = biases(op, plain, first, short.offset);
            let halves = (0..words).filter_map(|at| word_of(op, plain, first, at));
            sums_fit(bias as i32, words as usize, halves)
        })
    };
    forms
        .into_iter()
        .find(|&(_, signed)| alike(op, plain, signed).as_ref().is_some_and(sums_fit))
        .map(|(form, _)| form)
}

/// The short form that all channels share, if they do.
fn alike<P>(op: &Conv2dS8<P>, plain: Plain<'_>, signed: bool) -> Option<Short> {
    let mut all = (0..usize::from(op.window.output[2])).map(|c| channel_of(op, plain, c));
    let mut shared = all.next()?;
    for channel in all {
        if channel.requantize != shared.requantize {
            return None;
        }
        let ((low, high), (lower, higher)) = (shared.range, channel.range);
        shared.range = (low.min(lower), high.max(higher));
    }
    let short = shared.short(PAIRS_SHIFT, 8..=31, signed)?;
    // With `m` 0 every output is one value: the loop does not look at sums, and biases may be too large for them.
    (short.m != 0).then_some(short)
}

fn channel_of<P>(op: &Conv2dS8<P>, plain: Plain<'_>, c: usize) -> Channel {
    let (window, channel) = conv2d_s8::window_of(op, plain, c);
    Channel::new(op, window.iter().copied(), channel)
}

/// The biases of two channels, with `offset`; 0 for one that is not there.
fn biases<P>(op: &Conv2dS8<P>, plain: Plain<'_>, first: usize, offset: i64) -> [u32; 2] {
    [first, first + 1].map(|c| {
        if c < usize::from(op.window.output[2]) {
            (channel_of(op, plain, c).bias + offset) as u32
        } else {
            0
        }
    })
}

/// The word of pair `at` of activations and two channels. `None` where the weights do not fit a half.
fn word_of<P>(op: &Conv2dS8<P>, plain: Plain<'_>, first: usize, at: u32) -> Option<u32> {
    let (a, b) = Layout::of(&op.window).pair(at);
    let windows = [first, first + 1].map(|c| {
        if c < usize::from(op.window.output[2]) {
            conv2d_s8::window_of(op, plain, c).0
        } else {
            &[]
        }
    });
    let low = half(windows, a as usize)?;
    let high = b.map_or(Some(0), |b| half(windows, b as usize))?;
    Some(u32::from(low) | u32::from(high) << 16)
}

/// Whether the stream is as the host writes it in what the loops trust; `None` where it is not there.
fn is_packed(op: &PackedConv2dS8, weights: &[u8]) -> Option<bool> {
    let Sizes { records, words, pairs } = Sizes::of(&op.window);
    let stream = Mem::of_weights(weights).weights::<u32>(op.weights, S8::needs(op).weights / 4)?;
    let (records, stream) = stream.split_at_checked(records as usize)?;
    if !channel_record::are_packed(records.as_chunks().0, op.form) {
        return Some(false);
    }
    if by_tiles(&op.window) {
        return Some(true);
    }
    let (biases, words_of_all) = stream.split_at_checked(2 * pairs as usize)?;
    let &[_, _, k, _] = records.first_chunk()?;
    let mut each = biases
        .as_chunks::<2>()
        .0
        .iter()
        .zip(blocks(words_of_all, words as usize));
    Some(
        k >= 8
            && each.all(|(&[first, second], words)| {
                let bias = second.wrapping_sub(first) as i32;
                bias & 255 == 0 && sums_fit(bias >> 8, words.len(), words.iter().copied())
            }),
    )
}

/// Words of a stream.
struct Sizes {
    /// Of its records.
    records: u32,
    /// Pairs of channels.
    pairs: u32,
    /// Of the weights of two channels.
    words: u32,
}

impl Sizes {
    fn of(window: &Window2d) -> Self {
        let [inputs, outputs] = [window.input[2], window.output[2]].map(u32::from);
        let pairs = outputs.div_ceil(2);
        Self {
            records: if by_tiles(window) { 2 * pairs } else { 1 } * WORDS as u32,
            pairs,
            words: inputs.div_ceil(2),
        }
    }
}

fn is_one_pixel(window: &Window2d) -> bool {
    let pixels = [
        window.kernel,
        [window.input[0], window.input[1]],
        [window.output[0], window.output[1]],
    ];
    pixels == [[1, 1]; 3] && window.padding == [0, 0]
}

fn by_tiles(window: &Window2d) -> bool {
    u32::from(window.input[2]) > WIDENED
}

/// Words of widened activations.
fn widened(window: &Window2d) -> u32 {
    if by_tiles(window) {
        TILE
    } else {
        Sizes::of(window).words
    }
}

/// A row of activations that is widened whole.
///
/// # Safety
/// `x` and `y` are valid for the layer's inputs and outputs; `stream` and `scratch` have what it needs, and `scratch` overlaps neither of them.
unsafe fn whole(op: &PackedConv2dS8, x: *const i8, y: *mut i8, stream: &[u32], scratch: *mut u32) -> Option<()> {
    let Sizes { pairs, words, .. } = Sizes::of(&op.window);
    let [inputs, outputs] = [op.window.input[2], op.window.output[2]].map(usize::from);
    let (&[m, c, k, d], stream) = stream.split_first_chunk()?;
    let record = [m, c, k, k.wrapping_sub(8), d];
    let stage = scratch.wrapping_add(words as usize).cast::<i8>();
    let out = if outputs % 2 == 1 { stage } else { y };
    // SAFETY: `x`, `y`, `stream` and `scratch` are valid for the layer (fn docs); an odd number of outputs and one more lie in the stage (`needs`).
    unsafe {
        widen(x, scratch, inputs);
        multiply(&LinearS8Args {
            out: out.cast(),
            out_end: out.add(2 * pairs as usize).cast(),
            x: scratch,
            weights: stream.as_ptr().add(2 * pairs as usize),
            from: stream.as_ptr(),
            words: words as usize,
            record: record.as_ptr(),
            form: op.form as usize,
        });
        if outputs % 2 == 1 {
            super::staged_output::copy(stage, y, outputs);
        }
    }
    Some(())
}

/// A row of activations by tiles.
///
/// # Safety
/// As for [`whole`]; `stream` is what the layer needs.
unsafe fn tiles(window: &Window2d, x: *const i8, y: *mut i8, stream: *const u32, scratch: *mut u32) {
    let Sizes { records, pairs, words } = Sizes::of(window);
    let [inputs, outputs] = [window.input[2], window.output[2]].map(usize::from);
    let (tile, pairs) = (TILE as usize, pairs as usize);
    // SAFETY: `x`, `y` and `scratch` are valid for the layer (docs of `whole`); `stream` has records, biases and weights in this order (fn docs).
    unsafe {
        let sums = scratch.add(tile);
        let biases = stream.add(records as usize);
        let mut weights = biases.add(2 * pairs);
        for at in 0..2 * pairs {
            *sums.add(at) = *biases.add(at);
        }
        let mut left = inputs;
        while left > 0 {
            let some = left.min(2 * tile);
            let words = some.div_ceil(2);
            widen(x.add(inputs - left), scratch, some);
            multiply(&LinearS8Args {
                out: core::ptr::null_mut(),
                out_end: sums.add(2 * pairs).cast(),
                x: scratch,
                weights,
                from: sums,
                words,
                record: core::ptr::null(),
                form: 0,
            });
            weights = weights.add(words * pairs);
            left -= some;
        }
        debug_assert_eq!(weights, biases.add((2 + words as usize) * pairs));
        for channel in 0..outputs {
            *y.add(channel) = channel_record::general(stream.add(WORDS * channel), *sums.add(channel) as i32);
        }
    }
}
