//! Products of matrices: [`crate::ops::matmul`].

use super::{IntsRead, IntsWritten, at, meeting, within};
use crate::arena::Mem;
use crate::ops::elementwise::output_len;
use crate::ops::matmul::MatMulInt;
use crate::tensor::DType;

pub(crate) fn quantised(op: &MatMulInt, mem: &Mem<'_>) -> Option<()> {
    let [output_len_, a_len, b_len] = op.lens()?.map(|len| len as usize);
    let a = IntsRead::new(mem, op.a, op.dtype, a_len)?;
    let b = IntsRead::new(mem, op.b, op.dtype, b_len)?;
    let output = IntsWritten::new(mem, op.output, op.dtype, output_len_)?;
    let [rows, terms, columns] = op.shape.map(|extent| extent as usize);
    let [zero_a, zero_b, zero] = op.zero;
    for matrix in 0..output_len(&op.loops)? as usize {
        let [matrix_a, matrix_b] = meeting(&op.loops, matrix)?;
        for r in 0..rows {
            for c in 0..columns {
                let mut sum = 0_i64;
                for k in 0..terms {
                    let of_a = if op.transpose_a {
                        at([terms, rows], [k, r])
                    } else {
                        at([rows, terms], [r, k])
                    };
                    let of_b = if op.transpose_b {
                        at([columns, terms], [c, k])
                    } else {
                        at([terms, columns], [k, c])
                    };
                    let x = a.get(matrix_a * rows * terms + of_a)? - zero_a;
                    let y = b.get(matrix_b * terms * columns + of_b)? - zero_b;
                    sum = sum.wrapping_add(i64::from(x) * i64::from(y));
                }
                let scaled = match op.dtype {
                    // Sums are modulo 2^32.
                    DType::I8 => op.multiplier.apply(sum as i32),
                    _ => op.multiplier.apply_wide(sum),
                };
                let stored = within(scaled.wrapping_add(zero), op.clamp);
                output.set(matrix * rows * columns + at([rows, columns], [r, c]), stored)?;
            }
        }
    }
    Some(())
}
