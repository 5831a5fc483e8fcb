//! Places of extremes along an axis: ArgMax, ArgMin, Hardmax.

use super::array::{Array, paid};
use super::elem::Elem;
use super::importer::{Importer, Value, View};
use super::movement::axis_of;
use crate::error::Result;
use crate::graph::{BinaryOp, Op, UnaryKind};
use crate::imported::NARROWED;

impl<'a> Importer<'_, 'a> {
    pub(super) fn arg_max(&mut self, view: View<'_, 'a>, least: bool) -> Result<()> {
        let x = self.operand(view, 0)?;
        let shape = self.shape(&x);
        let axis = axis_of(view.int("axis", 0)?, shape.len())?;
        if self.elem(&x) == Elem::INT64 {
            return Err(super::elem::unsupported(Elem::INT64, "a tensor that is computed"));
        }
        let mut kept = shape.clone();
        if view.flag("keepdims", true)? {
            kept[axis] = 1;
        } else {
            kept.remove(axis);
        }
        let y = if view.flag("select_last_index", false)? {
            // The last of equals is the first from the other end.
            let (mut begin, mut step) = (vec![0; shape.len()], vec![1; shape.len()]);
            (begin[axis], step[axis]) = (shape[axis].saturating_sub(1), -1);
            let turned = self.slice(&x, &begin, &step, &shape)?;
            let place = self.place_of_extreme(&turned, axis, least)?;
            let last = Array::integers(Elem::INT32, &[], vec![begin[axis] as i64]);
            self.binary_integers(BinaryOp::Sub, &last.into(), &place)?
        } else {
            self.place_of_extreme(&x, axis, least)?
        };
        let y = self.reshape(&y, &kept)?;
        self.bind(view, 0, y)
    }

    /// 1 at the first of the largest elements along an axis, else 0. Before version 13 all axes from this one on are one.
    pub(super) fn hardmax(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let shape = self.shape(&x);
        let since_13 = view.opset >= 13;
        let axis = axis_of(view.int("axis", if since_13 { -1 } else { 1 })?, shape.len())?;
        let (rows, axis) = if since_13 {
            (x, axis)
        } else {
            let (outer, inner) = shape.split_at(axis);
            (self.reshape(&x, &[outer.iter().product(), inner.iter().product()])?, 1)
        };
        let mut one = self.shape(&rows);
        let classes = one[axis];
        let place = self.place_of_extreme(&rows, axis, false)?;
        let mut numbers = vec![1; one.len()];
        (one[axis], numbers[axis]) = (1, classes);
        let place = self.reshape(&place, &one)?;
        paid(&self.budget, Elem::FLOAT, &[classes])?;
        let numbers = Array::floats(&numbers, (0..classes).map(|class| class as f32).collect());
        let hot = self.hot(&place, &numbers.into(), classes)?;
        let y = self.reshape(&hot, &shape)?;
        self.bind(view, 0, y)
    }

    /// The index of the largest or least element along an axis, the first of equals; the axis is gone.
    pub(super) fn place_of_extreme(&mut self, x: &Value, axis: usize, least: bool) -> Result<Value> {
        let mut from = Value::Tensor(self.real(x)?);
        if least {
            from = self.unary(UnaryKind::NEG, &from)?;
        }
        // The kernel looks along the innermost axis.
        let from = self.tensor(&from)?;
        let y = self.emit(Op::ArgMax { axis }, &[from])?;
        self.warn(NARROWED.to_string());
        Ok(Value::Tensor(y))
    }
}
