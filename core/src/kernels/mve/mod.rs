//! Helium (the M-profile Vector Extension) on the Cortex-M55 and later cores.
//!
//! | loop | MACs or elements | instructions | instructions a MAC |
//! | --- | --- | --- | --- |
//! | product, two rows by four channels ([`gemm`]) | 128 | 14 | 0.109 |
//! | product, one row by eight channels | 128 | 17 | 0.133 |
//! | depthwise up to 3 x 3 at stride 1, 2 x 2 outputs a gather ([`depthwise`]) | 36 | 5 and the requantising | |
//! | depthwise up to 4 x 4 at any stride, one output a gather | 4 outputs | 9 and the requantising | |
//! | requantising of 16 outputs of a product | | 41 | |
//!
//! Every function that the assembly ([`asm`](self)) has, `portable.rs` has too, with the same name, layouts and bits, so that a host runs
//! the same blobs. Sizes, overlap distances, packing and instruction bounds are plain arithmetic, compiled everywhere.
//!
//! **Fast requantising.** The reference rounds ties of the right shift away from zero, the vector shift rounds them up: they differ for
//! negative values only. Where the output's zero point is the lower limit (any layer with a fused ReLU), a negative value ends at that
//! limit in both, and the correction is left out. `fast` further wants the limits of the type (then narrowing saturates at them) and no
//! left shift; every other step runs the general loop, which has all three.

mod args;
pub mod conv2d;
pub mod depthwise;
pub mod depthwise_f32;
pub mod elementwise;
mod gemm;
mod gemm_f32;
#[cfg_attr(all(target_arch = "arm", feature = "mve"), path = "asm/mod.rs")]
#[cfg_attr(not(all(target_arch = "arm", feature = "mve")), path = "portable.rs")]
mod loops;
pub mod pool2d;
mod rows;

/// The zero point, limits and form of a requantising.
#[derive(Debug, Clone, Copy)]
struct Output {
    zero_point: i32,
    low: i32,
    high: i32,
    fast: bool,
}

impl Output {
    /// `left`: whether any multiplier shifts left.
    fn new(zero_point: i8, [low, high]: [i8; 2], left: bool) -> Self {
        Self {
            zero_point: i32::from(zero_point),
            low: i32::from(low),
            high: i32::from(high),
            fast: !left && low == zero_point && [low, high] == [i8::MIN, i8::MAX],
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

/// The part of `len` positions from `start` that lies within `0..extent`: how many to skip, and how many then.
fn clip(start: isize, len: usize, extent: usize) -> (usize, usize) {
    let skip = (start.min(0).unsigned_abs()).min(len);
    let room = (extent as isize).saturating_sub(start).clamp(0, len as isize) as usize;
    (skip, room.saturating_sub(skip))
}

#[cfg(test)]
mod tests;
