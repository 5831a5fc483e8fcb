//! The vector extension of RISC-V, 1.0, at any length of its registers from 128 bits, and of its embedded forms Zve32x.
//!
//! Output channels lie along the vectors. Nothing that is packed depends on how long these are: loops ask for as many channels as fit eight registers of sums
//! (`LMUL` 8, a tile of three pixels) or, where all of them fit four (`LMUL` 4), take a tile of six. At 128 bits, instructions and operations on elements:
//!
//! | loop | MACs | instructions | operations on elements |
//! | --- | --- | --- | --- |
//! | product, an element of three pixels and 32 channels ([`conv2d_s8`]) | 96 | 9 + 1.25 | 96 + 64 |
//! | the same of six pixels and sixteen channels | 96 | 15 + 2 | 96 + 32 |
//! | the same of one pixel and 32 channels | 32 | 5 + 0.75 | 32 + 64 |
//! | depthwise, a tap of three pixels and 32 channels ([`dwconv_s8`]) | 96 | 23 | 288 + 64 |
//! | depthwise, a tap of six pixels and sixteen channels | 96 | 35 | 288 + 32 |
//! | sum of two tensors, 32 elements ([`add_s8_linear`]) | | 23 | 480 |
//!
//! The multiplications' own operations come first; those of loading and widening, of weights and of depthwise inputs, after them.
//!
//! Every function that the assembly (`asm/`) has, `portable.rs` has too, with the same name, layouts and bits, so that a host runs the same files. Sizes,
//! overlap distances, packing and instruction bounds are plain arithmetic, compiled everywhere.

pub(super) mod args;
#[cfg(kernel_isa = "rvv")]
mod asm;
pub mod conv2d_s8;
pub mod dwconv_s8;
#[cfg(not(kernel_isa = "rvv"))]
mod portable;
#[cfg(kernel_isa = "rvv")]
use asm as loops;
#[cfg(not(kernel_isa = "rvv"))]
use portable as loops;
pub mod add_s8_linear;
mod indirection;
mod packed;

#[cfg(test)]
mod tests;
