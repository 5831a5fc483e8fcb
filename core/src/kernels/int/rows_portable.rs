//! [`rows`] in Rust, for hosts and for cores without a loop of their own.

use super::super::accumulate::accumulate_any;
use super::super::args::Job;
use super::super::record::{GENERAL, Record, SINGLE};
use super::super::requant;

/// Rows of weights times the words at `x`, requantised and stored, until a channel of the general form: its sums are left in the job and its record
/// is returned. Otherwise the end.
///
/// # Safety
/// `x` has `2 * inputs` words, `w` a row for each record, every record from `at` to `end` is valid, and `out` takes four pixels of `stride` bytes.
pub(in super::super) unsafe fn rows(x: *const i32, w: *const i8, at: *const Record, job: &mut Job) -> *const Record {
    let (mut w, mut at) = (w, at);
    while at != job.end {
        // SAFETY: `at` is within the records, `w` its row.
        let (record, sums) = unsafe { (*at, accumulate_any(x, w, job.inputs, (*at)[0], (*at)[2])) };
        let [_, multiplier, code] = record;
        if code & GENERAL != 0 {
            job.sums[0] = sums;
            return at;
        }
        let half = if code & SINGLE == 0 { 0 } else { job.half };
        let addend = job
            .twice
            .wrapping_shl((code as u32 & 0xff).wrapping_sub(1))
            .wrapping_add(half);
        for (pixel, sum) in sums.into_iter().enumerate() {
            let value = match code & SINGLE {
                0 => requant::short(sum, multiplier, code, addend),
                _ => requant::single(sum, multiplier, job.left.wrapping_sub(1), code, addend),
            };
            // SAFETY: a valid record's place is below `stride`.
            unsafe { *job.out.add(pixel * job.stride + (code as u32 >> 16) as usize) = value };
        }
        // SAFETY: one more row and record, or their ends.
        (w, at) = unsafe { (w.add(job.inputs), at.add(1)) };
    }
    at
}
