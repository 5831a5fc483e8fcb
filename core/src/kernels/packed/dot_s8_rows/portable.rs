//! [`rows`] in Rust, for hosts and for cores without a loop of their own.

#![cfg(not(kernel_isa = "gpr32"))]

use super::super::accumulate::accumulate;
use super::super::args::{DotRowsArgs, LANES};
use crate::kernels::packed::channel_record::{BLOCK, BLOCK2, BLOCK3, BLOCK8, CONSTANT, GENERAL, Record, SINGLE};
use crate::kernels::packed::requantize;

/// Rows of weights times the words at `x`, requantised and stored, until a channel of the general form: its sums are left in the job and its record
/// is returned. Otherwise the end.
///
/// # Safety
/// `x` has `2 * inputs` words, `w` a row for each record, there is a record at `at`, every one from there to `end` is valid, and `out` takes four pixels of
/// `stride` bytes.
pub(in super::super) unsafe fn rows(
    x: *const i32,
    w: *const i8,
    at: *const Record,
    job: &mut DotRowsArgs,
) -> *const Record {
    debug_assert_ne!(at, job.end, "the loops of cores take the first record unseen");
    let (mut w, mut at) = (w, at);
    while at != job.end {
        // SAFETY: `at != job.end`, a valid record; `w` has its row of `inputs` bytes, and `x` two words for each (fn docs).
        let (record, sums) = unsafe { (*at, in_blocks(x, w, job.inputs, (*at)[0], (*at)[2])) };
        let [_, multiplier, code] = record;
        if code & GENERAL != 0 {
            job.sums.write([sums; LANES]);
            return at;
        }
        let half = if code & SINGLE == 0 { 0 } else { job.half };
        let addend = requantize::addend(job.twice, code).wrapping_add(half);
        for (pixel, sum) in sums.into_iter().enumerate() {
            let value = match code & SINGLE {
                0 => requantize::short(sum, multiplier, code, addend),
                _ => requantize::single(sum, multiplier, job.left.wrapping_sub(1), code, addend),
            };
            // SAFETY: `pixel < 4`, and a valid record's place is below `stride`: `out` takes four pixels of as many bytes (fn docs).
            unsafe { *job.out.add(pixel * job.stride + (code as u32 >> 16) as usize) = value };
        }
        // SAFETY: `at` was one of the records and `w` its row: one more of each is in bounds, or their end.
        (w, at) = unsafe { (w.add(job.inputs), at.add(1)) };
    }
    at
}

/// The four sums of one row in the blocks that `code` names.
///
/// # Safety
/// As for [`accumulate`]; the block of `code` divides `inputs`.
#[inline(always)]
unsafe fn in_blocks(x: *const i32, w: *const i8, inputs: usize, bias: i32, code: i32) -> [i32; 4] {
    if code & CONSTANT != 0 {
        return [bias; 4];
    }
    // SAFETY: each arm is the block that `code` names, which divides `inputs`; this function's contract guarantees the words at `x` and the bytes at `w`.
    unsafe {
        match code & BLOCK {
            BLOCK2 => accumulate::<2>(x, w, inputs, bias),
            BLOCK3 => accumulate::<3>(x, w, inputs, bias),
            BLOCK8 => accumulate::<8>(x, w, inputs, bias),
            _ => accumulate::<4>(x, w, inputs, bias),
        }
    }
}
