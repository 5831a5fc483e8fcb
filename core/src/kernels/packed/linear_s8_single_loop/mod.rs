//! All outputs of a pixel of a fully connected layer by one loop that is not unrolled: what small layers of compiled models take, whose code would be
//! larger than their weights. Records of the short form alone. Weights in either [layout](super::linear_s8_layout): where bytes lie in order, which other
//! loops take without blocks, they go by blocks here too.

mod args;
// The cores with code of their own; others, and hosts, run the portable one.
mod armv6m;
mod portable;
mod rv32im;

pub(super) use args::SingleLoopArgs;
#[cfg(kernel_isa = "armv6m")]
pub(super) use armv6m::halves;
#[cfg(not(kernel_isa = "rv32im"))]
pub(super) use portable::bytes;
#[cfg(not(kernel_isa = "strict_align"))]
pub(super) use portable::halves;
#[cfg(kernel_isa = "rv32im")]
pub(super) use rv32im::{bytes, halves};
