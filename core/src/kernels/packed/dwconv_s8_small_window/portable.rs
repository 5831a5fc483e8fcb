//! [`dwconv_small_window`] in Rust.

#![cfg(not(kernel_isa = "gpr32"))]

use super::super::args::DwconvSmallWindowArgs;

/// All outputs of the lines.
///
/// # Safety
/// Every tap of every window is readable, and every output writable.
#[inline(never)]
pub(in super::super) unsafe fn dwconv_small_window(job: &mut DwconvSmallWindowArgs) {
    let (mut x, mut out) = (job.x, job.out);
    for _ in 0..job.lines {
        let end = x.wrapping_add(job.groups);
        while x != end {
            // All three before one is written.
            let windows = [x, x.wrapping_add(job.next), x.wrapping_add(job.next.wrapping_mul(2))];
            // SAFETY: the group's three windows are windows of the line, whose taps are readable (fn docs).
            for sum in windows.map(|x| unsafe { sum(job, x) }) {
                // SAFETY: `out` is the next of the outputs, one for each window, which are writable (fn docs).
                out = unsafe { put(job, sum, out) };
            }
            x = x.wrapping_add(job.next.wrapping_mul(3));
        }
        for _ in 0..job.rest {
            // SAFETY: a window behind the groups of three, and its output, both valid (fn docs).
            out = unsafe { put(job, sum(job, x), out) };
            x = x.wrapping_add(job.next);
        }
        x = x.wrapping_add(job.step);
    }
}

/// The sum of a window.
///
/// # Safety
/// The window's taps are readable, the first at `x`.
#[inline(always)]
unsafe fn sum(job: &DwconvSmallWindowArgs, x: *const i8) -> i32 {
    let [[_, mut sum], ..] = job.taps;
    for (i, &[weight, at]) in job.taps.iter().take(job.count).enumerate() {
        let at = if i == 0 { 0 } else { at as isize };
        // SAFETY: `at` is the offset of one of the window's `job.count` taps, which are readable (fn docs).
        sum = sum.wrapping_add(weight.wrapping_mul(unsafe { i32::from(*x.wrapping_offset(at)) }));
    }
    sum
}

/// An output, of a sum that is shifted; where the next one goes.
///
/// # Safety
/// `out` is writable.
#[inline(always)]
unsafe fn put(job: &DwconvSmallWindowArgs, sum: i32, out: *mut i8) -> *mut i8 {
    let product = i64::from(sum).wrapping_mul(job.multiplier.into());
    let high = (product >> 32) as i32;
    let q = match job.code >> 8 {
        0 => {
            let q = high.wrapping_add((product as u32 >> 31) as i32);
            q.wrapping_add(q >> 31)
        }
        _ => high,
    };
    let value = q.wrapping_add(job.addend).wrapping_shr(job.code as u32 & 0xff);
    // SAFETY: `out` is writable (fn docs).
    unsafe { *out = value.clamp(-128, 127) as i8 };
    out.wrapping_add(job.stride)
}
