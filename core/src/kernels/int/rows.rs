//! The inner loop: words that hold two activations (or two weights) each, times rows of bytes.

use super::record::{BLOCK, BLOCK2, BLOCK3, BLOCK8, CONSTANT, GENERAL, Record};
use super::requant;

/// Channels that [`rows`] takes at a time.
pub(super) const LANES: usize = if cfg!(all(target_arch = "riscv32", target_feature = "m", target_os = "none")) {
    2
} else {
    1
};

/// What [`rows`] needs besides its operands. The assembly knows these offsets.
#[repr(C)]
pub(super) struct Job {
    /// Where the first pixel's outputs go.
    pub(super) out: *mut i8,
    /// Bytes between pixels of the output.
    pub(super) stride: usize,
    /// End of the records.
    pub(super) end: *const Record,
    /// `2 * zero_point + 1` of the output.
    pub(super) twice: i32,
    /// Bytes of a row of weights.
    pub(super) inputs: usize,
    /// The accumulators of the channels that ended the call.
    pub(super) sums: [[i32; 4]; LANES],
}

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

/// The four sums of one row: what the assembly computes, written out.
///
/// A block's sum is `low + (high << 16)` mod 2^32 with `low + 2^15` in 0..2^16, so shifting it right by 16 gives `high` exactly. `totals`
/// adds up whole words, `highs` those halves; what is left of the totals is the low halves' sum, mod 2^32.
///
/// # Safety
/// `x` has 2 words, `w` one byte for each of `inputs`, a multiple of `B`.
#[inline(always)]
pub(super) unsafe fn accumulate<const B: usize>(x: *const i32, w: *const i8, inputs: usize, bias: i32) -> [i32; 4] {
    const HALF: i32 = 1 << 15;
    let start = bias
        .wrapping_mul(0x10001)
        .wrapping_sub(((inputs / B) as i32).wrapping_mul(HALF));
    let (mut totals, mut highs) = ([start; 2], [bias; 2]);
    for block in 0..inputs / B {
        let mut sums = [HALF; 2];
        for i in block * B..(block + 1) * B {
            for (pair, sum) in sums.iter_mut().enumerate() {
                // SAFETY: i < inputs.
                let (x, w) = unsafe { (*x.add(2 * i + pair), *w.add(i)) };
                *sum = sum.wrapping_add(x.wrapping_mul(i32::from(w)));
            }
        }
        for ((total, high), sum) in totals.iter_mut().zip(&mut highs).zip(sums) {
            *total = total.wrapping_add(sum);
            *high = high.wrapping_add(sum >> 16);
        }
    }
    let [a, b] = [0, 1].map(|i: usize| totals[i].wrapping_sub(highs[i] << 16));
    [a, highs[0], b, highs[1]]
}

/// The four sums of one row in the blocks that `code` names.
///
/// # Safety
/// As for [`accumulate`]; the block divides `inputs`.
#[inline(always)]
pub(super) unsafe fn accumulate_any(x: *const i32, w: *const i8, inputs: usize, bias: i32, code: i32) -> [i32; 4] {
    if code & CONSTANT != 0 {
        return [bias; 4];
    }
    // SAFETY: passed on.
    unsafe {
        match code & BLOCK {
            BLOCK2 => accumulate::<2>(x, w, inputs, bias),
            BLOCK3 => accumulate::<3>(x, w, inputs, bias),
            BLOCK8 => accumulate::<8>(x, w, inputs, bias),
            _ => accumulate::<4>(x, w, inputs, bias),
        }
    }
}

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
) {
    let mut job = Job {
        out,
        stride,
        end: records.as_ptr_range().end,
        twice: 2 * i32::from(zero_point) + 1,
        inputs,
        sums: [[0; 4]; LANES],
    };
    let store = |records: &[Record], sums: &[[i32; 4]; LANES]| {
        for (record, sums) in records.iter().zip(sums) {
            for (pixel, &sum) in sums.iter().enumerate().take(count) {
                let value = requant::any(sum, record, zero_point, [i8::MIN, i8::MAX]);
                // SAFETY: a valid record's place is below `stride`.
                unsafe { *out.add(pixel * stride + (record[2] as u32 >> 16) as usize) = value };
            }
        }
    };
    if count < 4 {
        // The loops store four pixels. Of fewer they are given records of the general form, whatever form the channels have, so that every sum is handed back.
        for (at, records) in records.chunks(LANES).enumerate() {
            let mut general = [[0; 3]; LANES];
            for (general, &[bias, _, code]) in general.iter_mut().zip(records) {
                *general = [bias, 0, code | GENERAL];
            }
            job.end = general.as_ptr().wrapping_add(records.len());
            // SAFETY: the records' rows.
            unsafe { rows(x, w.add(at * LANES * inputs), general.as_ptr(), &mut job) };
            store(records, &job.sums);
        }
        return;
    }
    let mut left = records;
    while !left.is_empty() {
        let done = records.len() - left.len();
        // SAFETY: rows and records from `done` on.
        let reached = unsafe { rows(x, w.add(done * inputs), left.as_ptr(), &mut job) };
        // SAFETY: the loop returns a place within the records, or their end.
        left = left
            .get(unsafe { reached.offset_from(left.as_ptr()) } as usize..)
            .unwrap_or_default();
        store(left, &job.sums);
        left = left.get(LANES..).unwrap_or_default();
    }
}
