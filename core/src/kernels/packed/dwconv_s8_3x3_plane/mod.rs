//! 3 x 3 sums over one channel's padded plane.

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

pub(super) use loops::dwconv_3x3_plane;
