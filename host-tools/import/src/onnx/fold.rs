//! Arithmetic on values that are known.

use std::borrow::Cow;

use arenite::ops::binary::Pairwise;

use super::array::{Array, Elements, paid};
use super::elem::Elem;
use crate::error::{Error, Result};
use crate::fold_budget::FoldBudget;
pub(super) use crate::graph::composite::Call;
use crate::graph::infer::broadcast;
use crate::graph::{BinaryOp, ReduceKind};

/// Two known operands, broadcast.
pub(super) fn fold(budget: &FoldBudget, op: BinaryOp, a: &Array, b: &Array) -> Result<Array> {
    let shape = broadcast(&a.shape, &b.shape)?;
    let real = matches!(a.data, Elements::Floats(_)) || matches!(b.data, Elements::Floats(_));
    let count = paid(budget, if real { Elem::FLOAT } else { a.elem }, &shape)?;
    // A single number is not spread out.
    let spread = |array| match Array::len(array) {
        1 => Ok(Cow::Borrowed(array)),
        _ => array.broadcast(budget, &shape),
    };
    let (x, y) = (spread(a)?, spread(b)?);
    let data = match (&x.data, &y.data) {
        (Elements::Integers(x), Elements::Integers(y)) => {
            let f = |index: usize| {
                let (a, b) = (one_of(x, index), one_of(y, index));
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
            Elements::Integers((0..count).map(f).collect::<Result<_>>()?)
        }
        _ => {
            let (x, y) = (x.real(), y.real());
            let f = |index| op.visit(Call(one_of(&x, index), one_of(&y, index)));
            Elements::Floats((0..count).map(f).collect())
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

/// Element `index`, or the only one.
fn one_of<T: Copy>(values: &[T], index: usize) -> T {
    values[if values.len() == 1 { 0 } else { index }]
}

/// A reduction of a known operand.
pub(super) fn fold_reduce(
    budget: &FoldBudget,
    kind: ReduceKind,
    array: &Array,
    axes: &[usize],
    keep_dims: bool,
) -> Result<Array> {
    let rank = array.shape.len();
    let kept: Vec<usize> = (0..rank).filter(|axis| !axes.contains(axis)).collect();
    let perm: Vec<usize> = kept.iter().chain(axes).copied().collect();
    let rows = array.permuted(budget, &perm)?;
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
    paid(budget, array.elem, &shape)?;
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
                ReduceKind::Max => extreme(row, BinaryOp::Maximum),
                ReduceKind::Min => extreme(row, BinaryOp::Minimum),
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

/// `x [.., terms]` times `w [rows, terms]` and a bias `[rows]`, sums in f64; `None` where they are no floats of such shapes, or more than the budget has.
pub(super) fn fold_linear(budget: &FoldBudget, x: &Array, w: &Array, bias: Option<&Array>) -> Result<Option<Array>> {
    let (Elements::Floats(of_x), Elements::Floats(of_w)) = (&x.data, &w.data) else {
        return Ok(None);
    };
    let (Some((&terms, outer)), &[rows, depth]) = (x.shape.split_last(), &w.shape[..]) else {
        return Ok(None);
    };
    let added = match bias.map(|bias| (&bias.shape[..], &bias.data)) {
        None => None,
        Some((&[length], Elements::Floats(values))) if length == rows => Some(values),
        Some(_) => return Ok(None),
    };
    if depth != terms || terms == 0 {
        return Ok(None);
    }
    let shape: Vec<usize> = outer.iter().copied().chain([rows]).collect();
    // Each product is paid for, not each sum alone. A product that is too dear stays a layer.
    if paid(budget, Elem::FLOAT, &[&shape[..], &[terms]].concat()).is_err() {
        return Ok(None);
    }
    let sum = |line: &[f32], row: usize| {
        let weights = &of_w[row * terms..(row + 1) * terms];
        let products = line.iter().zip(weights).map(|(a, b)| f64::from(*a) * f64::from(*b));
        let start = added.map_or(0.0, |values| f64::from(values[row]));
        products.fold(start, |sum, product| sum + product) as f32
    };
    let lines = of_x.chunks(terms);
    let values = lines
        .flat_map(|line| (0..rows).map(move |row| sum(line, row)))
        .collect();
    Ok(Some(Array::floats(&shape, values)))
}

/// Of each element the sum of those up to it along `axis`, itself among them unless `exclusive`; in `reverse` of those from it on.
pub(super) fn fold_sums(
    budget: &FoldBudget,
    array: &Array,
    axis: usize,
    [exclusive, reverse]: [bool; 2],
) -> Result<Array> {
    paid(budget, array.elem, &array.shape)?;
    let sums = Sums {
        extent: array.shape[axis],
        inner: array.shape[axis + 1..].iter().product(),
        exclusive,
        reverse,
    };
    let wrapping = |a: i64, b: i64| array.elem.wrap(a.wrapping_add(b));
    Ok(Array {
        elem: array.elem,
        shape: array.shape.clone(),
        data: match &array.data {
            Elements::Floats(values) => Elements::Floats(sums.of(values, |a, b| a + b)),
            Elements::Integers(values) => Elements::Integers(sums.of(values, wrapping)),
        },
        param: array.param,
        steps: None,
    })
}

/// Running sums of lines of `extent` elements, `inner` apart.
struct Sums {
    extent: usize,
    inner: usize,
    exclusive: bool,
    reverse: bool,
}

impl Sums {
    fn of<T: Copy + Default>(&self, values: &[T], add: impl Fn(T, T) -> T) -> Vec<T> {
        let mut result = vec![T::default(); values.len()];
        for block in 0..values.len() / (self.extent * self.inner).max(1) {
            for line in 0..self.inner {
                let mut sum = T::default();
                for i in 0..self.extent {
                    let i = if self.reverse { self.extent - 1 - i } else { i };
                    let at = (block * self.extent + i) * self.inner + line;
                    let next = add(sum, values[at]);
                    result[at] = if self.exclusive { sum } else { next };
                    sum = next;
                }
            }
        }
        result
    }
}

/// The extreme of a row that holds something, as at run time: NaN where an element is.
fn extreme(row: &[f32], op: BinaryOp) -> f32 {
    row.iter()
        .copied()
        .reduce(|a, b| op.visit(Call(a, b)))
        .unwrap_or(f32::NAN)
}
