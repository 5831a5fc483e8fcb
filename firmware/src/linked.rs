//! The kernels that a program for any model links.

#[cfg(not(feature = "small-flash"))]
pub use arenite::All as Linked;

/// All but those that 256 KiB of flash have no room for: front ends for audio, comparisons, choices, remainders, quotients and products of activations.
/// A model with one of them is refused at load, by its name.
#[cfg(feature = "small-flash")]
#[derive(Debug)]
pub struct Linked;

#[cfg(feature = "small-flash")]
impl arenite::Kernels for Linked {
    const SET: u128 = !(bits(33, 47) | bits(112, 116));
}

/// A bit for each kernel from `first` to `last`.
#[cfg(feature = "small-flash")]
const fn bits(first: u32, last: u32) -> u128 {
    (u128::MAX >> (127 - last)) & (u128::MAX << first)
}
