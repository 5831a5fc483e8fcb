//! One file per core family: start-up, faults, and the timer that counts instructions. Which timer, and where, says the board's row in
//! `host-tools/src/board/table.rs`.

#[cfg(target_arch = "arm")]
mod cortex_m;

#[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
mod riscv;
#[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
pub(crate) use riscv::timer;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::timer;

#[cfg(timer = "cmsdk")]
#[path = "cmsdk_timer.rs"]
pub(crate) mod timer;

#[cfg(timer = "system_counter")]
#[path = "system_counter.rs"]
pub(crate) mod timer;

#[cfg(timer = "nrf")]
#[path = "nrf_timer.rs"]
pub(crate) mod timer;

// What the build takes from the board's row.
#[cfg(board)]
include!(concat!(env!("OUT_DIR"), "/row.rs"));

/// Instructions in `ticks`, for a timer whose tick is `quarter_ns` quarter nanoseconds, at 2^7 ns an instruction.
#[cfg(target_arch = "arm")]
fn instructions_at_shift_7(ticks: u64, quarter_ns: u64) -> u64 {
    const QUARTER_NS: u64 = 4 << 7;
    (ticks * quarter_ns + QUARTER_NS / 2) / QUARTER_NS
}

/// A 64-bit count from a low half and the high halves read before and after it: a low half that has just wrapped is
/// small and belongs to the later one.
#[cfg(any(timer = "system_counter", target_arch = "riscv32"))]
fn joined(before: u32, low: u32, after: u32) -> u64 {
    let high = if low < 1 << 31 { after } else { before };
    u64::from(high) << 32 | u64::from(low)
}
