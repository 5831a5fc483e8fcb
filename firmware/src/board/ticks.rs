//! Timers' readings as 64-bit counts of instructions.

/// Instructions in `ticks`, for a timer whose tick is `quarter_ns` quarter nanoseconds, at 2^7 ns an instruction.
#[cfg(target_arch = "arm")]
pub(super) fn instructions_at_shift_7(ticks: u64, quarter_ns: u64) -> u64 {
    const QUARTER_NS: u64 = 4 << 7;
    (ticks * quarter_ns + QUARTER_NS / 2) / QUARTER_NS
}

/// A 64-bit count from a low half and the high halves read before and after it: a low half that has just wrapped is
/// small and belongs to the later one.
#[cfg(any(timer = "system_counter", target_arch = "riscv32"))]
pub(super) fn joined(before: u32, low: u32, after: u32) -> u64 {
    let high = if low < 1 << 31 { after } else { before };
    u64::from(high) << 32 | u64::from(low)
}
