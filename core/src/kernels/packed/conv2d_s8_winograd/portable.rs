//! [`products`] in Rust, for hosts and for cores without a loop of their own.

#![cfg(not(kernel_isa = "gpr32"))]

use super::transform::{LANES, POINTS, TILES};

/// A row of the transform: the sums of both tiles times four channels over all inputs, for each of its four points, modulo 2^32.
///
/// # Safety
/// `tiles` is a row of `[channels, 16, 2]`, `weights` has `[4, channels, 4]`; there is a multiple of four channels.
pub(super) unsafe fn products(
    tiles: *const i16,
    weights: *const i16,
    channels: usize,
    sums: &mut [i32; 4 * LANES * TILES],
) {
    let (points, _) = sums.as_chunks_mut::<{ LANES * TILES }>();
    for (point, sums) in points.iter_mut().enumerate() {
        *sums = [0; LANES * TILES];
        for c in 0..channels {
            for (lane, sums) in sums.as_chunks_mut::<TILES>().0.iter_mut().enumerate() {
                for (tile, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: `point < 4`, `c < channels`, `tile < 2` and `lane < 4`: inside `[channels, 16, 2]` and `[4, channels, 4]` (fn docs).
                    let (x, w) = unsafe {
                        let x = *tiles.add((c * POINTS + point) * TILES + tile);
                        (x, *weights.add((point * channels + c) * LANES + lane))
                    };
                    *sum = sum.wrapping_add(i32::from(x) * i32::from(w));
                }
            }
        }
    }
}
