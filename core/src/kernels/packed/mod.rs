//! int8 kernels for cores without SIMD: Cortex-M0 and M0+, Cortex-M3, RV32IM. They run on every other core too, in portable Rust.
//!
//! **Two products in one multiply.** A word `a + (b << 16)` times a byte `w` is `a*w + (b*w << 16)`: both products, as long as the
//! sums of the low half stay within 16 bits. So convolutions interleave four pixels into two such words for every input of a window
//! (the activations are unpacked once and serve all output channels; the weights stay bytes), and fully connected layers, which have
//! one pixel, keep their weights in such words instead. A *block* is a run of inputs whose products are known to fit, from the
//! weights alone: 2, 3, 4 or 8 of them, per channel, and up to 32 of the four channels of a fully connected layer. `rows` and `dense_sums` are the loops;
//! the table gives the instructions a MAC of the first.
//!
//! | core | plain loop, 2 x 2 | blocks of 2 | 3 | 4 | 8 | compiled from Rust, blocks of 4 |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | Cortex-M3: MLA takes 2 cycles, MUL 1 | 2.00 | 1.44 | 1.29 | 1.25 | 1.16 | 2.3 |
//! | Cortex-M0: 32 registers' worth of work in 8 | 7.5 (C library) | 2.50 | 2.25 | 2.12 | 1.84 | 4.0 |
//! | RV32IM, two channels at a time | 2.50 | 2.31 | 2.08 | 1.94 | 1.75 | 2.8 |
//!
//! The last column is why the three inner loops are assembly (`dot_s8_rows`): the compiler spills, and never uses LDM.
//! No loop multiplies more often than its plain form, so a core with a slow multiplier gains as well; SMULL is used once an output, where
//! the reference arithmetic needs 64 bits, and the Cortex-M0 makes do with three or four products of 32 bits there (`requantize.rs`).
//!
//! **Depthwise** layers have no operand to share between channels: a channel's plane is copied to scratch with its border, and three outputs of a row at a
//! time share weights and activations ([`dwconv_s8`]). Windows of nine taps at most that are not 3 x 3 go without loops over their taps
//! (`dwconv_s8_small_window`): requantising is most of what they take.
//!
//! **Where flash may be spent**, 3 x 3 convolutions take 16 products for four outputs instead of 36 ([`conv2d_s8_winograd`]), one in a multiply: 1.81
//! instructions on Cortex-M3, 3.78 on Cortex-M0, 2.84 on RV32IM, so 0.8, 1.7 and 1.3 a MAC, with some 60 to 100 a tile and channel for the transforms on either
//! side.
//!
//! Everything has one portable form, in Rust, that hosts run with the same packed weights to the same bits.

mod accumulate;
pub mod add_s8;
pub mod add_s8_linear;
mod args;
pub mod channel_record;
pub mod conv2d_s8;
mod conv2d_s8_pieces;
pub mod conv2d_s8_winograd;
mod dot_s8_rows;
pub mod dwconv_s8;
mod dwconv_s8_1x3_outputs;
mod dwconv_s8_3x3_plane;
mod dwconv_s8_lines;
mod dwconv_s8_single_output;
mod dwconv_s8_small_window;
mod dwconv_s8_windows;
mod im2col_4_pixels;
pub mod linear_s8;
mod linear_s8_dot;
#[cfg(kernel_isa = "strict_align")]
mod linear_s8_groups;
mod linear_s8_layout;
mod linear_s8_single_loop;
mod pack;
pub mod pool2d_s8;
mod requantize;
mod requantize_4_channels_s8;
pub mod svdf_s8;
mod unpack_4_pixels;

#[cfg(any(test, packing))]
use crate::target::Target;

/// The instruction sets that have loops of their own, for the estimates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Core {
    /// ARMv6-M.
    CortexM0,
    /// ARMv7-M, without the DSP extension.
    CortexM3,
    /// RV32IM.
    Riscv32,
}

impl Core {
    /// The instruction set whose loops a target runs; ARMv7-M's stand for all others.
    #[cfg(any(test, packing))]
    pub(super) const fn of(target: Target) -> Self {
        match target {
            Target::CortexM0 => Core::CortexM0,
            Target::Riscv32imac | Target::Riscv64gc | Target::Riscv64gcv | Target::Riscv32imacv => Core::Riscv32,
            _ => Core::CortexM3,
        }
    }

    /// Instructions for 16 MACs of `rows`, without the loop's own, in blocks of 4.
    const fn rows(self) -> u64 {
        match self {
            Core::CortexM0 => 34,
            Core::CortexM3 => 19,
            Core::Riscv32 => 30,
        }
    }

    /// Instructions of eight products of `winograd`, without the loop's own.
    #[cfg(any(test, packing))]
    const fn products(self) -> u64 {
        match self {
            Core::CortexM0 => 29,
            Core::CortexM3 => 14,
            Core::Riscv32 => 22,
        }
    }

    /// The fewest instructions of one output's requantising, in the single form, and its store.
    const fn requantize(self) -> u64 {
        match self {
            Core::CortexM0 => 17,
            Core::CortexM3 => 6,
            Core::Riscv32 => 7,
        }
    }

    /// Instructions of three neighbouring 3 x 3 depthwise sums at this stride.
    const fn plane(self, stride: u8) -> u64 {
        let loads = if stride == 1 { 15 } else { 21 };
        match self {
            Core::CortexM0 => loads + 54 + 9,
            Core::CortexM3 => loads + 27 + 9,
            Core::Riscv32 => loads + 54,
        }
    }
}

#[cfg(test)]
mod tests;
