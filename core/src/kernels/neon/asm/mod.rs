//! The loops in A64 assembly.
//!
//! Memory is read and written by `ld1` and `st1` of bytes or aligned words: without an MMU all memory counts as device memory, where `ldr q` at an odd address
//! traps. Each function is naked and a leaf; it uses x0 to x17 and v0 to v7 and v16 to v31, which no call preserves. The figures beside the loops count
//! instructions.

mod copy;
mod depthwise;
#[cfg(target_os = "none")]
mod depthwise_f32;
mod outputs;
mod product;
#[cfg(target_os = "none")]
mod product_f32;
mod walk;

pub(in crate::kernels) use copy::*;
pub(in crate::kernels) use depthwise::*;
#[cfg(target_os = "none")]
pub(in crate::kernels) use depthwise_f32::*;
#[cfg(any(aarch64 = "dotprod", aarch64 = "i8mm"))]
pub(in crate::kernels) use outputs::outputs;
pub(in crate::kernels) use product::*;
#[cfg(target_os = "none")]
pub(in crate::kernels) use product_f32::*;
#[cfg(any(aarch64 = "dotprod", aarch64 = "i8mm"))]
pub(in crate::kernels) use walk::{forget, walk};

// Fused products have bits of their own, and what a host computes is to be the same on every host.
#[cfg(not(target_os = "none"))]
pub(in crate::kernels) use super::portable_f32::*;
