//! Choices by index.

use arenite::ops::binary::SpecialBinaryOp;

use super::array::{Array, paid};
use super::calc::plain;
use super::elem::Elem;
use super::importer::{Importer, Value, View};
use super::movement::axis_of;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, DType};

/// Most pieces that an operand may be cut into.
const MOST_PIECES: usize = 4096;

impl<'a> Importer<'_, 'a> {
    pub(super) fn gather(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, indices) = (self.operand(view, 0)?, self.operand(view, 1)?);
        let shape = self.shape(&x);
        let axis = axis_of(view.int("axis", 0)?, shape.len())?;
        let mut result = shape[..axis].to_vec();
        result.extend(self.shape(&indices));
        result.extend(&shape[axis + 1..]);
        let Value::Array(indices) = &indices else {
            let y = self.gather_rows(&x, axis, &indices, &result)?;
            return self.bind(view, 0, y);
        };
        let chosen: Vec<usize> = (indices.whole("indices")?.iter())
            .map(|&i| {
                axis_of(i, shape[axis]).map_err(|_| Error::input(format!("index {i} of {} elements", shape[axis])))
            })
            .collect::<Result<_>>()?;
        let y = self.chosen(&x, axis, &chosen)?;
        let y = self.reshape(&y, &result)?;
        self.bind(view, 0, y)
    }

    /// The elements `chosen` along `axis`, in as few pieces as their runs allow.
    pub(super) fn chosen(&mut self, x: &Value, axis: usize, chosen: &[usize]) -> Result<Value> {
        if let Value::Array(array) = x {
            return Ok(array.gathered(&self.budget, axis, chosen)?.into());
        }
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for &index in chosen {
            match runs.last_mut() {
                Some((from, count)) if *from + *count == index => *count += 1,
                _ => runs.push((index, 1)),
            }
        }
        if runs.len() > MOST_PIECES {
            return Err(
                Error::unsupported(format!("a choice of {} separate pieces", runs.len()))
                    .expected(format!("at most {MOST_PIECES}")),
            );
        }
        let pieces = runs.into_iter().map(|(from, count)| self.part(x, axis, from, count));
        let pieces: Vec<Value> = pieces.collect::<Result<_>>()?;
        self.concat(&pieces, axis)
    }

    /// Rows of a matrix at indices that are computed: a product with rows of zeros and a one.
    pub(super) fn gather_rows(&mut self, x: &Value, axis: usize, indices: &Value, result: &[usize]) -> Result<Value> {
        let shape = self.shape(x);
        if axis != 0 || shape.len() != 2 || self.elem(x) != Elem::FLOAT {
            return Err(
                Error::unsupported("dynamic shape: indices that are computed at run time")
                    .expected("constant indices, or rows of a float matrix")
                    .help("choose in the application, or make the indices constants"),
            );
        }
        let count: usize = self.shape(indices).iter().product();
        let column = self.reshape(indices, &[count, 1])?;
        paid(&self.budget, Elem::FLOAT, &[1, shape[0]])?;
        let numbers = Array::floats(&[1, shape[0]], (0..shape[0]).map(|i| i as f32).collect());
        let hot = self.hot(&column, &numbers.into(), shape[0])?;
        let table = self.transpose(x, &[1, 0])?;
        let rows = self.products(&hot, &table)?;
        self.reshape(&rows, result)
    }

    /// 1 where an index is a number; one below zero counts from the end.
    pub(super) fn hot(&mut self, indices: &Value, numbers: &Value, depth: usize) -> Result<Value> {
        let elem = self.elem(indices);
        let indices = match indices {
            Value::Tensor(id) if elem == Elem::INT32 => Value::Tensor(self.cast_tensor(*id, DType::F32)?),
            _ => indices.clone(),
        };
        let direct = self.compare(SpecialBinaryOp::Equal, &indices, numbers)?;
        let counted = self.with(BinaryOp::Sub, numbers, depth as f32)?;
        let behind = self.compare(SpecialBinaryOp::Equal, &indices, &counted)?;
        let (direct, behind) = (self.real(&direct)?, self.real(&behind)?);
        let sum = self.emit(plain(BinaryOp::Maximum), &[direct, behind])?;
        Ok(Value::Tensor(sum))
    }

    pub(super) fn one_hot(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (indices, values) = (self.operand(view, 0)?, self.operand(view, 2)?);
        let depth = self.known(view, 1, "depth")?.and_then(|d| d.single());
        let depth = depth.ok_or_else(|| Error::input("no depth"))? as usize;
        paid(&self.budget, Elem::FLOAT, &[depth])?;
        let mut shape = self.shape(&indices);
        let axis = view.int("axis", -1)?;
        let axis = axis_of(axis, shape.len() + 1)?;
        let mut numbers = vec![1; shape.len() + 1];
        numbers[axis] = depth;
        shape.insert(axis, 1);
        let indices = self.reshape(&indices, &shape)?;
        let numbers = Array::floats(&numbers, (0..depth).map(|i| i as f32).collect());
        let hot = self.hot(&indices, &numbers.into(), depth)?;
        let (off, on) = (self.part(&values, 0, 0, 1)?, self.part(&values, 0, 1, 1)?);
        let (off, on) = (self.reshape(&off, &[])?, self.reshape(&on, &[])?);
        let y = self.choose(&hot, &on, &off)?;
        self.bind(view, 0, y)
    }
}
