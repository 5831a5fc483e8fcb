//! Kernels of several backends beside one definition.

mod low_bit;
mod pool2d;
mod svdf;
