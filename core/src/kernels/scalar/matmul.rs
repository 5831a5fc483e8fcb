//! Products of matrices, straight from the formula.

use super::int::Int;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::candidate::Candidate;
use crate::kernels::kernel::Kernel;
use crate::ops::elementwise::{MAX_LOOPS, output_len};
use crate::ops::matmul::MatMulInt;
use crate::tensor::DType;

/// int8 with sums of 32 bits, int16 with sums of 64.
#[derive(Debug)]
pub struct Quantised;

impl Kernel for Quantised {
    type Op = MatMulInt;

    fn run(op: &MatMulInt, mem: &Mem<'_>) -> Option<()> {
        match op.dtype {
            DType::I8 => products::<i8>(op, mem, |sum| op.multiplier.apply(sum as i32)),
            _ => products::<i16>(op, mem, |sum| op.multiplier.apply_wide(sum)),
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for Quantised {}

fn products<T: Int>(op: &MatMulInt, mem: &Mem<'_>, scaled: impl Fn(i64) -> i32) -> Option<()> {
    let [output_len_, a_len, b_len] = op.lens()?;
    let output = mem.dst::<T>(op.output, output_len_)?;
    let (a, b) = (mem.src::<T>(op.a, a_len)?, mem.src::<T>(op.b, b_len)?);
    let [rows, terms, columns] = op.shape.map(|n| n as usize);
    // Steps from row to row, and along a sum, in each operand.
    let (a_row, a_term) = if op.transpose_a { (1, rows) } else { (terms, 1) };
    let (b_column, b_term) = if op.transpose_b { (terms, 1) } else { (1, columns) };
    let [zero_a, zero_b, zero_y] = op.zero;
    let [low, high] = op.clamp;
    let mut at = 0usize;
    for matrix in 0..output_len(&op.loops)? {
        let [a_at, b_at] = matrices(op, matrix);
        let (a, b) = (
            a.slice(a_at.wrapping_mul(rows.wrapping_mul(terms)), rows.wrapping_mul(terms))?,
            b.slice(
                b_at.wrapping_mul(terms.wrapping_mul(columns)),
                terms.wrapping_mul(columns),
            )?,
        );
        for row in 0..rows {
            for column in 0..columns {
                let (mut i, mut j) = (row.wrapping_mul(a_row), column.wrapping_mul(b_column));
                let mut sum = 0i64;
                for _ in 0..terms {
                    let (x, w) = (
                        a.get(i)?.widen().wrapping_sub(zero_a),
                        b.get(j)?.widen().wrapping_sub(zero_b),
                    );
                    sum = sum.wrapping_add(i64::from(x).wrapping_mul(i64::from(w)));
                    i = i.wrapping_add(a_term);
                    j = j.wrapping_add(b_term);
                }
                let y = scaled(sum).wrapping_add(zero_y);
                output.set(at, T::narrow(if y < low { low } else { y.min(high) }))?;
                at = at.wrapping_add(1);
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
