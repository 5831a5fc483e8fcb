//! Quantisation: where scales are known as the runtime's own operators, elsewhere as arithmetic on real numbers.

use std::rc::Rc;

use super::array::{Array, paid};
use super::elem::{Elem, unsupported};
use super::importer::{Importer, Value, View};
use super::movement::axis_of;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Op, Quant, ReduceKind, TensorId, UnaryKind};
use arenite::ops::pointwise::{Function, SpecialOp};

const ROUND: UnaryKind = UnaryKind::Function(Function::Special(SpecialOp::Round));

/// The range of a quantised type.
fn range(elem: Elem) -> Result<(f32, f32)> {
    Ok(match elem {
        Elem::INT8 => (-128.0, 127.0),
        Elem::UINT8 => (0.0, 255.0),
        Elem::INT16 => (-32768.0, 32767.0),
        _ => return Err(unsupported(elem, "a quantised tensor")),
    })
}

impl<'a> Importer<'_, 'a> {
    /// Scale or zero point as it broadcasts with `shape`; blocks become axes of their own.
    fn spread_parameter(&mut self, view: View<'_, 'a>, value: &Value, shape: &[usize]) -> Result<Value> {
        let own = self.shape(value);
        let count: usize = own.iter().product();
        if own.len() <= 1 && count == 1 {
            return self.reshape(value, &[]);
        }
        let axis = axis_of(view.int("axis", 1)?, shape.len())?;
        let block = view.int("block_size", 0)?;
        let block = usize::try_from(block).map_err(|_| {
            Error::input(format!("attribute `block_size` is {block}")).expected("a number that is not below zero")
        })?;
        if block == 0 {
            return self.along_axis(value, axis, shape.len());
        }
        if own.len() != shape.len() || own[axis].checked_mul(block) != Some(shape[axis]) {
            return Err(Error::unsupported(format!(
                "blocks of {block} along axis {axis} of {shape:?} with scales {own:?}"
            ))
            .expected("blocks that divide the axis"));
        }
        let mut wide = own.clone();
        wide.insert(axis + 1, 1);
        let value = self.reshape(value, &wide)?;
        wide[axis + 1] = block;
        let value = self.expand(&value, &wide)?;
        self.reshape(&value, shape)
    }

    /// Refuses a known scale that is none, and a known zero point of another type than what it belongs to. A constant may be zero throughout, by its scale.
    fn check_parameters(&self, x: &Value, scale: &Value, zero: Option<&Value>) -> Result<()> {
        self.check_scale(scale, matches!(x, Value::Array(_)))?;
        let elem = self.elem(x);
        match zero.map(|zero| self.elem(zero)) {
            Some(own) if own != elem => Err(Error::input(format!("a zero point is {}", own.name()))
                .expected(format!("{}, the type of what it belongs to", elem.name()))),
            _ => Ok(()),
        }
    }

    pub(super) fn check_scale(&self, scale: &Value, may_be_zero: bool) -> Result<()> {
        let Value::Array(array) = scale else { return Ok(()) };
        let sense = |scale: &&f32| scale.is_finite() && (**scale > 0.0 || (may_be_zero && **scale == 0.0));
        match array.real().iter().find(|scale| !sense(scale)) {
            Some(scale) => Err(Error::input(format!("a scale is {scale}")).expected("a finite scale above zero")),
            None => Ok(()),
        }
    }

    /// A single known scale and its zero point.
    fn single(&self, scale: &Value, zero: Option<&Value>) -> Option<(f32, i32)> {
        let one = |value: &Value| match value {
            Value::Array(array) => array.single(),
            _ => None,
        };
        let zero = zero.map_or(Some(0.0), one)?;
        one(scale)
            .filter(|s| s.is_finite() && *s > 0.0)
            .map(|scale| (scale, zero as i32))
    }

    pub(super) fn dequantize_linear(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, scale, zero) = (self.operand(view, 0)?, self.operand(view, 1)?, self.optional(view, 2)?);
        self.check_counts(&scale, zero.as_ref())?;
        let y = self.dequantized(view, &x, &scale, zero.as_ref())?;
        self.bind(view, 0, y)
    }

    /// Refuses scales of which not each has a zero point, where the node has zero points.
    fn check_counts(&self, scale: &Value, zero: Option<&Value>) -> Result<()> {
        let count = |value: &Value| self.shape(value).iter().product::<usize>();
        match zero.map(|zero| (count(zero), count(scale))) {
            Some((zeros, scales)) if zeros != scales => {
                Err(Error::input(format!("{scales} scales and {zeros} zero points")).expected("as many of both"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn dequantized(
        &mut self,
        view: View<'_, 'a>,
        x: &Value,
        scale: &Value,
        zero: Option<&Value>,
    ) -> Result<Value> {
        self.check_parameters(x, scale, zero)?;
        if let Some(y) = self.dequantized_by_one(x, scale, zero)? {
            return Ok(y);
        }
        let shape = self.shape(x);
        let scale = self.spread_parameter(view, scale, &shape)?;
        let zero = zero.map(|z| self.spread_parameter(view, z, &shape)).transpose()?;
        if self.elem(x) == Elem::INT32 && !matches!(x, Value::Array(_)) {
            return Err(unsupported(Elem::INT32, "a tensor that is dequantised at run time"));
        }
        let centred = self.centred(x, zero.as_ref())?;
        self.multiples(&centred, &scale)
    }

    /// Integers times their scales, which a constant remembers.
    pub(super) fn multiples(&mut self, integers: &Value, scale: &Value) -> Result<Value> {
        let product = self.binary(BinaryOp::Mul, integers, scale)?;
        let (Value::Array(product), Value::Array(scale)) = (&product, scale) else {
            return Ok(product);
        };
        paid(&self.budget, Elem::FLOAT, &product.shape)?;
        let scale = scale.broadcast(&self.budget, &product.shape)?;
        let steps = scale.real();
        let known = steps.iter().all(|step| step.is_finite() && *step > 0.0);
        let steps = known.then(|| Rc::from(&*steps));
        Ok(Array {
            steps,
            ..Array::clone(product)
        }
        .into())
    }

    /// An activation by the runtime's own operator, where a single scale and zero point are known.
    fn dequantized_by_one(&mut self, x: &Value, scale: &Value, zero: Option<&Value>) -> Result<Option<Value>> {
        let (Value::Tensor(id), Some((scale, zero))) = (x, self.single(scale, zero)) else {
            return Ok(None);
        };
        let quant = Quant::per_tensor(scale, zero);
        let known = &self.out.tensor(*id).quant;
        if range(self.elem(x)).is_err() || known.as_ref().is_some_and(|known| *known != quant) {
            return Ok(None);
        }
        self.state_quant(*id, &quant);
        let y = self.emit_as(Op::Dequantize, &[*id], &self.shape(x), crate::graph::DType::F32)?;
        Ok(Some(Value::Tensor(y)))
    }

    /// States what the integers of a tensor stand for, and so those of the tensors that its elements were moved from.
    fn state_quant(&mut self, id: TensorId, quant: &Quant) {
        let mut moved = vec![id];
        while let Some(id) = moved.pop() {
            if self.out.tensor(id).quant.is_some() {
                continue;
            }
            self.out.tensor_mut(id).quant = Some(quant.clone());
            let writer = self.out.nodes.iter().rev().find(|node| node.outputs == [id]);
            let moves = |op: &Op| matches!(op, Op::Reshape | Op::Transpose { .. } | Op::Slice { .. } | Op::Identity);
            if let Some(node) = writer.filter(|node| moves(&node.op)) {
                moved.extend(node.inputs.iter().flatten());
            }
        }
    }

    pub(super) fn quantize_linear(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, scale, zero) = (self.operand(view, 0)?, self.operand(view, 1)?, self.optional(view, 2)?);
        let elem = match (&zero, view.int("output_dtype", 0)?) {
            (Some(zero), _) => self.elem(zero),
            (None, 0) => Elem::UINT8,
            (None, number) => Elem(number),
        };
        self.check_counts(&scale, zero.as_ref())?;
        let y = self.quantized(view, &x, &scale, zero.as_ref(), elem)?;
        self.bind(view, 0, y)
    }

    pub(super) fn quantized(
        &mut self,
        view: View<'_, 'a>,
        x: &Value,
        scale: &Value,
        zero: Option<&Value>,
        elem: Elem,
    ) -> Result<Value> {
        let (low, high) = range(elem)?;
        self.check_scale(scale, false)?;
        let shape = self.shape(x);
        if let (Value::Tensor(_), Some((scale, zero))) = (x, self.single(scale, zero)) {
            let x = self.real(x)?;
            let y = self.emit_as(Op::Quantize, &[x], &shape, elem.dtype()?)?;
            self.out.tensor_mut(y).quant = Some(Quant::per_tensor(scale, zero));
            return Ok(Value::Tensor(y));
        }
        let scale = self.spread_parameter(view, scale, &shape)?;
        let ratio = self.binary(BinaryOp::Div, x, &scale)?;
        let mut rounded = self.unary(ROUND, &ratio)?;
        if let Some(zero) = zero {
            let zero = self.spread_parameter(view, zero, &shape)?;
            let zero = match &zero {
                Value::Array(array) => array.cast(&self.budget, Elem::FLOAT)?.into(),
                zero => Value::Tensor(self.real(zero)?),
            };
            rounded = self.binary(BinaryOp::Add, &rounded, &zero)?;
        }
        let stored = self.unary(UnaryKind::Clamp { min: low, max: high }, &rounded)?;
        self.cast(&stored, elem)
    }

    /// Scale and zero point of the range of the operand, and the operand in their terms.
    pub(super) fn dynamic_quantize(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let axes: Vec<usize> = (0..self.shape(&x).len()).collect();
        let most = self.reduce(ReduceKind::Max, &x, &axes, false)?;
        let most = self.with(BinaryOp::Maximum, &most, 0.0)?;
        let least = self.reduce(ReduceKind::Min, &x, &axes, false)?;
        let least = self.with(BinaryOp::Minimum, &least, 0.0)?;
        let span = self.binary(BinaryOp::Sub, &most, &least)?;
        let scale = self.with(BinaryOp::Div, &span, 255.0)?;
        let below = self.binary(BinaryOp::Div, &least, &scale)?;
        let zero = self.binary(BinaryOp::Sub, &Array::scalar(0.0).into(), &below)?;
        let bytes = UnaryKind::Clamp { min: 0.0, max: 255.0 };
        let zero = self.unary(bytes, &zero)?;
        let zero = self.unary(ROUND, &zero)?;
        let ratio = self.binary(BinaryOp::Div, &x, &scale)?;
        let rounded = self.unary(ROUND, &ratio)?;
        let moved = self.binary(BinaryOp::Add, &rounded, &zero)?;
        let stored = self.unary(bytes, &moved)?;
        let y = self.cast(&stored, Elem::UINT8)?;
        self.bind(view, 0, y)?;
        if view.output(1).is_some() {
            self.bind(view, 1, scale)?;
        }
        if view.output(2).is_some() {
            let zero = self.cast(&zero, Elem::UINT8)?;
            self.bind(view, 2, zero)?;
        }
        Ok(())
    }

    pub(super) fn qlinear_conv(&mut self, view: View<'_, 'a>) -> Result<()> {
        let mut operands = Vec::new();
        for position in 0..8 {
            operands.push(self.operand(view, position)?);
        }
        let [x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero] = operands.as_slice() else {
            return Err(Error::internal("eight operands"));
        };
        let bias = self.optional(view, 8)?;
        let real_x = self.dequantized(view, x, x_scale, Some(x_zero))?;
        let rank = self.shape(w).len();
        self.check_parameters(w, w_scale, Some(w_zero))?;
        let channel_zero = self.along_axis(w_zero, 0, rank)?;
        let channel_scale = self.along_axis(w_scale, 0, rank)?;
        let centred = self.centred(w, Some(&channel_zero))?;
        let real_w = self.multiples(&centred, &channel_scale)?;
        // The bias is in the units of the products.
        let bias = match bias {
            None => None,
            Some(Value::Array(bias)) => {
                let bias = bias.cast(&self.budget, Elem::FLOAT)?.into();
                let x_scale = self.reshape(x_scale, &[])?;
                let unit = self.binary(BinaryOp::Mul, w_scale, &x_scale)?;
                Some(self.binary(BinaryOp::Mul, &bias, &unit)?)
            }
            Some(_) => return Err(unsupported(Elem::INT32, "a bias that is computed")),
        };
        let y = self.convolved(view, &real_x, &real_w, bias.as_ref())?;
        let y = self.quantized(view, &y, y_scale, Some(y_zero), self.elem(y_zero))?;
        self.bind(view, 0, y)
    }

    /// An operand of a product of matrices, whose scale and zero point broadcast with it.
    pub(super) fn product_operand(&mut self, x: &Value, scale: &Value, zero: &Value) -> Result<Value> {
        self.check_parameters(x, scale, Some(zero))?;
        if let Some(y) = self.dequantized_by_one(x, scale, Some(zero))? {
            return Ok(y);
        }
        let centred = self.centred(x, Some(zero))?;
        self.multiples(&centred, scale)
    }

    pub(super) fn qlinear_mat_mul(&mut self, view: View<'_, 'a>) -> Result<()> {
        let mut operands = Vec::new();
        for position in 0..8 {
            operands.push(self.operand(view, position)?);
        }
        let [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero] = operands.as_slice() else {
            return Err(Error::internal("eight operands"));
        };
        let column = |net: &mut Self, value: &Value| -> Result<Value> {
            // A value for each row stands along the last axis but one.
            match *net.shape(value) {
                [rows] if rows != 1 => net.reshape(value, &[rows, 1]),
                [1] => net.reshape(value, &[]),
                _ => Ok(value.clone()),
            }
        };
        let (a_scale, a_zero) = (column(self, a_scale)?, column(self, a_zero)?);
        let real_a = self.product_operand(a, &a_scale, &a_zero)?;
        let real_b = self.product_operand(b, b_scale, b_zero)?;
        let y = self.multiplied(&real_a, &real_b)?;
        let y = self.quantized(view, &y, y_scale, Some(y_zero), self.elem(y_zero))?;
        self.bind(view, 0, y)
    }
}
