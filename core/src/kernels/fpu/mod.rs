//! f32 kernels for cores with a floating-point unit: sums held in registers over blocks of pixels and channels.
//!
//! Portable; the inner loops are assembly on hard-float Cortex-M. Weights are packed channel-innermost by the `pack` function beside
//! each kernel, so that a block's weights lie next to each other.
#![deny(unsafe_code)]

pub mod conv2d_f32;
pub mod conv2d_f32_loops;
pub mod dwconv_f32;
mod dwconv_f32_loops;

#[cfg(test)]
mod tests;
