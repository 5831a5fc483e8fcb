//! Integers of 32 bits at run time: arithmetic that wraps, comparisons and choices. int64 that is computed is narrowed to them.

use arenite::ops::binary::SpecialBinaryOp;
use arenite::ops::compare::Comparison;
use arenite::ops::pointwise::{Function, SpecialOp};
use arenite::ops::special_int::SpecialIntOp;

use super::array::{Array, Elements, paid};
use super::calc::plain;
use super::elem::{Elem, unsupported};
use super::importer::{Importer, Value, View};
use crate::error::{Error, Result};
use crate::graph::infer::broadcast;
use crate::graph::{Activation, BinaryOp, DType, Op, TensorId, UnaryKind};

const SIGN: UnaryKind = UnaryKind::Function(Function::Special(SpecialOp::Sign));

impl<'a> Importer<'_, 'a> {
    /// Whether it is int32 that is computed: f32 does not hold all of its values.
    pub(super) fn is_int32(&self, value: &Value) -> bool {
        matches!(value, Value::Tensor(id) if self.out.tensor(*id).dtype == DType::I32)
    }

    /// The value as int32, where that is exact.
    pub(super) fn int32(&mut self, value: &Value) -> Result<TensorId> {
        match value {
            Value::Array(array) => {
                let narrow = array.cast(&self.budget, Elem::INT32)?;
                if narrow.data != array.data {
                    return Err(unsupported(array.elem, "a constant beyond 32 bits"));
                }
                self.tensor(&narrow.into())
            }
            Value::Mask(id) => self.cast_tensor(*id, DType::I32),
            Value::Tensor(id) => match self.out.tensor(*id).dtype {
                DType::I64 => Err(unsupported(Elem::INT64, "a tensor that is computed")),
                _ => self.cast_tensor(*id, DType::I32),
            },
        }
    }

    /// 0 of the value's type.
    pub(super) fn zero_of(&self, value: &Value) -> Value {
        match self.elem(value) {
            Elem::FLOAT | Elem::BOOL => Array::scalar(0.0).into(),
            elem => Array::integers(elem, &[], vec![0]).into(),
        }
    }

    /// Two integers, of which one is computed, broadcast. A quotient is rounded towards zero.
    pub(super) fn binary_integers(&mut self, op: BinaryOp, a: &Value, b: &Value) -> Result<Value> {
        let elem = match (a, b) {
            (Value::Tensor(id), _) | (_, Value::Tensor(id)) => self.out.tensor(*id).dtype,
            _ => DType::I32,
        };
        if let (BinaryOp::Div, Value::Array(array)) = (op, b)
            && array.whole("divisors")?.contains(&0)
        {
            return Err(Error::input("a division of integers by 0"));
        }
        let (a, b) = (self.int32(a)?, self.int32(b)?);
        let y = self.emit(plain(op), &[a, b])?;
        Ok(Value::Tensor(self.cast_tensor(y, elem)?))
    }

    /// Whether the comparison of two integers holds.
    pub(super) fn compare_integers(&mut self, op: SpecialBinaryOp, a: &Value, b: &Value) -> Result<Value> {
        let kind = match op {
            SpecialBinaryOp::Less => Comparison::Less,
            SpecialBinaryOp::LessOrEqual => Comparison::LessOrEqual,
            _ => Comparison::Equal,
        };
        let (a, b) = (self.int32(a)?, self.int32(b)?);
        Ok(Value::Tensor(self.emit(Op::Compare { kind }, &[a, b])?))
    }

    /// The integers of `a` where `condition` holds, else those of `b`.
    pub(super) fn choose_integers(&mut self, condition: &Value, a: &Value, b: &Value) -> Result<Value> {
        let (a, b) = (self.int32(a)?, self.int32(b)?);
        let shapes = [a, b].map(|id| self.out.tensor(id).shape.clone());
        let shape = broadcast(&broadcast(&shapes[0], &shapes[1])?, &self.shape(condition))?;
        let condition = match condition {
            Value::Array(array) => {
                let truth = array.cast(&self.budget, Elem::BOOL)?;
                let whole = truth.broadcast(&self.budget, &shape)?.into_owned();
                self.tensor(&whole.into())?
            }
            Value::Tensor(id) if self.out.tensor(*id).dtype == DType::Bool => *id,
            value => {
                let truth = self.truth(value)?;
                self.tensor(&truth)?
            }
        };
        let condition = if self.out.tensor(condition).shape == shape {
            condition
        } else {
            self.emit_as(Op::Broadcast, &[condition], &shape, DType::Bool)?
        };
        Ok(Value::Tensor(self.emit_as(
            Op::Choose,
            &[condition, a, b],
            &shape,
            DType::I32,
        )?))
    }

    /// A function of int32 that is computed; `None` where it has no form in integers.
    pub(super) fn unary_integers(&mut self, kind: UnaryKind, x: &Value) -> Result<Option<Value>> {
        let number = |n: i64| Value::from(Array::integers(Elem::INT32, &[], vec![n]));
        let negative = |net: &mut Self| net.binary_integers(BinaryOp::Sub, &number(0), x);
        Ok(Some(match kind {
            UnaryKind::Relu => self.binary_integers(BinaryOp::Maximum, x, &number(0))?,
            UnaryKind::NEG => negative(self)?,
            UnaryKind::ABS => {
                let other = negative(self)?;
                self.binary_integers(BinaryOp::Maximum, x, &other)?
            }
            SIGN => {
                let above = self.binary_integers(BinaryOp::Maximum, x, &number(-1))?;
                self.binary_integers(BinaryOp::Minimum, &above, &number(1))?
            }
            _ => return Ok(None),
        }))
    }

    /// Adds the remainder of a division: with the divisor's sign, or with `fmod` with the dividend's.
    pub(super) fn modulo(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (a, b, truncated) = (
            self.operand(view, 0)?,
            self.operand(view, 1)?,
            view.flag("fmod", false)?,
        );
        let elem = self.elem(&a);
        if elem == Elem::FLOAT && !truncated {
            return Err(Error::input("attribute `fmod` is 0").expected("1 for operands of floats"));
        }
        let y = match (&a, &b) {
            (Value::Array(a), Value::Array(b)) => self.known_modulo(a, b, truncated)?.into(),
            _ if self.is_int32(&a) || self.is_int32(&b) => {
                if truncated {
                    let quotient = self.binary_integers(BinaryOp::Div, &a, &b)?;
                    let multiple = self.binary_integers(BinaryOp::Mul, &quotient, &b)?;
                    self.binary_integers(BinaryOp::Sub, &a, &multiple)?
                } else {
                    let (a, b) = (self.int32(&a)?, self.int32(&b)?);
                    let (kind, activation) = (SpecialIntOp::FloorMod, Activation::None);
                    Value::Tensor(self.emit(Op::SpecialInt { kind, activation }, &[a, b])?)
                }
            }
            // f32 holds all values of fewer bits, and what is left of a division is exact.
            _ => {
                let (a, b) = (Value::Tensor(self.real(&a)?), Value::Tensor(self.real(&b)?));
                let (x, y) = if truncated {
                    (self.unary(UnaryKind::ABS, &a)?, self.unary(UnaryKind::ABS, &b)?)
                } else {
                    (a.clone(), b)
                };
                let (x, y) = (self.tensor(&x)?, self.tensor(&y)?);
                let kind = SpecialBinaryOp::FloorMod;
                let mut rest = self.emit(Op::SpecialBinary { kind }, &[x, y])?;
                if truncated {
                    let sign = self.unary(SIGN, &a)?;
                    let sign = self.tensor(&sign)?;
                    rest = self.emit(plain(BinaryOp::Mul), &[rest, sign])?;
                }
                Value::Tensor(self.cast_tensor(rest, elem.dtype()?)?)
            }
        };
        self.bind(view, 0, y)
    }

    fn known_modulo(&self, a: &Array, b: &Array, truncated: bool) -> Result<Array> {
        let shape = broadcast(&a.shape, &b.shape)?;
        paid(&self.budget, a.elem, &shape)?;
        let (x, y) = (a.broadcast(&self.budget, &shape)?, b.broadcast(&self.budget, &shape)?);
        let rest = |(&a, &b): (&i64, &i64)| match a.checked_rem(b) {
            None if b == 0 => Err(Error::input("a division of integers by 0")),
            Some(rest) if !truncated && rest != 0 && (rest < 0) != (b < 0) => Ok(rest + b),
            rest => Ok(rest.unwrap_or(0)),
        };
        let data = match (&x.data, &y.data) {
            (Elements::Integers(x), Elements::Integers(y)) => {
                Elements::Integers(x.iter().zip(y).map(rest).collect::<Result<_>>()?)
            }
            _ => Elements::Floats(x.real().iter().zip(y.real().iter()).map(|(a, b)| a % b).collect()),
        };
        Ok(Array {
            elem: a.elem,
            shape,
            data,
            param: a.param,
            steps: None,
        })
    }
}
