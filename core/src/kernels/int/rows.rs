//! The inner loop: words that hold two activations (or two weights) each, times rows of bytes.

use super::args::{Job, LANES};
use super::record::{GENERAL, Record, SINGLE};
use super::requant::{self, Rounding};

// The cores with loops of their own; hosts, and other cores, run the portable one.
#[cfg(cortex_m = "baseline")]
#[path = "rows_m0.rs"]
mod loops;
#[cfg(cortex_m = "mainline")]
#[path = "rows_m3.rs"]
mod loops;
#[cfg(all(target_arch = "riscv32", target_feature = "m", target_os = "none"))]
#[path = "rows_rv32.rs"]
mod loops;
#[cfg(not(any(
    cortex_m = "baseline",
    cortex_m = "mainline",
    all(target_arch = "riscv32", target_feature = "m", target_os = "none")
)))]
#[path = "rows_portable.rs"]
mod loops;

pub(super) use loops::rows;

/// All channels of up to four pixels, requantised and stored.
///
/// # Safety
/// `x` has `2 * inputs` words, `w` `channels` rows of `inputs` bytes, `records` as many valid records; `out` takes `count` pixels of `stride` bytes.
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn multiply(
    x: *const i32,
    w: *const i8,
    inputs: usize,
    records: &[Record],
    out: *mut i8,
    stride: usize,
    count: usize,
    zero_point: i8,
    rounding: Rounding,
) {
    let range = records.as_ptr_range();
    let mut job = Job {
        out,
        stride,
        end: range.end,
        twice: requant::twice(zero_point),
        inputs,
        sums: [[0; 4]; LANES],
        half: rounding.half(),
        left: rounding.left(SINGLE),
        right: rounding.right(),
    };
    let mut general = [[0; 3]; LANES];
    let mut done = 0;
    while done < records.len() {
        // The loops store four pixels. Of fewer they are given records of the general form, whatever form the channels have, so that every sum is handed back.
        let mut first = range.start.wrapping_add(done);
        if count < 4 {
            for (general, &[bias, _, code]) in general.iter_mut().zip(records.iter().skip(done)) {
                *general = [bias, 0, code | GENERAL];
            }
            first = general.as_ptr();
            job.end = first.wrapping_add(LANES.min(records.len() - done));
        }
        // SAFETY: rows and records from `done` on.
        let reached = unsafe { rows(x, w.add(done * inputs), first, &mut job) };
        if count == 4 {
            // SAFETY: the loop returns a place within the records, or their end.
            done = unsafe { reached.offset_from(range.start) } as usize;
        }
        for (record, sums) in records.iter().skip(done).zip(&job.sums) {
            for (pixel, &sum) in sums.iter().enumerate().take(count) {
                let value = requant::any(sum, record, zero_point, [i8::MIN, i8::MAX]);
                // SAFETY: a valid record's place is below `stride`.
                unsafe { *out.add(pixel * stride + (record[2] as u32 >> 16) as usize) = value };
            }
            done += 1;
        }
    }
}
