//! NEON: what every AArch64 core has.
//!
//! | loop | MACs or outputs | instructions |
//! | --- | --- | --- |
//! | product, eight elements of two rows and sixteen channels ([`conv2d_s8`]) | 256 | 66 |
//! | the same of one row | 128 | 39 |
//! | depthwise, two taps of sixteen channels ([`dwconv_s8`]) | 32 | 16 |
//! | requantising of sixteen of its outputs | | 43 |
//! | product of f32, an element of four rows and sixteen channels ([`conv2d_f32`]) | 64 | 18.5 |
//! | the same of one row | 16 | 5.75 |
//! | depthwise of f32, two taps of sixteen channels ([`dwconv_f32`]) | 32 | 17 |
//!
//! Every function that the assembly (`asm/`) has, `portable.rs` has too, with the same name, layouts and bits, so that a host runs the same files; x86-64
//! hosts run them by AVX2 and VNNI (`x86/`), which is what `--target x86-64` packs for. Sizes, overlap distances, packing and instruction bounds are plain
//! arithmetic, compiled everywhere.

pub(super) mod args;
pub(super) mod asm;
pub mod conv2d_f32;
pub mod conv2d_s8;
pub mod dwconv_f32;
pub mod dwconv_s8;
pub(super) mod gemm_s8;
pub(super) mod x86;

#[cfg(kernel_isa = "neon")]
pub(super) use asm as loops;
#[cfg(target_arch = "x86_64")]
pub(super) use x86 as loops;
#[cfg(not(all(kernel_isa = "dotprod", kernel_isa = "i8mm", kernel_isa = "sme")))]
pub(super) mod numbers;
#[cfg(any(not(kernel_isa = "neon"), target_arch = "x86_64"))]
pub(super) mod portable;
#[cfg(not(any(kernel_isa = "neon", target_arch = "x86_64")))]
pub(super) use portable as loops;
#[cfg(not(all(kernel_isa = "dotprod", kernel_isa = "i8mm")))]
pub(super) mod gemm_s8_portable;
pub(super) mod im2col;
#[cfg(not(all(kernel_isa = "neon", target_os = "none")))]
mod portable_f32;

/// The part of `len` positions from `start` that lies within `0..extent`: how many to skip, and how many then.
fn clip(start: isize, len: usize, extent: usize) -> (usize, usize) {
    let skip = (start.min(0).unsigned_abs()).min(len);
    let room = (extent as isize).saturating_sub(start).max(0) as usize;
    (skip, room.min(len).saturating_sub(skip))
}

#[cfg(test)]
mod tests;
