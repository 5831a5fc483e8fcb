//! The loops in A64 assembly.
//!
//! Memory is read and written by `ld1` and `st1` of bytes or aligned words: without an MMU all memory counts as device memory, where `ldr q` at an odd address
//! traps. Each function is naked and a leaf; it uses x0 to x17 and v0 to v7 and v16 to v31, which no call preserves. The figures beside the loops count
//! instructions.

#![cfg(kernel_isa = "neon")]

mod copy;
#[cfg(target_os = "none")]
mod dwconv_f32;
mod dwconv_s8;
#[cfg(target_os = "none")]
mod gemm_f32;
mod gemm_s8;
mod gemm_tiles;
mod requantize;

pub(in crate::kernels) use copy::*;
#[cfg(target_os = "none")]
pub(in crate::kernels) use dwconv_f32::*;
pub(in crate::kernels) use dwconv_s8::*;
#[cfg(target_os = "none")]
pub(in crate::kernels) use gemm_f32::*;
pub(in crate::kernels) use gemm_s8::*;
#[cfg(any(kernel_isa = "dotprod", kernel_isa = "i8mm"))]
pub(in crate::kernels) use gemm_tiles::{forget, walk};
#[cfg(any(kernel_isa = "dotprod", kernel_isa = "i8mm"))]
pub(in crate::kernels) use requantize::outputs;

// Fused products have bits of their own, and what a host computes is to be the same on every host.
#[cfg(not(target_os = "none"))]
pub(in crate::kernels) use super::portable_f32::*;
