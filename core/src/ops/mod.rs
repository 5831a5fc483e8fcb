//! The operators: what their parameters mean, and what must hold for them. They know no kernel.
//!
//! An *operator* is a structure of parameters over places that travels in the blob ([`operator::Operator`]); how it is computed is a
//! [`Kernel`](crate::kernels::api::kernel::Kernel)'s matter.

pub mod activation_grad;
pub mod arg_max;
pub mod attention;
pub mod batch_norm;
pub mod binary;
pub mod choose;
pub mod compare;
pub mod conv2d;
pub mod conv2d_train;
pub mod convert;
pub mod cost;
pub mod detections;
pub(crate) mod distance;
pub mod elementwise;
pub mod elementwise_int;
pub mod embedding;
pub mod ethos_u;
pub mod fault;
pub mod fft;
pub mod frames;
pub mod gather;
pub mod global_pool;
pub mod l2_norm;
pub mod linear;
pub mod linear_train;
pub mod locally_connected;
pub mod locally_connected_train;
pub mod loss;
pub mod low_bit;
pub mod lrn;
pub mod lrn_grad;
pub mod lstm;
pub mod matmul;
pub mod movement;
pub mod operator;
pub mod packed_conv2d;
pub mod packed_sum;
pub mod pointwise;
pub mod pool2d;
pub mod pool2d_train;
pub mod position;
pub mod reduce;
pub mod resize;
pub mod rms_norm;
pub mod rotary;
pub mod signal;
pub(crate) mod size;
pub mod softmax;
pub mod special_int;
pub mod svdf;
pub mod window;
pub mod write_line;

#[cfg(test)]
mod tests;
