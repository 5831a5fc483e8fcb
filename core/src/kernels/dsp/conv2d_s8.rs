//! int8 convolution and fully connected layers on the DSP extension.
//!
//! Four output pixels at a time: their windows are widened to 16 bits side by side in scratch (each activation once a block), then every pair
//! of output channels takes its weights past all of them, two activations of four pixels a step: 8 SMLAD, 2 SXTB16, 1 LDR of weights and
//! 2 LDRD of activations for 16 MACs, 0.81 a MAC. The pixels left at the end of an image, and a fully connected layer, go one at a time:
//! 18 instructions for 16 MACs, 1.13 a MAC.
//!
//! **The stream**, for every pair of output channels (an odd last one is paired with itself): both biases, zero-point correction folded in;
//! one word for each pair of activations (a, b) of the window: `w0[a] w1[a] w0[b] w1[b]`; two records (`channel_record.rs`).
//!
//! **Pairs.** A window is a list of runs of contiguous bytes: whole kernel rows, or single taps where columns are dilated. SXTB16 widens bytes 0
//! and 2, then 1 and 3, of a word, so the whole words of the runs come first, each giving the pairs (0, 2) and (1, 3); then the bytes that are
//! left over at the runs' ends, in order, two by two, the last one perhaps with nothing.

use core::mem::MaybeUninit;

use super::channel::Channel;
use super::channel_record;
use super::conv2d_s8_loops::{ConvBlockArgs, Loops, Separate};
use super::conv2d_s8_pieces as pieces;
use super::im2col_s16::{runs_of, widen_columns, widen_known_columns, widen_pixel, widen_runs};
use super::im2col_s16_loops::{Im2col4Args, widen_4};
use super::requantize::SHIFT;
#[cfg(feature = "rolling")]
use super::rows::Apart;
use super::rows::{Rows, Whole};
use super::staged_output;
pub use super::windows::pixels_alone;
use super::windows::{Geometry, Layout, pointwise_pixels};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(feature = "rolling")]
use crate::arena::Slot;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
#[cfg(feature = "rolling")]
use crate::kernels::api::turn::Rolls;
use crate::kernels::isa::dsp::sxtb16;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;
use crate::ops::packed_conv2d::{Form, PackedConv2dS8};

/// int8, one group.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = PackedConv2dS8;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Rows;

    // A function by itself, so that a load takes no stack for what it has of windows.
    #[inline(never)]
    fn needs(op: &PackedConv2dS8) -> Needs {
        needs(&Geometry::of(op), op.form)
    }

    fn distance(op: &PackedConv2dS8, index: usize) -> Option<i64> {
        // A block reads all of its windows before it writes.
        (index == 1).then(|| match pointwise_pixels(&op.window).map(i64::from) {
            None => op.window.consumed_distance(1, 0),
            Some(pixels) => {
                // Before the block at pixel p, p pixels are written and p read.
                let grows = i64::from(op.window.output[2]) - i64::from(op.window.input[2]);
                let last = if pixels % 4 == 0 { pixels - 4 } else { pixels - 1 };
                (last * grows).max(0)
            }
        })
    }

    const TRUSTS: bool = true;

    fn trusts(op: &PackedConv2dS8, weights: &[u8]) -> bool {
        packed(op, weights).is_some()
    }

    fn run(op: &PackedConv2dS8, mem: &Mem<'_>) -> Option<()> {
        run::<Separate>(op, mem, |g| needs(g, op.form), 0, u32::MAX)
    }

    const PIECES: bool = true;

    #[inline(always)]
    fn run_pieces(op: &PackedConv2dS8, mem: &Mem<'_>, pieces: u32) -> Option<()> {
        run_pieces::<Separate>(op, mem, pieces)
    }
}

/// The stream, and the words that it has for two channels; `None` where the host has not written it.
pub(super) fn packed<'m>(op: &PackedConv2dS8, weights: &'m [u8]) -> Option<(&'m [u32], usize)> {
    let layout = Layout::of(&op.window);
    let stream = Mem::of_weights(weights).weights::<u32>(op.weights, S8::needs(op).weights / 4)?;
    // A last activation without a second one: what scratch holds in its place is anything.
    let missing = if (layout.runs * layout.tail()) % 2 == 1 {
        0xffff_0000
    } else {
        0
    };
    let words = stream_words(layout.pairs()) as usize;
    channel_record::pairs_are_packed(stream, words, missing, op.form).then_some((stream, words))
}

/// Scratch and weights of a step of such windows, in bytes.
#[inline(always)]
pub(super) fn needs(g: &Geometry, form: Form) -> Needs {
    let [_, _, channels] = g.output;
    // A form that this kernel has no sequence for asks for more than any file has.
    let stream = match form {
        Form::Folded => None,
        _ => stream_words(g.pairs as u32).checked_mul(channels.div_ceil(2) as u32),
    };
    Needs {
        scratch: (g.pairs as u32 * 4 * g.lanes() as u32).saturating_add(g.staged() as u32 * 4),
        weights: stream.and_then(|words| words.checked_mul(4)).unwrap_or(u32::MAX),
    }
}

/// Words of the stream for two channels.
fn stream_words(pairs: u32) -> u32 {
    2 + pairs + 2 * channel_record::WORDS as u32
}

/// As [`run`], by some pieces of its code.
#[inline(always)]
pub(super) fn run_pieces<L: Loops>(op: &PackedConv2dS8, mem: &Mem<'_>, pieces: u32) -> Option<()> {
    if pieces::are_points(pieces) {
        let pairs = u32::from(op.window.input[2]).div_ceil(2);
        let stream = 4 * stream_words(pairs) * u32::from(op.window.output[2]).div_ceil(2);
        return pieces::points::<L>(op, mem, stream, 0, pieces & pieces::STAGED != 0);
    }
    run_with::<L>((op, &Geometry::known(op)), mem, |g| needs(g, op.form), 0, pieces)
}

/// The step, in the loops for its stream, `share` weights of which share a factor; `needs`: what its kernel says; `pieces`: what it takes of the code.
#[inline(always)]
pub(super) fn run<L: Loops>(
    op: &PackedConv2dS8,
    mem: &Mem<'_>,
    needs: impl Fn(&Geometry) -> Needs,
    share: u32,
    pieces: u32,
) -> Option<()> {
    #[cfg(feature = "rolling")]
    if op.input.region == Slot::ROLLED && share == 0 && pointwise_pixels(&op.window).is_some() {
        let pairs = u32::from(op.window.input[2]).div_ceil(2);
        let stream = stream_words(pairs).checked_mul(u32::from(op.window.output[2]).div_ceil(2))?;
        return pieces::row_of_points::<L>(op, mem, stream.checked_mul(4)?);
    }
    #[cfg(feature = "rolling")]
    if op.input.region == Slot::ROLLED {
        let mut rows = Apart::none();
        let input = rows.find(mem, op.input, &op.window)?;
        return run_at::<L, _>((op, &Geometry::of(op)), mem, (input, &rows), needs, share, pieces);
    }
    run_with::<L>((op, &Geometry::of(op)), mem, needs, share, pieces)
}

/// As [`run`], of this geometry.
#[inline(always)]
fn run_with<L: Loops>(
    (op, g): (&PackedConv2dS8, &Geometry),
    mem: &Mem<'_>,
    needs: impl Fn(&Geometry) -> Needs,
    share: u32,
    pieces: u32,
) -> Option<()> {
    let input = mem.src::<i8>(op.input, op.window.input_len()?)?.as_ptr();
    run_at::<L, _>((op, g), mem, (input, &Whole), needs, share, pieces)
}

/// As [`run_with`], of an input that is there, whose rows begin where the second one says.
#[inline(always)]
fn run_at<L: Loops, R: Rows>(
    (op, g): (&PackedConv2dS8, &Geometry),
    mem: &Mem<'_>,
    input: (*const i8, &R),
    needs: impl Fn(&Geometry) -> Needs,
    share: u32,
    pieces: u32,
) -> Option<()> {
    let needs = needs(g);
    let output = mem.dst::<i8>(op.output, op.window.output_len()?)?;
    let weights = mem.weights::<u32>(op.weights, needs.weights / 4)?;
    let scratch = mem.dst::<u32>(op.scratch, needs.scratch / 4)?;
    // SAFETY: input and output were taken with the window's lengths, weights and scratch with those of `needs`, which `convolve` asks for.
    unsafe {
        convolve::<L, R>(
            g,
            op.form,
            input,
            weights.as_ptr(),
            output.as_mut_ptr(),
            scratch.as_mut_ptr(),
            (share, pieces),
        )
    };
    Some(())
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    // Whole words of a pixel, and pairs of outputs.
    const CHANNELS: usize = 4;

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PackedConv2dS8<P>> {
        let (op, plain) = job.conv2d_s8()?;
        let form = form(&op, plain.weights, plain.channels)?;
        Some(PackedConv2dS8::of(&op, form))
    }

    fn pack(job: &Job<'_>, _: &PackedConv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed).map(|_| ())
    }

    fn pieces(op: &PackedConv2dS8, _: &[u8]) -> u32 {
        pieces::of(op)
    }

    fn bound(op: &PackedConv2dS8, _: &Machine) -> Option<u64> {
        Some(bound(op, [13, 18]))
    }
}

/// Packs `op` for this kernel: OHWI `weights` and the scalar kernel's `channels` (`[bias, mantissa, shift]`) into `stream`, of
/// `needs(..).weights` bytes. Returns the step; its offsets are still `op`'s. `None` where [`form`] has none.
pub(super) fn pack(op: &Conv2dS8, weights: &[i8], channels: &[[i32; 3]], stream: &mut [u8]) -> Option<PackedConv2dS8> {
    let form = form(op, weights, channels)?;
    let count = usize::from(op.window.output[2]);
    let packed = PackedConv2dS8::of(op, form);
    let plain = (weights, channels);
    put_pairs(&packed, stream, |first, put| {
        let pair = [first, (first + 1).min(count - 1)].map(|c| window_of(op, plain, c));
        let parts = pair.map(|(window, channel)| {
            let channel = Channel::new(op, window.iter().copied(), channel);
            match channel.short(SHIFT, 0..=31, form == Form::Signed) {
                Some(short) if form != Form::General => {
                    (channel.bias + short.offset, channel_record::from_short(&short))
                }
                _ => (channel.bias, channel_record::from_general(&channel.requantize)),
            }
        });
        put(
            parts.map(|(bias, _)| bias as u32),
            &|at| {
                let [w0, w1] = pair.map(|(window, _)| window.get(at).map_or(0, |&w| w as u8));
                u16::from_le_bytes([w0, w1])
            },
            parts.map(|(_, record)| record),
        );
    })?;
    Some(packed)
}

/// OHWI weights, and `[bias, mantissa, shift]` of each output channel.
pub(super) type Plain<'p> = (&'p [i8], &'p [[i32; 3]]);

/// The weights of output channel `c`, and its `[bias, mantissa, shift]`.
pub(super) fn window_of<'p, P>(op: &Conv2dS8<P>, (weights, channels): Plain<'p>, c: usize) -> (&'p [i8], [i32; 3]) {
    let layout = Layout::of(&op.window);
    let taps = (layout.runs * layout.len) as usize;
    let window = weights.get(c * taps..).and_then(|w| w.get(..taps)).unwrap_or(&[]);
    (window, *channels.get(c).unwrap_or(&[0; 3]))
}

/// Takes what is written for two channels: biases, the halves of a word for every activation, records.
pub(super) type PutPair<'p> = dyn FnMut([u32; 2], &dyn Fn(usize) -> u16, [[u32; channel_record::WORDS]; 2]) + 'p;

/// Writes a stream, for which `pair` gives what belongs to the channels from its first argument on. `None` where its length is wrong.
pub(super) fn put_pairs(
    packed: &PackedConv2dS8,
    stream: &mut [u8],
    mut pair: impl FnMut(usize, &mut PutPair<'_>),
) -> Option<()> {
    let layout = Layout::of(&packed.window);
    if stream.len() != S8::needs(packed).weights as usize {
        return None;
    }
    let mut words = stream.chunks_exact_mut(4);
    let mut put = |word: u32| {
        if let Some(out) = words.next() {
            out.copy_from_slice(&word.to_le_bytes());
        }
    };
    for first in (0..usize::from(packed.window.output[2])).step_by(2) {
        pair(first, &mut |biases, half, records| {
            biases.into_iter().for_each(&mut put);
            for at in 0..layout.pairs() {
                let (a, b) = layout.pair(at);
                let [low, high] = [Some(a), b].map(|at| at.map_or(0, |at| half(at as usize)));
                put(u32::from(low) | u32::from(high) << 16);
            }
            records.into_iter().flatten().for_each(&mut put);
        });
    }
    Some(())
}

/// The form that all channels allow. `None` where a slice has the wrong length or `op` has several groups.
pub(super) fn form<P>(op: &Conv2dS8<P>, weights: &[i8], channels: &[[i32; 3]]) -> Option<Form> {
    let layout = Layout::of(&op.window);
    let taps = (layout.runs * layout.len) as usize;
    let count = usize::from(op.window.output[2]);
    if op.groups != 1 || channels.len() != count || weights.len() != taps.checked_mul(count)? {
        return None;
    }
    let all = |signed| {
        let mut each = weights.chunks_exact(taps.max(1)).zip(channels);
        each.all(|(window, &channel)| {
            let channel = Channel::new(op, window.iter().copied(), channel);
            channel.short(SHIFT, 0..=31, signed).is_some()
        })
    };
    Some(match all(false) {
        true => Form::Positive,
        false if all(true) => Form::Signed,
        false => Form::General,
    })
}

/// The fewest instructions that the step can take: the inner loop's MACs and the least requantisation of each output (shift, multiply, saturate,
/// store). `loops`: instructions for 16 MACs of four pixels, and of one.
pub(super) fn bound(op: &PackedConv2dS8, [four, one]: [u64; 2]) -> u64 {
    let layout = Layout::of(&op.window);
    let outputs = op.window.output_len().map_or(0, u64::from);
    let [height, width, _] = op.window.output.map(u64::from);
    let macs = outputs * u64::from(layout.runs * layout.len);
    let requantising = outputs * if op.form == Form::Signed { 6 } else { 4 };
    let pixels = pointwise_pixels(&op.window).map_or(height * width, u64::from);
    requantising + macs * if pixels < 4 { one } else { four } / 16
}

/// The whole step.
///
/// # Safety
/// `output` is writable for the window's length, `input` readable in all rows of it, which begin where the second one says; `stream` and `scratch` are what
/// `needs` says; `scratch` overlaps neither.
#[inline(always)]
unsafe fn convolve<L: Loops, R: Rows>(
    g: &Geometry,
    form: Form,
    (input, lines): (*const i8, &R),
    stream: *const u32,
    output: *mut i8,
    scratch: *mut u32,
    (share, pieces): (u32, u32),
) {
    let has = |piece: u32| pieces & piece != 0;
    let pairs = g.pairs.next_multiple_of(L::PAIRS);
    let [height, width, channels] = g.output;
    let staged = if has(pieces::STAGED) { g.staged() } else { 0 };
    let stage = scratch.wrapping_add(pairs * g.lanes()).cast::<i8>();
    let stride = if staged > 0 { staged } else { channels };
    let mut block = ConvBlockArgs {
        out: output,
        stride,
        stride3: 3 * stride,
        out_end: output,
        x: scratch,
        x_end: scratch.wrapping_add(pairs * 4),
        weights: stream,
        pairs,
        form: form as usize,
        share: share as usize / 2,
        groups: stage.wrapping_add(staged * 4).cast(),
    };
    let mut out = output;
    let mut emit = |pixels: usize| {
        block.out = if staged > 0 { stage } else { out };
        block.out_end = block.out.wrapping_add(stride);
        // SAFETY: `pairs * pixels` words of scratch are widened; the loops write `pixels` output pixels of `channels`, or of one more into
        // the stage.
        unsafe {
            if has(pieces::FOUR) && (!has(pieces::ONE) || pixels == 4) {
                L::mac_4x2(&block)
            } else {
                L::mac_1x2(&block)
            }
            if staged > 0 {
                staged_output::unstage(stage, out, channels, pixels);
            }
        }
        out = out.wrapping_add(pixels * channels);
    };
    let direct = has(pieces::ROWS) && g.is_direct();
    let alone = if direct { g.alone() } else { 0 };
    let mut windows = Im2col4Args {
        to: scratch,
        step: g.stride[1] * g.input[2],
        words: g.words,
        runs: 0,
        gap: (g.dilation[0] * g.row) as isize - (g.words * 4 + g.tail) as isize,
        tail: g.tail,
        tails: scratch.cast(),
    };
    let (from, to) = g.inside;
    let mut image = input;
    for _ in 0..g.images {
        let (mut y, mut x) = (0, 0);
        let mut left = height * width;
        while left > 0 {
            let (top, column) = g.corner(y, x);
            let rows = g.rows_at_once(direct && left >= 4 && x >= from, top);
            let mut pixels = if rows.is_empty() {
                0
            } else {
                to.saturating_sub(x) / 4 * 4
            };
            if pixels > 0 {
                // Four whole windows of a row at a time. Their rows above or below the image stay in scratch.
                if has(pieces::OUTSIDE) && rows.len() < g.runs {
                    let outside = sxtb16(u32::from_ne_bytes([g.zero_point as u8; 4]));
                    // SAFETY: `word < 4 * pairs`, the words of four pixels, which `needs` counts in scratch.
                    (0..pairs * 4).for_each(|word| unsafe { *scratch.add(word) = outside });
                }
                let tail = rows.start * g.tail;
                windows.to = scratch.wrapping_add(rows.start * g.words * 8);
                windows.runs = rows.len();
                windows.tails = scratch
                    .wrapping_add(g.runs * g.words * 8)
                    .cast::<i16>()
                    .wrapping_add(tail / 2 * 8 + tail % 2);
                let line = |row: usize| lines.offset(top + (row * g.dilation[0]) as isize, g.row);
                let mut first = image.wrapping_offset(column * g.input[2] as isize);
                let mut room = [const { MaybeUninit::uninit() }; _];
                let runs = R::ARE_APART.then(|| runs_of(&windows, rows.clone().map(line), &mut room));
                for _ in 0..pixels / 4 {
                    // SAFETY: `rows` are the window's rows inside the image, and the columns of these pixels' windows are all inside.
                    unsafe {
                        if let Some(runs) = runs {
                            widen_runs(&mut windows, first, runs);
                        } else {
                            widen_4(&windows, first.wrapping_offset(line(rows.start)));
                        }
                    }
                    emit(4);
                    first = first.wrapping_add(4 * windows.step);
                }
                x += pixels;
            } else {
                pixels = if left >= 4 && (y > 0 || x >= alone) { 4 } else { 1 };
                for pixel in 0..pixels {
                    let (top, column) = g.corner(y, x);
                    // SAFETY: rows and columns outside of the image are compared and not read; scratch takes the pairs of `pixels` pixels.
                    unsafe {
                        if has(pieces::COLUMNS) && (!has(pieces::PIXELS) || g.shares_words(column)) {
                            if pieces == u32::MAX {
                                widen_columns(g, scratch.add(pixel), pixels, (image, lines), (top, column));
                            } else {
                                widen_known_columns(g, scratch.add(pixel), pixels, (image, lines), (top, column));
                            }
                        } else {
                            widen_pixel(g, scratch.add(pixel), pixels, (image, lines), (top, column));
                        }
                    }
                    x += 1;
                    if x == width && pixel + 1 < pixels {
                        (y, x) = (y + 1, 0);
                    }
                }
                emit(pixels);
            }
            left -= pixels;
            if x == width {
                (y, x) = (y + 1, 0);
            }
        }
        image = image.wrapping_add(g.input[0] * g.row);
    }
}
