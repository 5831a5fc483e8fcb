//! The outputs of four channels that are neighbours in memory, each with a record of the short form of its own: what fully connected layers end in.

// The cores with code of their own; hosts, and other cores, run the portable one.
mod armv6m;
mod armv7m;
mod portable;
mod rv32im;

#[cfg(kernel_isa = "armv6m")]
use armv6m as loops;
#[cfg(kernel_isa = "armv7m")]
use armv7m as loops;
#[cfg(not(any(kernel_isa = "armv6m", kernel_isa = "armv7m", kernel_isa = "rv32im")))]
use portable as loops;
#[cfg(kernel_isa = "rv32im")]
use rv32im as loops;

pub(super) use loops::four;
#[cfg(any(kernel_isa = "armv6m", kernel_isa = "rv32im"))]
pub(super) use loops::output;
