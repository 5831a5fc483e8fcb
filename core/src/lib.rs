//! Arenite: the runtime.
#![no_std]
#![deny(unsafe_code)]

mod tensor;

pub use tensor::DType;
