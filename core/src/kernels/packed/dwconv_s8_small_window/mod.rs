//! Windows of few taps, of one channel: no loop over taps, and none over their rows. One output has so few products that its requantising takes most of it.

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

use super::channel_record::SINGLE;

pub(super) use loops::dwconv_small_window;

/// Whether weights and the start of sums are shifted as accumulators are before they are multiplied: where products have 64 bits.
const SHIFTED: bool = !cfg!(kernel_isa = "armv6m");

/// Shift of the weights and of the sums' start to the left, by a code as in [`super::args::Dwconv3x3PlaneArgs`].
#[inline(always)]
pub(super) const fn left(code: i32) -> u32 {
    match code >> 8 {
        _ if !SHIFTED => 0,
        0 => 1,
        left => left as u32,
    }
}

/// Origin of the tap offsets, in bytes from a window's first tap: 0, or the first tap of the neighbour before it.
pub(super) const fn origin(next: usize) -> usize {
    if SHIFTED { 0 } else { next.wrapping_neg() }
}

/// Whether the loop's arithmetic holds for a channel of so many taps: where products have 32 bits, of the short form's accumulators below 2^20.
#[inline(always)]
pub(super) const fn holds(bias: i32, code: i32, taps: usize) -> bool {
    SHIFTED || code & SINGLE != 0 || bias.unsigned_abs().saturating_add((taps as u32) << 14) < 1 << 20
}
