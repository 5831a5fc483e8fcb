//! Products of two matrices of integers of which neither is constant.

use arenite::Step;
use arenite::ops::matmul::MatMulInt;

use super::context::{Lower, fit, input, output};
use super::loops::loops;
use super::numbers::{factor, limits, per_tensor};
use crate::error::{Error, Result};
use crate::graph::Node;
use crate::program::Place;

/// Lowers a product for each matrix of the batch.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, transpose_a: bool, transpose_b: bool) -> Result<()> {
    let (a, b, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let places = [lower.place(a)?, lower.place(b)?];
    let [ta, tb, ty] = [a, b, y].map(|id| lower.graph().tensor(id));
    if [ta.dtype, tb.dtype] != [ty.dtype; 2] {
        return Err(Error::unsupported(format!(
            "a product of {} and {} into {}",
            ta.dtype.name(),
            tb.dtype.name(),
            ty.dtype.name()
        ))
        .expected("three of one type"));
    }
    let ([batch_a @ .., a0, a1], [batch_b @ .., _, _], [batch @ .., rows, columns]) =
        (&ta.shape[..], &tb.shape[..], &ty.shape[..])
    else {
        return Err(Error::input(format!(
            "operands of shape {:?} and {:?}",
            ta.shape, tb.shape
        )));
    };
    let terms = if transpose_a { a0 } else { a1 };
    let (qa, qb, qy) = (per_tensor(ta)?, per_tensor(tb)?, per_tensor(ty)?);
    let step = MatMulInt {
        output: Place::Tensor(y, 0),
        a: places[0],
        b: places[1],
        loops: loops(batch, batch_a, batch_b)?,
        dtype: ty.dtype,
        shape: [
            fit(*rows, "the number of rows")?,
            fit(*terms, "the number of terms")?,
            fit(*columns, "the number of columns")?,
        ],
        transpose_a,
        transpose_b,
        zero: [qa.1, qb.1, qy.1],
        // The product of the scales is taken in f32, as there.
        multiplier: factor(f64::from(qa.0 * qb.0) / f64::from(qy.0))?,
        clamp: limits(ty.dtype)?,
    };
    let macs = (ty.elements() * terms) as u64;
    lower.push(node, "matmul", Step::MatMulInt(step), macs);
    Ok(())
}
