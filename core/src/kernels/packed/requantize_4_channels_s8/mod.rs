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
#[cfg(not(kernel_isa = "gpr32"))]
use portable as loops;
#[cfg(kernel_isa = "rv32im")]
use rv32im as loops;

pub(super) use loops::four;
#[cfg(kernel_isa = "strict_align")]
pub(super) use loops::output;
