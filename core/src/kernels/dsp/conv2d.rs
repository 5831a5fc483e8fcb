//! int8 convolution and fully connected layers on the DSP extension.
//!
//! Four output pixels at a time: their windows are widened to 16 bits side by side in scratch (each activation once a block), then every pair
//! of output channels takes its weights past all of them, two activations of four pixels a step: 8 SMLAD, 2 SXTB16, 1 LDR of weights and
//! 2 LDRD of activations for 16 MACs, 0.81 a MAC. What is left at the end of an image, and a fully connected layer, goes one pixel at a time:
//! 18 instructions for 16 MACs, 1.13 a MAC.
//!
//! **The stream**, for every pair of output channels (an odd last one is paired with itself): both biases, zero-point correction folded in;
//! one word for each pair of activations (a, b) of the window: `w0[a] w1[a] w0[b] w1[b]`; two records (`record.rs`).
//!
//! **Pairs.** A window is a list of runs of contiguous bytes: whole kernel rows, or single taps where columns are dilated. SXTB16 widens bytes 0
//! and 2, then 1 and 3, of a word, so the whole words of the runs come first, each giving the pairs (0, 2) and (1, 3); then the bytes that are
//! left over at the runs' ends, in order, two by two, the last one perhaps with nothing.

use core::ops::RangeInclusive;

use super::conv2d_loops::{Block, Loops, Separate, widen_4};
use super::record;
use super::requant::{SHIFT, Short};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::instructions::{halves, sxtb16, sxtb16_ror8};
use crate::kernels::kernel::Kernel;
use crate::kernels::steps::Requantize;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;
use crate::ops::packed_conv2d::{Form, PackedConv2dS8};
use crate::ops::window::{Window2d, three, two};
use crate::quant::Multiplier;

/// int8, one group.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = PackedConv2dS8;

    fn needs(op: &PackedConv2dS8) -> Needs {
        let layout = Layout::of(&op.window);
        let channels = u32::from(op.window.output[2]);
        // A form that this kernel has no sequence for asks for more than any file has.
        let stream = match op.form {
            Form::Folded => None,
            _ => layout.stream_words().checked_mul(channels.div_ceil(2)),
        };
        Needs {
            scratch: (layout.pairs() * 4 * lanes(&op.window)).saturating_add(staged_stride(channels) * 4),
            weights: stream.and_then(|words| words.checked_mul(4)).unwrap_or(u32::MAX),
        }
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
        run::<Separate>(op, mem, Self::needs(op), 0)
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
    let words = layout.stream_words() as usize;
    record::pairs_are_packed(stream, words, missing, op.form).then_some((stream, words))
}

/// The step, in the loops for its stream, `share` weights of which share a factor.
#[inline(always)]
pub(super) fn run<L: Loops>(op: &PackedConv2dS8, mem: &Mem<'_>, needs: Needs, share: u32) -> Option<()> {
    let input = mem.src::<i8>(op.input, op.window.input_len()?)?;
    let output = mem.dst::<i8>(op.output, op.window.output_len()?)?;
    let weights = mem.weights::<u32>(op.weights, needs.weights / 4)?;
    let scratch = mem.dst::<u32>(op.scratch, needs.scratch / 4)?;
    let (input, output) = (input.as_ptr(), output.as_mut_ptr());
    // SAFETY: `needs` and the window's lengths are what `convolve` reads and writes.
    unsafe { convolve::<L>(op, input, weights.as_ptr(), output, scratch.as_mut_ptr(), share) };
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
                Some(short) if form != Form::General => (channel.bias + short.offset, record::from_short(&short)),
                _ => (channel.bias, record::from_general(&channel.requantize)),
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
pub(super) type PutPair<'p> = dyn FnMut([u32; 2], &dyn Fn(usize) -> u16, [[u32; record::WORDS]; 2]) + 'p;

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

/// A channel's reference arithmetic, and the accumulators that its weights allow.
pub(super) struct Channel {
    /// With the zero-point correction.
    pub bias: i64,
    pub requantize: Requantize,
    pub range: (i64, i64),
}

impl Channel {
    pub(super) fn new<P>(
        op: &Conv2dS8<P>,
        weights: impl Iterator<Item = i8>,
        [bias, mantissa, shift]: [i32; 3],
    ) -> Self {
        let mut bias = i64::from(bias);
        let (mut least, mut largest) = (0, 0);
        for w in weights.map(i64::from) {
            bias -= w * i64::from(op.input_zero_point);
            least += (w * 127).min(w * -128);
            largest += (w * 127).max(w * -128);
        }
        let requantize = Requantize {
            multiplier: Multiplier {
                mantissa,
                shift: shift as i8,
            },
            zero_point: i32::from(op.output_zero_point),
            clamp: op.clamp.map(i32::from),
        };
        Self {
            bias,
            requantize,
            range: (bias + least, bias + largest),
        }
    }

    pub(super) fn short(&self, shift: u32, k: RangeInclusive<u32>, signed: bool) -> Option<Short> {
        Short::find(&self.requantize, self.range, shift, k, signed)
    }
}

/// Bytes between the staged output pixels of an odd number of channels, which the loops write with one more; else 0.
pub(super) fn staged_stride(channels: u32) -> u32 {
    if channels % 2 == 1 { channels + 1 } else { 0 }
}

/// The runs of one window.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub(super) runs: u32,
    /// Bytes in a run.
    len: u32,
}

impl Layout {
    pub(super) fn of(window: &Window2d) -> Self {
        let [rows, columns] = two::<_, u32>(window.kernel);
        let channels = u32::from(window.input[2]);
        // Within 32 bits by `check`; before it, saturate.
        match window.dilation[1] {
            1 => Self {
                runs: rows,
                len: columns.saturating_mul(channels),
            },
            _ => Self {
                runs: rows.saturating_mul(columns),
                len: channels,
            },
        }
    }

    pub(super) fn words(&self) -> u32 {
        self.len / 4
    }

    pub(super) fn tail(&self) -> u32 {
        self.len % 4
    }

    pub(super) fn pairs(&self) -> u32 {
        let body = self.runs.saturating_mul(self.words() * 2);
        body.saturating_add((self.runs * self.tail()).div_ceil(2))
            .min(u32::MAX / 64)
    }

    /// Words of the stream for two channels.
    fn stream_words(&self) -> u32 {
        2 + self.pairs() + 2 * record::WORDS as u32
    }

    /// The activations of pair `at`, as offsets into the runs laid end to end.
    pub(super) fn pair(&self, at: u32) -> (u32, Option<u32>) {
        // At least one: a division by what may be none is a panic.
        let [words, tail] = [self.words().max(1), self.tail().max(1)];
        let body = self.runs * self.words() * 2;
        if at < body {
            let (run, word) = (at / 2 / words, at / 2 % words);
            let first = run * self.len + word * 4 + at % 2;
            return (first, Some(first + 2));
        }
        let byte = |t: u32| t / tail * self.len + self.words() * 4 + t % tail;
        let t = (at - body) * 2;
        (byte(t), (t + 1 < self.runs * self.tail()).then(|| byte(t + 1)))
    }
}

/// Pixels of a block: four, or one where an image has fewer.
pub(super) fn lanes(window: &Window2d) -> u32 {
    let [height, width, _] = three::<_, u32>(window.output);
    let pixels = pointwise_pixels(window).unwrap_or(height * width);
    if pixels < 4 { 1 } else { 4 }
}

/// The pixels of all images, where a pixel of the output needs its pixel of the input alone.
fn pointwise_pixels(window: &Window2d) -> Option<u32> {
    let unpadded = window.input[..2] == window.output[..2] && window.padding == [0, 0];
    (window.kernel == [1, 1] && window.stride == [1, 1] && unpadded)
        .then(|| u32::from(window.batch) * u32::from(window.input[0]) * u32::from(window.input[1]))
}

/// What the pixel loop knows of a window.
struct Geometry {
    images: usize,
    input: [usize; 3],
    output: [usize; 3],
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    padding: [usize; 2],
    runs: usize,
    words: usize,
    tail: usize,
    /// Bytes of a row of the input.
    row: usize,
    /// Columns of the output whose windows lie inside the input's columns: from, to.
    inside: (usize, usize),
    zero_point: i8,
}

impl Geometry {
    fn of(op: &PackedConv2dS8) -> Self {
        let window = &op.window;
        let layout = Layout::of(window);
        let (mut input, mut output) = (three::<_, usize>(window.input), three::<_, usize>(window.output));
        let mut images = usize::from(window.batch);
        if let Some(pixels) = pointwise_pixels(window) {
            // One long row: blocks then cross rows and images.
            images = 1;
            input = [1, pixels as usize, input[2]];
            output = [1, pixels as usize, output[2]];
        }
        let kernel = two::<_, usize>(window.kernel);
        let stride = two::<_, usize>(window.stride);
        let dilation = two::<_, usize>(window.dilation);
        let padding = two::<_, usize>(window.padding);
        Self {
            images,
            input,
            output,
            kernel,
            stride,
            dilation,
            padding,
            runs: layout.runs as usize,
            words: layout.words() as usize,
            tail: layout.tail() as usize,
            row: input[1] * input[2],
            inside: super::inside(input[1], output[1], kernel[1], stride[1], dilation[1], padding[1]),
            zero_point: op.input_zero_point,
        }
    }

    /// The first row and column of a pixel's window.
    #[inline(always)]
    fn corner(&self, y: usize, x: usize) -> (isize, isize) {
        let at = |i: usize, axis: usize| (i * self.stride[axis]) as isize - self.padding[axis] as isize;
        (at(y, 0), at(x, 1))
    }
}

/// The whole step.
///
/// # Safety
/// `input` and `output` are readable and writable for the window's lengths, `stream` and `scratch` for what `needs` says; `scratch` overlaps neither.
unsafe fn convolve<L: Loops>(
    op: &PackedConv2dS8,
    input: *const i8,
    stream: *const u32,
    output: *mut i8,
    scratch: *mut u32,
    share: u32,
) {
    let g = Geometry::of(op);
    let pairs = Layout::of(&op.window).pairs() as usize;
    let pairs = pairs.next_multiple_of(L::PAIRS);
    let [height, width, channels] = g.output;
    let staged = staged_stride(channels as u32) as usize;
    let stage = scratch.wrapping_add(pairs * lanes(&op.window) as usize).cast::<i8>();
    let stride = if staged > 0 { staged } else { channels };
    let mut block = Block {
        out: output,
        stride,
        stride3: 3 * stride,
        out_end: output,
        x: scratch,
        x_end: scratch.wrapping_add(pairs * 4),
        weights: stream,
        pairs,
        form: op.form as usize,
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
            if pixels == 4 {
                L::mac_4x2(&block)
            } else {
                L::mac_1x2(&block)
            }
            if staged > 0 {
                for pixel in 0..pixels {
                    copy(stage.add(pixel * stride), out.add(pixel * channels), channels);
                }
            }
        }
        out = out.wrapping_add(pixels * channels);
    };
    let reach = (g.kernel[0] - 1) * g.dilation[0];
    let direct = g.dilation[1] == 1 || g.kernel[1] == 1;
    let step = g.stride[1] * g.input[2];
    let line = g.dilation[0] * g.row;
    let (from, to) = g.inside;
    let mut image = input;
    for _ in 0..g.images {
        let (mut y, mut x) = (0, 0);
        let mut left = height * width;
        while left > 0 {
            let (top, column) = g.corner(y, x);
            let rows_inside = top >= 0 && top as usize + reach < g.input[0];
            let mut pixels = if direct && rows_inside && x >= from {
                to.saturating_sub(x) / 4 * 4
            } else {
                0
            };
            if pixels > 0 {
                // Four whole windows of a row at a time.
                let mut first = image.wrapping_offset(top * g.row as isize + column * g.input[2] as isize);
                for _ in 0..pixels / 4 {
                    // SAFETY: the windows lie inside the image.
                    unsafe {
                        if g.words > 0 {
                            widen_4(
                                scratch,
                                first,
                                step,
                                g.words,
                                g.runs,
                                line as isize - (g.words * 4) as isize,
                            );
                        }
                        if g.tail > 0 {
                            widen_tails(
                                scratch.add(g.runs * g.words * 8),
                                first.add(g.words * 4),
                                step,
                                line,
                                &g,
                            );
                        }
                    }
                    emit(4);
                    first = first.wrapping_add(4 * step);
                }
                x += pixels;
            } else {
                pixels = if left >= 4 { 4 } else { 1 };
                for pixel in 0..pixels {
                    let (top, column) = g.corner(y, x);
                    // SAFETY: what lies outside the image is not read.
                    unsafe { widen_pixel(&g, scratch.add(pixel), pixels, image, top, column) };
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

/// Copies a pixel of any address to any: by words, in fewer instructions than `memcpy` takes for as few bytes, and a small program needs nothing else of that.
///
/// # Safety
/// `len` bytes are readable at `from` and writable at `to`, and do not overlap.
#[inline(never)]
pub(super) unsafe fn copy(from: *const i8, to: *mut i8, len: usize) {
    let (words, written) = (from.cast::<u32>(), to.cast::<u32>());
    for word in 0..len / 4 {
        // SAFETY: a word that lies in the bytes.
        unsafe { written.add(word).write_unaligned(words.add(word).read_unaligned()) };
        // Nothing, but the compiler makes a `memcpy` of no loop that holds it.
        core::hint::black_box(());
    }
    for byte in len & !3..len {
        // SAFETY: a byte of them.
        unsafe { *to.add(byte) = *from.add(byte) };
        core::hint::black_box(());
    }
}

/// The bytes left over at the ends of the runs of four windows `step` bytes apart.
///
/// # Safety
/// `src` is the first such byte of the first window, all inside the image; `dst` is the place of the first pair of them.
#[inline(always)]
unsafe fn widen_tails(dst: *mut u32, src: *const i8, step: usize, line: usize, g: &Geometry) {
    let (mut dst, mut run, mut byte) = (dst, src, 0);
    let mut next = || {
        let at = run.wrapping_add(byte);
        byte += 1;
        if byte == g.tail {
            (run, byte) = (run.wrapping_add(line), 0);
        }
        at
    };
    let mut left = g.runs * g.tail;
    while left > 0 {
        let mut low = next();
        // The weight of a missing second one is zero.
        let mut high = if left > 1 { next() } else { low };
        left = left.saturating_sub(2);
        for pixel in 0..4 {
            // SAFETY: as the caller promises.
            unsafe { *dst.add(pixel) = halves(i32::from(*low), i32::from(*high)) };
            (low, high) = (low.wrapping_add(step), high.wrapping_add(step));
        }
        dst = dst.wrapping_add(4);
    }
}

/// Widens one window, which may reach over the borders, into pairs `step` words apart.
///
/// # Safety
/// As for [`convolve`]; `top` and `left` are the window's first row and column.
#[inline(never)]
unsafe fn widen_pixel(g: &Geometry, dst: *mut u32, step: usize, image: *const i8, top: isize, left: isize) {
    let channels = g.input[2];
    let mut lane = Lane {
        body: dst,
        tails: dst.wrapping_add(g.runs * g.words * 2 * step).cast(),
        half: 0,
        step,
    };
    let columns_inside = left >= 0 && left as usize + g.kernel[1] <= g.input[1];
    let mut y = top;
    for _ in 0..g.kernel[0] {
        let row = (y as usize) < g.input[0];
        let line = image.wrapping_offset(y * g.row as isize);
        let at = |x: isize| line.wrapping_offset(x * channels as isize);
        // SAFETY: what lies outside is not read.
        unsafe {
            if g.dilation[1] == 1 && (columns_inside || !row) {
                lane.run(row.then(|| at(left)), g.words, g.tail, g.zero_point);
            } else if g.dilation[1] > 1 || channels.is_multiple_of(4) {
                let mut x = left;
                for _ in 0..g.kernel[1] {
                    let inside = row && (x as usize) < g.input[1];
                    lane.run(inside.then(|| at(x)), channels / 4, channels % 4, g.zero_point);
                    x += g.dilation[1] as isize;
                }
            } else {
                lane.clipped_run(at(left), left, g);
            }
        }
        y += g.dilation[0] as isize;
    }
}

/// Where one pixel's next pairs go.
struct Lane {
    body: *mut u32,
    tails: *mut i16,
    half: usize,
    /// Words between pairs.
    step: usize,
}

impl Lane {
    /// A run, or as many zero points.
    ///
    /// # Safety
    /// The run is readable, the pairs' places writable.
    #[inline(always)]
    unsafe fn run(&mut self, src: Option<*const i8>, words: usize, tail: usize, zero_point: i8) {
        // SAFETY: as the caller promises.
        unsafe {
            match src {
                Some(src) => {
                    let mut word = src.cast::<u32>();
                    for _ in 0..words {
                        let x = word.read_unaligned();
                        word = word.add(1);
                        self.word(sxtb16(x), sxtb16_ror8(x));
                    }
                    for byte in 0..tail {
                        self.tail(*word.cast::<i8>().add(byte));
                    }
                }
                None => {
                    let pair = sxtb16(u32::from_ne_bytes([zero_point as u8; 4]));
                    (0..words).for_each(|_| self.word(pair, pair));
                    (0..tail).for_each(|_| self.tail(zero_point));
                }
            }
        }
    }

    /// A row of few channels that begins or ends outside: byte by byte.
    ///
    /// # Safety
    /// What of the run lies inside the input's columns is readable.
    #[inline(always)]
    unsafe fn clipped_run(&mut self, src: *const i8, left: isize, g: &Geometry) {
        let channels = g.input[2] as isize;
        // Bytes of the run that lie inside.
        let inside = -left * channels..(g.input[1] as isize - left) * channels;
        let byte = |i: isize| {
            if inside.contains(&i) {
                // SAFETY: as the caller promises.
                unsafe { *src.offset(i) }
            } else {
                g.zero_point
            }
        };
        let wide = |i: isize| u32::from(i16::from(byte(i)) as u16);
        let mut i = 0;
        for _ in 0..g.words {
            // SAFETY: the places are writable.
            unsafe { self.word(wide(i) | wide(i + 2) << 16, wide(i + 1) | wide(i + 3) << 16) };
            i += 4;
        }
        for _ in 0..g.tail {
            // SAFETY: as above.
            unsafe { self.tail(byte(i)) };
            i += 1;
        }
    }

    #[inline(always)]
    unsafe fn word(&mut self, even: u32, odd: u32) {
        // SAFETY: the caller's places.
        unsafe {
            *self.body = even;
            *self.body.add(self.step) = odd;
            self.body = self.body.add(2 * self.step);
        }
    }

    #[inline(always)]
    unsafe fn tail(&mut self, byte: i8) {
        // SAFETY: the caller's place.
        unsafe { *self.tails = i16::from(byte) };
        self.tails = self
            .tails
            .wrapping_add(if self.half == 0 { 1 } else { 2 * self.step - 1 });
        self.half ^= 1;
    }
}
