//! The vector extension of RISC-V, 1.0, at any length of its registers from 128 bits, and of its embedded forms Zve32x.
//!
//! Output channels lie along the vectors. Nothing that is packed depends on how long these are: loops ask for as many channels as fit eight registers of sums
//! (`LMUL` 8, a tile of three pixels) or, where all of them fit four (`LMUL` 4), take a tile of six. At 128 bits, instructions and operations on elements:
//!
//! | loop | MACs | instructions | operations on elements |
//! | --- | --- | --- | --- |
//! | product, an element of three pixels and 32 channels ([`conv2d`]) | 96 | 9 + 1.25 | 96 + 64 |
//! | the same of six pixels and sixteen channels | 96 | 15 + 2 | 96 + 32 |
//! | the same of one pixel and 32 channels | 32 | 5 + 0.75 | 32 + 64 |
//! | depthwise, a tap of three pixels and 32 channels ([`depthwise`]) | 96 | 23 | 288 + 64 |
//! | depthwise, a tap of six pixels and sixteen channels | 96 | 35 | 288 + 32 |
//! | sum of two tensors, 32 elements ([`sum`]) | | 23 | 480 |
//!
//! The multiplications' own operations come first; those of loading and widening, of weights and of depthwise inputs, after them.
//!
//! Every function that the assembly (`asm/`) has, `portable.rs` has too, with the same name, layouts and bits, so that a host runs the same files. Sizes,
//! overlap distances, packing and instruction bounds are plain arithmetic, compiled everywhere.

pub(super) mod args;
pub mod conv2d;
pub mod depthwise;
#[cfg_attr(riscv = "v", path = "asm/mod.rs")]
#[cfg_attr(not(riscv = "v"), path = "portable.rs")]
mod loops;
mod packed;
mod runs;
pub mod sum;

#[cfg(test)]
mod tests;
