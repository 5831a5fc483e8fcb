//! int8 depthwise convolution of 3x3 windows at stride 1 on the DSP extension, where the output is as large as the input.
//!
//! Windows slide: three lines of four channels at a time are widened to 16 bits in scratch, pairs of
//! neighbours x0 x1, x2 x3, … of a channel side by side for the three lines. Two outputs take each line's x0 x1 and x2 x3: SMLAD with w0 w1
//! and SMLABT with w2 give the first one, SMLATB with w0 and SMLAD with w1 w2 the second, so that 12 products and two LDM serve 18 MACs, and a line
//! is widened once for its three outputs. Lines are rows or columns, whichever are longer. A channel is read before it is written, so the output may
//! lie in the place of the input.
//!
//! The stream is that of [`super::dwconv_s8`]. 25 instructions for two outputs of a channel, beside those of starting a line.

#[cfg(any(test, packing))]
use core::any::TypeId;

use super::dwconv_s8;
use super::dwconv_s8::quad_words;
use super::dwconv_s8_3x3_s1_loops::{CHANNEL, Dwconv3x3S1Args, TABLE, multiply, widen};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::ops::operator::Needs;
use crate::ops::packed_conv2d::{Form, PackedConv2dS8};
use crate::ops::window::{Window2d, three, two};

/// int8, one input channel a group, a multiple of four channels, 3x3 windows at stride 1 over an input as large as the output.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = PackedConv2dS8;

    fn supports(op: &PackedConv2dS8) -> bool {
        slides(&op.window)
    }

    fn needs(op: &PackedConv2dS8) -> Needs {
        let [length, _] = extents(&op.window);
        Needs {
            scratch: (4 * TABLE as u32).saturating_add(48 * pairs(length)),
            ..dwconv_s8::S8::needs(op)
        }
    }

    fn in_place(_: &PackedConv2dS8, index: usize) -> bool {
        index == 1
    }

    const TRUSTS: bool = true;

    fn trusts(op: &PackedConv2dS8, weights: &[u8]) -> bool {
        dwconv_s8::S8::trusts(op, weights)
    }

    fn run(op: &PackedConv2dS8, mem: &Mem<'_>) -> Option<()> {
        dwconv_s8::run(op, Self::needs(op), mem, dwconv_3x3_s1)
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PackedConv2dS8<P>> {
        let step = dwconv_s8::S8::step(job)?;
        // Elsewhere an output over its input, at a distance, saves memory that lines in scratch want; and runs along rows are long enough.
        let [length, count] = extents(&step.window);
        (length >= 2 * count).then_some(step)
    }

    fn of_parts() -> TypeId {
        TypeId::of::<dwconv_s8::S8>()
    }

    fn pack(job: &Job<'_>, op: &PackedConv2dS8, packed: &mut [u8], records: &mut [[i32; 3]]) -> Option<()> {
        dwconv_s8::S8::pack(job, op, packed, records)
    }

    fn bound(op: &PackedConv2dS8, _: &Machine) -> Option<u64> {
        // 14 for two outputs, and requantising.
        let outputs = op.window.output_len().map_or(0, u64::from);
        Some(outputs * (7 + dwconv_s8::requantising(op.form)))
    }
}

/// Whether windows are 3x3 and slide over an input as large as the output.
fn slides(window: &Window2d) -> bool {
    // A line that has been written is not read again.
    let near = window.padding.iter().all(|&padding| padding <= 2);
    let steps = window.stride == [1, 1] && window.dilation == [1, 1];
    window.kernel == [3, 3] && steps && window.input == window.output && near
}

/// Outputs of a line, and lines.
fn extents(window: &Window2d) -> [u32; 2] {
    let [height, width, _] = three::<_, u32>(window.output);
    if height > width {
        [height, width]
    } else {
        [width, height]
    }
}

/// Pairs of neighbours in a line that has so many outputs.
fn pairs(length: u32) -> u32 {
    length.div_ceil(2) + 1
}

/// Lines of four channels, and how they are widened.
struct WidenedLines {
    /// Bytes from one element to the next.
    step: usize,
    /// Elements in the input.
    length: usize,
    /// Elements before the first one.
    padding: usize,
    pairs: usize,
    /// Pairs of which both elements are inside: from, to.
    inside: [usize; 2],
    /// Four zero points.
    outside: u32,
}

impl WidenedLines {
    /// Widens a line, or one of zero points, into every third word of each channel's pairs from `to` on.
    ///
    /// # Safety
    /// Four bytes at each of the line's elements are readable, the pairs of four channels writable.
    unsafe fn widen(&self, line: Option<*const i8>, to: *mut u32) {
        let plane = 12 * self.pairs;
        let pair = |at: usize| to.wrapping_add(3 * at);
        let outside = (&raw const self.outside).cast::<i8>();
        let Some(line) = line else {
            // SAFETY: every element is `self.outside`, four bytes, for the step is 0; all pairs are writable (fn docs).
            unsafe { widen(outside, 0, to, pair(self.pairs), plane) };
            return;
        };
        let [from, until] = self.inside;
        if from < until {
            let first = line.wrapping_add((2 * from - self.padding) * self.step);
            // SAFETY: `self.inside` are the pairs of which both elements lie in the line, which is readable (fn docs).
            unsafe { widen(first, self.step, pair(from), pair(until), plane) };
        }
        let element = |i: usize| match i.checked_sub(self.padding) {
            // SAFETY: `i < self.length`, four bytes of an element of the line (fn docs); the read is unaligned.
            Some(i) if i < self.length => unsafe { line.wrapping_add(i * self.step).cast::<u32>().read_unaligned() },
            _ => self.outside,
        };
        let mut at = 0;
        while at < self.pairs {
            if at == from {
                at = until;
            }
            if at < self.pairs {
                let both = [element(2 * at), element(2 * at + 1)];
                // SAFETY: `both` has two elements of four bytes; `pair(at)` to `pair(at + 1)` is one of the pairs of four channels, which are valid.
                unsafe { widen(both.as_ptr().cast(), 4, pair(at), pair(at + 1), plane) };
            }
            at += 1;
        }
    }
}

/// Writes the loop's table of four channels: their weights by line, the first two lines twice, so that any of the three can be the first; bias and record.
///
/// # Safety
/// `quad` are the stream's words of four channels in form `form`, `table` is writable for [`TABLE`] words.
unsafe fn tabulate(quad: *const u32, form: Form, across: bool, table: *mut u32) {
    // SAFETY: `at` is within the words of four channels at `quad`, which this function's contract guarantees in form `form`.
    let word = |at: usize| unsafe { *quad.add(at) };
    let low_high = |a: u32, b: u32| a & 0xffff | b & 0xffff_0000;
    let high_low = |a: u32, b: u32| a >> 16 | b << 16;
    for channel in 0..4 {
        // The taps 0 1, 2 3, 4 5, 6 7, and 8.
        let [a, b, c, d] = [0, 1, 2, 3].map(|pair| word(4 + 4 * pair + channel));
        let last = word(20 + channel % 2) >> (channel / 2 * 16);
        let [first, second, third] = if across {
            [
                [low_high(a, b), high_low(b, d)],
                [high_low(a, c), low_high(c, d)],
                [low_high(b, c), high_low(c, last)],
            ]
        } else {
            [[a, high_low(a, b)], [high_low(b, c), c], [d, high_low(d, last)]]
        };
        let mut to = table.wrapping_add(channel * CHANNEL);
        let mut put = |word: u32| {
            // SAFETY: `to` lies in the `TABLE` words that this function's contract guarantees, each channel within its `CHANNEL` words.
            unsafe { *to = word };
            to = to.wrapping_add(1);
        };
        for line in [first, second, third, first, second] {
            line.into_iter().for_each(&mut put);
        }
        put(word(channel));
        let words = if form == Form::Folded { 2 } else { 4 };
        (0..words).for_each(|i| put(word(22 + channel * words + i)));
    }
}

/// The whole step.
///
/// # Safety
/// `input` and `output` are readable and writable for the window's lengths, `stream` and `scratch` for what `needs` says; `scratch` overlaps neither.
unsafe fn dwconv_3x3_s1(op: &PackedConv2dS8, input: *const i8, stream: *const u32, output: *mut i8, scratch: *mut u32) {
    let window = &op.window;
    let [height, width, channels] = three::<_, usize>(window.input);
    let [above, before] = two::<_, usize>(window.padding);
    let across = height > width;
    let (row, pixel) = (width * channels, channels);
    // Along a line, and from line to line.
    let ([length, count], [step, apart], [before, above]) = if across {
        ([height, width], [row, pixel], [above, before])
    } else {
        ([width, height], [pixel, row], [before, above])
    };
    let pairs = pairs(length as u32) as usize;
    let from = before.div_ceil(2).min(pairs);
    let lines = WidenedLines {
        step,
        length,
        padding: before,
        pairs,
        inside: [from, ((length + before) / 2).min(pairs).max(from)],
        outside: u32::from_ne_bytes([op.input_zero_point as u8; 4]),
    };
    let planes = scratch.wrapping_add(TABLE);
    let words = quad_words(window, op.form) as usize;
    let mut line = Dwconv3x3S1Args {
        x: planes,
        weights: scratch,
        records: scratch.wrapping_add(10),
        out: output,
        step,
        bytes: length / 2 * 12,
        odd: length % 2 * 12,
        form: op.form as usize,
    };
    for image in 0..usize::from(window.batch) {
        for quad in 0..channels / 4 {
            let offset = image * height * row + 4 * quad;
            let (input, output) = (input.wrapping_add(offset), output.wrapping_add(offset));
            // SAFETY: `quad < channels / 4`: its words of the stream; `needs` counts tables and lines in scratch; `inside` lines are the input's.
            unsafe {
                tabulate(stream.wrapping_add(quad * words), op.form, across, scratch);
                let mut third = 0;
                for padded in 0..count + 2 {
                    let inside = padded.checked_sub(above).filter(|&i| i < count);
                    lines.widen(
                        inside.map(|i| input.wrapping_add(i * apart)),
                        planes.wrapping_add(third),
                    );
                    // The oldest of three lines comes next.
                    third = if third == 2 { 0 } else { third + 1 };
                    if padded >= 2 {
                        // The first line's weights belong to the word that is `third` of three.
                        line.weights = scratch.wrapping_add(if third == 0 { 0 } else { 2 * (3 - third) });
                        line.out = output.wrapping_add((padded - 2) * apart);
                        multiply(&line);
                    }
                }
            }
        }
    }
}
