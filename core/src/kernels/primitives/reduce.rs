//! Sums along axes, several neighbours at a time, at addresses that are checked once and not for each element.

#[cfg(kernel_isa = "mve")]
use super::binary_s8::mve;
use super::requantize::bounded::{Enlarge, Rescale};
use crate::cells::{Dst, Element, Src};
use crate::kernels::isa::dsp::{halves, split, sxtab16, sxtab16_ror8};
use crate::ops::size::size;
use crate::quant::Multiplier;

/// Neighbours whose sums are taken at a time.
const LANES: usize = 4;

/// Neighbours that have a sum each, of what lies along two axes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<T> {
    pub(super) from: *const T,
    pub(super) to: *mut T,
    pub(super) count: usize,
    /// Elements from one to the next; the results lie side by side.
    pub(super) stride: usize,
    pub(super) rows: usize,
    /// Elements between rows.
    pub(super) row: usize,
    pub(super) columns: usize,
    /// Likewise.
    pub(super) column: usize,
}

/// Calls `f` with the lines of `[a, r, b, s, c]`, whose sums are over `r` and `s`. `None` where an operand is shorter than that.
#[inline(always)]
pub(super) fn lines<T: Element>(
    input: Src<'_, T>,
    output: Dst<'_, T>,
    shape: [u32; 5],
    f: impl Fn(&Line<T>),
) -> Option<()> {
    let [a, _, b, _, c] = shape;
    if size(&shape)? as usize > input.len() || size(&[a, b, c])? as usize > output.cells().len() {
        return None;
    }
    let [a, r, b, s, c] = shape.map(|n| n as usize);
    let inner = s.wrapping_mul(c);
    let row = b.wrapping_mul(inner);
    let image = r.wrapping_mul(row);
    let mut line = Line {
        from: input.as_ptr(),
        to: output.as_mut_ptr(),
        count: c,
        stride: 1,
        rows: r,
        row,
        columns: s,
        column: c,
    };
    // One axis does not need two loops.
    if s == 1 {
        (line.rows, line.columns, line.column) = (1, r, row);
    } else if b == 1 {
        (line.rows, line.columns) = (1, r.wrapping_mul(s));
    }
    let (mut outer, mut middle) = ([a, image], [b, inner]);
    // The results' neighbours need not be the operand's.
    if c == 1 {
        (line.count, line.stride) = (b, inner);
        middle[0] = 1;
        if b == 1 {
            (line.count, line.stride) = (a, image);
            outer[0] = 1;
        }
    }
    for _ in 0..outer[0] {
        let begin = line.from;
        for _ in 0..middle[0] {
            f(&line);
            line.from = line.from.wrapping_add(middle[1]);
            line.to = line.to.wrapping_add(line.count);
        }
        line.from = begin.wrapping_add(outer[1]);
    }
    Some(())
}

/// Writes what `f` makes of the sums, modulo 2^32, over `r` and `s` of `[a, r, b, s, c]`, in order. `None` where an operand is shorter than that.
#[inline(always)]
pub(crate) fn sums<T: Element + Into<i32>>(
    input: Src<'_, T>,
    output: Dst<'_, T>,
    shape: [u32; 5],
    f: impl Fn(i32) -> T,
) -> Option<()> {
    folds(input, output, shape, (0, i32::wrapping_add), f)
}

/// The same of what `fold` makes of the elements, from `initial` on.
#[inline(always)]
pub(crate) fn folds<T: Element + Into<i32>>(
    input: Src<'_, T>,
    output: Dst<'_, T>,
    shape: [u32; 5],
    (initial, fold): (i32, impl Fn(i32, i32) -> i32),
    f: impl Fn(i32) -> T,
) -> Option<()> {
    // SAFETY: `lines` compares the operands' lengths with all axes: a line's outputs and their inputs lie inside.
    lines(input, output, shape, |line| unsafe { line.each(initial, &fold, &f) })
}

impl<T: Element + Into<i32>> Line<T> {
    /// Writes what `f` makes of the sums, or of what `fold` makes of the elements.
    ///
    /// # Safety
    /// The line's inputs and outputs lie inside the operands.
    #[inline(always)]
    unsafe fn each(&self, initial: i32, fold: &impl Fn(i32, i32) -> i32, f: &impl Fn(i32) -> T) {
        let (mut x, mut y, mut left) = (self.from, self.to, self.count);
        // SAFETY: `left` counts the outputs that remain; each has its `rows * columns` inputs inside the operand (fn docs).
        unsafe {
            if self.stride == 1 {
                while left >= LANES {
                    for (i, sum) in self.along::<LANES>(x, initial, fold).into_iter().enumerate() {
                        y.wrapping_add(i).write(f(sum));
                    }
                    (x, y) = (x.wrapping_add(LANES), y.wrapping_add(LANES));
                    left -= LANES;
                }
            } else if self.rows == 1 && self.column == 1 {
                match self.columns {
                    2 => return self.short::<2>(initial, fold, f),
                    3 => return self.short::<3>(initial, fold, f),
                    4 => return self.short::<4>(initial, fold, f),
                    _ => {}
                }
            }
            while left > 0 {
                let [sum] = self.along::<1>(x, initial, fold);
                y.write(f(sum));
                (x, y) = (x.wrapping_add(self.stride), y.wrapping_add(1));
                left -= 1;
            }
        }
    }

    /// [`Line::each`] of `N` neighbours each.
    ///
    /// # Safety
    /// As for [`Line::each`]; each output's inputs are `N` neighbours, and the outputs' inputs are contiguous.
    #[inline(always)]
    unsafe fn short<const N: usize>(&self, initial: i32, fold: &impl Fn(i32, i32) -> i32, f: &impl Fn(i32) -> T) {
        let one = |x: *const T| {
            let mut sum = initial;
            for i in 0..N {
                // SAFETY: `i < N`; `x` points to an output's `N` neighbours, which lie inside the input (fn docs).
                sum = fold(sum, unsafe { x.wrapping_add(i).read() }.into());
            }
            f(sum)
        };
        let (mut x, mut y) = (self.from, self.to);
        let mut left = self.count;
        // SAFETY: `left` counts the outputs that remain, each with its `N` inputs (fn docs).
        unsafe {
            while left >= LANES {
                for i in 0..LANES {
                    y.wrapping_add(i).write(one(x.wrapping_add(N * i)));
                }
                (x, y) = (x.wrapping_add(N * LANES), y.wrapping_add(LANES));
                left -= LANES;
            }
            while left > 0 {
                y.write(one(x));
                (x, y) = (x.wrapping_add(N), y.wrapping_add(1));
                left -= 1;
            }
        }
    }

    /// The sums for each of `N` neighbours from `x` on.
    ///
    /// # Safety
    /// For each of `self.rows` rows and `self.columns` columns, `N` neighbours are readable from the element that belongs to `x`.
    #[inline(always)]
    unsafe fn along<const N: usize>(&self, x: *const T, initial: i32, fold: &impl Fn(i32, i32) -> i32) -> [i32; N] {
        let (mut sums, mut line) = ([initial; N], x);
        let Self { row, column, .. } = *self;
        for _ in 0..self.rows {
            let mut at = line;
            for _ in 0..self.columns {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: `lane < N`, one of the neighbours at this row and column, which this function's contract guarantees.
                    let x: i32 = unsafe { at.wrapping_add(lane).read() }.into();
                    *sum = fold(*sum, x);
                }
                at = at.wrapping_add(column);
            }
            line = line.wrapping_add(row);
        }
        sums
    }
}

/// Requantisation of a sum: `M(sum of (x - zero_in)) + zero_out`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scaling {
    pub(crate) zero_in: i32,
    pub(crate) multiplier: Multiplier,
    pub(crate) zero_out: i32,
}

/// Means and sums of int8, where the core has instructions for these; whether it has.
#[inline(always)]
pub(crate) fn means_s8(input: Src<'_, i8>, output: Dst<'_, i8>, shape: [u32; 5], scaling: &Scaling) -> Option<bool> {
    #[cfg(kernel_isa = "mve")]
    if by_eights(input, output, shape, scaling)? {
        return Some(true);
    }
    if cfg!(kernel_isa = "dsp") {
        by_pairs(input, output, shape, scaling)
    } else {
        Some(false)
    }
}

/// Helium's sums, of 16 bits; strides and offsets likewise.
#[cfg(kernel_isa = "mve")]
fn by_eights(input: Src<'_, i8>, output: Dst<'_, i8>, shape: [u32; 5], scaling: &Scaling) -> Option<bool> {
    const MANY: u32 = 256;
    let [_, r, _, s, _] = shape;
    let elements = r.checked_mul(s)?;
    let Multiplier { mantissa, shift } = scaling.multiplier;
    let zeros = [scaling.zero_in, scaling.zero_out].map(i8::try_from);
    let ([Ok(zero_in), Ok(zero_out)], true) = (zeros, (1..=MANY).contains(&elements) && shift <= 0) else {
        return Some(false);
    };
    lines(input, output, shape, |line| {
        if line.count == 0 {
            return;
        }
        let mean = mve::Mean {
            from: line.from,
            step: line.column,
            columns: line.columns,
            skip: line.row.wrapping_sub(line.column.wrapping_mul(line.columns)),
            channels: line.count,
            rows: line.rows,
            to: line.to,
            zeros: (elements as i32).wrapping_mul(-i32::from(zero_in)),
            mantissa,
            zero: zero_out.into(),
            shift: shift.into(),
            stride: line.stride,
        };
        // SAFETY: the line lies inside the operands, none of its extents is 0; its stride is at most the number of elements where it is not 1.
        unsafe {
            if line.stride == 1 {
                mve::means(&mean);
            } else {
                mve::means_apart(&mean);
            }
        }
    })?;
    Some(true)
}

/// Elements whose sum, less as many zero points, has 16 bits.
const FEW: usize = 128;

/// With pairs of 16-bit sums, eight neighbours at a time.
#[inline(always)]
fn by_pairs(input: Src<'_, i8>, output: Dst<'_, i8>, shape: [u32; 5], scaling: &Scaling) -> Option<bool> {
    let [_, r, _, s, _] = shape;
    let elements = r.checked_mul(s)?;
    let Ok(zero) = i8::try_from(scaling.zero_in) else {
        return Some(false);
    };
    let zeros = (elements as i32).wrapping_mul(-i32::from(zero));
    let of = (scaling.multiplier, i64::from(elements) * 255 + 1, scaling.zero_out);
    if let Some(rescale) = Rescale::new(of.0, of.1, of.2) {
        pairs_of(input, output, shape, zeros, |twice| rescale.of_twice(twice))?;
    } else if let Some(enlarge) = Enlarge::new(of.0, of.1, of.2) {
        pairs_of(input, output, shape, zeros, |twice| enlarge.of_twice(twice))?;
    } else {
        return Some(false);
    }
    Some(true)
}

/// Writes what `f` makes of twice the sums with `zeros`, saturated.
#[inline(always)]
fn pairs_of(
    input: Src<'_, i8>,
    output: Dst<'_, i8>,
    shape: [u32; 5],
    zeros: i32,
    f: impl Fn(i32) -> i32,
) -> Option<()> {
    let twice_zeros = zeros << 1;
    let narrow = |twice: i32| f(twice).clamp(-128, 127) as i8;
    // SAFETY: `lines` compares the operands' lengths with all axes: a line's outputs and their inputs lie inside.
    lines(input, output, shape, |line| unsafe {
        let mut rest = *line;
        if line.stride == 1 {
            rest = line.eights(zeros, &narrow);
        }
        rest.each(0, &i32::wrapping_add, &|sum| {
            narrow((sum << 1).wrapping_add(twice_zeros))
        });
    })
}

impl Line<i8> {
    /// Writes what `f` makes of twice the sums with `zeros`, for eight neighbours at a time; returns what is left.
    ///
    /// # Safety
    /// 1. The line's inputs and outputs lie inside the operands.
    /// 2. Its stride is 1.
    #[inline(always)]
    unsafe fn eights(&self, zeros: i32, f: &impl Fn(i32) -> i8) -> Self {
        let mut rest = *self;
        let few = self.rows.wrapping_mul(self.columns) <= FEW;
        while rest.count >= 8 {
            let to = rest.to;
            // SAFETY: at least eight outputs are left, neighbours as are their inputs at each row and column (points 1 and 2).
            unsafe {
                if few {
                    let mut sums = [halves(zeros, zeros); 4];
                    let mut row = rest.from;
                    for _ in 0..self.rows {
                        sums = pairs(row, self.columns, self.column, sums);
                        row = row.wrapping_add(self.row);
                    }
                    put(sums, |i, sum| to.wrapping_add(i).write(f(sum << 1)));
                } else {
                    let mut wide = [zeros; 8];
                    let mut row = rest.from;
                    for _ in 0..self.rows {
                        let (mut at, mut left) = (row, self.columns);
                        while left > 0 {
                            let part = left.min(FEW);
                            let sums = pairs(at, part, self.column, [0; 4]);
                            put(sums, |i, sum| {
                                if let Some(wide) = wide.get_mut(i) {
                                    *wide = wide.wrapping_add(sum);
                                }
                            });
                            at = at.wrapping_add(self.column.wrapping_mul(part));
                            left -= part;
                        }
                        row = row.wrapping_add(self.row);
                    }
                    for (i, sum) in wide.into_iter().enumerate() {
                        to.wrapping_add(i).write(f(sum << 1));
                    }
                }
            }
            rest.from = rest.from.wrapping_add(8);
            rest.to = to.wrapping_add(8);
            rest.count -= 8;
        }
        rest
    }
}

/// Adds `count` elements of eight neighbours to sums of 16 bits.
///
/// # Safety
/// `count` times eight neighbours are readable, `step` bytes apart.
#[inline(always)]
unsafe fn pairs(mut at: *const i8, count: usize, step: usize, mut sums: [u32; 4]) -> [u32; 4] {
    for _ in 0..count {
        // SAFETY: eight bytes are readable at `at`, of which words are read at 0 and 4; the read is unaligned.
        let [low, high] = [0, 4].map(|i| u32::from_le(unsafe { at.wrapping_add(i).cast::<u32>().read_unaligned() }));
        let [a, b, c, d] = sums;
        sums = [
            sxtab16(a, low),
            sxtab16_ror8(b, low),
            sxtab16(c, high),
            sxtab16_ror8(d, high),
        ];
        at = at.wrapping_add(step);
    }
    sums
}

/// Calls `f` with the sums and their places.
#[inline(always)]
fn put(sums: [u32; 4], mut f: impl FnMut(usize, i32)) {
    for (i, sum) in [0, 1, 4, 5].into_iter().zip(sums) {
        let [low, high] = split(sum);
        f(i, low);
        f(i + 2, high);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use core::cell::Cell;
    use std::vec::Vec;

    use super::*;

    fn sums_of(input: &[i16], shape: [u32; 5]) -> Option<Vec<i16>> {
        let len = (shape[0] as usize)
            .checked_mul((shape[2] * shape[4]) as usize)?
            .min(1000);
        let bytes: Vec<Cell<u8>> = std::vec![Cell::new(0); 2 * len + 2];
        let skip = bytes.as_ptr().align_offset(2);
        let output = Dst::<i16>::from_cells(&bytes[skip..][..2 * len])?;
        sums(Src::from_slice(input), output, shape, |sum| sum as i16)?;
        Some(output.cells().iter().map(Cell::get).collect())
    }

    #[test]
    fn sums_are_the_formula() {
        let input: Vec<i16> = (0..700).map(|i| (i * 37 % 256) as i16 - 128).collect();
        for shape in [
            [1, 1, 1, 7, 11],
            [2, 3, 4, 5, 3],
            [3, 2, 1, 1, 9],
            [5, 3, 2, 4, 1],
            [2, 0, 3, 2, 5],
            [1, 6, 2, 1, 4],
            [21, 3, 1, 1, 1],
            [5, 1, 3, 4, 1],
            [5, 2, 1, 1, 1],
            [3, 2, 7, 5, 1],
        ] {
            let [a, r, b, s, c] = shape.map(|n: u32| n as usize);
            let mut expected = Vec::new();
            for (i, j, k) in (0..a * b * c).map(|at| (at / (b * c), at / c % b, at % c)) {
                let places = (0..r * s).map(|at| (((i * r + at / s) * b + j) * s + at % s) * c + k);
                expected.push(places.map(|at| input[at]).sum());
            }
            assert_eq!(sums_of(&input, shape), Some(expected), "{shape:?}");
        }
    }

    #[test]
    fn pairs_make_the_means() {
        let input: Vec<i8> = (0..1400).map(|i| (i * 37 % 256) as i8).collect();
        for (shape, zero_in) in [
            ([1, 1, 1, 7, 19], -128),
            ([2, 3, 4, 5, 3], 127),
            ([3, 2, 1, 1, 29], 5),
            ([1, 8, 2, 8, 9], -128),
            ([1, 9, 1, 18, 8], 0),
            ([17, 3, 1, 1, 1], -128),
            ([3, 5, 4, 7, 1], 100),
            ([3, 1, 4, 2, 1], 100),
            ([9, 2, 1, 2, 1], 3),
        ] {
            let [a, r, b, s, c] = shape.map(|n: u32| n as usize);
            let multiplier = Multiplier::from_real([0.9, 3.1][a % 2] / (r * s) as f64).unwrap();
            let scaling = Scaling {
                zero_in,
                multiplier,
                zero_out: -7,
            };
            let memory: Vec<Cell<u8>> = std::vec![Cell::new(0); a * b * c];
            let output = Dst::<i8>::from_cells(&memory).unwrap();
            let done = by_pairs(Src::from_slice(&input), output, shape, &scaling).unwrap();
            assert!(done);
            for (at, y) in output.cells().iter().enumerate() {
                let (i, j, k) = (at / (b * c), at / c % b, at % c);
                let places = (0..r * s).map(|at| (((i * r + at / s) * b + j) * s + at % s) * c + k);
                let sum: i32 = places.map(|at| i32::from(input[at]) - zero_in).sum();
                let expected = (multiplier.apply(sum) - 7).clamp(-128, 127);
                assert_eq!(i32::from(y.get()), expected, "{shape:?} at {at}");
            }
            assert_eq!(
                by_pairs(
                    Src::from_slice(&input[..a * r * b * s * c - 1]),
                    output,
                    shape,
                    &scaling
                ),
                if done { None } else { Some(false) }
            );
        }
    }

    #[test]
    fn nothing_beyond_the_operand_is_read() {
        assert_eq!(sums_of(&[1; 12], [1, 3, 1, 1, 4]), Some(std::vec![3; 4]));
        assert_eq!(sums_of(&[1; 11], [1, 3, 1, 1, 4]), None);
        assert_eq!(sums_of(&[1; 12], [u32::MAX, 3, 2, 1, 4]), None);
    }
}
