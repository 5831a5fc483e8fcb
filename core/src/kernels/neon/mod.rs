//! NEON: what every AArch64 core has.
//!
//! | loop | MACs or outputs | instructions |
//! | --- | --- | --- |
//! | depthwise, two taps of sixteen channels ([`depthwise`]) | 32 | 16 |
//! | requantising of sixteen of its outputs | | 43 |
//!
//! Every function that the assembly (`asm/`) has, `portable.rs` has too, with the same name, layouts and bits, so that a host runs the same files. Sizes,
//! overlap distances, packing and instruction bounds are plain arithmetic, compiled everywhere.

pub(super) mod args;
pub mod depthwise;
#[cfg_attr(aarch64 = "neon", path = "asm/mod.rs")]
#[cfg_attr(not(aarch64 = "neon"), path = "portable.rs")]
pub(super) mod loops;
#[cfg(not(aarch64 = "dotprod"))]
pub(super) mod numbers;
pub(super) mod rows;

/// The part of `len` positions from `start` that lies within `0..extent`: how many to skip, and how many then.
fn clip(start: isize, len: usize, extent: usize) -> (usize, usize) {
    let skip = (start.min(0).unsigned_abs()).min(len);
    let room = (extent as isize).saturating_sub(start).max(0) as usize;
    (skip, room.min(len).saturating_sub(skip))
}

#[cfg(test)]
mod tests;
