//! Arithmetic on values that are known.

use arenite::ops::binary::{BinaryVisitor, Pairwise};

use super::array::{Array, Elements, bounded};
use super::elem::Elem;
use crate::error::{Error, Result};
use crate::graph::infer::broadcast;
use crate::graph::{BinaryOp, ReduceKind};

/// The function of an operator of two operands.
pub(super) struct Call(pub(super) f32, pub(super) f32);

impl BinaryVisitor for Call {
    type Output = f32;
    fn visit(self, f: impl Fn(f32, f32) -> f32) -> f32 {
        f(self.0, self.1)
    }
}

/// Two known operands, broadcast.
pub(super) fn fold(op: BinaryOp, a: &Array, b: &Array) -> Result<Array> {
    let shape = broadcast(&a.shape, &b.shape)?;
    bounded(&shape)?;
    let (x, y) = (a.broadcast(&shape)?, b.broadcast(&shape)?);
    let data = match (&x.data, &y.data) {
        (Elements::Integers(x), Elements::Integers(y)) => {
            let f = |(&a, &b): (&i64, &i64)| {
                Ok(match op {
                    BinaryOp::Add => a.wrapping_add(b),
                    BinaryOp::Sub => a.wrapping_sub(b),
                    BinaryOp::Mul => a.wrapping_mul(b),
                    BinaryOp::Div if b == 0 => return Err(Error::input("a division of integers by 0")),
                    BinaryOp::Div => a.wrapping_div(b),
                    BinaryOp::Minimum => a.min(b),
                    BinaryOp::Maximum => a.max(b),
                    _ => return Err(Error::unsupported("an operation of integers")),
                })
            };
            Elements::Integers(x.iter().zip(y).map(f).collect::<Result<_>>()?)
        }
        _ => {
            let pairs = x.real().into_iter().zip(y.real());
            Elements::Floats(pairs.map(|(a, b)| op.visit(Call(a, b))).collect())
        }
    };
    let elem = if matches!(data, Elements::Floats(_)) {
        Elem::FLOAT
    } else {
        a.elem
    };
    let mut result = Array {
        elem,
        shape,
        data,
        // A scale is a parameter of what it scales.
        param: [a.param, b.param]
            .into_iter()
            .flatten()
            .max_by_key(|(_, elements)| *elements),
        steps: None,
    };
    if let Elements::Integers(values) = &mut result.data {
        values.iter_mut().for_each(|v| *v = elem.wrap(*v));
    }
    Ok(result)
}

/// A reduction of a known operand.
pub(super) fn fold_reduce(kind: ReduceKind, array: &Array, axes: &[usize], keep_dims: bool) -> Result<Array> {
    let rank = array.shape.len();
    let kept: Vec<usize> = (0..rank).filter(|axis| !axes.contains(axis)).collect();
    let perm: Vec<usize> = kept.iter().chain(axes).copied().collect();
    let rows = array.permuted(&perm);
    let width: usize = axes.iter().map(|&axis| array.shape[axis]).product();
    let shape: Vec<usize> = if keep_dims {
        let one = |axis: usize| if axes.contains(&axis) { 1 } else { array.shape[axis] };
        (0..rank).map(one).collect()
    } else {
        kept.iter().map(|&axis| array.shape[axis]).collect()
    };
    if width == 0 {
        return Err(Error::unsupported("dynamic shape: a reduction of nothing"));
    }
    let data = match &rows.data {
        Elements::Integers(values) => {
            let row = |row: &[i64]| match kind {
                ReduceKind::Sum => row.iter().fold(0i64, |a, &b| a.wrapping_add(b)),
                ReduceKind::Mean => row.iter().fold(0i64, |a, &b| a.wrapping_add(b)) / width as i64,
                ReduceKind::Max => row.iter().copied().max().unwrap_or(0),
                ReduceKind::Min => row.iter().copied().min().unwrap_or(0),
            };
            Elements::Integers(values.chunks(width).map(row).collect())
        }
        Elements::Floats(values) => {
            let row = |row: &[f32]| match kind {
                ReduceKind::Sum => row.iter().sum(),
                ReduceKind::Mean => row.iter().sum::<f32>() / width as f32,
                ReduceKind::Max => row.iter().copied().fold(f32::NEG_INFINITY, f32::max),
                ReduceKind::Min => row.iter().copied().fold(f32::INFINITY, f32::min),
            };
            Elements::Floats(values.chunks(width).map(row).collect())
        }
    };
    Ok(Array {
        elem: array.elem,
        shape,
        data,
        param: array.param,
        steps: None,
    })
}
