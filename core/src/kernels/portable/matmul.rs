//! Products of matrices: a line of one with all rows of the other, or with its columns, several at a time.

use crate::arena::Mem;
use crate::cells::{Dst, Element, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::dot_s8;
use crate::kernels::primitives::matmul_columns::{Spaced, add_wide, columns_s8, columns_s16};
use crate::kernels::primitives::requantize::lines::Rescaled;
use crate::ops::elementwise::{MAX_LOOPS, output_len};
use crate::ops::matmul::MatMulInt;
use crate::tensor::DType;

/// int8 with sums of 32 bits, int16 with sums of 64.
#[derive(Debug)]
pub struct Quantised;

impl Kernel for Quantised {
    type Op = MatMulInt;

    fn run(op: &MatMulInt, mem: &Mem<'_>) -> Option<()> {
        let ([.., zero], [low, high]) = (op.zero, op.clamp);
        if op.dtype == DType::I8 {
            let scale = Rescaled::new(op.multiplier, zero, (low, high), 0);
            return products::<i8>(op, mem, |sums, y, start, step| scale.put(sums, y, start, step));
        }
        products::<i16>(op, mem, |sums, y, start, step| {
            for (i, &sum) in sums.iter().enumerate() {
                let value = op.multiplier.apply_wide(sum).wrapping_add(zero);
                let value = if value < low { low } else { value.min(high) };
                y.set(start.wrapping_add(i.wrapping_mul(step)), value as i16)?;
            }
            Some(())
        })
    }
}

#[cfg(any(test, packing))]
impl Candidate for Quantised {}

/// Elements of matrices.
trait Terms: Element + Into<i32> {
    /// Of 32 bits for int8, of 64 for int16; beyond those it wraps.
    type Sum: Copy;

    /// A sum without what another zero point adds to it.
    fn less(sum: Self::Sum, beside: i64) -> Self::Sum;

    /// Calls `put` with an index and `sum of (x[k] - zero) * m[i, k]` of the rows from it on: of `count` rows of as many elements as x has.
    fn rows(
        x: Src<'_, Self>,
        zero: i32,
        m: Src<'_, Self>,
        count: usize,
        put: impl FnMut(usize, &mut [Self::Sum]) -> Option<()>,
    ) -> Option<()>;

    /// The same with `sum of (x[k] - zero) * m[k, i]`, of `width` columns.
    fn columns(
        x: Spaced<'_, Self>,
        zero: i32,
        m: Src<'_, Self>,
        width: usize,
        put: impl FnMut(usize, &mut [Self::Sum]) -> Option<()>,
    ) -> Option<()>;
}

impl Terms for i8 {
    type Sum = i32;

    #[inline(always)]
    fn less(sum: i32, beside: i64) -> i32 {
        sum.wrapping_sub(beside as i32)
    }

    #[inline(always)]
    fn rows(
        x: Src<'_, i8>,
        zero: i32,
        m: Src<'_, i8>,
        count: usize,
        mut put: impl FnMut(usize, &mut [i32]) -> Option<()>,
    ) -> Option<()> {
        let mut at = 0usize;
        dot_s8::rows_of(x, zero, m, count, |sums| {
            put(at, sums)?;
            at = at.wrapping_add(sums.len());
            Some(())
        })
    }

    #[inline(always)]
    fn columns(
        x: Spaced<'_, i8>,
        zero: i32,
        m: Src<'_, i8>,
        width: usize,
        put: impl FnMut(usize, &mut [i32]) -> Option<()>,
    ) -> Option<()> {
        columns_s8(x, zero, m, width, put)
    }
}

impl Terms for i16 {
    type Sum = i64;

    #[inline(always)]
    fn less(sum: i64, beside: i64) -> i64 {
        sum.wrapping_sub(beside)
    }

    #[inline(always)]
    fn rows(
        x: Src<'_, i16>,
        zero: i32,
        m: Src<'_, i16>,
        count: usize,
        mut put: impl FnMut(usize, &mut [i64]) -> Option<()>,
    ) -> Option<()> {
        for i in 0..count {
            let row = m.slice(i.checked_mul(x.len())?, x.len())?;
            let mut sum = 0;
            for (x, w) in x.iter().zip(row.iter()) {
                sum = add_wide(sum, x.into(), w.into());
            }
            put(i, &mut [centred(sum, zero, || Spaced::new(row, 0, 1, row.len()))?])?;
        }
        Some(())
    }

    #[inline(always)]
    fn columns(
        x: Spaced<'_, i16>,
        zero: i32,
        m: Src<'_, i16>,
        width: usize,
        mut put: impl FnMut(usize, &mut [i64]) -> Option<()>,
    ) -> Option<()> {
        columns_s16(x, m, width, |at, sums| {
            for (sum, i) in sums.iter_mut().zip(at..) {
                *sum = centred(*sum, zero, || Spaced::new(m, i, width, x.count))?;
            }
            put(at, sums)
        })
    }
}

/// A sum of products whose first factors lack their zero point: those of int16 are 0 in TensorFlow Lite.
#[inline(always)]
fn centred<'a>(sum: i64, zero: i32, factors: impl Fn() -> Option<Spaced<'a, i16>>) -> Option<i64> {
    if zero == 0 {
        return Some(sum);
    }
    Some(sum.wrapping_sub(i64::from(zero).wrapping_mul(factors()?.sum())))
}

/// All products; `finish` makes outputs of sums, from an index of theirs on, a step from one to the next.
fn products<T: Terms>(
    op: &MatMulInt,
    mem: &Mem<'_>,
    finish: impl Fn(&[T::Sum], Dst<'_, T>, usize, usize) -> Option<()>,
) -> Option<()> {
    let [output_len_, a_len, b_len] = op.lens()?;
    let output = mem.dst::<T>(op.output, output_len_)?;
    let (a, b) = (mem.src::<T>(op.a, a_len)?, mem.src::<T>(op.b, b_len)?);
    let [rows, terms, columns] = op.shape.map(|n| n as usize);
    let [zero_a, zero_b, _] = op.zero;
    // Of matrices that are both stored with their columns as rows, a line is a column of the result, and a row of b makes it; else a row, which one of a makes.
    let turned = op.transpose_a && op.transpose_b;
    let (lines, zeros) = if turned {
        (columns, [zero_b, zero_a])
    } else {
        (rows, [zero_a, zero_b])
    };
    let spaced = op.transpose_a && !turned;
    for matrix in 0..output_len(&op.loops)? {
        let [a_at, b_at] = matrices(op, matrix);
        let (a, b) = (
            a.slice(a_at.wrapping_mul(rows.wrapping_mul(terms)), rows.wrapping_mul(terms))?,
            b.slice(
                b_at.wrapping_mul(terms.wrapping_mul(columns)),
                terms.wrapping_mul(columns),
            )?,
        );
        let len = rows.wrapping_mul(columns);
        let y = output.slice((matrix as usize).wrapping_mul(len), len)?;
        for line in 0..lines {
            let (start, step) = if spaced {
                (line, rows)
            } else {
                (line.wrapping_mul(terms), 1)
            };
            let x = Spaced::new(if turned { b } else { a }, start, step, terms)?;
            // The zero point of the second factors, times the sum of the first.
            let beside = match zeros[1] {
                0 => 0,
                zero => {
                    let all = i64::from(zeros[0]).wrapping_mul(terms as i64);
                    i64::from(zero).wrapping_mul(x.sum().wrapping_sub(all))
                }
            };
            let (from, step) = if turned {
                (line, columns)
            } else {
                (line.wrapping_mul(columns), 1)
            };
            let put = |at: usize, sums: &mut [T::Sum]| {
                for sum in sums.iter_mut() {
                    *sum = T::less(*sum, beside);
                }
                finish(sums, y, from.wrapping_add(at.wrapping_mul(step)), step)
            };
            let (m, width) = if turned { (a, rows) } else { (b, columns) };
            if op.transpose_b && !turned {
                T::rows(x.from, zeros[0], m, width, put)?;
            } else {
                T::columns(x, zeros[0], m, width, put)?;
            }
        }
    }
    Some(())
}

/// Which matrices of a and b the matrix of the result with this number is made of.
fn matrices(op: &MatMulInt, number: u32) -> [usize; 2] {
    let (mut rest, mut at) = (number, [0u32; 2]);
    for l in op.loops.iter().take(MAX_LOOPS).rev() {
        let index = rest.checked_rem(l.count).unwrap_or(0);
        rest = rest.checked_div(l.count).unwrap_or(0);
        let [a, b] = at;
        at = [
            a.wrapping_add(index.wrapping_mul(l.a)),
            b.wrapping_add(index.wrapping_mul(l.b)),
        ];
    }
    at.map(|n| n as usize)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// Sums of rows and of columns beside the formula, of elements and zero points of any size.
    fn holds<T: Terms>(x: &[T], zero: i32, m: &[T], width: usize, step: usize) -> Result<(), TestCaseError>
    where
        T::Sum: Into<i64> + Default,
    {
        let terms = x.len().div_ceil(step);
        let of = |x: T| i64::from(x.into());
        let centred = |k: usize| of(x[k * step]) - i64::from(zero);
        let all = Spaced::new(Src::from_slice(x), 0, step, terms).unwrap();
        let mut found = vec![T::Sum::default(); width];
        let mut keep = |at: usize, sums: &mut [T::Sum]| {
            found.get_mut(at..at + sums.len())?.copy_from_slice(sums);
            Some(())
        };
        let sum = |i: usize, at: &dyn Fn(usize) -> usize| {
            let sum = (0..terms).map(|k| centred(k) * of(m[at(k)])).sum::<i64>();
            T::less(T::Sum::default(), -sum).into() * i64::from(i < width)
        };
        T::columns(all, zero, Src::from_slice(&m[..terms * width]), width, &mut keep).unwrap();
        let expected: Vec<i64> = (0..width).map(|i| sum(i, &|k| k * width + i)).collect();
        prop_assert_eq!(found.iter().map(|&sum| sum.into()).collect::<Vec<i64>>(), expected);
        if step == 1 {
            let mut keep = |at: usize, sums: &mut [T::Sum]| {
                found.get_mut(at..at + sums.len())?.copy_from_slice(sums);
                Some(())
            };
            T::rows(
                Src::from_slice(x),
                zero,
                Src::from_slice(&m[..terms * width]),
                width,
                &mut keep,
            )
            .unwrap();
            let expected: Vec<i64> = (0..width).map(|i| sum(i, &|k| i * terms + k)).collect();
            prop_assert_eq!(found.iter().map(|&sum| sum.into()).collect::<Vec<i64>>(), expected);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn sums_of_rows_and_columns_are_the_formula(
            x in prop::collection::vec(any::<i16>(), 1..30), m in prop::collection::vec(any::<i16>(), 30 * 40),
            zero: i16, width in 1..40_usize, step in 1..4_usize,
        ) {
            let len = (x.len() - 1) / step * step + 1;
            let zero = i32::from(zero);
            holds(&x[..len], zero, &m, width, step)?;
            let bytes = |from: &[i16]| from.iter().map(|x| (x >> 8) as i8).collect::<Vec<i8>>();
            holds(&bytes(&x)[..len], zero, &bytes(&m), width, step)?;
        }
    }
}
