//! Arenite: the runtime.
#![no_std]
#![deny(unsafe_code)]

pub mod quant;
mod tensor;

pub use tensor::DType;
