//! Loops that several kernels are made of: a file for each, or a folder where cores have loops of their own. In a folder `mod.rs` has the contract, the
//! arguments and the portable loop, and each other file an instruction set's.

pub mod add_s8_linear;
pub(crate) mod binary_s8;
pub(crate) mod broadcast_rows;
pub(crate) mod conv2d_s16;
#[cfg(any(kernel_isa = "armv6m", target_arch = "riscv32"))]
mod copy_short;
pub(crate) mod delay_line;
pub(in crate::kernels) mod dot_f32;
pub(crate) mod dot_s16;
pub(crate) mod dot_s8;
pub(in crate::kernels) mod dwconv_indirection;
pub(crate) mod lstm_gates;
pub(crate) mod matmul_columns;
pub(in crate::kernels) mod quantize_f32;
pub(crate) mod reduce;
pub(crate) mod reduce_f32;
pub mod requantize;
pub(crate) mod resize;
pub(crate) mod strided_copy;
pub mod svdf;
pub(in crate::kernels) mod svdf_state;
pub(in crate::kernels) mod tiles_f32;
pub(in crate::kernels) mod transpose;
