//! Sums of two int8 tensors by their linear form ([`PackedSumS8`]).

use core::arch::x86_64::*;

use super::Level;
use crate::ops::packed_sum::PackedSumS8;

/// Sums computed at a time.
const BLOCK: usize = 16;

/// Sums of as many elements of `a` and `b` as are whole blocks, to `out`, and how many that are; elements in order, a block of both read before it is written.
/// None where the processor has no vectors.
///
/// # Safety
/// `a` and `b` are valid for reads, and `out` for writes, of `op.count` elements; an operand may be the output or lie further on.
pub(in crate::kernels) unsafe fn add(op: &PackedSumS8, a: *const i8, b: *const i8, out: *mut i8) -> usize {
    let blocks = match Level::get() {
        Level::Portable => return 0,
        Level::Avx2 | Level::Vnni => op.count as usize / BLOCK,
    };
    // SAFETY: the level says that the processor has AVX2; `blocks` blocks are at most `op.count` elements of `a`, `b` and `out` (fn docs).
    unsafe { avx2(op, a, b, out, blocks) };
    blocks * BLOCK
}

/// A pair of numbers of 16 bits in every lane.
#[target_feature(enable = "avx2")]
#[inline]
fn pairs(first: i32, second: i32) -> __m256i {
    _mm256_set1_epi32(first & 0xffff | second << 16)
}

/// A factor is `top * 2^20 + middle * 2^8 + low`: with those of both operands side by side one `VPMADDWD` makes the sum of two products of 16 bits, exact in
/// 32. `low * x`, of at most 15 bits and a sign, is shifted by itself, for each product is rounded down before the sum.
///
/// # Safety
/// As for [`add`], of `blocks * BLOCK` elements; the processor has AVX2.
#[target_feature(enable = "avx2")]
unsafe fn avx2(op: &PackedSumS8, a: *const i8, b: *const i8, out: *mut i8, blocks: usize) {
    let [fa, fb] = op.factors;
    let (top, middle) = (pairs(fa >> 20, fb >> 20), pairs(fa >> 8 & 0xfff, fb >> 8 & 0xfff));
    let [low_a, low_b] = [fa, fb].map(|factor| _mm256_set1_epi16((factor & 0xff) as i16));
    let offset = _mm256_set1_epi32(op.offset);
    let sums = |both: __m256i, lows: __m256i| {
        let high = _mm256_slli_epi32(_mm256_madd_epi16(both, top), 12);
        let sum = _mm256_add_epi32(_mm256_add_epi32(high, _mm256_madd_epi16(both, middle)), offset);
        _mm256_srai_epi32(_mm256_add_epi32(sum, lows), PackedSumS8::FRACTION as i32)
    };
    for at in (0..blocks).map(|block| block * BLOCK) {
        // SAFETY: `at + BLOCK <= blocks * BLOCK`, elements that this function's contract guarantees; the loads are unaligned.
        let [a, b] = unsafe { [a, b].map(|from| _mm256_cvtepi8_epi16(_mm_loadu_si128(from.add(at).cast()))) };
        let floor = |x: __m256i, low: __m256i| _mm256_srai_epi16(_mm256_mullo_epi16(x, low), 8);
        let lows = _mm256_add_epi16(floor(a, low_a), floor(b, low_b));
        // The halves of each lane in 32 bits: as they are unpacked, they are packed again.
        let low = |unpacked: __m256i| _mm256_srai_epi32(unpacked, 16);
        let first = sums(_mm256_unpacklo_epi16(a, b), low(_mm256_unpacklo_epi16(lows, lows)));
        let second = sums(_mm256_unpackhi_epi16(a, b), low(_mm256_unpackhi_epi16(lows, lows)));
        let words = _mm256_packs_epi32(first, second);
        let bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(words, words), 0b10_00);
        // SAFETY: `at + BLOCK <= blocks * BLOCK`, outputs that this function's contract guarantees; the store is unaligned.
        unsafe { _mm_storeu_si128(out.add(at).cast(), _mm256_castsi256_si128(bytes)) };
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::arena::Slot;
    use crate::kernels::mve::tests::Random;

    /// Beside the linear form as it is defined, with the output over the one, over the other, and by itself, at odd addresses.
    #[test]
    fn sums_are_the_linear_form() {
        if Level::get() < Level::Avx2 {
            return;
        }
        let (mut random, mut within) = (Random(21), 0);
        for count in [1usize, 15, 16, 17, 40, 257] {
            for round in 0..60 {
                let mut factor = || match round % 3 {
                    // Factors of quantised models, and the ends of the range that load accepts.
                    0 => random.below(1 << 29) as i32 - (1 << 28),
                    1 => random.below(1 << 30) as i32 - (1 << 29),
                    _ => random.below(1 << 22) as i32 - (1 << 21),
                };
                let factors = [factor(), factor()];
                let op: PackedSumS8 = PackedSumS8 {
                    output: Slot::default(),
                    a: Slot::default(),
                    b: Slot::default(),
                    count: count as u32,
                    factors,
                    offset: random.below(1 << 28) as i32 - (1 << 27),
                };
                assert!(op.is_narrow());
                let mut bytes =
                    |count: usize| -> Vec<i8> { (0..count).map(|_| random.below(256) as u8 as i8).collect() };
                let (a, b) = (bytes(count + 3), bytes(count + 5));
                let expected: Vec<i8> = a[3..].iter().zip(&b[5..]).map(|(&a, &b)| op.element(a, b)).collect();
                let blocks = count / BLOCK;
                let (mut apart, mut over_a, mut over_b) = (vec![99i8; count + 1], a.clone(), b.clone());
                // SAFETY: `blocks * BLOCK <= count`, elements of all three behind the odd starts; the level was compared with AVX2.
                unsafe {
                    avx2(&op, a[3..].as_ptr(), b[5..].as_ptr(), apart[1..].as_mut_ptr(), blocks);
                    let same = over_a[3..].as_mut_ptr();
                    avx2(&op, same, b[5..].as_ptr(), same, blocks);
                    // The output two elements below the operand.
                    let same = over_b.as_mut_ptr();
                    avx2(&op, a[3..].as_ptr(), same.add(5), same.add(3), blocks);
                }
                let done = blocks * BLOCK;
                for (from, found) in [(1, &apart), (3, &over_a), (3, &over_b)] {
                    assert_eq!(found[from..from + done], expected[..done], "{factors:?}");
                }
                assert!(apart[1 + done..].iter().all(|&value| value == 99));
                within += expected.iter().filter(|&&value| value > -128 && value < 127).count();
            }
        }
        assert!(within > 2000, "{within} within a byte");
    }
}
