//! Products of one input and two rows of weights, for operators that have no weights in a layout of their own.

use crate::cells::Src;
use crate::kernels::instructions::{halves, smlad, sxtab16, sxtab16_ror8, sxtb16, sxtb16_ror8};

/// Whether a core multiplies pairs of halves at once.
const PAIRS: bool = cfg!(all(cortex_m = "dsp", feature = "dsp"));

/// Zero points that leave room for an int8 value in a half.
const ZEROS: core::ops::RangeInclusive<i32> = -32_000..=32_000;

/// `sum of (x[i] - zero) * row[i]` for each row, modulo 2^32, as far as all of them go.
// A function by itself: within a kernel the loop would have no registers left.
#[inline(never)]
pub(crate) fn dots_s8(x: Src<'_, i8>, zero: i32, rows: [&[i8]; 2]) -> [i32; 2] {
    let [a, b] = rows;
    let len = x.len().min(a.len()).min(b.len());
    let (x, rows) = (x.as_ptr(), rows.map(|row| row.as_ptr()));
    let (done, sums) = if PAIRS && ZEROS.contains(&zero) {
        // SAFETY: `len` elements of each.
        (len & !3, unsafe { pairs_s8(x, zero, rows, len / 4) })
    } else {
        (0, [0; 2])
    };
    // SAFETY: as above.
    unsafe { plain_s8(x, zero, rows, done..len, sums) }
}

/// `sum of x[i] * row[i]`, modulo 2^32, as far as both go.
#[inline(never)]
pub(crate) fn dot_s16(x: Src<'_, i16>, row: &[i16]) -> i32 {
    let len = x.len().min(row.len());
    let (x, row) = (x.as_ptr(), row.as_ptr());
    let (done, mut sum) = if PAIRS {
        // SAFETY: `len` elements of both.
        (len & !1, unsafe { pairs_s16(x, row, len / 2) })
    } else {
        (0, 0)
    };
    for i in done..len {
        // SAFETY: below `len`.
        let (x, w) = unsafe { (x.add(i).read(), row.add(i).read()) };
        sum = sum.wrapping_add(i32::from(x) * i32::from(w));
    }
    sum
}

/// One element after the other, on top of `sums`.
///
/// # Safety
/// `x` and the rows have as many elements as `range` ends at.
#[inline(always)]
unsafe fn plain_s8(
    x: *const i8,
    zero: i32,
    rows: [*const i8; 2],
    range: core::ops::Range<usize>,
    sums: [i32; 2],
) -> [i32; 2] {
    let ([row_a, row_b], [mut a, mut b]) = (rows, sums);
    for i in range {
        // SAFETY: in bounds, as the caller promises.
        let (x, w_a, w_b) = unsafe { (x.add(i).read(), row_a.add(i).read(), row_b.add(i).read()) };
        let x = i32::from(x).wrapping_sub(zero);
        a = a.wrapping_add(x.wrapping_mul(w_a.into()));
        b = b.wrapping_add(x.wrapping_mul(w_b.into()));
    }
    [a, b]
}

/// Four elements at a time: the input is widened once for both rows.
///
/// # Safety
/// `x` and the rows have four times `count` elements; `zero` is one of [`ZEROS`].
#[inline(always)]
unsafe fn pairs_s8(x: *const i8, zero: i32, rows: [*const i8; 2], count: usize) -> [i32; 2] {
    let minus_zero = halves(zero.wrapping_neg(), zero.wrapping_neg());
    let ([row_a, row_b], [mut a, mut b]) = (rows, [0_i32; 2]);
    for i in 0..count {
        // SAFETY: in bounds, as the caller promises.
        let word = |row: *const i8| u32::from_le(unsafe { row.add(4 * i).cast::<u32>().read_unaligned() });
        let (x, w_a, w_b) = (word(x), word(row_a), word(row_b));
        let (even, odd) = (sxtab16(minus_zero, x), sxtab16_ror8(minus_zero, x));
        a = smlad(odd, sxtb16_ror8(w_a), smlad(even, sxtb16(w_a), a));
        b = smlad(odd, sxtb16_ror8(w_b), smlad(even, sxtb16(w_b), b));
    }
    [a, b]
}

/// Two products at a time.
///
/// # Safety
/// `x` and `row` have twice `count` elements.
#[inline(always)]
unsafe fn pairs_s16(x: *const i16, row: *const i16, count: usize) -> i32 {
    let mut sum = 0;
    for i in 0..count {
        // SAFETY: in bounds, as the caller promises.
        let word = |row: *const i16| u32::from_le(unsafe { row.add(2 * i).cast::<u32>().read_unaligned() });
        sum = smlad(word(x), word(row), sum);
    }
    sum
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    fn bytes(seed: u32, len: usize) -> Vec<i8> {
        let mut state = seed;
        let mut byte = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Extremes now and then.
            match state >> 29 {
                0 => -128,
                1 => 127,
                _ => (state >> 16) as i8,
            }
        };
        (0..len).map(|_| byte()).collect()
    }

    fn expected(x: &[i8], zero: i32, row: &[i8]) -> i32 {
        let terms = x
            .iter()
            .zip(row)
            .map(|(&x, &w)| (i64::from(x) - i64::from(zero)) * i64::from(w));
        terms.sum::<i64>() as i32
    }

    #[test]
    fn pairs_and_plain_loops_are_the_formula() {
        for len in 0..35 {
            for (seed, zero) in [
                (1, 0),
                (2, -128),
                (3, 127),
                (4, 5),
                (5, -32_000),
                (6, 32_000),
                (7, i32::MAX),
            ] {
                let x = bytes(seed, len);
                let rows = [10, 20].map(|row| bytes(seed + row, len));
                let [a, b] = &rows;
                let found = [expected(&x, zero, a), expected(&x, zero, b)];
                let src = Src::from_slice(&x);
                assert_eq!(dots_s8(src, zero, [a, b]), found, "{len} {zero}");
                if ZEROS.contains(&zero) {
                    let rows = [a.as_ptr(), b.as_ptr()];
                    // SAFETY: the lengths of all three.
                    let sums = unsafe {
                        let sums = pairs_s8(x.as_ptr(), zero, rows, len / 4);
                        plain_s8(x.as_ptr(), zero, rows, len & !3..len, sums)
                    };
                    assert_eq!(sums, found, "{len} {zero}");
                }
            }
        }
        // As far as all of them go.
        assert_eq!(
            dots_s8(Src::from_slice(&[1, 2, 3]), 0, [&[1, 1, 1, 9], &[5, 5]]),
            [3, 15]
        );
    }

    #[test]
    fn sums_of_halves_are_the_formula() {
        for len in 0..20 {
            let wide = |seed| -> Vec<i16> {
                let halves = bytes(seed, 2 * len);
                let pairs = halves.as_chunks::<2>().0.iter();
                pairs.map(|&[a, b]| i16::from_le_bytes([a as u8, b as u8])).collect()
            };
            let (x, row) = (wide(len as u32), wide(len as u32 + 100));
            let products = |len| {
                let products = x.iter().zip(&row).map(|(&x, &w)| i64::from(x) * i64::from(w));
                products.take(len).sum::<i64>() as i32
            };
            assert_eq!(dot_s16(Src::from_slice(&x), &row), products(len));
            // SAFETY: the lengths of both.
            let sum = unsafe { pairs_s16(x.as_ptr(), row.as_ptr(), len / 2) };
            assert_eq!(sum, products(len & !1));
        }
    }
}
