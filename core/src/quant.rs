//! The integer arithmetic of quantised networks: the only place in Arenite that rounds or requantises.
//!
//! The host calls these functions when it packs (tables, multipliers, its evaluator), the device when it runs, so that both give
//! the same bits. A quantised tensor stores integers `q` with `real = scale * (q - zero_point)`.
//!
//! Sources: the TensorFlow Lite 8-bit quantisation specification for the scheme; Jacob et al., "Quantization and Training of
//! Neural Networks for Efficient Integer-Arithmetic-Only Inference" (CVPR 2018) for multipliers; gemmlowp's `fixedpoint.h` for
//! the fixed-point functions. Where public implementations differ, TensorFlow Lite Micro's portable kernels are the truth: a 32-bit
//! product is rounded **twice** (once to the high half, once by the right shift), a 64-bit product once, with a 16-bit mantissa.
//!
//! All functions are total: operands that the reference leaves undefined (a left shift that overflows) wrap, as they do there
//! in practice, and nothing panics.

mod activation;
mod fixed;
mod lrn;
mod rounding;
mod softmax;
mod wide;

#[cfg(kernel_isa = "armv7m")]
pub(crate) use activation::SIGMOID;
pub use activation::{HardSwish, LogisticI8, SigmoidI16, leaky_relu, lookup_i16, rsqrt_i8, table_index};
pub use fixed::{
    exp_on_negative_values, inverse_sqrt, log_for_at_least_one, logistic, one_over_one_plus_x, quotient, reciprocal,
    tanh,
};
pub use lrn::{LRN_OCTAVES, LRN_POWERS, LrnI8};
pub use rounding::{
    Multiplier, dequantize, high_mul, high_mul_i16, quantize, requantize, rounding_shift_right, saturating_shift_left,
};
pub(crate) use rounding::{Rescaler, high_mul_in_range};
pub use softmax::{LogSoftmaxI8, SoftmaxI8, SoftmaxI16, softmax_by_table};
pub(crate) use wide::wide_product;
