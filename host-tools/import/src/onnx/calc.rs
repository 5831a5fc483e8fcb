//! Computations on values: now where all operands are known, by operators of the graph where they are not.

use std::rc::Rc;

use super::array::{Array, Elements, paid};
use super::elem::{Elem, unsupported};
use super::fold::{Call, fold, fold_reduce};
use super::importer::{Importer, Value};
use crate::error::{Error, Result};
use crate::fold_budget::FoldBudget;
use crate::graph::infer::broadcast;
use crate::graph::{Activation, BinaryOp, DType, Op, ReduceKind, TensorId, UnaryKind};
use crate::imported::NARROWED;
use arenite::ops::binary::{Pairwise, SpecialBinaryOp};
use arenite::ops::pointwise::{Function, Pointwise};

impl From<Array> for Value {
    fn from(array: Array) -> Self {
        Value::Array(Rc::new(array))
    }
}

impl Importer<'_, '_> {
    /// Moves the elements of a value: by `array` now, or by `op` at run time. Booleans stay what they are.
    fn moved(
        &mut self,
        value: &Value,
        array: impl FnOnce(&Array, &FoldBudget) -> Result<Array>,
        op: impl FnOnce(&mut Self, TensorId) -> Result<TensorId>,
    ) -> Result<Value> {
        Ok(match value {
            Value::Array(known) => array(known, &self.budget)?.into(),
            Value::Tensor(id) => Value::Tensor(op(self, *id)?),
            Value::Mask(id) => Value::Mask(op(self, *id)?),
        })
    }

    pub(super) fn reshape(&mut self, value: &Value, shape: &[usize]) -> Result<Value> {
        let from = self.shape(value);
        if from == shape {
            return Ok(value.clone());
        }
        let count = |shape: &[usize]| shape.iter().try_fold(1usize, |n, &e| n.checked_mul(e));
        if count(&from) != count(shape) {
            return Err(Error::input(format!("a reshape of {from:?} into {shape:?}")).help(
                "another batch or shape was asked for than the model is made for: export it with symbolic extents",
            ));
        }
        self.moved(
            value,
            |a, budget| a.reshaped(budget, shape),
            |net, x| net.emit_shape(Op::Reshape, &[x], shape),
        )
    }

    pub(super) fn transpose(&mut self, value: &Value, perm: &[usize]) -> Result<Value> {
        let rank = self.shape(value).len();
        let mut sorted = perm.to_vec();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..rank) {
            return Err(Error::input(format!("the permutation {perm:?} of {rank} axes")));
        }
        if perm.iter().copied().eq(0..rank) {
            return Ok(value.clone());
        }
        self.moved(
            value,
            |a, budget| a.permuted(budget, perm),
            |net, x| net.emit(Op::Transpose { perm: perm.to_vec() }, &[x]),
        )
    }

    /// Element `i` along axis `a` is element `begin[a] + i * step[a]`; it must lie inside.
    pub(super) fn slice(&mut self, value: &Value, begin: &[usize], step: &[isize], extents: &[usize]) -> Result<Value> {
        let from = self.shape(value);
        let whole = begin.iter().all(|&b| b == 0) && step.iter().all(|&s| s == 1) && from == extents;
        if whole {
            return Ok(value.clone());
        }
        let inside = |axis: usize| {
            let last = begin[axis] as i64 + (extents[axis] as i64 - 1) * step[axis] as i64;
            extents[axis] == 0 || (begin[axis] < from[axis] && (0..from[axis] as i64).contains(&last))
        };
        if !(0..from.len()).all(inside) {
            return Err(Error::input(format!(
                "elements {extents:?} from {begin:?} by {step:?} of {from:?}"
            )));
        }
        self.moved(
            value,
            |a, budget| a.sliced(budget, begin, step, extents),
            |net, x| {
                let (begin, stride) = (begin.to_vec(), step.to_vec());
                net.emit_shape(Op::Slice { begin, stride }, &[x], extents)
            },
        )
    }

    /// `extent` elements along one axis.
    pub(super) fn part(&mut self, value: &Value, axis: usize, from: usize, extent: usize) -> Result<Value> {
        let mut extents = self.shape(value);
        if axis >= extents.len() {
            return Err(Error::input(format!("a part along axis {axis} of {extents:?}")));
        }
        let (mut begin, step) = (vec![0; extents.len()], vec![1; extents.len()]);
        begin[axis] = from;
        extents[axis] = extent;
        self.slice(value, &begin, &step, &extents)
    }

    pub(super) fn concat(&mut self, values: &[Value], axis: usize) -> Result<Value> {
        let values: Vec<Value> = match values {
            [one] => return Ok(one.clone()),
            // Empty operands add nothing.
            several => several
                .iter()
                .filter(|v| !self.shape(v).contains(&0))
                .cloned()
                .collect(),
        };
        let shapes: Vec<_> = values.iter().map(|v| self.shape(v)).collect();
        let first = shapes.first().ok_or_else(|| Error::input("nothing to concatenate"))?;
        let fits = |s: &Vec<usize>| s.len() == first.len() && (0..s.len()).all(|a| a == axis || s[a] == first[a]);
        if axis >= first.len() || !shapes.iter().all(fits) {
            return Err(Error::input(format!("operands {shapes:?} along axis {axis}")));
        }
        let known: Option<Vec<&Array>> = (values.iter())
            .map(|v| match v {
                Value::Array(array) => Some(array.as_ref()),
                _ => None,
            })
            .collect();
        if let Some(known) = known {
            return Ok(Array::joined(&self.budget, &known, axis)?.into());
        }
        let ids = self.tensors(&values)?;
        let activation = Activation::None;
        Ok(Value::Tensor(self.emit(Op::Concat { axis, activation }, &ids)?))
    }

    fn tensors(&mut self, values: &[Value]) -> Result<Vec<TensorId>> {
        values.iter().map(|value| self.tensor(value)).collect()
    }

    /// `before` and `after` elements of `fill` along each axis.
    pub(super) fn pad(&mut self, value: &Value, pads: &[(usize, usize)], fill: f32) -> Result<Value> {
        if pads.iter().all(|&p| p == (0, 0)) {
            return Ok(value.clone());
        }
        let x = self.tensor(value)?;
        let op = Op::Pad {
            pads: pads.to_vec(),
            value: fill,
        };
        Ok(Value::Tensor(self.emit(op, &[x])?))
    }

    /// The value as f32, where that is exact.
    pub(super) fn real(&mut self, value: &Value) -> Result<TensorId> {
        match value {
            Value::Array(array) => match array.data {
                Elements::Floats(_) => self.tensor(value),
                Elements::Integers(_) => {
                    let real = array.cast(&self.budget, Elem::FLOAT)?.into();
                    self.tensor(&real)
                }
            },
            Value::Mask(id) => Ok(*id),
            Value::Tensor(id) => match self.out.tensor(*id).dtype {
                DType::F32 => Ok(*id),
                DType::I8 | DType::U8 | DType::I16 | DType::Bool => self.cast_tensor(*id, DType::F32),
                dtype => Err(unsupported(Elem::of(dtype), "operands of real arithmetic")),
            },
        }
    }

    pub(super) fn cast_tensor(&mut self, id: TensorId, to: DType) -> Result<TensorId> {
        let tensor = self.out.tensor(id);
        if tensor.dtype == to {
            return Ok(id);
        }
        if tensor.dtype == DType::I64 || to == DType::I64 {
            return Err(unsupported(Elem::INT64, "a tensor that is computed"));
        }
        let shape = tensor.shape.clone();
        self.emit_as(Op::Cast, &[id], &shape, to)
    }

    /// Conversion as Cast does it.
    pub(super) fn cast(&mut self, value: &Value, to: Elem) -> Result<Value> {
        if let Value::Array(array) = value {
            return Ok(array.cast(&self.budget, to)?.into());
        }
        let from = self.elem(value);
        if to == Elem::BOOL {
            return self.truth(value);
        }
        let target = match to {
            // Wider types at run time hold no more than the narrower that the device computes with.
            Elem::INT64 if from != Elem::INT64 => {
                self.warn(NARROWED.to_string());
                DType::I32
            }
            to => self.dtype_of(to)?,
        };
        let id = match value {
            Value::Mask(id) => *id,
            value => self.tensor(value)?,
        };
        Ok(Value::Tensor(self.cast_tensor(id, target)?))
    }

    /// Whether elements are not 0.
    pub(super) fn truth(&mut self, value: &Value) -> Result<Value> {
        match value {
            Value::Array(array) => Ok(array.cast(&self.budget, Elem::BOOL)?.into()),
            Value::Mask(_) => Ok(value.clone()),
            Value::Tensor(id) if self.out.tensor(*id).dtype == DType::Bool => {
                Ok(Value::Mask(self.cast_tensor(*id, DType::F32)?))
            }
            Value::Tensor(_) => {
                let zero = self.zero_of(value);
                let equal = self.compare(SpecialBinaryOp::Equal, value, &zero)?;
                self.negated(&equal)
            }
        }
    }

    /// The other truth value.
    pub(super) fn negated(&mut self, value: &Value) -> Result<Value> {
        let truth = self.truth(value)?;
        match &truth {
            Value::Array(array) => {
                paid(&self.budget, Elem::BOOL, &array.shape)?;
                let flipped = array.whole("operands")?.iter().map(|&v| i64::from(v == 0)).collect();
                Ok(Array::integers(Elem::BOOL, &array.shape, flipped).into())
            }
            _ => self.compare(SpecialBinaryOp::Equal, &truth, &Array::scalar(0.0).into()),
        }
    }

    /// 1 where the comparison holds.
    pub(super) fn compare(&mut self, op: SpecialBinaryOp, a: &Value, b: &Value) -> Result<Value> {
        if let (Value::Array(x), Value::Array(y)) = (a, b) {
            let shape = broadcast(&x.shape, &y.shape)?;
            paid(&self.budget, Elem::BOOL, &shape)?;
            let (x, y) = (x.broadcast(&self.budget, &shape)?, y.broadcast(&self.budget, &shape)?);
            let values: Vec<i64> = match (&x.data, &y.data) {
                (Elements::Integers(x), Elements::Integers(y)) => {
                    let holds = |(a, b): (&i64, &i64)| match op {
                        SpecialBinaryOp::Less => a < b,
                        SpecialBinaryOp::LessOrEqual => a <= b,
                        _ => a == b,
                    };
                    x.iter().zip(y).map(|pair| i64::from(holds(pair))).collect()
                }
                _ => (x.real().iter().zip(y.real().iter()))
                    .map(|(&a, &b)| i64::from(op.visit(Call(a, b)) != 0.0))
                    .collect(),
            };
            return Ok(Array::integers(Elem::BOOL, &shape, values).into());
        }
        if self.is_int32(a) || self.is_int32(b) {
            return self.compare_integers(op, a, b);
        }
        let (a, b) = (self.real(a)?, self.real(b)?);
        Ok(Value::Mask(self.emit(Op::SpecialBinary { kind: op }, &[a, b])?))
    }

    /// `a` where `condition` holds, else `b`.
    pub(super) fn choose(&mut self, condition: &Value, a: &Value, b: &Value) -> Result<Value> {
        let elem = [a, b].map(|v| self.elem(v)).into_iter().find(|e| *e != Elem::INT64);
        let elem = elem.unwrap_or(Elem::INT64);
        let known = [condition, a, b].iter().all(|v| matches!(v, Value::Array(_)));
        if !known && matches!(elem, Elem::INT32 | Elem::INT64) {
            if elem == Elem::INT64 {
                self.warn(NARROWED.to_string());
            }
            return self.choose_integers(condition, a, b);
        }
        let condition = self.truth(condition)?;
        if let (Value::Array(c), Value::Array(a), Value::Array(b)) = (&condition, a, b) {
            let shape = broadcast(&broadcast(&c.shape, &a.shape)?, &b.shape)?;
            paid(&self.budget, a.elem, &shape)?;
            let holds = c.broadcast(&self.budget, &shape)?.whole("conditions")?;
            let (elem, param) = (a.elem, a.param);
            let (a, b) = (a.broadcast(&self.budget, &shape)?, b.broadcast(&self.budget, &shape)?);
            let data = match (&a.data, &b.data) {
                (Elements::Integers(a), Elements::Integers(b)) => {
                    let each = holds.iter().zip(a.iter().zip(b));
                    Elements::Integers(each.map(|(&c, (&a, &b))| if c != 0 { a } else { b }).collect())
                }
                _ => {
                    let (a, b) = (a.real(), b.real());
                    let each = holds.iter().zip(a.iter().zip(b.iter()));
                    Elements::Floats(each.map(|(&c, (&a, &b))| if c != 0 { a } else { b }).collect())
                }
            };
            let elem = match data {
                Elements::Floats(_) => Elem::FLOAT,
                Elements::Integers(_) => elem,
            };
            let steps = None;
            let chosen = Array {
                elem,
                shape,
                data,
                param,
                steps,
            };
            return Ok(chosen.into());
        }
        // -0 plus a number is that number: one of the two terms is -0 at every place.
        let other = self.negated(&condition)?;
        let (condition, other) = (self.real(&condition)?, self.real(&other)?);
        let (a, b) = (self.real(a)?, self.real(b)?);
        let kind = SpecialBinaryOp::Keep;
        let a = self.emit(Op::SpecialBinary { kind }, &[a, condition])?;
        let b = self.emit(Op::SpecialBinary { kind }, &[b, other])?;
        let sum = self.emit(plain(BinaryOp::Add), &[a, b])?;
        match elem {
            Elem::BOOL => Ok(Value::Mask(sum)),
            elem => Ok(Value::Tensor(self.cast_tensor(sum, elem.dtype()?)?)),
        }
    }

    pub(super) fn unary(&mut self, kind: UnaryKind, value: &Value) -> Result<Value> {
        if let Value::Array(array) = value {
            let f = |x: f32| match kind {
                // A NaN stays, as at run time.
                UnaryKind::Relu if x < 0.0 => 0.0,
                UnaryKind::Relu => x,
                UnaryKind::Relu6 => x.clamp(0.0, 6.0),
                UnaryKind::ReluN1To1 => x.clamp(-1.0, 1.0),
                UnaryKind::Clamp { .. } if x.is_nan() => x,
                UnaryKind::Clamp { min, max } => x.max(min).min(max),
                UnaryKind::LeakyRelu { alpha } => {
                    if x > 0.0 {
                        x
                    } else {
                        alpha * x
                    }
                }
                UnaryKind::Elu => {
                    if x > 0.0 {
                        x
                    } else {
                        x.exp_m1()
                    }
                }
                UnaryKind::Function(Function::Basic(op)) => op.apply(x),
                UnaryKind::Function(Function::Special(op)) => op.apply(x),
            };
            let result = array.map(&self.budget, f)?;
            // Integers stay integers: absolute value, sign, negation.
            let result = if array.elem.is_float() {
                result
            } else {
                result.cast(&self.budget, array.elem)?
            };
            return Ok(result.into());
        }
        if self.is_int32(value)
            && let Some(y) = self.unary_integers(kind, value)?
        {
            return Ok(y);
        }
        let elem = self.elem(value);
        let x = self.real(value)?;
        let y = self.emit(Op::Unary(kind), &[x])?;
        Ok(Value::Tensor(self.cast_tensor(y, elem.dtype()?)?))
    }

    /// Two operands, broadcast.
    pub(super) fn binary(&mut self, op: BinaryOp, a: &Value, b: &Value) -> Result<Value> {
        if let (Value::Array(x), Value::Array(y)) = (a, b) {
            return fold(&self.budget, op, x, y).map(Value::from);
        }
        let float = |net: &Self, v: &Value| matches!(net.elem(v), Elem::FLOAT);
        if float(self, a) || float(self, b) {
            let (a, b) = (self.real(a)?, self.real(b)?);
            return Ok(Value::Tensor(self.emit(plain(op), &[a, b])?));
        }
        // With the wrapping arithmetic of 32 bits, and back.
        self.binary_integers(op, a, b)
    }

    /// A reduction over `axes`, ascending.
    pub(super) fn reduce(&mut self, kind: ReduceKind, value: &Value, axes: &[usize], keep_dims: bool) -> Result<Value> {
        let shape = self.shape(value);
        if let Value::Array(array) = value {
            return fold_reduce(&self.budget, kind, array, axes, keep_dims).map(Value::from);
        }
        let elem = self.elem(value);
        let mut x = self.real(value)?;
        let mut kept = shape.clone();
        // A kernel reduces two groups of neighbours.
        for axes in groups(axes).chunks(2) {
            let axes = axes.concat();
            axes.iter().for_each(|&axis| kept[axis] = 1);
            let keep_dims = true;
            x = self.emit(Op::Reduce { kind, axes, keep_dims }, &[x])?;
        }
        let result: Vec<usize> = (0..shape.len())
            .filter(|axis| keep_dims || !axes.contains(axis))
            .map(|axis| kept[axis])
            .collect();
        let y = self.reshape(&Value::Tensor(x), &result)?;
        let y = self.tensor(&y)?;
        Ok(Value::Tensor(self.cast_tensor(y, elem.dtype()?)?))
    }
}

/// An operator of two operands without an activation.
pub(super) fn plain(kind: BinaryOp) -> Op {
    Op::Binary {
        kind,
        activation: Activation::None,
    }
}

/// Neighbouring axes together.
fn groups(axes: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &axis in axes {
        match groups.last_mut() {
            Some(group) if group.last() == Some(&(axis.wrapping_sub(1))) => group.push(axis),
            _ => groups.push(vec![axis]),
        }
    }
    groups
}
