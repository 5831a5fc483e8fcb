//! Sums of three windows side by side, of any size, over one channel's pixels.
//!
//! Windows that are as far apart as their taps *slide*: each tap is loaded once for all three.

// The cores with loops of their own; hosts, and other cores, run the portable one.
mod armv6m;
mod armv7m;
mod portable;
mod rv32im;

#[cfg(kernel_isa = "armv6m")]
use armv6m as loops;
#[cfg(kernel_isa = "armv7m")]
use armv7m as loops;
#[cfg(not(kernel_isa = "gpr32"))]
use portable as loops;
#[cfg(kernel_isa = "rv32im")]
use rv32im as loops;

use super::args::Dwconv1x3Args;

/// Whether the loop slides, on this core, over windows that do: elsewhere registers are fewer than that takes.
const SLIDES: bool = !cfg!(kernel_isa = "armv6m");

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
/// Every tap of every window is readable, and every output writable; `weights` has a byte for each tap.
#[inline(always)]
pub(super) unsafe fn dwconv_1x3(job: &mut Dwconv1x3Args) {
    // SAFETY: the core's loop has the contract of this function.
    unsafe { loops::dwconv_1x3(job) };
}
