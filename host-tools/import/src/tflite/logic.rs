//! Comparisons, logical operators, choices between two tensors, and quotients.

use arenite::ops::binary::SpecialBinaryOp;
use arenite::ops::compare::Comparison;
use arenite::ops::special_int::SpecialIntOp;

use super::importer::{Importer, View};
use super::movement::axis_of;
use super::ops::activation;
use crate::error::{Error, Result};
use crate::graph::{Activation, BinaryOp, DType, Data, Op, ReduceKind, Tensor, TensorId, TensorKind};

impl Importer<'_, '_> {
    /// `swapped`: a > b is b < a.
    pub(super) fn compare(&mut self, view: View<'_, '_>, kind: Comparison, swapped: bool) -> Result<()> {
        let (a, b) = (view.input(0)?, view.input(1)?);
        let (a, b) = if swapped { (b, a) } else { (a, b) };
        for operand in [a, b] {
            if self.dtype(operand)? == DType::I8 {
                self.scale_of(operand)?;
            }
        }
        let inputs = vec![Some(self.operand(a)?), Some(self.operand(b)?)];
        let y = self.output(view.output(0)?)?;
        self.node(view, "", Op::Compare { kind }, inputs, vec![y]);
        Ok(())
    }

    /// Adds the negation of the operand: it is equal to false.
    pub(super) fn logical_not(&mut self, view: View<'_, '_>) -> Result<()> {
        let x = self.operand(view.input(0)?)?;
        let no = self.add_const(Tensor {
            kind: TensorKind::Const(Data::Bytes(vec![0].into())),
            ..Tensor::activation(format!("{}#{}/false", view.kind, view.index), &[1], DType::Bool)
        });
        let y = self.output(view.output(0)?)?;
        let kind = Comparison::Equal;
        self.node(view, "", Op::Compare { kind }, vec![Some(x), Some(no)], vec![y]);
        Ok(())
    }

    /// Whether all of what lies along axes holds, or any of it: the least or the largest of zeros and ones.
    pub(super) fn reduce_truth(&mut self, view: View<'_, '_>, kind: ReduceKind) -> Result<()> {
        let (x, y) = (view.input(0)?, view.output(0)?);
        self.expect_type(y, DType::Bool)?;
        let rank = self.shape(x)?.len();
        let axes = self.integers(view.input(1)?, "axes")?;
        let mut axes: Vec<usize> = axes.iter().map(|&a| axis_of(a, rank)).collect::<Result<_>>()?;
        axes.sort_unstable();
        axes.dedup();
        let keep_dims = view.flag(0)?;
        let reduce = Op::Reduce { kind, axes, keep_dims };
        let mut from = self.operand(x)?;
        for (suffix, op, of) in [("/number", Op::Cast, x), ("/extreme", reduce, y)] {
            let name = format!("{}#{}{suffix}", view.kind, view.index);
            let to = Tensor::activation(name, &self.shape(of)?, DType::F32);
            let to = self.add_const(to);
            self.node(view, suffix, op, vec![Some(from)], vec![to]);
            from = to;
        }
        let zero = self.add_const(Tensor {
            kind: TensorKind::Const(Data::from_f32(&[0.0])),
            ..Tensor::activation(format!("{}#{}/zero", view.kind, view.index), &[1], DType::F32)
        });
        let y = self.output(y)?;
        let kind = Comparison::NotEqual;
        self.node(view, "", Op::Compare { kind }, vec![Some(from), Some(zero)], vec![y]);
        Ok(())
    }

    /// Stored values are chosen, whatever their scales, as in TensorFlow Lite Micro. The first version's condition of one axis chooses whole slices.
    pub(super) fn select(&mut self, view: View<'_, '_>, slices: bool) -> Result<()> {
        let (c, a, b, y) = (view.input(0)?, view.input(1)?, view.input(2)?, view.output(0)?);
        self.expect_type(c, DType::Bool)?;
        let dtype = self.dtype(y)?;
        for operand in [a, b] {
            self.expect_type(operand, dtype)?;
        }
        if self.quant(a)? != self.quant(b)? || self.quant(a)? != self.quant(y)? {
            let name = self.info(y).name.clone();
            self.warn(format!(
                "`{name}`: it chooses between tensors of other scales: stored values are taken, as in TensorFlow Lite Micro"
            ));
        }
        let (shape, own) = (self.shape(y)?, self.shape(c)?);
        let mut condition = self.operand(c)?;
        if own != shape {
            if let (true, &[n]) = (
                slices && shape.len() > 1 && shape.first() == own.first(),
                own.as_slice(),
            ) {
                let mut rows = vec![1; shape.len()];
                rows[0] = n;
                condition = self.then(view, "/rows", c, (Op::Reshape, rows), vec![Some(condition)])?;
            }
            condition = self.then(view, "/condition", c, (Op::Broadcast, shape), vec![Some(condition)])?;
        }
        let inputs = vec![Some(condition), Some(self.operand(a)?), Some(self.operand(b)?)];
        let y = self.output(y)?;
        self.node(view, "", Op::Choose, inputs, vec![y]);
        Ok(())
    }

    /// A quotient rounded down, or what it leaves: of stored numbers where they are integers, as in TensorFlow Lite Micro.
    pub(super) fn rounded_down(&mut self, view: View<'_, '_>, rest: bool) -> Result<()> {
        let real = self.dtype(view.input(0)?)? == DType::F32;
        let activation = Activation::None;
        let op = match (real, rest) {
            (true, false) => Op::SpecialBinary {
                kind: SpecialBinaryOp::FloorDiv,
            },
            (true, true) => Op::SpecialBinary {
                kind: SpecialBinaryOp::FloorMod,
            },
            (false, false) => Op::SpecialInt {
                kind: SpecialIntOp::FloorDiv,
                activation,
            },
            (false, true) => Op::SpecialInt {
                kind: SpecialIntOp::FloorMod,
                activation,
            },
        };
        self.of_two(view, op)
    }

    pub(super) fn pow(&mut self, view: View<'_, '_>) -> Result<()> {
        let kind = SpecialBinaryOp::Power;
        self.of_two(view, Op::SpecialBinary { kind })
    }

    /// An operation of two operands by its row; those that int8 has in another kernel go there.
    pub(super) fn binary(&mut self, view: View<'_, '_>, kind: BinaryOp) -> Result<()> {
        let activation = if kind.names().activation {
            activation(view.option(0, 0)?)?
        } else {
            Activation::None
        };
        let special = match (kind, self.dtype(view.input(0)?)?) {
            (_, DType::F32) => None,
            (BinaryOp::Div, DType::I8) => Some(SpecialIntOp::Div),
            (BinaryOp::SquaredDifference, _) => Some(SpecialIntOp::SquaredDifference),
            _ => None,
        };
        let op = match special {
            Some(kind) => Op::SpecialInt { kind, activation },
            None => Op::Binary { kind, activation },
        };
        self.elementwise(view, op, 2)
    }

    fn of_two(&mut self, view: View<'_, '_>, op: Op) -> Result<()> {
        let inputs: Vec<Option<TensorId>> = (0..2)
            .map(|i| view.input(i).and_then(|x| self.operand(x)).map(Some))
            .collect::<Result<_>>()?;
        let y = view.output(0)?;
        if self.dtype(y)? != self.dtype(view.input(0)?)? {
            return Err(Error::input(format!("a result of {}", self.dtype(y)?.name())).expected("the operands' type"));
        }
        let y = self.output(y)?;
        self.node(view, "", op, inputs, vec![y]);
        Ok(())
    }
}
