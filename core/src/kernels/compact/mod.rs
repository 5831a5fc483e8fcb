//! The kernels of `pack --size`: the least code that is not slow. Portable Rust, the same on every core.
//!
//! One loop computes convolutions, depthwise convolutions and fully connected layers ([`conv2d_s8`]); a pooling is the scalar one without int16.
//! Builds with the DSP extension multiply with SXTB16 and SMLAD.

pub mod conv2d_s8;
pub mod pool2d_s8;
