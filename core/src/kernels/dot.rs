//! Products of one input and rows of weights, for operators that have no weights in a layout of their own.

use crate::cells::Src;
use crate::kernels::instructions::{halves, smlad, sxtab16, sxtab16_ror8, sxtb16, sxtb16_ror8};

/// Whether a core multiplies pairs of halves at once.
const PAIRS: bool = cfg!(all(cortex_m = "dsp", feature = "dsp"));

/// Zero points that leave room for an int8 value in a half.
const ZEROS: core::ops::RangeInclusive<i32> = -32_000..=32_000;

/// `sum of (x[i] - zero) * row[i]` for each row, modulo 2^32, as far as all of them go: the input is widened once for all of them.
#[inline(always)]
pub(crate) fn fours_s8(x: Src<'_, i8>, zero: i32, rows: [&[i8]; 4]) -> [i32; 4] {
    let len = rows.iter().fold(x.len(), |len, row| len.min(row.len()));
    // SAFETY: `len` elements of each.
    unsafe { fours(x.as_ptr(), zero, rows.map(|row| row.as_ptr()), len) }
}

/// Calls `put` with `sum of (x[i] - zero) * row[i]`, modulo 2^32, for each of `count` rows of weights, which lie one behind the other. `None` where there are
/// fewer, or where `put` says so.
#[inline(always)]
pub(crate) fn rows_s8(
    x: Src<'_, i8>,
    zero: i32,
    weights: &[i8],
    count: usize,
    mut put: impl FnMut(i32) -> Option<()>,
) -> Option<()> {
    let (x, len) = (x.as_ptr(), x.len());
    if count.checked_mul(len)? > weights.len() {
        return None;
    }
    let (mut row, mut left) = (weights.as_ptr(), count);
    while left > 0 {
        // Where fewer are left, the last one is taken again in place of those that are not there.
        let step = |i: usize| if left > i { len } else { 0 };
        let second = row.wrapping_add(step(1));
        let third = second.wrapping_add(step(2));
        let rows = [row, second, third, third.wrapping_add(step(3))];
        // SAFETY: rows of the weights, which have all of them, as just checked.
        let sums = unsafe { fours(x, zero, rows, len) };
        for sum in sums.into_iter().take(left) {
            put(sum)?;
        }
        row = row.wrapping_add(len.wrapping_mul(4));
        left = left.saturating_sub(4);
    }
    Some(())
}

/// # Safety
/// `x` and the rows have `len` elements.
// A function by itself: within a kernel the loop would have no registers left.
#[inline(never)]
unsafe fn fours(x: *const i8, zero: i32, rows: [*const i8; 4], len: usize) -> [i32; 4] {
    #[cfg(any(cortex_m = "baseline", all(cortex_m = "mve", feature = "mve")))]
    if (cfg!(cortex_m = "baseline") || ZEROS.contains(&zero)) && len > 0 {
        let mut sums = [0; 4];
        // SAFETY: as the caller promises.
        unsafe { loops::dots(x, rows.as_ptr(), len, sums.as_mut_ptr(), zero) };
        return sums;
    }
    let (done, sums) = if PAIRS && ZEROS.contains(&zero) {
        // SAFETY: as the caller promises.
        (len & !3, unsafe { pairs_s8(x, zero, rows, len / 4) })
    } else {
        (0, [0; 4])
    };
    // SAFETY: likewise.
    unsafe { plain_s8(x, zero, rows, done..len, sums) }
}

/// `sum of (x[i] - zero) * row[i]`, modulo 2^32, as far as both go.
#[inline(never)]
pub(crate) fn dot_s8(x: Src<'_, i8>, zero: i32, row: &[i8]) -> i32 {
    let len = x.len().min(row.len());
    let (x, row) = (x.as_ptr(), row.as_ptr());
    #[cfg(all(cortex_m = "mve", feature = "mve"))]
    if ZEROS.contains(&zero) && len > 0 {
        // SAFETY: `len` elements of both.
        return unsafe { loops::dot_s8(x, row, len, zero) };
    }
    let (done, sums) = if PAIRS && ZEROS.contains(&zero) {
        // SAFETY: as above.
        (len & !3, unsafe { pairs_s8(x, zero, [row], len / 4) })
    } else {
        (0, [0])
    };
    // SAFETY: likewise.
    let [sum] = unsafe { plain_s8(x, zero, [row], done..len, sums) };
    sum
}

#[cfg(cortex_m = "baseline")]
mod loops {
    use core::arch::naked_asm;

    /// Four products in sixteen instructions: the sums are in registers that only add. `len` is not 0.
    #[unsafe(naked)]
    pub(super) unsafe extern "C" fn dots(x: *const i8, rows: *const *const i8, len: usize, sums: *mut i32, zero: i32) {
        naked_asm!(
            ".cpu cortex-m0",
            "push {{r4-r7, lr}}",
            "mov r4, r8",
            "mov r5, r9",
            "mov r6, r10",
            "mov r7, r11",
            "push {{r3-r7}}",
            "ldr r4, [sp, #40]",
            "rsbs r4, r4, #0",
            "mov r12, r4",
            "movs r4, #0",
            "mov r8, r4",
            "mov r9, r4",
            "mov r10, r4",
            "mov r11, r4",
            // Everything from its end on, with an index from -len to 0.
            "rsbs r7, r2, #0",
            "adds r0, r0, r2",
            "mov r6, r2",
            "ldm r1!, {{r2-r5}}",
            "adds r1, r2, r6",
            "adds r2, r3, r6",
            "adds r3, r4, r6",
            "adds r4, r5, r6",
            "2: ldrsb r6, [r0, r7]",
            "add r6, r12",
            "ldrsb r5, [r1, r7]",
            "muls r5, r6, r5",
            "add r8, r5",
            "ldrsb r5, [r2, r7]",
            "muls r5, r6, r5",
            "add r9, r5",
            "ldrsb r5, [r3, r7]",
            "muls r5, r6, r5",
            "add r10, r5",
            "ldrsb r5, [r4, r7]",
            "muls r5, r6, r5",
            "add r11, r5",
            "adds r7, #1",
            "bne 2b",
            "pop {{r3}}",
            "mov r4, r8",
            "mov r5, r9",
            "mov r6, r10",
            "mov r7, r11",
            "stm r3!, {{r4-r7}}",
            "pop {{r4-r7}}",
            "mov r8, r4",
            "mov r9, r5",
            "mov r10, r6",
            "mov r11, r7",
            "pop {{r4-r7, pc}}",
        )
    }
}

#[cfg(all(cortex_m = "mve", feature = "mve"))]
mod loops {
    use core::arch::naked_asm;

    /// Eight elements of four rows in ten instructions, in halves that have room for the zero point. `len` is not 0.
    #[unsafe(naked)]
    pub(super) unsafe extern "C" fn dots(x: *const i8, rows: *const *const i8, len: usize, sums: *mut i32, zero: i32) {
        naked_asm!(
            ".cpu cortex-m55",
            // Loads that widen take their address from r0 to r7, and sums have even registers.
            "ldr r12, [sp]",
            "push {{r4-r11, lr}}",
            "vdup.16 q3, r12",
            "ldrd r4, r5, [r1]",
            "ldr r7, [r1, #8]",
            "ldr r1, [r1, #12]",
            "mov r6, #0",
            "mov r8, #0",
            "mov r10, #0",
            "mov r12, #0",
            "dlstp.16 lr, r2",
            "2: vldrb.s16 q0, [r0], #8",
            "vldrb.s16 q1, [r4], #8",
            "vsub.i16 q0, q0, q3",
            "vmladava.s16 r6, q0, q1",
            "vldrb.s16 q2, [r5], #8",
            "vmladava.s16 r8, q0, q2",
            "vldrb.s16 q1, [r7], #8",
            "vmladava.s16 r10, q0, q1",
            "vldrb.s16 q2, [r1], #8",
            "vmladava.s16 r12, q0, q2",
            "letp lr, 2b",
            "strd r6, r8, [r3]",
            "strd r10, r12, [r3, #8]",
            "pop {{r4-r11, pc}}",
        )
    }

    /// Eight elements in five instructions. `len` is not 0.
    #[unsafe(naked)]
    pub(super) unsafe extern "C" fn dot_s8(x: *const i8, row: *const i8, len: usize, zero: i32) -> i32 {
        naked_asm!(
            ".cpu cortex-m55",
            "push {{r7, lr}}",
            "vdup.16 q3, r3",
            "mov r12, #0",
            "dlstp.16 lr, r2",
            "2: vldrb.s16 q0, [r0], #8",
            "vldrb.s16 q1, [r1], #8",
            "vsub.i16 q0, q0, q3",
            "vmladava.s16 r12, q0, q1",
            "letp lr, 2b",
            "mov r0, r12",
            "pop {{r7, pc}}",
        )
    }

    /// Eight elements in four instructions. `len` is not 0.
    #[unsafe(naked)]
    pub(super) unsafe extern "C" fn dot_s16(x: *const i16, row: *const i16, len: usize) -> i32 {
        naked_asm!(
            ".cpu cortex-m55",
            "push {{r7, lr}}",
            "mov r12, #0",
            "dlstp.16 lr, r2",
            "2: vldrh.u16 q0, [r0], #16",
            "vldrh.u16 q1, [r1], #16",
            "vmladava.s16 r12, q0, q1",
            "letp lr, 2b",
            "mov r0, r12",
            "pop {{r7, pc}}",
        )
    }
}

/// `sum of x[i] * row[i]`, modulo 2^32, as far as both go.
#[inline(never)]
pub(crate) fn dot_s16(x: Src<'_, i16>, row: &[i16]) -> i32 {
    let len = x.len().min(row.len());
    let (x, row) = (x.as_ptr(), row.as_ptr());
    #[cfg(all(cortex_m = "mve", feature = "mve"))]
    if len > 0 {
        // SAFETY: `len` elements of both.
        return unsafe { loops::dot_s16(x, row, len) };
    }
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
unsafe fn plain_s8<const N: usize>(
    x: *const i8,
    zero: i32,
    rows: [*const i8; N],
    range: core::ops::Range<usize>,
    mut sums: [i32; N],
) -> [i32; N] {
    for i in range {
        // SAFETY: in bounds, as the caller promises.
        let x = i32::from(unsafe { x.add(i).read() }).wrapping_sub(zero);
        for (sum, row) in sums.iter_mut().zip(rows) {
            // SAFETY: likewise.
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
        // SAFETY: in bounds, as the caller promises.
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
                let fours = [found[0], found[1], found[1], found[0]];
                assert_eq!(fours_s8(src, zero, [a, b, b, a]), fours, "{len} {zero}");
                assert_eq!(dot_s8(src, zero, a), found[0], "{len} {zero}");
                let together: Vec<i8> = (0..7).flat_map(|i| if i % 3 == 0 { a } else { b }).copied().collect();
                for count in 0..7 {
                    let mut all = Vec::new();
                    let put = |sum| Some(all.push(sum));
                    rows_s8(src, zero, &together, count, put).unwrap();
                    let expected: Vec<i32> = (0..count).map(|i| found[(i % 3).min(1)]).collect();
                    assert_eq!(all, expected, "{len} {zero} {count}");
                }
                assert_eq!(rows_s8(src, zero, &together, 8, |_| Some(())), (len == 0).then_some(()));
                assert_eq!(rows_s8(src, zero, &together, usize::MAX, |_| None), None);
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
        assert_eq!(dot_s8(Src::from_slice(&[1, 2, 3]), 0, &[5, 5]), 15);
        let rows: [&[i8]; 4] = [&[1, 1, 1, 9], &[5, 5], &[1; 3], &[2; 3]];
        assert_eq!(fours_s8(Src::from_slice(&[1, 2, 3]), 0, rows), [3, 15, 3, 6]);
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
