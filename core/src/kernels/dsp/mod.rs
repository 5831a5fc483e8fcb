//! Kernels for cores with the DSP extension: Cortex-M4, M7, and M33 or M35P where it is built in.
//!
//! Convolutions take a packed stream ([`crate::ops::packed_conv2d`]) that the host writes with the `pack` function beside each kernel, so
//! that a layout has one definition. The inner loops are assembly where the compiler was measured to fail; each has the same loop in Rust for
//! hosts, where the tests compare them with the scalar kernels. `.cpu cortex-m33` in the assembly is for the assembler alone: rustc's targets
//! for ARMv8-M do not turn the extension on, and every instruction used is the same on ARMv7E-M.

pub mod add_s8_linear;
mod channel;
mod channel_record;
pub mod conv2d_s8;
mod conv2d_s8_loops;
pub mod conv2d_s8_paired;
mod conv2d_s8_paired_loops;
mod conv2d_s8_pieces;
pub mod conv2d_s8_w4;
pub mod conv2d_s8_w4_groups;
mod conv2d_s8_w4_groups_loops;
mod conv2d_s8_w4_loops;
pub mod dwconv_s8;
pub mod dwconv_s8_3x3_s1;
mod dwconv_s8_3x3_s1_loops;
mod dwconv_s8_loops;
mod im2col_s16;
mod im2col_s16_loops;
pub mod linear_s8;
mod linear_s8_loops;
pub mod pool2d_s8;
pub mod requantize;
mod rows;
mod staged_output;
pub mod svdf_s8;
#[cfg(test)]
mod tests;
mod windows;

/// Places along one axis whose window lies inside the input: from, to.
fn inside(
    input: usize,
    output: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    padding: usize,
) -> (usize, usize) {
    // Never 0, as load has checked and the compiler does not see.
    let stride = stride.max(1);
    let from = padding.div_ceil(stride).min(output);
    let reach = kernel.saturating_sub(1) * dilation;
    let to = match (input + padding).checked_sub(reach + 1) {
        Some(last) => (last / stride + 1).min(output),
        None => 0,
    };
    (from, to.max(from))
}
