//! Depthwise convolutions: sixteen channels of a pixel at a time, and eight or four of what is left.

use core::arch::x86_64::*;

use super::super::args::Depthwise;
use super::requantize::{Stored, TABLE, bytes, parts, store, two};

/// # Safety
/// As for [`super::depthwise`]; the processor has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn s8(args: *const Depthwise) {
    // SAFETY: `args` is valid, with weights in the layout of `dwconv_s8::pack`: taps, channels and outputs below its numbers are valid (fn docs).
    unsafe {
        let args = &*args;
        let stored = Stored::new(args.zero_point, args.low, args.high);
        for pixel in 0..args.pixels {
            let out = args.out.add(pixel * args.channels);
            let mut weights = args.weights;
            for block in 0..args.blocks {
                let [low, high] = sums::<16>(args, weights, pixel, 16 * block);
                let table = weights.add((4 + args.taps) * 16);
                let low = stored.of(low, parts(table, TABLE));
                let high = stored.of(high, parts(table.add(2 * TABLE), TABLE));
                store(bytes(low, high), out.add(16 * block), 16);
                weights = table.add(12 * 16);
            }
            for half in 0..args.halves {
                let first = if half == 0 { args.first_half } else { args.channels - 8 };
                let [low, _] = sums::<8>(args, weights, pixel, first);
                let table = weights.add((4 + args.taps) * 8);
                let low = stored.of(low, parts(table, TABLE));
                store(bytes(low, low), out.add(first), 8);
                weights = table.add(12 * 8);
            }
        }
    }
}

/// The sums of a block of `COUNT` channels, sixteen or eight.
///
/// # Safety
/// As for [`s8`].
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn sums<const COUNT: usize>(args: &Depthwise, block: *const u8, pixel: usize, first: usize) -> [__m256i; 2] {
    // SAFETY: `block` is one of the packed blocks, of `COUNT` channels from `first` on, which every tap has (docs of `s8`).
    unsafe {
        let weights = block.add(4 * COUNT);
        // A tap's products, in 16 bits: of the least numbers, which no packer writes, they are cut as in `portable`.
        let products = |tap: usize| {
            let x = (*args.entries.add(tap)).add(pixel * args.step + first);
            let w = weights.add(tap * COUNT);
            _mm256_mullo_epi16(widened::<COUNT>(x), widened::<COUNT>(w.cast()))
        };
        let mut low = two(block, 16);
        let mut high = if COUNT == 16 { two(block.add(32), 16) } else { low };
        for pair in 0..args.taps.div_ceil(2) {
            let mut both = products(2 * pair);
            if 2 * pair + 1 < args.taps {
                both = _mm256_add_epi16(both, products(2 * pair + 1));
            }
            low = _mm256_add_epi32(low, _mm256_cvtepi16_epi32(_mm256_castsi256_si128(both)));
            high = _mm256_add_epi32(high, _mm256_cvtepi16_epi32(_mm256_extracti128_si256(both, 1)));
        }
        [low, high]
    }
}

/// Sixteen or eight bytes in 16 bits.
///
/// # Safety
/// `from` is valid for reads of `COUNT` bytes.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn widened<const COUNT: usize>(from: *const i8) -> __m256i {
    // SAFETY: `COUNT` bytes are readable at `from` (fn docs); the loads are unaligned.
    unsafe {
        _mm256_cvtepi8_epi16(if COUNT == 16 {
            _mm_loadu_si128(from.cast())
        } else {
            _mm_loadl_epi64(from.cast())
        })
    }
}
