//! int8 depthwise convolution: one input channel a group.
//!
//! A channel's plane is copied to scratch with its border, so the loops have neither borders nor strides between neighbours; the border is written once for
//! all channels. Windows go three outputs of a row at a time, 3 x 3 ones in a loop of their own (`dwconv_s8_3x3_plane`), along the columns where that leaves
//! fewer over; those over one column go as over one row, and lines of windows that follow one another as one. Windows of few taps have a loop of their own too
//! (`dwconv_s8_small_window`). Windows of other sizes than 3 x 3 without a border are read from the input itself. Since what an output takes is read before the
//! output is written, the output may be the input itself.
//!
//! **Weights**: `[channel][kh, kw]`, zeros up to a multiple of 4 for each channel. **Channels**: [records](Record) in order, without blocks.

use super::args::{Dwconv3x3PlaneArgs, FLIP};
use super::channel_record::{BLOCK, CONSTANT, GENERAL, Record, bits_of, padded};
use super::conv2d_s8::{beyond, limit, packed_records};
use super::dwconv_s8_lines::Lines;
use super::dwconv_s8_windows::{Loop, Taps, generals, single_outputs, small_windows, windows};
use super::requantize::Rounding;
use super::{Core, dwconv_s8_3x3_plane, pack, requantize};
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
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;
use crate::ops::window::Window2d;

/// int8, as many groups as input and output channels.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = Conv2dS8;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Rows;

    fn supports(op: &Conv2dS8) -> bool {
        has_own_filters(op)
    }

    fn needs(op: &Conv2dS8) -> Needs {
        let [height, width] = plane(&op.window);
        Needs {
            scratch: padded(height.saturating_mul(width)),
            weights: padded(taps(&op.window)).saturating_mul(u32::from(op.window.output[2])),
        }
    }

    fn in_place(op: &Conv2dS8, index: usize) -> bool {
        index == 1 && op.window.batch == 1
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        let (taps, mem) = (taps(&op.window), Mem::of_weights(weights));
        let rows = mem.weights::<u32>(op.weights, Self::needs(op).weights / 4);
        // Blocks have no meaning here, and neither has what follows a channel's taps.
        let blocks = |records: &[Record]| records.iter().fold(0, |bits, record| bits | record[2] & BLOCK);
        let words = (padded(taps) as usize / 4).max(1);
        let last = |rows: &[u32]| {
            rows.iter()
                .skip(words - 1)
                .step_by(words)
                .fold(0, |bits, word| bits | word)
        };
        packed_records(op, 4, &mem).is_some_and(|records| blocks(records) == 0)
            && rows.is_some_and(|rows| last(rows) & beyond(taps) == 0)
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let needs = Self::needs(op);
        let output = mem.dst::<i8>(op.output, op.window.output_len()?)?;
        let weights = mem.weights::<i8>(op.weights, needs.weights)?;
        // No loop here takes a block or a place from them: what load has seen of them will do.
        let (records, _) = mem
            .weights::<i32>(op.channels, u32::from(op.window.output[2]).checked_mul(3)?)?
            .as_chunks::<3>();
        let scratch = mem.dst::<i8>(op.scratch, needs.scratch)?;
        #[cfg(feature = "rolling")]
        if op.input.region == Slot::ROLLED && op.window.input[0] > 1 {
            let lines = Lines::of_rows(op, mem)?;
            // SAFETY: the rows are those of the window, and one image is all that a turn makes; weights and scratch were taken with the sizes of `needs`.
            unsafe {
                image(
                    op,
                    &lines,
                    weights.as_ptr(),
                    records,
                    output.as_mut_ptr(),
                    scratch.as_mut_ptr(),
                )
            };
            limit(output, op.clamp);
            return Some(());
        }
        let input = mem.src::<i8>(op.input, op.window.input_len()?)?;
        let pixels = |extents: [u16; 3]| usize::from(extents[0]) * usize::from(extents[1]) * records.len();
        for index in 0..usize::from(op.window.batch) {
            let input = input.slice(index * pixels(op.window.input), pixels(op.window.input))?;
            let output = output.slice(index * pixels(op.window.output), pixels(op.window.output))?;
            let (lines, output) = (Lines::Image(input.as_ptr()), output.as_mut_ptr());
            // SAFETY: `input` and `output` were sliced to one image of the window's extents; weights and scratch were taken with the sizes of `needs`.
            unsafe { image(op, &lines, weights.as_ptr(), records, output, scratch.as_mut_ptr()) };
        }
        limit(output, op.clamp);
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    const RECORDS: bool = true;

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, _) = job.conv2d_s8()?;
        op.is_depthwise().then_some(op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], records: &mut [Record]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed, records)
    }

    fn bound(op: &Conv2dS8, on: &Machine) -> Option<u64> {
        Some(bound(op, Core::of(on.target)))
    }
}

/// Packs for this kernel: `[channel, kh, kw, 1]` `weights`; otherwise as [`super::conv2d_s8::pack`].
pub(super) fn pack(
    op: &Conv2dS8,
    weights: &[i8],
    channels: &[Record],
    packed: &mut [u8],
    records: &mut [Record],
) -> Option<()> {
    let taps = taps(&op.window) as usize;
    let count = usize::from(op.window.output[2]);
    let lengths = weights.len() == taps.checked_mul(count)? && channels.len() == count && records.len() == count;
    if !has_own_filters(op) || !lengths || packed.len() != S8::needs(op).weights as usize {
        return None;
    }
    // Compiled loops gain nothing by the single form, and lose on cores that multiply in parts.
    let bits = if by_three(&op.window) {
        pack::bits(op, weights, channels)
    } else {
        0
    };
    let rows = weights.chunks_exact(taps).zip(channels).zip(records);
    for (c, (((row, &channel), place), bytes)) in rows
        .zip(packed.chunks_exact_mut(padded(taps as u32) as usize))
        .enumerate()
    {
        for (byte, w) in bytes
            .iter_mut()
            .zip(row.iter().map(|&w| w as u8).chain(core::iter::repeat(0)))
        {
            *byte = w;
        }
        let [bias, multiplier, code] = pack::channel(op, row.iter().copied(), channel, bits);
        *place = [bias, multiplier, code | (c as i32) << 16];
    }
    Some(())
}

/// The fewest instructions of the step: sums three at a time and the least requantising of every output; copying the plane is on top.
fn bound(op: &Conv2dS8, core: Core) -> u64 {
    let outputs = op.window.output_len().map_or(0, u64::from);
    let sums = core.plane(op.window.stride[1]) * u64::from(taps(&op.window)) / 9;
    outputs * sums / 3 + outputs * core.requantize()
}

/// One input and one output channel a group.
fn has_own_filters(op: &Conv2dS8) -> bool {
    let [_, _, channels] = op.window.input;
    channels == op.groups && channels == op.window.output[2]
}

fn taps(window: &Window2d) -> u32 {
    u32::from(window.kernel[0]) * u32::from(window.kernel[1])
}

/// Rows and columns of a plane with its border.
pub fn plane(window: &Window2d) -> [u32; 2] {
    [0, 1].map(|axis: usize| {
        let at = |extents: &[u16]| extents.get(axis).map_or(0, |&e| u32::from(e));
        let step = |steps: [u8; 2]| steps.get(axis).map_or(0, |&s| u32::from(s));
        let reach = (at(&window.kernel) - 1) * step(window.dilation) + 1;
        let windows = (at(&window.output) - 1) * step(window.stride) + reach;
        windows.max(step(window.padding) + at(&window.input))
    })
}

/// A window over one column as the same over one row, whose outputs are neighbours: in memory both are the same.
pub fn turned(window: &Window2d) -> Window2d {
    if [window.input[1], window.output[1], window.kernel[1]] == [1, 1, 1] {
        exchanged(window)
    } else {
        *window
    }
}

/// A window of 3 x 3 as its plane lies in scratch: rows for columns where it goes down these.
pub fn in_plane(window: &Window2d) -> Window2d {
    if is_transposed(window) {
        exchanged(window)
    } else {
        *window
    }
}

fn exchanged(window: &Window2d) -> Window2d {
    let swap = |[a, b]: [u8; 2]| [b, a];
    let image = |[rows, columns, channels]: [u16; 3]| [columns, rows, channels];
    Window2d {
        batch: window.batch,
        input: image(window.input),
        output: image(window.output),
        kernel: [window.kernel[1], window.kernel[0]],
        stride: swap(window.stride),
        dilation: swap(window.dilation),
        padding: swap(window.padding),
    }
}

/// Whether there is one output, which needs no border.
pub fn is_one(window: &Window2d) -> bool {
    window.output[..2] == [1, 1] && is_direct(window)
}

/// Whether windows of any size need no border, so that they are read where they are.
pub fn is_direct(window: &Window2d) -> bool {
    window.padding == [0, 0] && plane(window) == [window.input[0], window.input[1]].map(u32::from)
}

/// Whether windows have a loop of their own.
pub fn by_three(window: &Window2d) -> bool {
    window.kernel == [3, 3] && window.dilation == [1, 1] && window.stride[1] <= 2 && window.output[1] >= 3
}

/// Whether windows of 3 x 3 go down the columns of an image, as few outputs of a row fill groups of three: then the plane is the transposed image, and so are
/// the weights.
fn is_transposed(window: &Window2d) -> bool {
    let [rows, columns, _] = window.output.map(u32::from);
    // Sevenths of three outputs: one alone takes four, and what a line takes besides is two.
    let rest = |along: u32| match along % 3 {
        0 => 0,
        1 => 4,
        _ => 7,
    };
    let cost = |lines: u32, along: u32| lines * (7 * (along / 3) + rest(along) + 2);
    window.stride[0] <= 2 && rows >= 3 && cost(columns, rows) < cost(rows, columns)
}

/// One image.
///
/// # Safety
/// 1. `input` and `output` have one image of the window's extents.
/// 2. Weights and scratch have the sizes of [`S8::needs`], records those of `records`.
#[inline(always)]
unsafe fn image(
    op: &Conv2dS8,
    input: &Lines,
    weights: *const i8,
    records: &[Record],
    output: *mut i8,
    scratch: *mut i8,
) {
    // SAFETY: the same contract, and `by_three` is seen to hold.
    unsafe {
        if by_three(&op.window) {
            planes_3x3(op, input, weights, records, output, scratch);
        } else {
            others(op, input, weights, records, output, scratch);
        }
    }
}

/// Windows of 3 x 3.
///
/// # Safety
/// 1. `input` and `output` have one image of the window's extents, of which [`by_three`] holds; lines that lie anywhere are those of one row of windows.
/// 2. Weights and scratch have the sizes of [`S8::needs`], records those of `records`.
#[inline(always)]
unsafe fn planes_3x3(
    op: &Conv2dS8,
    input: &Lines,
    weights: *const i8,
    records: &[Record],
    output: *mut i8,
    scratch: *mut i8,
) {
    let window = &op.window;
    let [rows, columns, channels] = window.input.map(usize::from);
    let [out_rows, out_columns, _] = window.output.map(usize::from);
    let by_columns = is_transposed(window);
    // Extents and steps along a line and from line to line.
    let pair = |[down, right]: [usize; 2]| if by_columns { [right, down] } else { [down, right] };
    let [height, pitch] = pair(plane(window).map(|n| n as usize));
    let [lines, along] = pair([rows, columns]);
    let [out_lines, out_along] = pair([out_rows, out_columns]);
    let [top, left] = pair(window.padding.map(usize::from));
    let [down, right] = pair(window.stride.map(usize::from));
    let [line, pixel] = pair([columns * channels, channels]);
    let [out_line, stride] = pair([out_columns * channels, channels]);
    let row_bytes = padded(taps(window)) as usize;
    let rounding = Rounding::new(op.output_zero_point, bits_of(op, records));
    let left_over = out_along % 3;
    let back = usize::from(left_over == 2);
    // SAFETY: `needs` counts `height * pitch` bytes of scratch for the plane (point 2).
    unsafe { scratch.write_bytes(op.input_zero_point as u8 ^ FLIP, height * pitch) };
    for (c, record) in records.iter().enumerate() {
        let [bias, multiplier, code] = *record;
        // SAFETY: `c < records.len()`, the channels: its pixels lie in the image (point 1), its row in the weights and the plane in scratch (point 2).
        unsafe {
            let out = output.add(c);
            if code & CONSTANT != 0 {
                let value = requantize::any(bias, record, op.output_zero_point, op.clamp);
                (0..out_rows * out_columns).for_each(|i| out.add(i * channels).write(value));
                continue;
            }
            let inner = scratch.add(top * pitch + left);
            input.fill(c, [line, pixel], [lines, along], inner, pitch, FLIP);
            let weights = weights.add(c * row_bytes);
            if code & GENERAL != 0 {
                let steps = if by_columns { [1, pitch] } else { [pitch, 1] };
                general(op, steps, record, scratch, weights, out);
                continue;
            }
            let turned: [i8; 9];
            let weights = if by_columns {
                turned = core::array::from_fn(|i| *weights.add(i % 3 * 3 + i / 3));
                turned.as_ptr()
            } else {
                weights
            };
            dwconv_s8_3x3_plane::dwconv_3x3_plane(
                &Dwconv3x3PlaneArgs {
                    bias,
                    multiplier,
                    addend: rounding.addend(code),
                    code: code & 0xff | (rounding.left(code) << 8) as i32,
                    plane: scratch,
                    pitch,
                    weights,
                    out,
                    stride,
                    end: scratch.wrapping_add(out_lines * down * pitch),
                    groups: 2 * (out_along / 3) - usize::from(left_over == 0),
                    back: back * right,
                    back_out: back * stride,
                    step: (down * pitch).wrapping_sub(out_along * right),
                    step_out: out_line.wrapping_sub(out_along * stride),
                },
                right,
            );
        }
    }
}

/// A channel of [`planes_3x3`] that the short requantising does not hold for.
///
/// # Safety
/// As for [`planes_3x3`]: the plane, weights and outputs of one channel, with its rows `row` and its pixels `pixel` bytes apart.
#[cold]
#[inline(never)]
unsafe fn general(
    op: &Conv2dS8,
    [row, pixel]: [usize; 2],
    record: &Record,
    plane: *const i8,
    weights: *const i8,
    out: *mut i8,
) {
    let taps = Taps::new(&op.window, row, pixel, FLIP);
    // SAFETY: `taps` is built from the same window, `row` and `pixel` that this function's contract guarantees for `plane`, `weights` and `out`.
    unsafe { generals(&taps, record, op.output_zero_point, plane, weights, out) };
}

/// Windows of any size.
///
/// # Safety
/// 1. `input` and `output` have one image of the window's extents.
/// 2. Weights and scratch have the sizes of [`S8::needs`], records those of `records`.
#[inline(never)]
unsafe fn others(
    op: &Conv2dS8,
    input: &Lines,
    weights: *const i8,
    records: &[Record],
    output: *mut i8,
    scratch: *mut i8,
) {
    let start = input.image();
    let window = &start.map_or(op.window, |_| turned(&op.window));
    let [height, pitch] = plane(window).map(|n| n as usize);
    let [rows, columns, channels] = window.input.map(usize::from);
    let outputs = usize::from(window.output[0]) * usize::from(window.output[1]);
    let [top, left] = window.padding.map(usize::from);
    if let Some(start) = start.filter(|_| is_one(window)) {
        let taps = Taps::new(window, columns * channels, channels, 0);
        // SAFETY: without a border all windows lie in the image (point 1); there are weights and an output for each record (point 2).
        unsafe { single_outputs(op, &taps, records, start, weights, output) };
        return;
    }
    let direct = start.filter(|_| is_direct(window));
    let [line, pixel] = if direct.is_some() {
        [columns * channels, channels]
    } else {
        [pitch, 1]
    };
    let taps = Taps::new(window, line, pixel, 0);
    // Outputs that lie in the input's place have replaced their inputs once written: none is computed again.
    let mut job = taps.job(direct.is_none());
    let row_bytes = padded(self::taps(window)) as usize;
    let rounding = Rounding::new(op.output_zero_point, bits_of(op, records));
    if direct.is_none() {
        // SAFETY: `needs` counts `height * pitch` bytes of scratch for the plane (point 2).
        unsafe { scratch.write_bytes(op.input_zero_point as u8, height * pitch) };
    }
    for (c, record) in records.iter().enumerate() {
        let [bias, _, code] = *record;
        // SAFETY: `c < records.len()`, the channels: its pixels lie in the image (point 1), its row in the weights and the plane in scratch (point 2).
        unsafe {
            let out = output.add(c);
            if code & CONSTANT != 0 {
                let value = requantize::any(bias, record, op.output_zero_point, op.clamp);
                (0..outputs).for_each(|i| out.add(i * channels).write(value));
                continue;
            }
            let x = match direct {
                Some(start) => start.add(c),
                None => {
                    let inner = scratch.add(top * pitch + left);
                    input.fill(c, [columns * channels, channels], [rows, columns], inner, pitch, 0);
                    scratch
                }
            };
            let weights = weights.add(c * row_bytes);
            if !job.holds(record) {
                generals(&taps, record, op.output_zero_point, x, weights, out);
            } else {
                match &mut job {
                    Loop::SmallWindow(job) => small_windows(&taps, job, record, &rounding, x, weights, out),
                    Loop::Outputs1x3(job) => windows(&taps, job, record, &rounding, x, weights, out),
                }
            }
        }
    }
}
