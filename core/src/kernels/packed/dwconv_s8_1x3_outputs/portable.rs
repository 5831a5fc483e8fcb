//! [`dwconv_1x3`] in Rust.

#![cfg(not(kernel_isa = "gpr32"))]

use super::super::args::Dwconv1x3Args;
use crate::kernels::packed::requantize;

/// All groups of the lines.
///
/// # Safety
/// Every tap of every window is readable, and every output writable; `weights` has a byte for each tap.
#[inline(always)]
pub(in super::super) unsafe fn dwconv_1x3(job: &mut Dwconv1x3Args) {
    match (job.right == job.next, job.code >> 8) {
        // SAFETY: taps, weights and outputs are valid (fn docs); windows slide by one tap, short form.
        (true, 0) => unsafe { lines::<true, true>(job) },
        // SAFETY: taps, weights and outputs are valid (fn docs); windows slide by one tap, single form.
        (true, _) => unsafe { lines::<true, false>(job) },
        // SAFETY: taps, weights and outputs are valid (fn docs); windows any distance apart, short form.
        (false, 0) => unsafe { lines::<false, true>(job) },
        // SAFETY: taps, weights and outputs are valid (fn docs); windows any distance apart, single form.
        (false, _) => unsafe { lines::<false, false>(job) },
    }
}

/// # Safety
/// As for [`dwconv_1x3`].
#[inline(never)]
unsafe fn lines<const SLIDES: bool, const SHORT: bool>(job: &mut Dwconv1x3Args) {
    let (mut x, mut out) = (job.x, job.out);
    let bits = ((job.code >> 8) as u32).wrapping_sub(1);
    for _ in 0..job.lines {
        let mut left = job.groups as isize;
        loop {
            let (mut sums, mut w) = ([job.bias; 3], job.weights);
            while w != job.weights_end {
                // SAFETY: `w` is before the end of the channel's weights, and `x` at the same row of taps of the group's three windows (fn docs).
                (sums, x, w) = unsafe {
                    if SLIDES {
                        slide(job, sums, x, w)
                    } else {
                        row(job, sums, x, w)
                    }
                };
                x = x.wrapping_add(job.down);
            }
            for sum in sums {
                let value = if SHORT {
                    requantize::short(sum, job.multiplier, job.code, job.addend)
                } else {
                    requantize::single(sum, job.multiplier, bits, job.code, job.addend)
                };
                // SAFETY: `out` is at the output of one of the group's three windows (fn docs).
                unsafe { *out = value };
                out = out.wrapping_add(job.stride);
            }
            x = x.wrapping_add(job.group);
            left -= 2;
            if left == 0 {
                (x, out) = (x.wrapping_sub(job.back), out.wrapping_sub(job.back_out));
            } else if left < 0 {
                break;
            }
        }
        x = x.wrapping_add(job.step);
    }
}

/// A row of windows that slide: the sums, and where taps and weights go on.
///
/// # Safety
/// As for [`dwconv_1x3`].
#[inline(always)]
unsafe fn slide(
    job: &Dwconv1x3Args,
    [mut a, mut b, mut c]: [i32; 3],
    x: *const i8,
    w: *const i8,
) -> ([i32; 3], *const i8, *const i8) {
    let right = job.right;
    // SAFETY: `x` is at a tap of the row's windows, or at one of its weights; this function's contract guarantees all of them.
    let at = |x: *const i8| unsafe { i32::from(*x) };
    let (mut first, mut second) = (at(x), at(x.wrapping_add(right)));
    let (mut x, mut w) = (x.wrapping_add(right.wrapping_mul(2)), w);
    macro_rules! tap {
        ($first:ident $second:ident $third:ident) => {
            let (weight, $third) = (at(w), at(x));
            (w, x) = (w.wrapping_add(1), x.wrapping_add(right));
            a = a.wrapping_add(weight.wrapping_mul($first));
            b = b.wrapping_add(weight.wrapping_mul($second));
            c = c.wrapping_add(weight.wrapping_mul($third));
        };
    }
    let mut leaps = job.leaps;
    while leaps > 0 {
        tap!(first second third);
        tap!(second third fourth);
        tap!(third fourth fifth);
        (first, second) = (fourth, fifth);
        leaps = leaps.wrapping_sub(3);
    }
    if job.rest > 0 {
        tap!(first second third);
        if job.rest > 1 {
            tap!(second third fourth);
            let _ = fourth;
        }
    }
    ([a, b, c], x, w)
}

/// A row of other windows.
///
/// # Safety
/// As for [`dwconv_1x3`].
#[inline(always)]
unsafe fn row(job: &Dwconv1x3Args, mut sums: [i32; 3], x: *const i8, w: *const i8) -> ([i32; 3], *const i8, *const i8) {
    let (mut x, mut w) = (x, w);
    let [mut y, mut z] = [x.wrapping_add(job.next), x.wrapping_add(job.next.wrapping_mul(2))];
    for _ in 0..job.leaps.wrapping_add(job.rest) {
        // SAFETY: `w` is at a weight of the row, and `x`, `y` and `z` at its tap in each of the three windows (fn docs).
        let (weight, taps) = unsafe { (i32::from(*w), [*x, *y, *z]) };
        for (sum, tap) in sums.iter_mut().zip(taps) {
            *sum = sum.wrapping_add(weight.wrapping_mul(tap.into()));
        }
        w = w.wrapping_add(1);
        (x, y, z) = (
            x.wrapping_add(job.right),
            y.wrapping_add(job.right),
            z.wrapping_add(job.right),
        );
    }
    (sums, x, w)
}
