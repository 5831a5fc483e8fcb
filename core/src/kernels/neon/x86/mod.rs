//! The loops for x86-64 hosts, by what the processor has: AVX2, and the dot products of AVX-512 (VNNI) for int8. The same layouts and the same bits as
//! `portable`, which is what a processor without AVX2 runs: sums of f32 are rounded after every product there and here, in one order, so that nothing that is
//! computed from them depends on the processor. Only a session that allows it (`Session::allow_fused`) has products fused with their sums.
//!
//! # Safety of all loops
//! As the head of `neon/args.rs` says.

#![cfg(target_arch = "x86_64")]

mod conv2d_f32_blocks;
mod dwconv_f32;
mod dwconv_s8;
mod gemm_f32_tiles;
mod gemm_s8;
mod requantize;

use super::args::{Depthwise, DepthwiseF32, Product};
use super::portable;
pub(in crate::kernels) use super::portable::{copy, fill, four_rows_f32, one_row, one_row_f32, two_rows, windows};
use crate::kernels::x86::Level;
pub(in crate::kernels) use conv2d_f32_blocks::Convolution;

pub(in crate::kernels) unsafe fn depthwise(args: *const Depthwise) {
    // SAFETY: the loops have the contract of this function; the processor has AVX2 where it is used.
    unsafe {
        match Level::get() {
            Level::Portable => portable::depthwise(args),
            Level::Avx2 | Level::Vnni => dwconv_s8::s8(args),
        }
    }
}

/// `apart`: no output of the step overlaps its input or residual. `fused`: products may be fused with their sums.
pub(in crate::kernels) unsafe fn depthwise_f32(args: *const DepthwiseF32, apart: bool, fused: bool) {
    // SAFETY: the loops have the contract of this function; the processor has AVX2 and FMA where they are used.
    unsafe {
        match Level::get() {
            Level::Portable => portable::depthwise_f32(args),
            Level::Avx2 | Level::Vnni if fused => dwconv_f32::run::<true>(args, apart),
            Level::Avx2 | Level::Vnni => dwconv_f32::run::<false>(args, apart),
        }
    }
}

/// All of a convolution of f32, where the processor has AVX2; whether it has.
///
/// # Safety
/// The operands are as the window says, weights as `conv2d_f32::pack` lays them out, and overlap at most as the kernel allows.
pub(in crate::kernels) unsafe fn convolution_f32(of: &Convolution<'_>) -> bool {
    match Level::get() {
        Level::Portable => return false,
        // SAFETY: `run` has the contract of this function; the processor has AVX2 and FMA at these levels.
        Level::Avx2 | Level::Vnni => unsafe { conv2d_f32_blocks::run(of) },
    }
    true
}

/// The outputs of tiles of `ROWS` rows, of weights of four elements side by side: what dot products of bytes compute.
///
/// # Safety
/// As for [`super::gemm_s8::Matrix::multiply`].
pub(in crate::kernels) unsafe fn dots<const ROWS: usize>(args: *const Product) {
    // SAFETY: the loops have the contract of this function; the processor has the instructions of its level.
    unsafe {
        match Level::get() {
            Level::Portable => super::gemm_s8_portable::rows::<false, 4>(args, ROWS),
            Level::Avx2 => gemm_s8::avx2::<ROWS>(args),
            Level::Vnni => gemm_s8::vnni::<ROWS>(args),
        }
    }
}

#[cfg(test)]
mod floats_tests;
#[cfg(test)]
mod tests;
