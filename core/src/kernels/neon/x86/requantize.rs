//! From sums of int8 products to outputs, eight channels at a time.

use core::arch::x86_64::*;

/// Zero point and limits of a step's outputs.
#[derive(Clone, Copy)]
pub(super) struct Stored {
    zero_point: __m256i,
    low: __m256i,
    high: __m256i,
}

impl Stored {
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn new(zero_point: i32, low: i32, high: i32) -> Self {
        Self {
            zero_point: _mm256_set1_epi32(zero_point),
            low: _mm256_set1_epi32(low),
            high: _mm256_set1_epi32(high),
        }
    }

    /// Eight sums by `parts`: shifts left, mantissas, shifts right (0 or negative), of which one shift is 0 (`numbers::requantised`); with the zero point, and
    /// within the limits.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn of(self, sums: __m256i, [left, mantissa, right]: [__m256i; 3]) -> __m256i {
        let shifted = _mm256_sllv_epi32(sums, left);
        // (a * b + 2^30) >> 31 of the even and of the odd lanes.
        let half = _mm256_set1_epi64x(1 << 30);
        let even = _mm256_add_epi64(_mm256_mul_epi32(shifted, mantissa), half);
        let odd = _mm256_mul_epi32(_mm256_srli_epi64(shifted, 32), _mm256_srli_epi64(mantissa, 32));
        let odd = _mm256_slli_epi64(_mm256_add_epi64(odd, half), 1);
        let product = _mm256_blend_epi32(_mm256_srli_epi64(even, 31), odd, 0b1010_1010);
        // Only what exceeds the range is the least number: one less is the greatest.
        let product = _mm256_add_epi32(product, _mm256_cmpeq_epi32(product, _mm256_set1_epi32(i32::MIN)));
        // To nearest, ties away from zero.
        let right = _mm256_sub_epi32(_mm256_setzero_si256(), right);
        let mask = _mm256_sub_epi32(_mm256_sllv_epi32(_mm256_set1_epi32(1), right), _mm256_set1_epi32(1));
        let negative = _mm256_cmpgt_epi32(_mm256_setzero_si256(), product);
        let threshold = _mm256_sub_epi32(_mm256_srli_epi32(mask, 1), negative);
        let up = _mm256_cmpgt_epi32(_mm256_and_si256(product, mask), threshold);
        let scaled = _mm256_sub_epi32(_mm256_srav_epi32(product, right), up);
        let stored = _mm256_add_epi32(scaled, self.zero_point);
        _mm256_min_epi32(_mm256_max_epi32(stored, self.low), self.high)
    }
}

/// Requantisation of sums of sixteen channels: shifts left, mantissas, shifts right, and of the last the bits that are shifted out and half of their range.
pub(super) struct RequantizeX16 {
    left: __m512i,
    mantissa: __m512i,
    right: __m512i,
    gone: __m512i,
    half: __m512i,
}

impl RequantizeX16 {
    /// Of a table that has them by four, for `width` channels, 4 to 16; the last four stand for those that are not there.
    ///
    /// # Safety
    /// `table` is valid for reads of [`TABLE`] bytes for every four channels.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(super) unsafe fn new(table: *const u8, width: usize) -> Self {
        let four = |channels: usize, part: usize| {
            let at = TABLE / 4 * channels.min(width - 4) + 16 * part;
            // SAFETY: `at + 16` is within the `TABLE` bytes of each four of `width` channels (fn docs).
            unsafe { _mm_loadu_si128(table.add(at).cast()) }
        };
        let part = |part: usize| {
            let [a, b, c, d] = [0, 4, 8, 12].map(|channels| four(channels, part));
            let two = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(a), b);
            _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(two, c), d)
        };
        let right = _mm512_sub_epi32(_mm512_setzero_si512(), part(2));
        let gone = _mm512_sub_epi32(_mm512_sllv_epi32(_mm512_set1_epi32(1), right), _mm512_set1_epi32(1));
        Self {
            left: part(0),
            mantissa: part(1),
            right,
            gone,
            half: _mm512_srli_epi32::<1>(gone),
        }
    }

    /// As [`Stored::of`].
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(super) fn of(&self, sums: __m512i, zero_point: i32, low: i32, high: i32) -> __m512i {
        let one = _mm512_set1_epi32(1);
        let shifted = _mm512_sllv_epi32(sums, self.left);
        // (a * b + 2^30) >> 31 of the even and of the odd lanes.
        let half = _mm512_set1_epi64(1 << 30);
        let even = _mm512_add_epi64(_mm512_mul_epi32(shifted, self.mantissa), half);
        let odd = _mm512_mul_epi32(_mm512_srli_epi64::<32>(shifted), _mm512_srli_epi64::<32>(self.mantissa));
        let odd = _mm512_slli_epi64::<1>(_mm512_add_epi64(odd, half));
        let product = _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64::<31>(even), odd);
        // Only what exceeds the range is the least number: one less is the greatest.
        let beyond = _mm512_cmpeq_epi32_mask(product, _mm512_set1_epi32(i32::MIN));
        let product = _mm512_mask_sub_epi32(product, beyond, product, one);
        // To nearest, ties away from zero.
        let negative = _mm512_cmplt_epi32_mask(product, _mm512_setzero_si512());
        let threshold = _mm512_mask_add_epi32(self.half, negative, self.half, one);
        let up = _mm512_cmpgt_epi32_mask(_mm512_and_si512(product, self.gone), threshold);
        let scaled = _mm512_srav_epi32(product, self.right);
        let scaled = _mm512_mask_add_epi32(scaled, up, scaled, one);
        let stored = _mm512_add_epi32(scaled, _mm512_set1_epi32(zero_point));
        _mm512_min_epi32(
            _mm512_max_epi32(stored, _mm512_set1_epi32(low)),
            _mm512_set1_epi32(high),
        )
    }
}

/// Two times sixteen bytes as one vector.
///
/// # Safety
/// `table` is valid for reads of sixteen bytes from its begin and from `second`.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn two(table: *const u8, second: usize) -> __m256i {
    // SAFETY: sixteen bytes are readable at `table` and from `second` on (fn docs).
    unsafe { _mm256_loadu2_m128i(table.add(second).cast(), table.cast()) }
}

/// Shifts left, mantissas and shifts right of eight channels of a table that has them by four; of four, twice, where `second` is 0 instead of
/// [`TABLE`].
///
/// # Safety
/// `table` is valid for reads of those.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn parts(table: *const u8, second: usize) -> [__m256i; 3] {
    // SAFETY: shifts left, mantissas and shifts right are sixteen bytes each, of both fours, which this function's contract guarantees.
    unsafe {
        [
            two(table, second),
            two(table.add(16), second),
            two(table.add(32), second),
        ]
    }
}

/// Bytes of four channels in a table.
pub(super) const TABLE: usize = 48;

/// Sixteen numbers within a byte's range as bytes.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn bytes(first: __m256i, second: __m256i) -> __m128i {
    let halves = _mm256_packs_epi32(first, second);
    let quarters = _mm256_packs_epi16(halves, halves);
    let order = _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5);
    _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(quarters, order))
}

/// Writes the first `count` of sixteen bytes.
///
/// # Safety
/// `out` is valid for writes of `count` bytes, at most sixteen.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn store(values: __m128i, out: *mut i8, count: usize) {
    // SAFETY: `count <= 16` bytes are writable at `out` (fn docs).
    unsafe {
        if count == 16 {
            _mm_storeu_si128(out.cast(), values);
        } else {
            let mut all = [0i8; 16];
            _mm_storeu_si128(all.as_mut_ptr().cast(), values);
            all.as_ptr().copy_to_nonoverlapping(out, count);
        }
    }
}
