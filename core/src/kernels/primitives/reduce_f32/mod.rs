//! Sums, largest and smallest elements of f32 over windows and along axes, several neighbours at a time: each output's elements in the order of the
//! formula, so that sums have the same bits on every core.

mod args;
#[cfg(kernel_isa = "fpu")]
mod fpu;

#[cfg(kernel_isa = "fpu")]
use core::mem::MaybeUninit;

use args::Extents;

use super::reduce::lines;
use crate::cells::{Dst, Src};
use crate::ops::window::{Window2d, inside, three};

/// Neighbours that are folded at a time: those of a core with registers for floating point.
const LANES: usize = if cfg!(any(
    kernel_isa = "fpu",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "x86_64"
)) {
    8
} else {
    4
};

/// Neighbours where fewer are left.
const FOUR: usize = 4;

/// A fold of elements into a number.
pub(in crate::kernels) trait Fold {
    /// The fold of no element.
    const INITIAL: f32;

    /// The fold of one more element.
    fn with(value: f32, x: f32) -> f32;

    /// Whether it compares numbers, of which a NaN has an order of its own.
    #[cfg(kernel_isa = "fpu")]
    const COMPARES: bool = true;

    /// The core's own loops.
    #[cfg(kernel_isa = "fpu")]
    const LOOPS: fpu::Loops;
}

/// The sum, from 0 on.
#[derive(Debug)]
pub(in crate::kernels) struct Sum;

/// The largest element, the first of equal ones; the last NaN where there is one.
#[derive(Debug)]
pub(in crate::kernels) struct Max;

/// The smallest element, likewise.
#[derive(Debug)]
pub(in crate::kernels) struct Min;

impl Fold for Sum {
    const INITIAL: f32 = 0.0;

    #[inline(always)]
    fn with(value: f32, x: f32) -> f32 {
        value + x
    }

    #[cfg(kernel_isa = "fpu")]
    const COMPARES: bool = false;

    #[cfg(kernel_isa = "fpu")]
    const LOOPS: fpu::Loops = fpu::SUM;
}

impl Fold for Max {
    const INITIAL: f32 = f32::NEG_INFINITY;

    #[inline(always)]
    fn with(value: f32, x: f32) -> f32 {
        if x > value || x.is_nan() { x } else { value }
    }

    #[cfg(kernel_isa = "fpu")]
    const LOOPS: fpu::Loops = fpu::MAX;
}

impl Fold for Min {
    const INITIAL: f32 = f32::INFINITY;

    #[inline(always)]
    fn with(value: f32, x: f32) -> f32 {
        if x < value || x.is_nan() { x } else { value }
    }

    #[cfg(kernel_isa = "fpu")]
    const LOOPS: fpu::Loops = fpu::MIN;
}

impl Extents {
    /// The folds for `N` neighbours from `x` on: one, four or eight.
    ///
    /// # Safety
    /// For each of the rows and columns, `N` neighbours are readable from the element that belongs to `x`.
    #[inline(always)]
    unsafe fn folds<F: Fold, const N: usize>(&self, x: *const f32) -> [f32; N] {
        const { assert!(matches!(N, 1 | 4 | 8)) };
        #[cfg(kernel_isa = "fpu")]
        {
            if self.rows == 0 || self.columns == 0 {
                return [F::INITIAL; N];
            }
            let run = match N {
                1 => F::LOOPS.one,
                4 => F::LOOPS.four,
                _ => F::LOOPS.eight,
            };
            let mut values = MaybeUninit::<[f32; N]>::uninit();
            // SAFETY: `N` neighbours are readable at each row and column (fn docs), of which there is one at least; the loop writes all `N` values.
            unsafe {
                let met = run(self, x, values.as_mut_ptr().cast());
                let mut values = values.assume_init();
                if met != 0 && F::COMPARES {
                    self.with_nans::<F>(x, &mut values);
                }
                values
            }
        }
        #[cfg(not(kernel_isa = "fpu"))]
        // SAFETY: `N` neighbours are readable at each row and column (fn docs).
        unsafe {
            self.by_elements::<F, N>(x)
        }
    }

    /// [`Extents::folds`] of any number of neighbours.
    ///
    /// # Safety
    /// Likewise.
    #[inline(always)]
    unsafe fn by_elements<F: Fold, const N: usize>(&self, x: *const f32) -> [f32; N] {
        let (mut values, mut line) = ([F::INITIAL; N], x);
        for _ in 0..self.rows {
            let mut at = line;
            for _ in 0..self.columns {
                for (lane, value) in values.iter_mut().enumerate() {
                    // SAFETY: `lane < N`, one of the neighbours at this row and column (fn docs).
                    *value = F::with(*value, unsafe { at.wrapping_add(lane).read() });
                }
                at = at.wrapping_byte_add(self.column);
            }
            line = line.wrapping_byte_add(self.row);
        }
        values
    }

    /// The folds of elements with a NaN among them, for as many neighbours as there are values.
    ///
    /// # Safety
    /// Likewise.
    #[cfg(kernel_isa = "fpu")]
    #[cold]
    #[inline(never)]
    unsafe fn with_nans<F: Fold>(&self, x: *const f32, values: &mut [f32]) {
        for (lane, value) in values.iter_mut().enumerate() {
            // SAFETY: `lane < values.len()`, the neighbours that are readable at each row and column (fn docs).
            [*value] = unsafe { self.by_elements::<F, 1>(x.wrapping_add(lane)) };
        }
    }

    /// Writes what `finish` makes of the folds for `count` outputs, neighbours from `x` on, to `y`. `apart`: no output is one of the elements.
    ///
    /// # Safety
    /// As for [`Extents::folds`] of all of them; as many are writable at `y`.
    #[inline(always)]
    unsafe fn neighbours<F: Fold>(
        &self,
        (mut x, mut y): (*const f32, *mut f32),
        count: usize,
        apart: bool,
        finish: impl Fn(f32) -> f32,
    ) {
        let mut left = count;
        // SAFETY: `left` counts the outputs that remain (fn docs). All elements of a block are read before one of its outputs is written; those that are
        // written again are the last four, whose elements are still there.
        unsafe {
            while left >= LANES {
                self.block::<F, LANES>((x, y), &finish);
                (x, y) = (x.wrapping_add(LANES), y.wrapping_add(LANES));
                left -= LANES;
            }
            if LANES > FOUR && left >= FOUR {
                self.block::<F, FOUR>((x, y), &finish);
                (x, y) = (x.wrapping_add(FOUR), y.wrapping_add(FOUR));
                left -= FOUR;
            }
            if LANES > FOUR && left > 0 && apart && count >= FOUR {
                let again = FOUR.wrapping_sub(left);
                return self.block::<F, FOUR>((x.wrapping_sub(again), y.wrapping_sub(again)), &finish);
            }
            while left > 0 {
                self.block::<F, 1>((x, y), &finish);
                (x, y) = (x.wrapping_add(1), y.wrapping_add(1));
                left -= 1;
            }
        }
    }

    /// Writes what `finish` makes of `N` folds.
    ///
    /// # Safety
    /// As for [`Extents::folds`]; as many are writable at `y`.
    #[inline(always)]
    unsafe fn block<F: Fold, const N: usize>(&self, (x, y): (*const f32, *mut f32), finish: &impl Fn(f32) -> f32) {
        // SAFETY: `N` neighbours are readable at each row and column, and `N` outputs writable at `y` (fn docs).
        unsafe {
            for (i, value) in self.folds::<F, N>(x).into_iter().enumerate() {
                y.wrapping_add(i).write(finish(value));
            }
        }
    }
}

/// Writes what `finish` makes of the folds over `r` and `s` of `[a, r, b, s, c]`, in order, to an output that overlaps no input. `None` where an operand is
/// shorter than that.
#[inline(always)]
pub(in crate::kernels) fn along_axes<F: Fold>(
    input: Src<'_, f32>,
    output: Dst<'_, f32>,
    shape: [u32; 5],
    finish: impl Fn(f32) -> f32,
) -> Option<()> {
    const BYTES: usize = size_of::<f32>();
    lines(input, output, shape, |line| {
        let extents = Extents {
            rows: line.rows,
            row: line.row.wrapping_mul(BYTES),
            columns: line.columns,
            column: line.column.wrapping_mul(BYTES),
        };
        // SAFETY: the elements of the line's outputs, and these, lie inside the operands, whose lengths are those of all axes.
        unsafe {
            if line.stride == 1 {
                return extents.neighbours::<F>((line.from, line.to), line.count, true, &finish);
            }
            let (mut x, mut y) = (line.from, line.to);
            for _ in 0..line.count {
                extents.block::<F, 1>((x, y), &finish);
                (x, y) = (x.wrapping_add(line.stride), y.wrapping_add(1));
            }
        }
    })
}

/// Writes what `finish` makes of the fold and the number of the elements under each window, in order. Windows are not dilated. `None` where an operand is
/// shorter than the window says.
#[inline(always)]
pub(in crate::kernels) fn under_windows<F: Fold>(
    window: &Window2d,
    input: Src<'_, f32>,
    output: Dst<'_, f32>,
    finish: impl Fn(f32, usize) -> f32,
) -> Option<()> {
    let [height, width, channels] = three::<_, usize>(window.input);
    let [out_height, out_width, out_channels] = three::<_, usize>(window.output);
    if window.input_len()? as usize > input.len()
        || window.output_len()? as usize > output.cells().len()
        || channels != out_channels
    {
        return None;
    }
    let pixel = channels.wrapping_mul(size_of::<f32>());
    let (mut image, mut y) = (input.as_ptr(), output.as_mut_ptr());
    let end = |start: *const f32, len: usize| start.wrapping_add(len);
    let apart = end(image, input.len()) <= y.cast_const() || end(y, output.cells().len()) <= image;
    for _ in 0..window.batch {
        for row in 0..out_height {
            let (top, rows) = inside(row, window, 0)?;
            for column in 0..out_width {
                let (left, columns) = inside(column, window, 1)?;
                let extents = Extents {
                    rows,
                    row: width.wrapping_mul(pixel),
                    columns,
                    column: pixel,
                };
                let at = top.wrapping_mul(width).wrapping_add(left);
                let x = image.wrapping_byte_add(at.wrapping_mul(pixel));
                let count = rows.wrapping_mul(columns);
                // SAFETY: `inside` gives rows and columns of the input, of which there are all channels; outputs are written in order, and no more of them than
                // the output has.
                unsafe { extents.neighbours::<F>((x, y), channels, apart, |value| finish(value, count)) };
                y = y.wrapping_add(channels);
            }
        }
        image = image.wrapping_byte_add(height.wrapping_mul(width).wrapping_mul(pixel));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    extern crate std;
    use core::cell::Cell;
    use std::vec::Vec;

    use super::*;

    /// Numbers of both signs, of which some are equal, with a NaN of its own bits at each place of `nans`.
    fn numbers(count: usize, nans: &[usize]) -> Vec<f32> {
        let number = |i: usize| {
            let marked = nans.iter().position(|&nan| nan == i);
            marked.map_or((i * 37 % 101) as f32 / 8.0 - 6.0, |at| {
                f32::from_bits(0x7fc0_0001 + at as u32)
            })
        };
        (0..count).map(number).collect()
    }

    fn folded<F: Fold>(input: &[f32], shape: [u32; 5]) -> Option<Vec<u32>> {
        let [a, _, b, _, c] = shape.map(|n| n as usize);
        let bytes: Vec<Cell<u8>> = std::vec![Cell::new(0); 4 * (a * b * c).min(1000) + 4];
        let skip = bytes.as_ptr().align_offset(4);
        let output = Dst::<f32>::from_cells(&bytes[skip..][..4 * (a * b * c).min(1000)])?;
        along_axes::<F>(Src::from_slice(input), output, shape, |value| value)?;
        Some(output.cells().iter().map(|y| y.get().to_bits()).collect())
    }

    #[test]
    fn folds_go_in_the_order_of_the_formula() {
        let input = numbers(1400, &[3, 40, 41, 377, 378, 500, 1399]);
        for shape in [
            [1, 1, 1, 7, 21],
            [2, 3, 4, 5, 3],
            [3, 2, 1, 1, 9],
            [5, 3, 2, 4, 1],
            [1, 16, 1, 17, 1],
            [21, 3, 1, 1, 1],
            [3, 2, 7, 5, 1],
            [1, 9, 1, 9, 17],
        ] {
            let [a, r, b, s, c] = shape.map(|n: u32| n as usize);
            let (mut sums, mut largest, mut smallest) = (Vec::new(), Vec::new(), Vec::new());
            for (i, j, k) in (0..a * b * c).map(|at| (at / (b * c), at / c % b, at % c)) {
                let places = (0..r * s).map(|at| (((i * r + at / s) * b + j) * s + at % s) * c + k);
                let of: Vec<f32> = places.map(|at| input[at]).collect();
                sums.push(of.iter().fold(0.0_f32, |sum, x| sum + x).to_bits());
                let nan = of.iter().copied().rfind(|x| x.is_nan());
                let [most, least] = [f32::max, f32::min].map(|of_two| of.iter().copied().reduce(of_two).unwrap());
                largest.push(nan.unwrap_or(most).to_bits());
                smallest.push(nan.unwrap_or(least).to_bits());
            }
            assert_eq!(folded::<Sum>(&input, shape), Some(sums), "{shape:?}");
            assert_eq!(folded::<Max>(&input, shape), Some(largest), "{shape:?}");
            assert_eq!(folded::<Min>(&input, shape), Some(smallest), "{shape:?}");
        }
    }

    #[test]
    fn the_first_of_equal_numbers_stays() {
        assert_eq!(folded::<Max>(&[-0.0, 0.0], [1, 2, 1, 1, 1]), Some(std::vec![1 << 31]));
        assert_eq!(folded::<Min>(&[0.0, -0.0], [1, 2, 1, 1, 1]), Some(std::vec![0]));
    }

    #[test]
    fn nothing_beyond_the_operand_is_read() {
        assert!(folded::<Sum>(&[1.0; 12], [1, 3, 1, 1, 4]).is_some());
        assert_eq!(folded::<Sum>(&[1.0; 11], [1, 3, 1, 1, 4]), None);
        assert_eq!(folded::<Sum>(&[1.0; 12], [u32::MAX, 3, 2, 1, 4]), None);
    }
}
