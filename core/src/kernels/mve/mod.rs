//! Helium (the M-profile Vector Extension) on the Cortex-M55 and later cores.
//!
//! | loop | MACs or elements | instructions | instructions a MAC |
//! | --- | --- | --- | --- |
//! | product, two rows by four channels (`gemm`) | 128 | 14 | 0.109 |
//! | the same, of rows that stay in registers: up to 48 elements, and the first 32 of more | 128 | 13 | 0.102 |
//! | product of 16 elements, four rows by two channels, with the requantising of 8 outputs | 128 | 27 | 0.211 |
//! | product, one row by eight channels | 128 | 17 | 0.133 |
//! | the same of channels alike ([`linear_s8`]), the last five blocks of a row | 128 | 16 | 0.125 |
//! | the same two of weights of four bits | 128 | 14, 17 | 0.109, 0.133 |
//! | depthwise up to 3 x 3 at stride 1, 2 x 2 outputs a gather ([`dwconv_s8`]) | 72 | 29 with the requantising of 8 outputs | 0.40 |
//! | the same of a last column alone, of four sets of rows | 36 | 35 with the requantising of 8 outputs | |
//! | depthwise up to 4 x 4 at any stride, one output a gather | 8 outputs | 35 with the requantising | |
//! | depthwise of any window, two taps of 16 channels ([`dwconv_s8_indirection`]) | 32 | 25 | 0.78 |
//! | requantising of 16 outputs of a product | | 39 | |
//! | sum of two operands in linear form ([`add_s8_linear`]) | 16 outputs | 30 | |
//! | product of f32 rows, one by four ([`linear_f32`]) | 16 | 10 | 0.625 |
//!
//! Every function that the assembly (`asm/`) has, `portable.rs` has too, with the same name, layouts and bits, so that a host runs the
//! same blobs. (f32 sums are fused on the device: their last bits differ.) Sizes, overlap distances, packing and instruction bounds are
//! plain arithmetic, compiled everywhere.
//!
//! **Measured** on qemu's mps3-an547 with `-icount`, the kernels of every layer of the MLPerf Tiny int8 models run one by one on the layers'
//! own inputs (`testkit::run`), all outputs equal to the reference:
//!
//! | instructions, without softmax | ad01 | kws | vww_96 | resnet8 |
//! | --- | --: | --: | --: | --: |
//! | these kernels | 49,403 | 688,146 | 1,920,352 | 2,119,609 |
//! | TensorFlow Lite Micro with CMSIS-NN, with softmax | 63,594 | 1,730,562 | 6,243,469 | 4,607,062 |
//!
//! **Where steps stand more than 15 % above their bounds, and why.** Fully connected layers and small steps: some 330 instructions to
//! read the operator and enter the loop. First convolutions (150 to 180 %): copying windows, 13 instructions each, which the bound
//! leaves out, and the loop over pixels, which eight channels hardly amortise. 3 x 3 convolutions of 16 channels (125 %): copying
//! columns. Depthwise: starting a channel costs 26 instructions and a set of rows 10, which images of 3 x 3 to 6 x 6 pixels hardly
//! amortise; at stride 2 a gather serves one output.
//!
//! **Fast requantising.** The reference rounds ties of the right shift away from zero, the vector shift rounds them up: they differ for
//! negative values only. Where the output's zero point is the lower limit (any layer with a fused ReLU), a negative value ends at that
//! limit in both, and the correction is left out. `fast` further wants the limits of the type (then narrowing saturates at them) and no
//! left shift; every other step runs the general loop, which has all three,
//! or of four rows of one block, where nothing shifts left, the one without that.

pub mod add_s8;
pub mod add_s8_linear;
mod args;
#[cfg(kernel_isa = "mve")]
mod asm;
pub mod conv2d;
pub mod conv2d_s8_w4_groups;
pub mod dwconv_f32;
pub mod dwconv_s8;
mod gemm_f32;
mod gemm_s8;
mod geometry;
pub mod linear_f32;
pub mod linear_s8;
#[cfg(not(kernel_isa = "mve"))]
mod portable;
#[cfg(kernel_isa = "mve")]
use asm as loops;
#[cfg(not(kernel_isa = "mve"))]
use portable as loops;
pub mod dwconv_s8_indirection;
mod im2col;
pub mod pool2d_s8;
pub mod svdf_s8;

/// The zero point, limits and form of a requantising.
#[derive(Debug, Clone, Copy)]
struct Output {
    zero_point: i32,
    low: i32,
    high: i32,
    fast: bool,
    /// Whether any multiplier shifts left.
    left: bool,
}

impl Output {
    fn new(zero_point: i8, [low, high]: [i8; 2], left: bool) -> Self {
        Self {
            zero_point: i32::from(zero_point),
            low: i32::from(low),
            high: i32::from(high),
            fast: !left && low == zero_point && [low, high] == [i8::MIN, i8::MAX],
            left,
        }
    }
}

/// Bytes of the header of packed weights: the first word is 1 where a multiplier shifts left. The rest is zero.
const HEADER: usize = 16;

/// Writes the header of packed weights.
fn pack_header(channels: &[[i32; 3]], dst: &mut [u8]) -> Option<()> {
    let left = channels.iter().any(|&[_, _, shift]| shift > 0);
    dst.get_mut(..HEADER)?.fill(0);
    *dst.first_mut()? = u8::from(left);
    Some(())
}

/// Whether a header is as [`pack_header`] writes it; then, whether a multiplier shifts left.
fn header(weights: &[u8]) -> Option<bool> {
    match weights.get(..HEADER)?.split_first()? {
        (&left @ (0 | 1), rest) if rest.iter().all(|&byte| byte == 0) => Some(left == 1),
        _ => None,
    }
}

/// The part of `len` positions from `start` that lies within `0..extent`: how many to skip, and how many then.
fn clip(start: isize, len: usize, extent: usize) -> (usize, usize) {
    let skip = (start.min(0).unsigned_abs()).min(len);
    let room = (extent as isize).saturating_sub(start).max(0) as usize;
    (skip, room.min(len).saturating_sub(skip))
}

#[cfg(test)]
pub(super) mod tests;
