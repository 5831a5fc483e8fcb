//! Sums of three windows side by side, of any size, over one channel's pixels.
//!
//! Windows that are as far apart as their taps *slide*: each tap is loaded once for all three.

// The cores with loops of their own; hosts, and other cores, run the portable one.
#[cfg(cortex_m = "baseline")]
#[path = "threes_m0.rs"]
mod loops;
#[cfg(cortex_m = "mainline")]
#[path = "threes_m3.rs"]
mod loops;
#[cfg(all(target_arch = "riscv32", target_feature = "m", target_os = "none"))]
#[path = "threes_rv32.rs"]
mod loops;
#[cfg(not(any(
    cortex_m = "baseline",
    cortex_m = "mainline",
    all(target_arch = "riscv32", target_feature = "m", target_os = "none")
)))]
#[path = "threes_portable.rs"]
mod loops;

use super::args::Threes;

/// Whether the loop slides, on this core, over windows that do: elsewhere registers are fewer than that takes.
const SLIDES: bool = !cfg!(cortex_m = "baseline");

/// Whether the loop slides over windows that are `next` apart and their taps `right`.
pub(super) fn slides(next: usize, right: usize) -> bool {
    SLIDES && next == right
}

/// Taps that the loop takes at a time: after three, every tap of windows that slide is in its register again.
pub(super) const fn leap(slides: bool) -> usize {
    if slides { 3 } else { 2 }
}

/// All groups of the lines.
///
/// # Safety
/// Every tap is there, weights for them, and every output.
#[inline(always)]
pub(super) unsafe fn threes(job: &mut Threes) {
    // SAFETY: passed on.
    unsafe { loops::threes(job) };
}
