//! NEON: what every AArch64 core has.
//!
//! | loop | MACs or outputs | instructions |
//! | --- | --- | --- |
//! | product, eight elements of two rows and sixteen channels ([`conv2d`]) | 256 | 66 |
//! | the same of one row | 128 | 39 |
//! | depthwise, two taps of sixteen channels ([`depthwise`]) | 32 | 16 |
//! | requantising of sixteen of its outputs | | 43 |
//! | product of f32, an element of four rows and sixteen channels ([`conv2d_f32`]) | 64 | 18.5 |
//! | the same of one row | 16 | 5.75 |
//! | depthwise of f32, two taps of sixteen channels ([`depthwise_f32`]) | 32 | 17 |
//!
//! Every function that the assembly (`asm/`) has, `portable.rs` has too, with the same name, layouts and bits, so that a host runs the same files; x86-64
//! hosts run them by AVX2 and VNNI (`x86/`), which is what `--target x86-64` packs for. Sizes, overlap distances, packing and instruction bounds are plain
//! arithmetic, compiled everywhere.

pub(super) mod args;
pub mod conv2d;
pub mod conv2d_f32;
pub mod depthwise;
pub mod depthwise_f32;
pub(super) mod gemm;
#[cfg_attr(aarch64 = "neon", path = "asm/mod.rs")]
#[cfg_attr(target_arch = "x86_64", path = "x86/mod.rs")]
#[cfg_attr(not(any(aarch64 = "neon", target_arch = "x86_64")), path = "portable.rs")]
pub(super) mod loops;
#[cfg(not(all(aarch64 = "dotprod", aarch64 = "i8mm", aarch64 = "sme")))]
pub(super) mod numbers;
#[cfg(target_arch = "x86_64")]
mod portable;
#[cfg(not(all(aarch64 = "neon", target_os = "none")))]
mod portable_f32;
#[cfg(not(all(aarch64 = "dotprod", aarch64 = "i8mm")))]
pub(super) mod products;
pub(super) mod rows;

/// The part of `len` positions from `start` that lies within `0..extent`: how many to skip, and how many then.
fn clip(start: isize, len: usize, extent: usize) -> (usize, usize) {
    let skip = (start.min(0).unsigned_abs()).min(len);
    let room = (extent as isize).saturating_sub(start).max(0) as usize;
    (skip, room.min(len).saturating_sub(skip))
}

#[cfg(test)]
mod tests;
