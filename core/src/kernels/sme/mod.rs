//! The outer products of bytes of AArch64's scalable matrix extension (`SMOPA`, SME), at any length of its vectors, which are 128 to 2048 bits.
//!
//! A tile of sums has as many pixels as a vector has words, and as many output channels. Nothing that is packed depends on how long vectors are. At 512 bits:
//!
//! | loop | MACs | instructions |
//! | --- | --- | --- |
//! | four elements of sixteen pixels by sixteen channels ([`conv2d_s8`]) | 1024 | 4.75 |
//! | the same by 48 channels | 3072 | 8.75 |
//! | 64 elements of a window's row of four pixels, as lines of a tile | | 12 |
//! | requantising of sixteen channels of a pixel | | 14 |
//!
//! Windows are rows of a fourth tile, whose columns are then what the product wants: every four elements of all pixels side by side. So nothing is copied,
//! and there is no scratch. `portable.rs` has all loops of the assembly (`asm.rs`), so that a host runs the same files, to the same bits. Sizes, overlap
//! distances, packing and instruction bounds are plain arithmetic, compiled everywhere.

mod args;
#[cfg(kernel_isa = "sme")]
mod asm;
pub mod conv2d_s8;
#[cfg(not(kernel_isa = "sme"))]
mod portable;
#[cfg(kernel_isa = "sme")]
use asm as loops;
#[cfg(not(kernel_isa = "sme"))]
use portable as loops;
mod packed;

#[cfg(test)]
mod tests;
