//! Windows of few taps, of one channel: no loop over taps, and none over their rows. One output has so few products that its requantising takes most of it.

// The cores with loops of their own; hosts, and other cores, run the portable one.
#[cfg(cortex_m = "baseline")]
#[path = "few_m0.rs"]
mod loops;
#[cfg(cortex_m = "mainline")]
#[path = "few_m3.rs"]
mod loops;
#[cfg(all(target_arch = "riscv32", target_feature = "m", target_os = "none"))]
#[path = "few_rv32.rs"]
mod loops;
#[cfg(not(any(
    cortex_m = "baseline",
    cortex_m = "mainline",
    all(target_arch = "riscv32", target_feature = "m", target_os = "none")
)))]
#[path = "few_portable.rs"]
mod loops;

use super::record::SINGLE;

pub(super) use loops::few;

/// Whether weights and the start of sums are shifted as accumulators are before they are multiplied: where products have 64 bits.
const SHIFTED: bool = !cfg!(cortex_m = "baseline");

/// What weights and the start of sums are shifted by to the left, of a code as in [`super::args::Plane`].
#[inline(always)]
pub(super) const fn left(code: i32) -> u32 {
    match code >> 8 {
        _ if !SHIFTED => 0,
        0 => 1,
        left => left as u32,
    }
}

/// Where the loop counts taps' places from: the first tap of the window's neighbour before it, or its own.
pub(super) const fn origin(next: usize) -> usize {
    if SHIFTED { 0 } else { next.wrapping_neg() }
}

/// Whether the loop's arithmetic holds for a channel of so many taps: where products have 32 bits, of the short form's accumulators below 2^20.
#[inline(always)]
pub(super) const fn holds(bias: i32, code: i32, taps: usize) -> bool {
    SHIFTED || code & SINGLE != 0 || bias.unsigned_abs().saturating_add((taps as u32) << 14) < 1 << 20
}
