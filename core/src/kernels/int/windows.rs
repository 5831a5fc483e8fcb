//! Depthwise windows of any size, of one channel, in its plane or where they lie in the input ([`super::depthwise`]).

use super::args::FLIP;
use super::record::{CONSTANT, GENERAL, Record, bits_of, padded};
use super::requant;
use super::requant::Rounding;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::window::Window2d;

/// Where the taps of a channel's windows lie, in bytes.
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
    /// What every byte is changed by.
    flip: u8,
}

impl Taps {
    /// In a plane of this many bytes a row and a pixel.
    pub(super) fn new(window: &Window2d, pitch: usize, pixel: usize, flip: u8) -> Self {
        let [rows, columns] = window.kernel.map(usize::from);
        let [lines, across, stride] = window.output.map(usize::from);
        let [down, right] = window.stride.map(usize::from);
        let [tap_down, tap_right] = window.dilation.map(usize::from);
        Self {
            rows,
            columns,
            right: tap_right * pixel,
            down: tap_down * pitch,
            next: right * pixel,
            below: down * pitch,
            across,
            lines,
            stride,
            flip,
        }
    }

    /// The sum of a window, whose first tap `x` is.
    ///
    /// # Safety
    /// All its taps lie where `x` does, and there is a weight for each.
    #[inline(always)]
    unsafe fn sum(&self, bias: i32, x: *const i8, weights: *const i8) -> i32 {
        let (mut sum, mut line, mut w) = (bias, x, weights);
        // SAFETY: a tap, and its weight.
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

    /// [`Taps::sum`] of three windows side by side.
    ///
    /// # Safety
    /// As for that one.
    #[inline(always)]
    unsafe fn sums(&self, bias: i32, x: *const i8, weights: *const i8) -> [i32; 3] {
        let (mut sums, mut line, mut w) = ([bias; 3], x, weights);
        for _ in 0..self.rows {
            // SAFETY: passed on: a row of taps of each.
            (sums, w) = unsafe { self.row(sums, line, w) };
            line = line.wrapping_add(self.down);
        }
        sums
    }

    /// A row of taps of three windows, and where its weights end. In assembly: the compiler takes a pointer for each window, and has no registers for them.
    ///
    /// # Safety
    /// As for [`Taps::sums`].
    #[cfg(any(cortex_m = "mainline", cortex_m = "dsp", cortex_m = "mve"))]
    #[inline(always)]
    unsafe fn row(&self, [mut a, mut b, mut c]: [i32; 3], x: *const i8, weights: *const i8) -> ([i32; 3], *const i8) {
        let mut w = weights;
        // SAFETY: reads what the caller promises; there is at least one column.
        unsafe {
            core::arch::asm!(
                ".cpu cortex-m3",
                "2:",
                "ldrsb {wide}, [{w}], #1",
                "ldrsb {tap}, [{x}]",
                "mla {a}, {tap}, {wide}, {a}",
                "ldrsb {tap}, [{x}, {next}]",
                "mla {b}, {tap}, {wide}, {b}",
                "ldrsb {tap}, [{x}, {next}, lsl #1]",
                "mla {c}, {tap}, {wide}, {c}",
                "add {x}, {right}",
                "cmp {w}, {end}",
                "bne 2b",
                wide = out(reg) _,
                tap = out(reg) _,
                x = inout(reg) x => _,
                w = inout(reg) w,
                end = in(reg) weights.wrapping_add(self.columns),
                next = in(reg) self.next,
                right = in(reg) self.right,
                a = inout(reg) a,
                b = inout(reg) b,
                c = inout(reg) c,
                options(readonly, nostack),
            );
        }
        ([a, b, c], w)
    }

    /// The same in Rust.
    ///
    /// # Safety
    /// As for [`Taps::sums`].
    #[cfg(not(any(cortex_m = "mainline", cortex_m = "dsp", cortex_m = "mve")))]
    #[inline(always)]
    unsafe fn row(&self, mut sums: [i32; 3], x: *const i8, weights: *const i8) -> ([i32; 3], *const i8) {
        let (mut tap, mut w, end) = (x, weights, weights.wrapping_add(self.columns));
        while w != end {
            let mut x = tap;
            // SAFETY: a weight, and a tap of each window.
            unsafe {
                let weight = i32::from(*w);
                for sum in &mut sums {
                    *sum = sum.wrapping_add(i32::from(*x ^ self.flip()) * weight);
                    x = x.wrapping_add(self.next);
                }
            }
            tap = tap.wrapping_add(self.right);
            w = w.wrapping_add(1);
        }
        (sums, w)
    }

    /// Where no core flips, none does.
    #[inline(always)]
    fn flip(&self) -> i8 {
        if FLIP == 0 { 0 } else { self.flip as i8 }
    }
}

/// Single windows, each of one channel, read where they lie in the input: outputs of one pixel.
///
/// # Safety
/// `x` is the first channel's first tap, of taps that are all there; the weights and outputs of all channels.
#[inline(never)]
pub(super) unsafe fn points(
    op: &Conv2dS8,
    taps: &Taps,
    records: &[Record],
    x: *const i8,
    weights: *const i8,
    out: *mut i8,
) {
    let rounding = Rounding::new(op.output_zero_point, bits_of(op, records));
    let row_bytes = padded((taps.rows * taps.columns) as u32) as usize;
    let (mut x, mut weights, mut out) = (x, weights, out);
    for record in records {
        let [bias, multiplier, code] = *record;
        // SAFETY: the taps and weights of a channel, and its output.
        unsafe {
            *out = if code & (CONSTANT | GENERAL) == 0 {
                let sum = taps.sum(bias, x, weights);
                rounding.apply(sum, multiplier, code, rounding.addend(code))
            } else {
                one(taps, record, op.output_zero_point, x, weights)
            };
        }
        x = x.wrapping_add(1);
        out = out.wrapping_add(1);
        weights = weights.wrapping_add(row_bytes);
    }
}

/// An output of either form, or one that nothing changes.
///
/// # Safety
/// `x` is the window's first tap, of taps that are all there; the weights of the channel.
#[cold]
#[inline(never)]
unsafe fn one(taps: &Taps, record: &Record, zero_point: i8, x: *const i8, weights: *const i8) -> i8 {
    let [bias, _, code] = *record;
    let sum = match code & CONSTANT {
        // SAFETY: as the caller promises.
        0 => unsafe { taps.sum(bias, x, weights) },
        _ => bias,
    };
    requant::any(sum, record, zero_point, [i8::MIN, i8::MAX])
}

/// Any windows of one channel, three outputs of a row at a time; the last three overlap their neighbours where the width is no multiple of three. Those
/// with the general requantising go one by one.
///
/// # Safety
/// `x` is the first window's first tap, of taps that are all there; the weights and outputs of the channel.
#[inline(never)]
pub(super) unsafe fn windows(
    taps: &Taps,
    record: &Record,
    rounding: &Rounding,
    zero_point: i8,
    x: *const i8,
    weights: *const i8,
    out: *mut i8,
) {
    let [bias, multiplier, code] = *record;
    let (rounding, addend) = (*rounding, rounding.addend(code));
    let quick = |sum| rounding.apply(sum, multiplier, code, addend);
    let threes = match code & GENERAL {
        0 => taps.across / 3,
        _ => 0,
    };
    let (mut line, mut out) = (x, out);
    for _ in 0..taps.lines {
        let (mut x, mut left, mut groups) = (line, taps.across, threes);
        // SAFETY: windows of a row, each of which is there, and their outputs.
        unsafe {
            while groups > 0 {
                for sum in taps.sums(bias, x, weights) {
                    *out = quick(sum);
                    out = out.wrapping_add(taps.stride);
                }
                x = x.wrapping_add(taps.next.wrapping_mul(3));
                left = left.wrapping_sub(3);
                groups -= 1;
                if groups == 0 && left > 0 {
                    // Once more, from as far back as is missing.
                    let back = 3_usize.wrapping_sub(left);
                    x = x.wrapping_sub(taps.next.wrapping_mul(back));
                    out = out.wrapping_sub(taps.stride.wrapping_mul(back));
                    (left, groups) = (3, 1);
                }
            }
            while left > 0 {
                *out = match code & GENERAL {
                    0 => quick(taps.sum(bias, x, weights)),
                    _ => one(taps, record, zero_point, x, weights),
                };
                out = out.wrapping_add(taps.stride);
                x = x.wrapping_add(taps.next);
                left -= 1;
            }
        }
        line = line.wrapping_add(taps.below);
    }
}
