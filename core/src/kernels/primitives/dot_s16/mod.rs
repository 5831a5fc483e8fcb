//! Sums of products of int16 inputs and int8 weights, for operators whose weights have no layout of their own: four rows of weights at a time, so that an input
//! is loaded once for all of them, and in 32 bits as long as these hold.

use crate::cells::Src;
#[cfg(any(kernel_isa = "armv6m", kernel_isa = "armv7m_gpr"))]
pub(in crate::kernels) mod loops;

/// Products whose sum has 32 bits, whatever they are.
pub(crate) const LONGEST: usize = 511;

/// Lines of neighbours, as the rows under a window are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StridedLines {
    /// Number of lines.
    pub(crate) count: usize,
    /// Elements of each.
    pub(crate) len: usize,
    /// Elements from one to the next in the input.
    pub(crate) step: usize,
    /// The same in the weights.
    pub(crate) weights_step: usize,
}

impl StridedLines {
    /// Arguments of the loop over groups of four elements and over the rest of a line.
    #[cfg(kernel_isa = "armv7m_gpr")]
    #[inline(always)]
    fn in_fours(&self) -> loops::Dot4RowsArgs {
        loops::Dot4RowsArgs {
            lines: self.count,
            bytes: (self.len & !3).wrapping_mul(2),
            skip: self.step.wrapping_sub(self.len).wrapping_mul(2),
            weights_skip: self.weights_step.wrapping_sub(self.len),
            rest: self.len & 3,
        }
    }

    /// Whether all of them lie in `len` elements from `start` on.
    fn fit(&self, step: usize, start: usize, len: usize) -> Option<bool> {
        let last = self.count.checked_sub(1)?.checked_mul(step)?;
        Some(start.checked_add(last)?.checked_add(self.len)? <= len)
    }
}

/// `sum of x[i] * row[i]` along `lines`, at most [`LONGEST`] products, for the rows of `weights` that begin at `rows`; the input begins at `start`.
/// `None` where something is out of range.
#[inline(always)]
pub(crate) fn dots(
    x: Src<'_, i16>,
    start: usize,
    weights: &[i8],
    rows: [usize; 4],
    lines: StridedLines,
) -> Option<[i32; 4]> {
    let fit = |row: usize| lines.fit(lines.weights_step, row, weights.len());
    let [a, b, c, d] = rows;
    let inside = lines.fit(lines.step, start, x.len())? && fit(a)? && fit(b)? && fit(c)? && fit(d)?;
    if !inside || lines.len == 0 {
        return None;
    }
    let x = x.as_ptr().wrapping_add(start);
    let rows = rows.map(|row| weights.as_ptr().wrapping_add(row));
    // SAFETY: `fit` has found all lines inside `x` from `start` on and inside `weights` from each row on; none is empty.
    Some(unsafe { sums(x, rows, &lines) })
}

/// `sum of x[i] * row[i]` of `count` neighbouring rows of `weights`, not none, to the first of `sums`; `None` where there are fewer of either, or where rows
/// are empty or longer than [`LONGEST`].
#[inline(never)]
pub(crate) fn block<const N: usize>(x: Src<'_, i16>, weights: &[i8], count: usize, sums: &mut [i32; N]) -> Option<()> {
    let len = x.len();
    if !(1..=N).contains(&count) || !(1..=LONGEST).contains(&len) || count.checked_mul(len)? > weights.len() {
        return None;
    }
    let line = StridedLines {
        count: 1,
        len,
        step: 0,
        weights_step: 0,
    };
    let (x, mut row, mut left) = (x.as_ptr(), weights.as_ptr(), count);
    #[cfg(kernel_isa = "armv7m_gpr")]
    if count.is_multiple_of(4) {
        let args = line.in_fours();
        for found in sums.as_chunks_mut::<4>().0.iter_mut().take(count / 4) {
            let rows = [0, 1, 2, 3].map(|i| row.wrapping_add(len.wrapping_mul(i)));
            // SAFETY: four of `count` rows of `len` elements, which `weights` holds, as just checked; `found` has four elements.
            unsafe { loops::fours(x, rows.as_ptr(), &args, found.as_mut_ptr()) };
            row = row.wrapping_add(len.wrapping_mul(4));
        }
        return Some(());
    }
    for found in sums.as_chunks_mut::<4>().0 {
        // With fewer than four rows left, the last row stands in for the missing ones.
        let step = |i: usize| if left > i { len } else { 0 };
        let second = row.wrapping_add(step(1));
        let third = second.wrapping_add(step(2));
        // SAFETY: rows below `count`, of `len` elements each, which `weights` holds, as just checked.
        *found = unsafe { self::sums(x, [row, second, third, third.wrapping_add(step(3))], &line) };
        if left <= 4 {
            break;
        }
        row = row.wrapping_add(len.wrapping_mul(4));
        left -= 4;
    }
    Some(())
}

/// # Safety
/// `lines`, none of them empty, lie in the memory at `x` and at each of `rows`.
#[cfg(not(kernel_isa = "mve"))]
#[inline(never)]
pub(crate) unsafe fn sums(x: *const i16, rows: [*const i8; 4], lines: &StridedLines) -> [i32; 4] {
    #[cfg(kernel_isa = "armv6m")]
    {
        let (mut x, mut rows, mut sums) = (x, rows, [0; 4]);
        for _ in 0..lines.count {
            // SAFETY: the loop is at one of `lines.count` lines, which lie at `x` and at each row (fn docs); `sums` has four elements.
            unsafe { loops::line(x, rows.as_ptr(), lines.len, sums.as_mut_ptr()) };
            x = x.wrapping_add(lines.step);
            for row in &mut rows {
                *row = row.wrapping_add(lines.weights_step);
            }
        }
        sums
    }
    #[cfg(kernel_isa = "armv7m")]
    {
        let mut sums = [0; 4];
        // SAFETY: the lines that `in_fours` describes are `lines`, which lie at `x` and `rows` (fn docs); `sums` has four elements.
        unsafe { loops::fours(x, rows.as_ptr(), &lines.in_fours(), sums.as_mut_ptr()) };
        sums
    }
    #[cfg(not(kernel_isa = "cortex_m"))]
    // SAFETY: the condition of `plain` is that of this function.
    unsafe {
        plain(x, rows, lines)
    }
}

/// One product after the other.
///
/// # Safety
/// As for [`sums`].
#[cfg(not(kernel_isa = "cortex_m"))]
#[inline(always)]
unsafe fn plain<const N: usize>(x: *const i16, rows: [*const i8; N], lines: &StridedLines) -> [i32; N] {
    let mut sums = [0_i32; N];
    for line in 0..lines.count {
        let x = x.wrapping_add(line.wrapping_mul(lines.step));
        let rows = rows.map(|row| row.wrapping_add(line.wrapping_mul(lines.weights_step)));
        for i in 0..lines.len {
            // SAFETY: `i < lines.len`, element `i` of a line at `x` (docs of `sums`).
            let x = i32::from(unsafe { x.add(i).read() });
            for (sum, row) in sums.iter_mut().zip(rows) {
                // SAFETY: `i < lines.len`, element `i` of a line of this row.
                let w = i32::from(unsafe { row.add(i).read() });
                *sum = sum.wrapping_add(x.wrapping_mul(w));
            }
        }
    }
    sums
}

/// # Safety
/// `lines`, none of them empty, lie in the memory at `x` and at each of `rows`.
#[cfg(kernel_isa = "mve")]
#[inline(always)]
unsafe fn sums(x: *const i16, rows: [*const i8; 4], lines: &StridedLines) -> [i32; 4] {
    let mut sums = [0; 4];
    let all = helium::Dot4RowsMveArgs {
        rows,
        skip: lines.step.wrapping_sub(lines.len).wrapping_mul(2),
        weights_skip: lines.weights_step.wrapping_sub(lines.len),
        sums: sums.as_mut_ptr(),
    };
    // SAFETY: `lines.count` lines of `lines.len` elements lie at `x` and `rows` (fn docs); `all.sums` points to four elements.
    unsafe { helium::dots(x, &all, lines.count, lines.len) };
    sums
}

#[cfg(kernel_isa = "mve")]
mod helium {
    use core::mem::offset_of;

    #[repr(C)]
    pub(super) struct Dot4RowsMveArgs {
        pub(super) rows: [*const i8; 4],
        /// Bytes from the end of a line to the next one in the input.
        pub(super) skip: usize,
        /// The same in the weights.
        pub(super) weights_skip: usize,
        pub(super) sums: *mut i32,
    }

    /// Eight elements of four rows in nine instructions.
    #[unsafe(naked)]
    pub(super) unsafe extern "C" fn dots(x: *const i16, args: *const Dot4RowsMveArgs, lines: usize, len: usize) {
        naked!(
            Dot4RowsMveArgs { rows, skip, weights_skip, sums } =>
            ".cpu cortex-m55",
            // Loads that widen take their address from r0 to r7, and sums have even registers.
            "push {{r4-r11, lr}}",
            "mov r9, r1",
            "mov r11, r2",
            "ldrd r4, r5, [r9, #{rows}]",
            "ldr r7, [r9, #{third_row}]",
            "ldr r1, [r9, #{fourth_row}]",
            "mov r6, #0",
            "mov r8, #0",
            "mov r10, #0",
            "mov r12, #0",
            "1: dlstp.16 lr, r3",
            "2: vldrh.u16 q0, [r0], #16",
            "vldrb.s16 q1, [r4], #8",
            "vmladava.s16 r6, q0, q1",
            "vldrb.s16 q2, [r5], #8",
            "vmladava.s16 r8, q0, q2",
            "vldrb.s16 q3, [r7], #8",
            "vmladava.s16 r10, q0, q3",
            "vldrb.s16 q1, [r1], #8",
            "vmladava.s16 r12, q0, q1",
            "letp lr, 2b",
            "subs r11, #1",
            "beq 3f",
            // The pointers went on by whole vectors: back to the end of the line, and on to the next one.
            "add r2, r3, #7",
            "bic r2, r2, #7",
            "sub r2, r3, r2",
            "add r0, r0, r2, lsl #1",
            "ldr lr, [r9, #{skip}]",
            "add r0, lr",
            "ldr lr, [r9, #{weights_skip}]",
            "add lr, r2",
            "add r4, lr",
            "add r5, lr",
            "add r7, lr",
            "add r1, lr",
            "b 1b",
            "3: ldr r2, [r9, #{sums}]",
            "strd r6, r8, [r2]",
            "strd r10, r12, [r2, #{third_sum}]",
            "pop {{r4-r11, pc}}";
            third_row = const offset_of!(Dot4RowsMveArgs, rows) + size_of::<[usize; 2]>(),
            third_sum = const size_of::<[i32; 2]>(),
            fourth_row = const offset_of!(Dot4RowsMveArgs, rows) + size_of::<[usize; 3]>(),
        )
    }
}

/// Positions of the taps under a depthwise window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taps {
    /// Rows and columns of taps.
    pub(crate) count: [usize; 2],
    /// Elements from a row to the next and from a column to the next in the input.
    pub(crate) steps: [usize; 2],
    /// From a row to the next in the weights, whose columns are neighbours, and from a channel's weights to those of the next channel.
    pub(crate) weights_steps: [usize; 2],
}

/// `sum of x * w` over the taps, at most [`LONGEST`], of `N` neighbouring channels. `None` where something is out of range.
#[inline(never)]
pub(crate) fn columns<const N: usize>(
    x: Src<'_, i16>,
    start: usize,
    weights: &[i8],
    first: usize,
    taps: &Taps,
) -> Option<[i32; N]> {
    let [rows, columns] = taps.count;
    let ([row, column], [weights_row, channel]) = (taps.steps, taps.weights_steps);
    let reach = |count: usize, step: usize| count.checked_sub(1)?.checked_mul(step);
    let last = start
        .checked_add(reach(rows, row)?)?
        .checked_add(reach(columns, column)?)?;
    let last_weight = first.checked_add(reach(rows, weights_row)?)?.checked_add(columns)?;
    if last.checked_add(N)? > x.len() || last_weight.checked_add(reach(N, channel)?)? > weights.len() {
        return None;
    }
    let mut sums = [0_i32; N];
    let (mut x, mut w) = (x.as_ptr().wrapping_add(start), weights.as_ptr().wrapping_add(first));
    for _ in 0..rows {
        let (mut pixel, mut tap) = (x, w);
        for _ in 0..columns {
            for (c, sum) in sums.iter_mut().enumerate() {
                // SAFETY: a tap of channel `c`, inside both as just checked.
                let (x, w) = unsafe { (pixel.add(c).read(), tap.wrapping_add(c.wrapping_mul(channel)).read()) };
                *sum = sum.wrapping_add(i32::from(x).wrapping_mul(i32::from(w)));
            }
            pixel = pixel.wrapping_add(column);
            tap = tap.wrapping_add(1);
        }
        x = x.wrapping_add(row);
        w = w.wrapping_add(weights_row);
    }
    Some(sums)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    /// Numbers of all sizes, the ends of the range among them.
    fn numbers(seed: u32, len: usize) -> Vec<i16> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match state >> 29 {
                0 => i16::MIN,
                1 => i16::MAX,
                _ => (state >> 16) as i16,
            }
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn lines_of_every_length_are_the_formula() {
        let (x, w) = (numbers(1, 400), numbers(2, 1200));
        let weights: Vec<i8> = w.iter().map(|&w| (w >> 8) as i8).collect();
        for (count, len) in (1..4).flat_map(|count| (1..30).map(move |len| (count, len))) {
            let lines = StridedLines {
                count,
                len,
                step: 61,
                weights_step: len + 2,
            };
            let rows = [0, 300, 601, 77];
            let expected = rows.map(|row| {
                let of = |line: usize| {
                    let products = (0..len).map(move |i| (7 + 61 * line + i, row + (len + 2) * line + i));
                    products
                        .map(|(x_at, w_at)| i64::from(x[x_at]) * i64::from(weights[w_at]))
                        .sum::<i64>()
                };
                i32::try_from((0..count).map(of).sum::<i64>()).unwrap()
            });
            assert_eq!(dots(Src::from_slice(&x), 7, &weights, rows, lines), Some(expected));
        }
    }

    #[test]
    fn neighbouring_rows_are_lines() {
        let (x, w) = ([3_i16, -20_000, 7], [2_i8, -128, 5, 1, 0, 1]);
        let (first, second) = (6 + 20_000 * 128 + 35, 10);
        let of = |x: &[i16], w: &[i8], count| {
            let mut sums = [-1; 4];
            block(Src::from_slice(x), w, count, &mut sums).map(|()| sums[..count].to_vec())
        };
        assert_eq!(of(&x, &w, 2), Some(Vec::from([first, second])));
        assert_eq!(of(&x, &w[3..], 1), Some(Vec::from([second])));
        for (x, w, count) in [(&x[..], &w[..5], 2), (&x[..0], &w, 1), (&x, &w, 0), (&x, &[0; 15], 5)] {
            assert_eq!(of(x, w, count), None);
        }
        assert_eq!(of(&[0; LONGEST + 1], &[0; LONGEST + 1], 1), None);
        for (len, count) in (1..14).flat_map(|len| (1..14).map(move |count| (len, count))) {
            let (x, w) = (numbers(5, len), numbers(6, len * count));
            let weights: Vec<i8> = w.iter().map(|&w| (w >> 8) as i8).collect();
            let rows = weights.chunks(len);
            let sum = |row: &[i8]| {
                x.iter()
                    .zip(row)
                    .map(|(&x, &w)| i32::from(x) * i32::from(w))
                    .sum::<i32>()
            };
            let mut sums = [0; 16];
            block(Src::from_slice(&x), &weights, count, &mut sums).unwrap();
            assert_eq!(sums[..count], rows.map(sum).collect::<Vec<_>>(), "{len} {count}");
        }
    }

    #[test]
    fn the_longest_sums_have_32_bits() {
        let (x, weights) = ([i16::MIN; LONGEST], [i8::MIN; LONGEST]);
        let lines = StridedLines {
            count: 1,
            len: LONGEST,
            step: 0,
            weights_step: 0,
        };
        let sum = LONGEST as i32 * (32768 * 128);
        assert_eq!(dots(Src::from_slice(&x), 0, &weights, [0; 4], lines), Some([sum; 4]));
    }

    #[test]
    fn taps_are_the_formula() {
        let (x, w) = (numbers(3, 900), numbers(4, 300));
        let weights: Vec<i8> = w.iter().map(|&w| (w >> 8) as i8).collect();
        for (rows, columns) in (1..4).flat_map(|rows| (1..6).map(move |columns| (rows, columns))) {
            let taps = Taps {
                count: [rows, columns],
                steps: [140, 9],
                weights_steps: [7, 40],
            };
            let sum = |c: usize| {
                let taps = (0..rows).flat_map(|r| (0..columns).map(move |k| (r, k)));
                let products = taps
                    .map(|(r, k)| i32::from(x[5 + 140 * r + 9 * k + c]) * i32::from(weights[3 + 7 * r + k + 40 * c]));
                products.sum::<i32>()
            };
            let (x, weights) = (Src::from_slice(&x), &weights[..]);
            assert_eq!(columns_of::<4>(x, weights, &taps), Some([0, 1, 2, 3].map(sum)));
            assert_eq!(columns_of::<1>(x, weights, &taps), Some([sum(0)]));
        }
    }

    fn columns_of<const N: usize>(x: Src<'_, i16>, weights: &[i8], taps: &Taps) -> Option<[i32; N]> {
        super::columns::<N>(x, 5, weights, 3, taps)
    }

    #[test]
    fn nothing_out_of_range_is_read() {
        let (x, weights) = ([1_i16; 40], [1_i8; 40]);
        let lines = |count, len, step| StridedLines {
            count,
            len,
            step,
            weights_step: step,
        };
        let of = |start, rows, lines| dots(Src::from_slice(&x), start, &weights, rows, lines);
        assert_eq!(of(0, [0; 4], lines(3, 10, 15)), Some([30; 4]));
        assert_eq!(of(1, [0; 4], lines(3, 10, 15)), None);
        assert_eq!(of(0, [0, 0, 0, 1], lines(3, 10, 15)), None);
        assert_eq!(of(0, [0; 4], lines(3, 0, 15)), None);
        assert_eq!(of(0, [0; 4], lines(0, 10, 15)), None);
        assert_eq!(of(usize::MAX, [0; 4], lines(1, 10, 15)), None);
        let taps = |count, steps, weights_steps| Taps {
            count,
            steps,
            weights_steps,
        };
        let of = |start, first, taps: &Taps| super::columns::<4>(Src::from_slice(&x), start, &weights, first, taps);
        assert_eq!(of(0, 0, &taps([2, 3], [20, 8], [3, 9])), Some([6; 4]));
        assert_eq!(of(1, 0, &taps([2, 3], [20, 8], [3, 9])), None);
        assert_eq!(of(0, 8, &taps([2, 3], [20, 8], [3, 9])), None);
        assert_eq!(of(0, 0, &taps([0, 3], [20, 8], [3, 9])), None);
    }
}
