//! Depthwise windows of any size, of one channel, in its plane or where they lie in the input ([`super::dwconv_s8`]).

use super::args::{Dwconv1x3Args, DwconvSingleOutputArgs, DwconvSmallWindowArgs, FLIP, MOST_TAPS};
use super::channel_record::{CONSTANT, GENERAL, Record, SINGLE, bits_of, padded};
use super::requantize::Rounding;
use super::{dwconv_s8_1x3_outputs, dwconv_s8_single_output, dwconv_s8_small_window, requantize};
use crate::ops::conv2d::Conv2dS8;
use crate::ops::window::Window2d;

/// Loop that computes windows, with its arguments.
pub(super) enum Loop {
    /// The loop of [`dwconv_s8_small_window`].
    SmallWindow(DwconvSmallWindowArgs),
    /// The loop of [`dwconv_s8_1x3_outputs`].
    Outputs1x3(Dwconv1x3Args),
}

impl Loop {
    /// Whether its arithmetic holds for a channel.
    #[inline(always)]
    pub(super) fn holds(&self, &[bias, _, code]: &Record) -> bool {
        let holds = match self {
            Self::SmallWindow(job) => dwconv_s8_small_window::holds(bias, code, job.count),
            Self::Outputs1x3(_) => true,
        };
        code & GENERAL == 0 && holds
    }
}

/// Positions of the taps of a channel's windows, in bytes.
pub(super) struct Taps {
    rows: usize,
    columns: usize,
    /// From tap to tap.
    right: usize,
    /// From a row of taps to the next.
    down: usize,
    /// From window to window.
    next: usize,
    /// From a row of windows to the next.
    below: usize,
    /// Windows of a row.
    across: usize,
    /// Rows of windows.
    lines: usize,
    /// From output to output.
    stride: usize,
    /// XOR mask of every byte.
    flip: u8,
}

impl Taps {
    /// In a plane of this many bytes a row and a pixel.
    pub(super) fn new(window: &Window2d, pitch: usize, pixel: usize, flip: u8) -> Self {
        let [rows, columns] = window.kernel.map(usize::from);
        let [lines, across, stride] = window.output.map(usize::from);
        let [down, right] = window.stride.map(usize::from);
        let [tap_down, tap_right] = window.dilation.map(usize::from);
        let (next, below) = (right * pixel, down * pitch);
        // Lines that follow one another are one.
        let [lines, across] = if below == next.wrapping_mul(across) {
            [1, lines * across]
        } else {
            [lines, across]
        };
        Self {
            rows,
            columns,
            right: tap_right * pixel,
            down: tap_down * pitch,
            next,
            below,
            across,
            lines,
            stride,
            flip,
        }
    }

    /// Arguments of the loop over windows, without the values of a channel. `again`: whether the last three of a line may overlap their neighbours.
    pub(super) fn job(&self, again: bool) -> Loop {
        let last = |count: usize, apart: usize| count.wrapping_sub(1).saturating_mul(apart);
        let reach = last(self.rows, self.down).saturating_add(last(self.columns, self.right));
        // Places of taps are of 32 bits.
        if self.rows.wrapping_mul(self.columns) <= MOST_TAPS && i32::try_from(reach).is_ok() {
            Loop::SmallWindow(self.small_window())
        } else {
            Loop::Outputs1x3(self.outputs_1x3(again && self.across >= 3))
        }
    }

    /// Windows of [`MOST_TAPS`] at most, but for a channel's own: as [`small_windows`] sets it.
    fn small_window(&self) -> DwconvSmallWindowArgs {
        let (rest, count) = (self.across % 3, self.rows.wrapping_mul(self.columns));
        let mut taps = [[0; 2]; MOST_TAPS];
        let mut down = dwconv_s8_small_window::origin(self.next);
        let (mut left, mut at) = (self.columns, down);
        for tap in taps.iter_mut().take(count) {
            if left == 0 {
                down = down.wrapping_add(self.down);
                (left, at) = (self.columns, down);
            }
            *tap = [0, at as i32];
            at = at.wrapping_add(self.right);
            left = left.wrapping_sub(1);
        }
        DwconvSmallWindowArgs {
            taps,
            x: core::ptr::null(),
            out: core::ptr::null_mut(),
            next: self.next,
            stride: self.stride,
            multiplier: 0,
            addend: 0,
            code: 0,
            groups: self.next.wrapping_mul(self.across.wrapping_sub(rest)),
            rest,
            step: self.below.wrapping_sub(self.next.wrapping_mul(self.across)),
            lines: 0,
            count,
            own: [0; 2],
        }
    }

    /// The sum of a window, whose first tap `x` is.
    ///
    /// # Safety
    /// All taps of the window at `x` are readable, and `weights` has a byte for each.
    #[inline(always)]
    unsafe fn sum(&self, bias: i32, x: *const i8, weights: *const i8) -> i32 {
        let (mut sum, mut line, mut w) = (bias, x, weights);
        // SAFETY: called for each of the window's taps with its weight, all of which are readable (fn docs).
        let product = |x: *const i8, w: *const i8| unsafe { i32::from(*x ^ self.flip()) * i32::from(*w) };
        for _ in 0..self.rows {
            let (mut tap, mut left) = (line, self.columns);
            while left >= 2 {
                let next = tap.wrapping_add(self.right);
                sum = sum
                    .wrapping_add(product(tap, w))
                    .wrapping_add(product(next, w.wrapping_add(1)));
                tap = next.wrapping_add(self.right);
                w = w.wrapping_add(2);
                left -= 2;
            }
            if left > 0 {
                sum = sum.wrapping_add(product(tap, w));
                w = w.wrapping_add(1);
            }
            line = line.wrapping_add(self.down);
        }
        sum
    }

    /// Lines of windows in groups of three, without the values of a channel: as [`windows`] sets it. `again`: whether the last three of a line may overlap
    /// their neighbours.
    fn outputs_1x3(&self, again: bool) -> Dwconv1x3Args {
        let slides = dwconv_s8_1x3_outputs::slides(self.next, self.right);
        let rest = self.columns % dwconv_s8_1x3_outputs::leap(slides);
        // Sliding windows read their row to the end of the third window.
        let read = self.columns.wrapping_add(if slides { 2 } else { 0 });
        let back = if again { (3 - self.across % 3) % 3 } else { 0 };
        Dwconv1x3Args {
            bias: 0,
            multiplier: 0,
            addend: 0,
            code: 0,
            x: core::ptr::null(),
            out: core::ptr::null_mut(),
            stride: self.stride,
            right: self.right,
            next: self.next,
            weights: core::ptr::null(),
            leaps: self.columns.wrapping_sub(rest),
            rest,
            down: self.down.wrapping_sub(self.right.wrapping_mul(read)),
            weights_end: core::ptr::null(),
            group: self
                .next
                .wrapping_mul(3)
                .wrapping_sub(self.down.wrapping_mul(self.rows)),
            groups: (self.across / 3 * 2).wrapping_sub(usize::from(back == 0)),
            back: self.next.wrapping_mul(back),
            back_out: self.stride.wrapping_mul(back),
            step: self.below.wrapping_sub(self.next.wrapping_mul(self.across)),
            lines: 0,
            left: 0,
        }
    }

    /// XOR mask of a byte; 0 on cores with [`FLIP`] 0.
    #[inline(always)]
    fn flip(&self) -> i8 {
        if FLIP == 0 { 0 } else { self.flip as i8 }
    }
}

/// Single windows, each of one channel, read where they lie in the input: outputs of one pixel.
///
/// # Safety
/// 1. `x` is the first channel's first tap; the taps of all channels are readable.
/// 2. `weights` has a row for each record, and `out` takes as many outputs.
#[inline(never)]
pub(super) unsafe fn single_outputs(
    op: &Conv2dS8,
    taps: &Taps,
    records: &[Record],
    x: *const i8,
    weights: *const i8,
    out: *mut i8,
) {
    let rounding = Rounding::new(op.output_zero_point, bits_of(op, records));
    let range = records.as_ptr_range();
    let mut job = DwconvSingleOutputArgs {
        x,
        weights,
        records: range.start,
        out,
        end: range.end,
        right: taps.right,
        down: taps.down.wrapping_sub(taps.right.wrapping_mul(taps.columns)),
        columns: taps.columns,
        rows: taps.rows,
        row_bytes: padded((taps.rows * taps.columns) as u32) as usize,
        twice: requantize::twice(op.output_zero_point),
        half: rounding.half(),
        left: rounding.left(SINGLE),
        right_shift: rounding.right(),
    };
    while job.records != job.end {
        // SAFETY: one channel at least is left, with its taps, weights and output (points 1 and 2); one is where the loop stops before the end, too.
        unsafe {
            dwconv_s8_single_output::dwconv_single_output(&mut job);
            if job.records != job.end {
                *job.out = one(taps, &*job.records, op.output_zero_point, job.x, job.weights);
                job.advance();
            }
        }
    }
}

/// An output of either form, or one that nothing changes.
///
/// # Safety
/// 1. `x` is the window's first tap; all its taps are readable.
/// 2. `weights` has a byte for each tap.
#[cold]
#[inline(never)]
unsafe fn one(taps: &Taps, record: &Record, zero_point: i8, x: *const i8, weights: *const i8) -> i8 {
    let [bias, _, code] = *record;
    let sum = match code & CONSTANT {
        // SAFETY: the window's taps and weights are readable (points 1 and 2).
        0 => unsafe { taps.sum(bias, x, weights) },
        _ => bias,
    };
    requantize::any(sum, record, zero_point, [i8::MIN, i8::MAX])
}

/// Windows of few taps, of one channel.
///
/// # Safety
/// As for [`windows`]; `job` is [`Taps::small_window`], and [`Loop::holds`] of it.
#[inline(always)]
pub(super) unsafe fn small_windows(
    taps: &Taps,
    job: &mut DwconvSmallWindowArgs,
    record: &Record,
    rounding: &Rounding,
    x: *const i8,
    weights: *const i8,
    out: *mut i8,
) {
    let [bias, multiplier, code] = *record;
    job.multiplier = multiplier;
    job.addend = rounding.addend(code);
    job.code = code & 0xff | (rounding.left(code) << 8) as i32;
    let left = dwconv_s8_small_window::left(job.code);
    let mut weights = weights;
    for [weight, _] in job.taps.iter_mut().take(job.count) {
        // SAFETY: the loop goes over `job.count` weights, one for each tap of the window (docs of `windows`).
        *weight = i32::from(unsafe { *weights }).wrapping_shl(left);
        weights = weights.wrapping_add(1);
    }
    let [[_, start], ..] = &mut job.taps;
    *start = bias.wrapping_shl(left);
    (job.x, job.out, job.lines) = (x, out, taps.lines);
    // SAFETY: `job` has the weights and offsets of the taps, `x` is the first window's first tap, and the taps and outputs of `taps.lines` lines are valid (fn
    // docs).
    unsafe { dwconv_s8_small_window::dwconv_small_window(job) };
}

/// Any windows of one channel, three outputs of a row at a time; those that are left over one by one, or with their neighbours once more.
///
/// # Safety
/// `x` is the first window's first tap, of taps that are all there; the weights and outputs of the channel, which is of the short or the single form. `job` is
/// [`Taps::outputs_1x3`].
#[inline(always)]
pub(super) unsafe fn windows(
    taps: &Taps,
    job: &mut Dwconv1x3Args,
    record: &Record,
    rounding: &Rounding,
    x: *const i8,
    weights: *const i8,
    out: *mut i8,
) {
    let [bias, multiplier, code] = *record;
    let addend = rounding.addend(code);
    job.bias = bias;
    job.multiplier = multiplier;
    job.addend = addend;
    job.code = code & 0xff | (rounding.left(code) << 8) as i32;
    job.weights = weights;
    job.weights_end = weights.wrapping_add(taps.rows.wrapping_mul(taps.columns));
    let left = match job.back {
        0 => taps.across % 3,
        _ => 0,
    };
    if left == 0 {
        (job.x, job.out, job.lines) = (x, out, taps.lines);
        // SAFETY: `job` covers all outputs of the channel; their taps, the weights and the outputs are valid (fn docs).
        return unsafe { dwconv_s8_1x3_outputs::dwconv_1x3(job) };
    }
    let whole = taps.across.wrapping_sub(left);
    let (mut line, mut out) = (x, out);
    for _ in 0..taps.lines {
        let mut x = line;
        // SAFETY: `whole` and the windows that are left are `taps.across`, all of the line; each has its taps and its output (fn docs).
        unsafe {
            if whole > 0 {
                (job.x, job.out, job.lines) = (x, out, 1);
                dwconv_s8_1x3_outputs::dwconv_1x3(job);
                x = x.wrapping_add(taps.next.wrapping_mul(whole));
                out = out.wrapping_add(taps.stride.wrapping_mul(whole));
            }
            for _ in 0..left {
                *out = rounding.apply(taps.sum(bias, x, weights), multiplier, code, addend);
                out = out.wrapping_add(taps.stride);
                x = x.wrapping_add(taps.next);
            }
        }
        line = line.wrapping_add(taps.below);
    }
}

/// Any windows of one channel, of any form.
///
/// # Safety
/// As for [`windows`].
#[cold]
#[inline(never)]
pub(super) unsafe fn generals(
    taps: &Taps,
    record: &Record,
    zero_point: i8,
    x: *const i8,
    weights: *const i8,
    out: *mut i8,
) {
    let (mut line, mut out) = (x, out);
    for _ in 0..taps.lines {
        let mut x = line;
        for _ in 0..taps.across {
            // SAFETY: `x` and `out` are at one of `taps.lines` times `taps.across` windows and at its output (docs of `windows`).
            unsafe { *out = one(taps, record, zero_point, x, weights) };
            out = out.wrapping_add(taps.stride);
            x = x.wrapping_add(taps.next);
        }
        line = line.wrapping_add(taps.below);
    }
}
