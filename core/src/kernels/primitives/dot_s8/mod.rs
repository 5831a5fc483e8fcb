//! Products of one input and rows of weights, for operators that have no weights in a layout of their own.

// The cores with loops of their own; the others run the portable one.
mod armv6m;
mod armv7m;
mod dsp;
mod mve;
mod rv32im;

#[cfg(kernel_isa = "armv6m")]
use armv6m as loops;
#[cfg(all(kernel_isa = "armv7m", not(any(kernel_isa = "dsp", kernel_isa = "mve"))))]
use armv7m as loops;
#[cfg(all(kernel_isa = "dsp", not(kernel_isa = "mve")))]
use dsp as loops;
#[cfg(kernel_isa = "mve")]
use mve as loops;
#[cfg(kernel_isa = "rv32im")]
use rv32im as loops;

use crate::cells::{Element, Src};
use crate::kernels::isa::dsp::{halves, smlad, sxtab16, sxtab16_ror8, sxtb16, sxtb16_ror8};

/// Whether a core multiplies pairs of halves at once.
const PAIRS: bool = cfg!(kernel_isa = "dsp");

/// Whether it has vectors, which take as much of a row as there is.
#[cfg_attr(not(any(kernel_isa = "armv6m", kernel_isa = "dsp")), allow(dead_code))]
const HELIUM: bool = cfg!(kernel_isa = "mve");

/// Whether it has a loop over many rows.
const ROWS: bool = cfg!(kernel_isa = "gpr32");

/// Zero points that leave room for an int8 value in a half.
const ZEROS: core::ops::RangeInclusive<i32> = -32_000..=32_000;

/// Sums that are handed on at a time.
pub(crate) const MOST: usize = 16;

/// Calls `put` with `sum of (x[i] - zero) * row[i]`, modulo 2^32, of at most [`MOST`] rows of weights at a time, `count` in all, one behind the other.
/// `None` where there are fewer, or where `put` says so.
#[inline(always)]
pub(crate) fn rows_s8(
    x: Src<'_, i8>,
    zero: i32,
    weights: &[i8],
    count: usize,
    put: impl FnMut(&mut [i32]) -> Option<()>,
) -> Option<()> {
    rows_of(x, zero, Src::from_slice(weights), count, put)
}

/// The same of rows that are no constants.
#[inline(always)]
pub(crate) fn rows_of(
    x: Src<'_, i8>,
    zero: i32,
    weights: Src<'_, i8>,
    count: usize,
    mut put: impl FnMut(&mut [i32]) -> Option<()>,
) -> Option<()> {
    let (x, len) = (x.as_ptr(), x.len());
    if count.checked_mul(len)? > weights.len() {
        return None;
    }
    let (mut row, mut left, mut sums) = (weights.as_ptr(), count, [0; MOST]);
    while left > 0 {
        let block = left.min(MOST);
        // SAFETY: `block` of the `left` rows of `len` elements, of which `weights` holds `count`, as just checked; `x` has `len` elements.
        unsafe { some_rows(x, zero, row, [block, len], &mut sums) };
        put(sums.get_mut(..block)?)?;
        row = row.wrapping_add(len.wrapping_mul(block));
        left -= block;
    }
    Some(())
}

/// The sums of [`rows_s8`] for `count` rows, not none, to the first of `sums`. `None` where there are fewer of either.
#[inline(always)]
pub(crate) fn block_s8<const N: usize>(
    x: Src<'_, i8>,
    zero: i32,
    weights: &[i8],
    count: usize,
    sums: &mut [i32; N],
) -> Option<()> {
    let len = x.len();
    if !(1..=N).contains(&count) || count.checked_mul(len)? > weights.len() {
        return None;
    }
    // SAFETY: `weights` holds `count` rows of `len = x.len()` elements, and `count` is 1 to `N`, as just checked.
    unsafe { block(x.as_ptr(), zero, weights.as_ptr(), [count, len], sums) };
    Some(())
}

/// [`some_rows`], a function by itself: within a kernel the loop would have no registers left.
///
/// # Safety
/// As for [`some_rows`].
#[inline(never)]
unsafe fn block(x: *const i8, zero: i32, weights: *const i8, [count, len]: [usize; 2], sums: &mut [i32]) {
    #[cfg(kernel_isa = "gpr32")]
    // Nothing is left over: no registers are saved for it.
    if len > 0 && takes(zero, len) && count.is_multiple_of(4) {
        // SAFETY: `count / 4 * 4 = count` rows of `len` elements lie at `weights`, `len` elements at `x`, and `sums` has `count` elements (docs of
        // `some_rows`).
        unsafe { loops::rows(x, weights, len, sums.as_mut_ptr(), zero, count / 4) };
        return;
    }
    // SAFETY: `some_rows` has the contract of this function.
    unsafe { some_rows(x, zero, weights, [count, len], sums) };
}

/// Whether a core's loop over rows takes such lines.
#[inline(always)]
fn takes(zero: i32, len: usize) -> bool {
    // Without pairs the sums are 32 bits wide all along.
    ROWS && (!(PAIRS || HELIUM) || ZEROS.contains(&zero)) && (!PAIRS || HELIUM || len.is_multiple_of(4))
}

/// Sums of `count` rows, four at a time.
///
/// # Safety
/// 1. `len` elements at `x`, and `count` rows of `len` elements at `weights`.
/// 2. `count` is not 0 and at most `sums.len()`.
#[inline(always)]
unsafe fn some_rows(x: *const i8, zero: i32, weights: *const i8, [count, len]: [usize; 2], sums: &mut [i32]) {
    let (fours_of, _) = sums.as_chunks_mut::<4>();
    let whole = if len > 0 && count >= 4 && takes(zero, len) {
        count / 4
    } else {
        0
    };
    #[cfg(kernel_isa = "gpr32")]
    if whole > 0 {
        // SAFETY: `4 * whole <= count` rows of `len > 0` elements lie at `weights` (point 1), and `whole <= fours_of.len()` (point 2).
        unsafe { loops::rows(x, weights, len, fours_of.as_mut_ptr().cast(), zero, whole) };
    }
    let mut row = weights.wrapping_add(len.wrapping_mul(4).wrapping_mul(whole));
    let mut left = count.wrapping_sub(4 * whole);
    for found in fours_of.iter_mut().skip(whole) {
        if left == 0 {
            return;
        }
        // With fewer than four rows left, the last row stands in for the missing ones.
        let step = |i: usize| if left > i { len } else { 0 };
        let second = row.wrapping_add(step(1));
        let third = second.wrapping_add(step(2));
        let rows = [row, second, third, third.wrapping_add(step(3))];
        // SAFETY: `left > 0` rows remain at `row`, and missing rows repeat the last one: each of `rows` has `len` elements, as `x` has (point 1).
        *found = unsafe { fours(x, zero, rows, len) };
        row = row.wrapping_add(len.wrapping_mul(4));
        left = left.saturating_sub(4);
    }
}

/// # Safety
/// `len` elements at `x` and at each of `rows`.
// A function by itself: within a kernel the loop would have no registers left.
#[inline(never)]
unsafe fn fours(x: *const i8, zero: i32, rows: [*const i8; 4], len: usize) -> [i32; 4] {
    #[cfg(kernel_isa = "cortex_m")]
    {
        // Only words are in fours: vectors take what is left over as well.
        let by = if cfg!(kernel_isa = "armv7m") && !HELIUM { 4 } else { 1 };
        let done = len / by * by;
        if (!(PAIRS || HELIUM) || ZEROS.contains(&zero)) && done > 0 {
            let mut sums = [0; 4];
            // SAFETY: `0 < done <= len`, and this function's contract guarantees `len` elements at `x` and at each row.
            unsafe { loops::dots(x, rows.as_ptr(), done, sums.as_mut_ptr(), zero) };
            if done == len {
                return sums;
            }
            // SAFETY: the range ends at `len`; this function's contract guarantees as many elements at `x` and at each row.
            return unsafe { rest(x, zero, rows, done..len, sums) };
        }
    }
    // SAFETY: the range ends at `len`; this function's contract guarantees as many elements at `x` and at each row.
    unsafe { rest(x, zero, rows, 0..len, [0; 4]) }
}

/// [`plain_s8`] of four rows: a function by itself where few rows come to it, so that the others save no registers for it.
///
/// # Safety
/// As for [`plain_s8`].
#[cfg_attr(kernel_isa = "dsp", inline(never))]
#[cfg_attr(not(kernel_isa = "dsp"), inline(always))]
unsafe fn rest(
    x: *const i8,
    zero: i32,
    rows: [*const i8; 4],
    range: core::ops::Range<usize>,
    sums: [i32; 4],
) -> [i32; 4] {
    // SAFETY: `plain_s8` has the contract of this function.
    unsafe { plain_s8(x, zero, rows, range, sums) }
}

/// Elements whose products with others of their type are summed.
pub(crate) trait Products: Element {
    /// Adds `sum of (x[i] - zero) * w[i]`, modulo 2^32, of lines one behind the other.
    ///
    /// # Safety
    /// `sums.len()` lines of `len` elements, contiguous, at both `x` and `w`.
    unsafe fn add(x: *const Self, zero: i32, w: *const Self, len: usize, sums: &mut [i32]);

    /// The low bits.
    fn narrow(value: i32) -> Self;
}

/// Adds what `sum` gives for each line.
#[inline(always)]
fn each_line<T>(x: *const T, w: *const T, len: usize, sums: &mut [i32], of: impl Fn(*const T, *const T) -> i32) {
    let (mut x, mut w) = (x, w);
    for sum in sums {
        *sum = sum.wrapping_add(of(x, w));
        (x, w) = (x.wrapping_add(len), w.wrapping_add(len));
    }
}

impl Products for i8 {
    #[inline(always)]
    unsafe fn add(x: *const i8, zero: i32, w: *const i8, len: usize, sums: &mut [i32]) {
        #[cfg(kernel_isa = "mve")]
        if ZEROS.contains(&zero) && len > 0 && !sums.is_empty() {
            // SAFETY: `len > 0`, and this function's contract guarantees `sums.len()` (not 0) lines of `len` elements at `x` and `w`.
            return unsafe { loops::lines_s8(x, w, len, sums.as_mut_ptr(), sums.len(), zero) };
        }
        // SAFETY: `each_line` goes over `sums.len()` lines of `len` elements, which this function's contract guarantees at `x` and `w`.
        each_line(x, w, len, sums, |x, w| unsafe { dot_s8(x, zero, w, len) });
    }

    #[inline(always)]
    fn narrow(value: i32) -> i8 {
        value as i8
    }
}

impl Products for i16 {
    #[inline(always)]
    unsafe fn add(x: *const i16, zero: i32, w: *const i16, len: usize, sums: &mut [i32]) {
        if zero != 0 {
            // None of the models that have been seen come here.
            each_line(w, w, len, sums, |w, _| {
                // SAFETY: `each_line` goes over `sums.len()` lines of `len` elements, which this function's contract guarantees at `w`.
                unsafe { sum_s16(w, len) }.wrapping_mul(zero).wrapping_neg()
            });
        }
        #[cfg(any(kernel_isa = "dsp", kernel_isa = "mve"))]
        if len > 0 && !sums.is_empty() && (HELIUM || len.is_multiple_of(4)) {
            // SAFETY: `len > 0`, and this function's contract guarantees `sums.len()` (not 0) lines of `len` elements at `x` and `w`.
            return unsafe { loops::lines_s16(x, w, len, sums.as_mut_ptr(), sums.len()) };
        }
        // SAFETY: `each_line` goes over `sums.len()` lines of `len` elements, which this function's contract guarantees at `x` and `w`.
        each_line(x, w, len, sums, |x, w| unsafe { dot_s16(x, w, len) });
    }

    #[inline(always)]
    fn narrow(value: i32) -> i16 {
        value as i16
    }
}

/// Calls `put` with `bias + sum of (x[i] - zero) * w[i]`, modulo 2^32, of at most [`MOST`] lines of `len` elements at a time, of as many as there are biases,
/// which lie one behind the other in both. `None` where there are fewer, or where `put` says so.
#[inline(always)]
pub(crate) fn lines<T: Products>(
    x: Src<'_, T>,
    zero: i32,
    weights: &[T],
    bias: &[i32],
    len: usize,
    mut put: impl FnMut(&[i32]) -> Option<()>,
) -> Option<()> {
    if bias.len().checked_mul(len)? > weights.len().min(x.len()) {
        return None;
    }
    let (mut x, mut w, mut sums) = (x.as_ptr(), weights.as_ptr(), [0; MOST]);
    for bias in bias.chunks(MOST) {
        let sums = sums.get_mut(..bias.len())?;
        for (sum, bias) in sums.iter_mut().zip(bias) {
            *sum = *bias;
        }
        // SAFETY: some of as many lines as both have, as just checked.
        unsafe { T::add(x, zero, w, len, sums) };
        put(sums)?;
        let done = len.wrapping_mul(bias.len());
        (x, w) = (x.wrapping_add(done), w.wrapping_add(done));
    }
    Some(())
}

/// # Safety
/// `len` elements.
#[cold]
#[inline(never)]
unsafe fn sum_s16(row: *const i16, len: usize) -> i32 {
    let mut sum = 0_i32;
    for i in 0..len {
        // SAFETY: `i < len`, the elements at `row` (fn docs).
        sum = sum.wrapping_add(unsafe { row.add(i).read() }.into());
    }
    sum
}

/// # Safety
/// `len` elements at `x` and `row`.
#[inline(never)]
unsafe fn dot_s8(x: *const i8, zero: i32, row: *const i8, len: usize) -> i32 {
    let (done, sums) = if PAIRS && ZEROS.contains(&zero) {
        // SAFETY: `len / 4` groups of four are within the `len` elements that this function's contract guarantees at `x` and `row`.
        (len & !3, unsafe { pairs_s8(x, zero, [row], len / 4) })
    } else {
        (0, [0])
    };
    // SAFETY: the range ends at `len`; this function's contract guarantees as many elements at `x` and `row`.
    let [sum] = unsafe { plain_s8(x, zero, [row], done..len, sums) };
    sum
}

/// # Safety
/// `len` elements of both.
#[inline(never)]
unsafe fn dot_s16(x: *const i16, row: *const i16, len: usize) -> i32 {
    let (done, mut sum) = if PAIRS {
        // SAFETY: `4 * (len / 4) <= len` elements are at both (fn docs).
        (len & !3, unsafe { pairs_s16(x, row, len / 4) })
    } else {
        (0, 0)
    };
    for i in done..len {
        // SAFETY: `i < len`, the elements at `x` and `row` (fn docs).
        let (x, w) = unsafe { (x.add(i).read(), row.add(i).read()) };
        sum = sum.wrapping_add(i32::from(x) * i32::from(w));
    }
    sum
}

/// One element after the other, on top of `sums`.
///
/// # Safety
/// `range.end` elements at `x` and at each of `rows`.
#[inline(always)]
unsafe fn plain_s8<const N: usize>(
    x: *const i8,
    zero: i32,
    rows: [*const i8; N],
    range: core::ops::Range<usize>,
    mut sums: [i32; N],
) -> [i32; N] {
    for i in range {
        // SAFETY: `i < range.end`, and this function's contract guarantees as many elements at `x`.
        let x = i32::from(unsafe { x.add(i).read() }).wrapping_sub(zero);
        for (sum, row) in sums.iter_mut().zip(rows) {
            // SAFETY: `i < range.end`, and this function's contract guarantees as many elements at each row.
            let w = i32::from(unsafe { row.add(i).read() });
            *sum = sum.wrapping_add(x.wrapping_mul(w));
        }
    }
    sums
}

/// Four elements at a time: the input is widened once for both rows.
///
/// # Safety
/// `x` and the rows have four times `count` elements; `zero` is one of [`ZEROS`].
#[inline(always)]
unsafe fn pairs_s8<const N: usize>(x: *const i8, zero: i32, rows: [*const i8; N], count: usize) -> [i32; N] {
    let minus_zero = halves(zero.wrapping_neg(), zero.wrapping_neg());
    let mut sums = [0_i32; N];
    for i in 0..count {
        // SAFETY: `i < count`, and `x` and the rows have `4 * count` elements (fn docs). The read is unaligned.
        let word = |row: *const i8| u32::from_le(unsafe { row.add(4 * i).cast::<u32>().read_unaligned() });
        let x = word(x);
        let (even, odd) = (sxtab16(minus_zero, x), sxtab16_ror8(minus_zero, x));
        for (sum, row) in sums.iter_mut().zip(rows) {
            let w = word(row);
            *sum = smlad(odd, sxtb16_ror8(w), smlad(even, sxtb16(w), *sum));
        }
    }
    sums
}

/// Four products at a time.
///
/// # Safety
/// `x` and `row` have four times `count` elements.
#[inline(always)]
unsafe fn pairs_s16(x: *const i16, row: *const i16, count: usize) -> i32 {
    let mut sum = 0;
    for i in 0..count {
        // SAFETY: `i < count` and `at` is 0 or 2: two of the `4 * count` elements (fn docs). The read is unaligned.
        let word = |row: *const i16, at| u32::from_le(unsafe { row.add(4 * i + at).cast::<u32>().read_unaligned() });
        sum = smlad(word(x, 0), word(row, 0), sum);
        sum = smlad(word(x, 2), word(row, 2), sum);
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
                let mut line = Vec::new();
                lines(src, zero, a, &[9], len, |sums| {
                    line.extend_from_slice(sums);
                    Some(())
                })
                .unwrap();
                assert_eq!(line, [found[0].wrapping_add(9)], "{len} {zero}");
                assert_eq!(
                    lines(src, zero, a, &[0; 2], len, |_| Some(())),
                    (len == 0).then_some(())
                );
                const ROWS: usize = 2 * MOST + 3;
                let together: Vec<i8> = (0..ROWS)
                    .flat_map(|i| if i % 3 == 0 { a } else { b })
                    .copied()
                    .collect();
                for count in 0..ROWS {
                    let mut all = Vec::new();
                    let put = |sums: &mut [i32]| {
                        all.extend_from_slice(sums);
                        Some(())
                    };
                    rows_s8(src, zero, &together, count, put).unwrap();
                    let expected: Vec<i32> = (0..count).map(|i| found[(i % 3).min(1)]).collect();
                    assert_eq!(all, expected, "{len} {zero} {count}");
                    let mut sums = [7; 12];
                    let some = block_s8(src, zero, &together, count, &mut sums);
                    assert_eq!(some, (1..=12).contains(&count).then_some(()));
                    if some.is_some() {
                        assert_eq!(sums[..count], expected, "{len} {zero} {count}");
                    }
                }
                assert_eq!(
                    rows_s8(src, zero, &together, ROWS + 1, |_| Some(())),
                    (len == 0).then_some(())
                );
                assert_eq!(rows_s8(src, zero, &together, usize::MAX, |_| None), None);
                assert_eq!(
                    block_s8(src, zero, &together[..len * 3], 4, &mut [0; 4]),
                    (len == 0).then_some(())
                );
                if ZEROS.contains(&zero) {
                    let rows = [a.as_ptr(), b.as_ptr()];
                    // SAFETY: `x`, `a` and `b` have `len` elements, and `len / 4` groups of four are within them.
                    let sums = unsafe {
                        let sums = pairs_s8(x.as_ptr(), zero, rows, len / 4);
                        plain_s8(x.as_ptr(), zero, rows, len & !3..len, sums)
                    };
                    assert_eq!(sums, found, "{len} {zero}");
                }
            }
        }
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
            let mut found = Vec::new();
            for zero in [0, 3, i32::MIN] {
                found.clear();
                lines(Src::from_slice(&x), zero, &row, &[7], len, |sums| {
                    found.extend_from_slice(sums);
                    Some(())
                })
                .unwrap();
                let of_zero = row
                    .iter()
                    .fold(0_i32, |sum, &w| sum.wrapping_add(zero.wrapping_mul(w.into())));
                assert_eq!(found, [products(len).wrapping_sub(of_zero).wrapping_add(7)]);
            }
            // SAFETY: `x` and `row` have `len` elements, and `len / 4` groups of four are within them.
            let sum = unsafe { pairs_s16(x.as_ptr(), row.as_ptr(), len / 4) };
            assert_eq!(sum, products(len & !3));
        }
    }
}
