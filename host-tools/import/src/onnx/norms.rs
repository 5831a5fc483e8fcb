//! Normalisations, softmax and reductions.

use super::elem::Elem;
use super::importer::{Importer, Value, View};
use super::movement::axis_of;
use crate::error::{Error, Result};
use crate::graph::numbers::Range;
use crate::graph::train::MOMENTUM;
use crate::graph::{BinaryOp, Op, ReduceKind, UnaryKind};
use arenite::ops::pointwise::{Function, UnaryOp};

/// Most factors of a product over axes.
const MOST_FACTORS: usize = 256;

/// Refuses a precision of the mean that is no float type: it is f32 on the device.
fn stash_type(view: View<'_, '_>) -> Result<()> {
    let elem = Elem(view.int("stash_type", Elem::FLOAT.number())?);
    if elem.is_float() {
        return Ok(());
    }
    Err(Error::input(format!("attribute `stash_type` is {}", elem.number()))
        .expected("1 (float), 10 (float16), 11 (double) or 16 (bfloat16)"))
}

const SQRT: UnaryKind = UnaryKind::Function(Function::Basic(UnaryOp::Sqrt));

impl<'a> Importer<'_, 'a> {
    pub(super) fn batch_norm(&mut self, view: View<'_, 'a>) -> Result<()> {
        if view.flag("training_mode", false)? || (1..5).any(|i| view.output(i).is_some()) {
            return Err(Error::unsupported("training mode").help("export the network for inference (model.eval())"));
        }
        if !view.flag("spatial", true)? {
            return Err(Error::unsupported("statistics of every element (spatial = 0)"));
        }
        let epsilon = view.epsilon()?;
        let operands: Vec<Value> = (0..5).map(|i| self.operand(view, i)).collect::<Result<_>>()?;
        let x = &operands[0];
        let rank = self.shape(x).len();
        if rank < 2 {
            return Err(Error::input(format!("an operand of {rank} axes")).expected("batch and channels"));
        }
        let y = if operands[1..].iter().all(|v| matches!(v, Value::Array(_))) {
            let ids: Vec<_> = operands.iter().map(|v| self.real(v)).collect::<Result<_>>()?;
            let op = Op::BatchNorm {
                axis: 1,
                epsilon,
                momentum: view.number("momentum", MOMENTUM, Range::NotNegative)?,
                trained: false,
            };
            Value::Tensor(self.emit(op, &ids)?)
        } else {
            let mut wide = Vec::new();
            for value in &operands[1..] {
                wide.push(self.along_axis(value, 1, rank)?);
            }
            let centred = self.binary(BinaryOp::Sub, x, &wide[2])?;
            let deviation = self.with(BinaryOp::Add, &wide[3], epsilon)?;
            let deviation = self.unary(SQRT, &deviation)?;
            let scaled = self.binary(BinaryOp::Div, &centred, &deviation)?;
            let scaled = self.binary(BinaryOp::Mul, &scaled, &wide[0])?;
            self.binary(BinaryOp::Add, &scaled, &wide[1])?
        };
        self.bind(view, 0, y)
    }

    /// `x` minus its mean, and `1 / sqrt(its variance + epsilon)`, over `axes`.
    fn standard(&mut self, x: &Value, axes: &[usize], epsilon: f32) -> Result<(Value, Value, Value)> {
        let mean = self.reduce(ReduceKind::Mean, x, axes, true)?;
        let centred = self.binary(BinaryOp::Sub, x, &mean)?;
        let factor = self.factor(&centred, axes, epsilon)?;
        Ok((centred, factor, mean))
    }

    /// `1 / sqrt(mean of squares + epsilon)`
    fn factor(&mut self, x: &Value, axes: &[usize], epsilon: f32) -> Result<Value> {
        let squares = self.binary(BinaryOp::Mul, x, x)?;
        let variance = self.reduce(ReduceKind::Mean, &squares, axes, true)?;
        let variance = self.with(BinaryOp::Add, &variance, epsilon)?;
        self.unary(UnaryKind::RSQRT, &variance)
    }

    pub(super) fn layer_norm(&mut self, view: View<'_, 'a>) -> Result<()> {
        stash_type(view)?;
        let (x, scale, bias) = (self.operand(view, 0)?, self.operand(view, 1)?, self.optional(view, 2)?);
        let rank = self.shape(&x).len();
        let axes: Vec<usize> = (axis_of(view.int("axis", -1)?, rank)?..rank).collect();
        let (centred, factor, mean) = self.standard(&x, &axes, view.epsilon()?)?;
        let y = self.binary(BinaryOp::Mul, &centred, &factor)?;
        let mut y = self.binary(BinaryOp::Mul, &y, &scale)?;
        if let Some(bias) = bias {
            y = self.binary(BinaryOp::Add, &y, &bias)?;
        }
        self.bind(view, 0, y)?;
        if view.output(1).is_some() {
            self.bind(view, 1, mean)?;
        }
        if view.output(2).is_some() {
            self.bind(view, 2, factor)?;
        }
        Ok(())
    }

    pub(super) fn rms_norm(&mut self, view: View<'_, 'a>) -> Result<()> {
        stash_type(view)?;
        let (x, scale) = (self.operand(view, 0)?, self.operand(view, 1)?);
        let rank = self.shape(&x).len();
        let axes: Vec<usize> = (axis_of(view.int("axis", -1)?, rank)?..rank).collect();
        let factor = self.factor(&x, &axes, view.epsilon()?)?;
        let y = self.binary(BinaryOp::Mul, &x, &factor)?;
        let y = self.binary(BinaryOp::Mul, &y, &scale)?;
        self.bind(view, 0, y)
    }

    pub(super) fn instance_norm(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, scale, bias) = (self.operand(view, 0)?, self.operand(view, 1)?, self.operand(view, 2)?);
        let rank = self.shape(&x).len();
        let axes: Vec<usize> = (2..rank).collect();
        let (centred, factor, _) = self.standard(&x, &axes, view.epsilon()?)?;
        let (scale, bias) = (self.along_axis(&scale, 1, rank)?, self.along_axis(&bias, 1, rank)?);
        let y = self.binary(BinaryOp::Mul, &centred, &factor)?;
        let y = self.binary(BinaryOp::Mul, &y, &scale)?;
        let y = self.binary(BinaryOp::Add, &y, &bias)?;
        self.bind(view, 0, y)
    }

    pub(super) fn group_norm(&mut self, view: View<'_, 'a>) -> Result<()> {
        stash_type(view)?;
        let (x, scale, bias) = (self.operand(view, 0)?, self.operand(view, 1)?, self.operand(view, 2)?);
        let shape = self.shape(&x);
        let groups = usize::try_from(view.int("num_groups", 0)?).unwrap_or(0);
        if shape.len() < 2 || groups == 0 || !shape[1].is_multiple_of(groups) {
            return Err(Error::input(format!(
                "an operand of shape {shape:?} in {groups} groups"
            )));
        }
        let rest: usize = shape[1..].iter().product();
        let rows = self.reshape(&x, &[shape[0], groups, rest / groups])?;
        let (centred, factor, _) = self.standard(&rows, &[2], view.epsilon()?)?;
        let mut y = self.binary(BinaryOp::Mul, &centred, &factor)?;
        // One factor for each group before version 21, for each channel since.
        let by_group = self.shape(&scale) == [groups] && view.opset < 21;
        if !by_group {
            y = self.reshape(&y, &shape)?;
        }
        let rank = self.shape(&y).len();
        let (scale, bias) = (self.along_axis(&scale, 1, rank)?, self.along_axis(&bias, 1, rank)?);
        let y = self.binary(BinaryOp::Mul, &y, &scale)?;
        let y = self.binary(BinaryOp::Add, &y, &bias)?;
        let y = self.reshape(&y, &shape)?;
        self.bind(view, 0, y)
    }

    pub(super) fn mean_variance_norm(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let rank = self.shape(&x).len();
        let axes = view.node.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
        let mut axes: Vec<usize> = axes.iter().map(|&a| axis_of(a, rank)).collect::<Result<_>>()?;
        axes.sort_unstable();
        let (centred, factor, _) = self.standard(&x, &axes, 1e-9)?;
        let y = self.binary(BinaryOp::Mul, &centred, &factor)?;
        self.bind(view, 0, y)
    }

    pub(super) fn lp_norm(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let axis = axis_of(view.int("axis", -1)?, self.shape(&x).len())?;
        let norm = match view.int("p", 2)? {
            1 => self.reduced("ReduceL1", &x, &[axis], true)?,
            2 => self.reduced("ReduceL2", &x, &[axis], true)?,
            p => return Err(Error::unsupported(format!("the norm {p}")).expected("1 or 2")),
        };
        // Lines of zeros stay zeros.
        let norm = self.with(BinaryOp::Maximum, &norm, f32::MIN_POSITIVE)?;
        let y = self.binary(BinaryOp::Div, &x, &norm)?;
        self.bind(view, 0, y)
    }

    pub(super) fn lrn(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let size = view.int("size", 1)?;
        if !(1..=1 << 16).contains(&size) || size % 2 == 0 {
            return Err(Error::unsupported(format!("a window of {size} channels")).expected("an odd number"));
        }
        let op = Op::Lrn {
            axis: 1,
            radius: (size / 2) as usize,
            bias: view.float("bias", 1.0)?,
            alpha: view.number("alpha", 1e-4, Range::Positive)? / size as f32,
            beta: view.number("beta", 0.75, Range::Positive)?,
        };
        let x = self.real(&x)?;
        let y = self.emit(op, &[x])?;
        self.bind(view, 0, Value::Tensor(y))
    }

    pub(super) fn softmax(&mut self, view: View<'_, 'a>, log: bool) -> Result<()> {
        let x = self.operand(view, 0)?;
        let since_13 = view.opset >= 13;
        let axis = view.int("axis", if since_13 { -1 } else { 1 })?;
        let y = self.softmax_along(&x, axis, since_13, log)?;
        self.bind(view, 0, y)
    }

    /// Before version 13 all axes from this one on are one.
    pub(super) fn softmax_along(&mut self, x: &Value, axis: i64, since_13: bool, log: bool) -> Result<Value> {
        let shape = self.shape(x);
        let axis = axis_of(axis, shape.len())?;
        let (rows, axis) = if since_13 {
            (x.clone(), axis)
        } else {
            let (outer, inner) = shape.split_at(axis);
            (self.reshape(x, &[outer.iter().product(), inner.iter().product()])?, 1)
        };
        let op = if log {
            Op::LogSoftmax { axis }
        } else {
            Op::Softmax { axis, beta: 1.0 }
        };
        let rows = self.real(&rows)?;
        let y = self.emit(op, &[rows])?;
        self.reshape(&Value::Tensor(y), &shape)
    }

    /// The axes of a reduction, ascending, and whether they are kept; `None` where it reduces nothing.
    pub(super) fn reduced_axes(&mut self, view: View<'_, 'a>, x: &Value) -> Result<Option<(Vec<usize>, bool)>> {
        let shape = self.shape(x);
        let keep = view.flag("keepdims", true)?;
        if !view.node.has("axes") && matches!(self.optional(view, 1)?, Some(Value::Tensor(_))) {
            let axes = self.stated_axes(view, &shape, keep)?;
            return Ok(Some((axes, keep)));
        }
        let axes = self.integers(view, 1, "axes", "axes")?.unwrap_or_default();
        let mut axes: Vec<usize> = axes.iter().map(|&a| axis_of(a, shape.len())).collect::<Result<_>>()?;
        if axes.is_empty() {
            if view.flag("noop_with_empty_axes", false)? {
                return Ok(None);
            }
            axes = (0..shape.len()).collect();
        }
        axes.sort_unstable();
        axes.dedup();
        Ok(Some((axes, keep)))
    }

    pub(super) fn reduce_node(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let y = match self.reduced_axes(view, &x)? {
            None => self.reduced(view.node.op, &x, &[], true)?,
            Some((axes, keep)) => self.reduced(view.node.op, &x, &axes, keep)?,
        };
        self.bind(view, 0, y)
    }

    /// Reductions of something made of each element.
    fn reduced(&mut self, op: &str, x: &Value, axes: &[usize], keep: bool) -> Result<Value> {
        let sum = |net: &mut Self, of: &Value| net.reduce(ReduceKind::Sum, of, axes, keep);
        match op {
            "ReduceL1" => {
                let sizes = self.unary(UnaryKind::ABS, x)?;
                sum(self, &sizes)
            }
            "ReduceL2" | "ReduceSumSquare" => {
                let squares = self.binary(BinaryOp::Mul, x, x)?;
                let sum = sum(self, &squares)?;
                if op == "ReduceL2" {
                    self.unary(SQRT, &sum)
                } else {
                    Ok(sum)
                }
            }
            "ReduceLogSum" => {
                let sum = sum(self, x)?;
                self.unary(UnaryKind::LOG, &sum)
            }
            "ReduceLogSumExp" => {
                let most = self.reduce(ReduceKind::Max, x, axes, true)?;
                let below = self.binary(BinaryOp::Sub, x, &most)?;
                let powers = self.unary(UnaryKind::EXP, &below)?;
                let total = sum(self, &powers)?;
                let log = self.unary(UnaryKind::LOG, &total)?;
                let most = self.reshape(&most, &self.shape(&log))?;
                self.binary(BinaryOp::Add, &log, &most)
            }
            _ => self.product_over(x, axes, keep),
        }
    }

    /// The product of all elements along `axes`, factor by factor.
    fn product_over(&mut self, x: &Value, axes: &[usize], keep: bool) -> Result<Value> {
        let shape = self.shape(x);
        let factors: usize = axes.iter().map(|&a| shape[a]).product();
        if factors > MOST_FACTORS && !matches!(x, Value::Array(_)) {
            return Err(Error::unsupported(format!("a product of {factors} elements"))
                .expected(format!("at most {MOST_FACTORS}")));
        }
        let mut y = x.clone();
        for &axis in axes {
            let mut product = self.part(&y, axis, 0, 1)?;
            for index in 1..shape[axis] {
                let next = self.part(&y, axis, index, 1)?;
                product = self.binary(BinaryOp::Mul, &product, &next)?;
            }
            y = product;
        }
        let kept = self.shape(&y);
        let result: Vec<usize> = (0..kept.len())
            .filter(|a| keep || !axes.contains(a))
            .map(|a| kept[a])
            .collect();
        self.reshape(&y, &result)
    }

    pub(super) fn global_pool(&mut self, view: View<'_, 'a>, kind: ReduceKind) -> Result<()> {
        let x = self.operand(view, 0)?;
        let axes: Vec<usize> = (2..self.shape(&x).len()).collect();
        let y = self.reduce(kind, &x, &axes, true)?;
        self.bind(view, 0, y)
    }
}
