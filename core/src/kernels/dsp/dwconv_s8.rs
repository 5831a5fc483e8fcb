//! int8 depthwise convolution on the DSP extension.
//!
//! Four channels of a pixel at a time, straight from the input: two taps' words are packed so that SXTB16 leaves the same channel of both taps
//! in the halves of a register, and one SMLAD takes both. 65 instructions for a 3x3 window of four channels, 1.81 a MAC; 18 for two taps of
//! four channels in the loop for other windows. The taps' places are a table in scratch; those outside the input point at a pixel of zero
//! points, so borders need no loop of their own. The pixels of a row whose windows lie inside form one run.
//!
//! **The stream**, for every four channels: four biases, zero-point correction folded in; for every two taps four words, one a channel,
//! of both taps' weights in 16 bits; for an odd last tap two words, channels 0 and 2, then 1 and 3; four records (`channel_record.rs`), or,
//! where the pre-shift is folded into the weights and biases ([`Form::Folded`]), four pairs `m, c`.

use super::channel::Channel;
use super::dwconv_s8_loops::{DwconvRunArgs, tap};
use super::requantize::{FOLDED_SHIFT, SHIFT, Short};
#[cfg(feature = "rolling")]
use super::rows::Apart;
use super::rows::{Rows, Whole};
use super::{channel_record, dwconv_s8_loops as loops};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(feature = "rolling")]
use crate::arena::Slot;
use crate::blocks::{blocks, last};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
#[cfg(feature = "rolling")]
use crate::kernels::api::turn::Rolls;
use crate::kernels::isa::dsp::halves;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;
use crate::ops::packed_conv2d::{Form, PackedConv2dS8};
use crate::ops::window::{Window2d, three, two};

/// int8, one input channel a group, a multiple of four channels.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = PackedConv2dS8;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Rows;

    fn needs(op: &PackedConv2dS8) -> Needs {
        let window = &op.window;
        let channels = u32::from(window.output[2]);
        let taps = taps(window);
        // A step that this kernel cannot run asks for more than any file has.
        let matches = window.input[2] == window.output[2] && channels.is_multiple_of(4);
        let words = if matches {
            quad_words(window, op.form).checked_mul(channels / 4)
        } else {
            None
        };
        Needs {
            scratch: taps.saturating_mul(4).saturating_add(channels),
            weights: words.and_then(|words| words.checked_mul(4)).unwrap_or(u32::MAX),
        }
    }

    fn distance(op: &PackedConv2dS8, index: usize) -> Option<i64> {
        // Four channels are read at all taps before they are written, and later reads of the pixel are further on by as much.
        (index == 1).then(|| op.window.consumed_distance(1, 0))
    }

    fn supports(op: &PackedConv2dS8) -> bool {
        // The table of taps counts in 32 bits, signed.
        op.window.input_len().is_some_and(|len| i32::try_from(len).is_ok())
    }

    const TRUSTS: bool = true;

    fn trusts(op: &PackedConv2dS8, weights: &[u8]) -> bool {
        let words = Self::needs(op).weights / 4;
        let trusted = |quad: &[u32]| {
            let (_, records) = quad.as_rchunks();
            channel_record::are_packed(last(records, 4).unwrap_or_default(), op.form)
        };
        let stream = Mem::of_weights(weights).weights::<u32>(op.weights, words);
        stream.is_some_and(|stream| blocks(stream, quad_words(&op.window, op.form) as usize).all(trusted))
    }

    fn run(op: &PackedConv2dS8, mem: &Mem<'_>) -> Option<()> {
        #[cfg(feature = "rolling")]
        if op.input.region == Slot::ROLLED {
            return run_row(op, mem);
        }
        run(op, Self::needs(op), mem, convolve_whole)
    }
}

/// Function that computes a step: operator, input, stream, output, scratch.
pub(super) type Convolve = unsafe fn(&PackedConv2dS8, *const i8, *const u32, *mut i8, *mut u32);

/// The step, in `convolve`, which `needs` is for.
#[inline(always)]
pub(super) fn run(op: &PackedConv2dS8, needs: Needs, mem: &Mem<'_>, convolve: Convolve) -> Option<()> {
    let input = mem.src::<i8>(op.input, op.window.input_len()?)?;
    let output = mem.dst::<i8>(op.output, op.window.output_len()?)?;
    let weights = mem.weights::<u32>(op.weights, needs.weights / 4)?;
    let scratch = mem.dst::<u32>(op.scratch, needs.scratch / 4)?;
    let (input, output) = (input.as_ptr(), output.as_mut_ptr());
    // SAFETY: input and output were taken with the window's lengths, weights and scratch with those of `needs`, which `convolve` asks for.
    unsafe { convolve(op, input, weights.as_ptr(), output, scratch.as_mut_ptr()) };
    Some(())
}

/// One row of a tensor that rolls.
#[cfg(feature = "rolling")]
fn run_row(op: &PackedConv2dS8, mem: &Mem<'_>) -> Option<()> {
    let needs = S8::needs(op);
    let mut rows = Apart::none();
    let input = rows.find(mem, op.input, &op.window)?;
    let output = mem.dst::<i8>(op.output, op.window.output_len()?)?.as_mut_ptr();
    let weights = mem.weights::<u32>(op.weights, needs.weights / 4)?;
    let scratch = mem.dst::<u32>(op.scratch, needs.scratch / 4)?;
    // SAFETY: `rows` are those of the input, as long as a row; the others were taken with the lengths of the window and of `needs`.
    unsafe { convolve(op, input, &rows, weights.as_ptr(), output, scratch.as_mut_ptr()) };
    Some(())
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PackedConv2dS8<P>> {
        let (op, plain) = job.conv2d_s8()?;
        let form = form(&op, plain.weights, plain.channels)?;
        Some(PackedConv2dS8::of(&op, form))
    }

    fn pack(job: &Job<'_>, _: &PackedConv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed).map(|_| ())
    }

    fn bound(op: &PackedConv2dS8, _: &Machine) -> Option<u64> {
        Some(bound(op))
    }
}

/// Packs `op` for this kernel: `weights` `[channels, kh, kw]` and the scalar kernel's `channels` (`[bias, mantissa, shift]`) into `stream`,
/// which must be as long as `needs` of some form says ([`Form::General`]'s is the longest) and is used from its start. Returns the step; its offsets
/// are still `op`'s, and its `needs` say how much of the stream is used. `None` where [`form`] has none.
pub(super) fn pack(op: &Conv2dS8, weights: &[i8], channels: &[[i32; 3]], stream: &mut [u8]) -> Option<PackedConv2dS8> {
    let form = form(op, weights, channels)?;
    let taps = taps(&op.window) as usize;
    let count = usize::from(op.window.output[2]);
    let window = |c: usize| weights.get(c * taps..).and_then(|w| w.get(..taps)).unwrap_or(&[]);
    let channel = |c: usize| Channel::new(op, window(c).iter().copied(), *channels.get(c).unwrap_or(&[0; 3]));
    let packed = PackedConv2dS8::of(op, form);
    let mut words = stream
        .get_mut(..S8::needs(&packed).weights as usize)?
        .chunks_exact_mut(4);
    let mut put = |word: u32| {
        if let Some(out) = words.next() {
            out.copy_from_slice(&word.to_le_bytes());
        }
    };
    const NONE: Short = Short {
        offset: 0,
        k: 0,
        m: 0,
        c: 0,
        d: 0,
    };
    for first in (0..count).step_by(4) {
        let quad = [0, 1, 2, 3].map(|i| {
            let c = first + i;
            (c, channel(c), short(&channel(c), form).unwrap_or(NONE))
        });
        // The pre-shift of the folded form is in weights and biases.
        let fold = |short: &Short| if form == Form::Folded { short.k } else { 0 };
        for (_, channel, short) in &quad {
            put(((channel.bias + short.offset) << fold(short)) as u32);
        }
        let weight = |(c, _, short): &(usize, Channel, Short), tap: usize| {
            window(*c).get(tap).map_or(0, |&w| i32::from(w) << fold(short))
        };
        for tap in (0..taps - 1).step_by(2) {
            quad.iter()
                .for_each(|c| put(halves(weight(c, tap), weight(c, tap + 1))));
        }
        if taps % 2 == 1 {
            let [w0, w1, w2, w3] = quad.each_ref().map(|c| weight(c, taps - 1));
            put(halves(w0, w2));
            put(halves(w1, w3));
        }
        for (_, channel, short) in &quad {
            match form {
                Form::Folded => [short.m as u32, short.c as u32].into_iter().for_each(&mut put),
                Form::General => channel_record::from_general(&channel.requantize)
                    .into_iter()
                    .for_each(&mut put),
                _ => channel_record::from_short(short).into_iter().for_each(&mut put),
            }
        }
    }
    Some(packed)
}

/// The form that all channels allow. `None` where a slice has the wrong length or `op` is not one input channel a group, a multiple of four.
fn form<P>(op: &Conv2dS8<P>, weights: &[i8], channels: &[[i32; 3]]) -> Option<Form> {
    let [_, _, inputs] = op.window.input;
    let (taps, count) = (taps(&op.window) as usize, usize::from(inputs));
    let own = inputs == op.groups && inputs == op.window.output[2] && inputs.is_multiple_of(4);
    if !own || channels.len() != count || weights.len() != taps.checked_mul(count)? {
        return None;
    }
    let all = |form| {
        let mut each = weights.chunks_exact(taps.max(1)).zip(channels);
        each.all(|(window, &channel)| short(&Channel::new(op, window.iter().copied(), channel), form).is_some())
    };
    let found = [Form::Folded, Form::Positive, Form::Signed]
        .into_iter()
        .find(|&form| all(form));
    Some(found.unwrap_or(Form::General))
}

/// A channel's requantising in a short form.
fn short(channel: &Channel, form: Form) -> Option<Short> {
    match form {
        Form::Folded => channel.short(FOLDED_SHIFT, 0..=8, false),
        Form::Positive => channel.short(SHIFT, 0..=31, false),
        Form::Signed => channel.short(SHIFT, 0..=31, true),
        Form::General => None,
    }
}

/// The fewest instructions that the step can take: the inner loop's, and the least requantisation of each output.
fn bound(op: &PackedConv2dS8) -> u64 {
    let outputs = op.window.output_len().map_or(0, u64::from);
    let taps = u64::from(taps(&op.window));
    let loops = if taps == 9 { 65 } else { taps / 2 * 18 + taps % 2 * 9 };
    outputs * loops / 4 + outputs * requantising(op.form)
}

/// The least instructions that requantise an output.
pub(super) fn requantising(form: Form) -> u64 {
    match form {
        Form::Folded => 3,
        Form::Positive => 4,
        _ => 6,
    }
}

fn taps(window: &Window2d) -> u32 {
    let [rows, columns] = two::<_, u32>(window.kernel);
    rows * columns
}

/// Words of the stream for four channels.
pub(super) fn quad_words(window: &Window2d, form: Form) -> u32 {
    let taps = taps(window);
    let record = if form == Form::Folded {
        2
    } else {
        channel_record::WORDS as u32
    };
    (taps / 2 * 4 + taps % 2 * 2).saturating_add(4 + 4 * record)
}

/// The whole step.
///
/// # Safety
/// `input` and `output` are readable and writable for the window's lengths, `stream` and `scratch` for what `needs` says; `scratch` overlaps neither.
unsafe fn convolve_whole(
    op: &PackedConv2dS8,
    input: *const i8,
    stream: *const u32,
    output: *mut i8,
    scratch: *mut u32,
) {
    // SAFETY: all rows of the input lie one behind the other from `input` on; the rest is this function's contract.
    unsafe { convolve(op, input, &Whole, stream, output, scratch) };
}

/// The step, of rows that begin where `lines` says.
///
/// # Safety
/// As for [`convolve_whole`]; each row of the input is readable from where `lines` says on, seen from `input`.
#[inline(always)]
unsafe fn convolve<R: Rows>(
    op: &PackedConv2dS8,
    input: *const i8,
    lines: &R,
    stream: *const u32,
    output: *mut i8,
    scratch: *mut u32,
) {
    let window = &op.window;
    let [in_height, in_width, channels] = three::<_, usize>(window.input);
    let [height, width, _] = three::<_, usize>(window.output);
    let [rows, columns] = two::<_, usize>(window.kernel);
    let [row_stride, stride] = two::<_, usize>(window.stride);
    let [row_dilation, dilation] = two::<_, usize>(window.dilation);
    let [above, before] = two::<_, usize>(window.padding);
    let row = in_width * channels;
    let outside = scratch.wrapping_add(rows * columns).cast::<i8>();
    // By words: a small program needs nothing else of `memset`.
    let zero = u32::from(op.input_zero_point as u8) * 0x0101_0101;
    for word in 0..channels / 4 {
        // SAFETY: `needs` counts `channels` bytes, a multiple of four, behind the `rows * columns` words of the table.
        unsafe { *scratch.wrapping_add(rows * columns + word) = zero };
    }
    let (from, to) = super::inside(in_width, width, columns, stride, dilation, before);
    let mut run_of = DwconvRunArgs {
        out: output,
        weights: stream,
        weights_end: stream.wrapping_add(S8::needs(op).weights as usize / 4),
        pixels: 1,
        extra: (stride - 1) * channels,
        form: op.form as usize,
        taps: rows * columns,
        entries: scratch,
        image: input,
        outside,
    };
    for _ in 0..window.batch {
        for y in 0..height {
            let top = (y * row_stride) as isize - above as isize;
            let rows_inside = top >= 0 && top as usize + (rows - 1) * row_dilation < in_height;
            let mut x = 0;
            while x < width {
                let left = (x * stride) as isize - before as isize;
                let whole = rows_inside && x >= from && x < to;
                let mut entry = scratch;
                let mut line = top;
                for _ in 0..rows {
                    let line_inside = (line as usize) < in_height;
                    let mut offset = lines.offset(line, row) + left * channels as isize;
                    let mut column = left;
                    for _ in 0..columns {
                        let inside = whole || (line_inside && (column as usize) < in_width);
                        // SAFETY: the loops go over the `rows * columns` entries that `needs` counts in scratch.
                        unsafe { *entry = tap(run_of.image, outside, inside.then_some(offset)) };
                        entry = entry.wrapping_add(1);
                        offset += (dilation * channels) as isize;
                        column += dilation as isize;
                    }
                    line += row_dilation as isize;
                }
                run_of.pixels = if whole { to - x } else { 1 };
                // SAFETY: taps inside the input stay inside along the run; those outside are only given to single pixels.
                unsafe { loops::run(&run_of) };
                x += run_of.pixels;
                run_of.out = run_of.out.wrapping_add(run_of.pixels * channels);
            }
        }
        run_of.image = run_of.image.wrapping_add(in_height * row);
    }
}
