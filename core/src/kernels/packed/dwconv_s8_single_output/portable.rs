//! [`dwconv_single_output`] in Rust.

#![cfg(not(kernel_isa = "gpr32"))]

use super::super::args::DwconvSingleOutputArgs;
use crate::kernels::packed::channel_record::{CONSTANT, GENERAL, SINGLE};
use crate::kernels::packed::requantize;

/// Channels from the job's on, until one that is neither of the short nor of the single form, or their end: there the job is afterwards.
///
/// # Safety
/// Every tap of every window is readable, and every output writable; `weights` has a row for each channel; there is a channel at least.
#[inline(always)]
pub(in super::super) unsafe fn dwconv_single_output(job: &mut DwconvSingleOutputArgs) {
    debug_assert_ne!(job.records, job.end, "the loops of cores take the first record unseen");
    // SAFETY: `job.records` is one of the records, which this function's contract guarantees, or their end, where it is not read on.
    while let Some(&[bias, multiplier, code]) = unsafe { job.records.as_ref() }.filter(|_| job.records != job.end) {
        if code & (CONSTANT | GENERAL) != 0 {
            return;
        }
        let (mut sum, mut x, mut w) = (bias, job.x, job.weights);
        for _ in 0..job.rows {
            for _ in 0..job.columns {
                // SAFETY: `x` is at one of the `rows * columns` taps of the channel's window, and `w` at its weight (fn docs).
                sum = sum.wrapping_add(unsafe { i32::from(*x) * i32::from(*w) });
                (x, w) = (x.wrapping_add(job.right), w.wrapping_add(1));
            }
            x = x.wrapping_add(job.down);
        }
        let addend = requantize::addend(job.twice, code);
        // SAFETY: `job.out` is the output of the channel of `job.records`, which is before the end (fn docs).
        unsafe {
            *job.out = if code & SINGLE == 0 {
                requantize::short(sum, multiplier, code, addend)
            } else {
                requantize::single(
                    sum,
                    multiplier,
                    job.left.wrapping_sub(1),
                    code,
                    addend.wrapping_add(job.half),
                )
            };
        }
        job.advance();
    }
}
