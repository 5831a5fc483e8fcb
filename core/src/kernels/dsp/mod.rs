//! Kernels for cores with the DSP extension: Cortex-M4, M7, and M33 or M35P where it is built in.
//!
//! Convolutions take a packed stream ([`crate::ops::packed_conv2d`]) that the host writes with the `pack` function beside each kernel, so
//! that a layout has one definition. The inner loops are assembly where the compiler was measured to fail; each has the same loop in Rust for
//! hosts, where the tests compare them with the scalar kernels. `.cpu cortex-m33` in the assembly is for the assembler alone: rustc's targets
//! for ARMv8-M do not turn the extension on, and every instruction used is the same on ARMv7E-M.

pub mod conv2d;
mod conv2d_loops;
pub mod dense;
mod dense_loops;
pub mod depthwise;
mod depthwise_loops;
pub mod groups;
mod groups_loops;
pub mod nibbles;
mod nibbles_loops;
pub mod pairs;
mod pairs_loops;
pub mod pool2d;
mod record;
pub mod requant;
pub mod sliding;
mod sliding_loops;
pub mod sum;
pub mod svdf;
#[cfg(test)]
mod tests;
mod widen;
mod widen_loops;
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
