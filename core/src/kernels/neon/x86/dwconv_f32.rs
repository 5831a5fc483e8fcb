//! Depthwise convolutions of f32: sixteen channels of four pixels at a time, for which weights are read once, eight or four of what is left.
//!
//! Outputs that overlap input still to be read are computed a pixel at a time, in `portable`'s order of writes.

use core::arch::x86_64::*;

use super::super::args::DepthwiseF32;
use super::gemm_f32_tiles::{Limits, from, mac};

/// Pixels of a tile.
const TILE: usize = 4;

/// # Safety
/// As for [`super::depthwise_f32`]; the processor has AVX2 and FMA. `apart`: no output of the step overlaps its input or residual.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn run<const FUSED: bool>(args: *const DepthwiseF32, apart: bool) {
    // SAFETY: `args` is valid, with weights in the layout of `dwconv_f32::pack`: taps, channels and outputs below its numbers are valid (fn docs).
    unsafe {
        let args = &*args;
        let entries = core::slice::from_raw_parts(args.entries, args.taps);
        let least = entries.iter().map(|entry| entry.addr()).min().unwrap_or(0);
        // Of a tile's outputs none lies where its pixels, and what follows them, are read. A residual may be anywhere.
        let free = |pixel: usize| {
            let end = args.out.wrapping_add((pixel + TILE) * args.bytes / 4).addr();
            apart || (args.residual.is_null() && end <= least + pixel * args.step)
        };
        let mut pixel = 0;
        while pixel < args.pixels {
            if pixel + TILE <= args.pixels && free(pixel) {
                of_pixels::<TILE, FUSED>(args, pixel);
                pixel += TILE;
            } else {
                of_pixels::<1, FUSED>(args, pixel);
                pixel += 1;
            }
        }
    }
}

/// All channels of `PIXELS` pixels.
///
/// # Safety
/// As for [`run`].
#[target_feature(enable = "avx2,fma")]
unsafe fn of_pixels<const PIXELS: usize, const FUSED: bool>(args: &DepthwiseF32, pixel: usize) {
    let channels = args.bytes / 4;
    let rest = 16 * args.blocks;
    // SAFETY: the blocks of 16, eight and four channels cover `channels`, which are there in every tap, weight and output (docs of `run`).
    unsafe {
        for first in (0..rest).step_by(16) {
            block::<PIXELS, 2, FUSED>(args, pixel, first);
        }
        let eight = channels - rest >= 8;
        if eight {
            block::<PIXELS, 1, FUSED>(args, pixel, rest);
        }
        for quad in (if eight { 2 } else { 0 })..args.quads {
            let first = (rest + 4 * quad).min(channels - 4);
            for pixel in pixel..pixel + PIXELS {
                four::<FUSED>(args, pixel, first);
            }
        }
    }
}

/// `VECTORS` times eight channels of `PIXELS` pixels.
///
/// # Safety
/// As for [`run`].
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn block<const PIXELS: usize, const VECTORS: usize, const FUSED: bool>(
    args: &DepthwiseF32,
    pixel: usize,
    first: usize,
) {
    // SAFETY: `first + 8 * VECTORS <= channels`: these channels' taps, weights, biases and outputs are valid (docs of `run`).
    unsafe {
        let channels = args.bytes / 4;
        let limits = Limits::new(args.limits);
        let mut bias = [_mm256_setzero_ps(); VECTORS];
        for (vector, bias) in bias.iter_mut().enumerate() {
            *bias = from(args.bias, first + 8 * vector);
        }
        let mut sums = [bias; PIXELS];
        let mut weights = args.weights.add(first);
        for tap in 0..args.taps {
            let x = (*args.entries.add(tap)).add(pixel * args.step).cast::<f32>().add(first);
            let w: [__m256; VECTORS] = core::array::from_fn(|vector| _mm256_loadu_ps(weights.add(8 * vector)));
            for (of, sums) in sums.iter_mut().enumerate() {
                let x = x.byte_add(of * args.step);
                for (vector, (sum, w)) in sums.iter_mut().zip(w).enumerate() {
                    *sum = mac::<FUSED>(*sum, _mm256_loadu_ps(x.add(8 * vector)), w);
                }
            }
            weights = weights.wrapping_add(channels);
        }
        for (of, sums) in sums.into_iter().enumerate() {
            for (vector, mut sum) in sums.into_iter().enumerate() {
                let at = (pixel + of) * channels + first + 8 * vector;
                if !args.residual.is_null() {
                    sum = _mm256_add_ps(sum, _mm256_loadu_ps(args.residual.add(at)));
                }
                _mm256_storeu_ps(args.out.add(at), limits.of(sum));
            }
        }
    }
}

/// Four channels of a pixel.
///
/// # Safety
/// As for [`run`].
#[target_feature(enable = "avx2,fma")]
unsafe fn four<const FUSED: bool>(args: &DepthwiseF32, pixel: usize, first: usize) {
    // SAFETY: `first + 4 <= channels`: these channels' taps, weights, biases and outputs are valid (docs of `run`).
    unsafe {
        let channels = args.bytes / 4;
        let at = pixel * channels + first;
        let mut sum = if args.bias.is_null() {
            _mm_setzero_ps()
        } else {
            _mm_loadu_ps(args.bias.add(first))
        };
        for tap in 0..args.taps {
            let x = (*args.entries.add(tap)).add(pixel * args.step).cast::<f32>();
            let (x, w) = (
                _mm_loadu_ps(x.add(first)),
                _mm_loadu_ps(args.weights.add(tap * channels + first)),
            );
            sum = if FUSED {
                _mm_fmadd_ps(x, w, sum)
            } else {
                _mm_add_ps(sum, _mm_mul_ps(x, w))
            };
        }
        if !args.residual.is_null() {
            sum = _mm_add_ps(sum, _mm_loadu_ps(args.residual.add(at)));
        }
        let [low, high] = args.limits.map(|limit| _mm_set1_ps(limit));
        _mm_storeu_ps(args.out.add(at), _mm_min_ps(high, _mm_max_ps(low, sum)));
    }
}
