//! Operators on bytes of ONNX Runtime's own domain, `com.microsoft`, which its static quantiser writes in the form QOperator: each is a float operator
//! between conversions.

use super::elem::{Elem, unsupported};
use super::importer::{Importer, Value, View};
use super::movement::axis_of;
use super::rows::{Row, of_domain as row};
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, ReduceKind, UnaryKind};

/// The domain.
pub(super) const DOMAIN: &str = "com.microsoft";

/// Advice for its other operators.
pub(super) const REMEDY: &str = "export the model with operators of ONNX's own domain, a quantised one in the form QDQ";

pub(super) const ROWS: &[Row] = &[
    row("DequantizeLinear", "", |i, v| i.dequantize_linear(v)),
    row("QGemm", "", |i, v| i.quantised_gemm(v)),
    row("QLinearAdd", "", |i, v| i.quantised_binary(v, BinaryOp::Add)),
    row("QLinearAveragePool", "channels first", |i, v| i.quantised_pool(v)),
    row("QLinearConcat", "", |i, v| i.quantised_concat(v)),
    row("QLinearGlobalAveragePool", "channels first", |i, v| {
        i.quantised_global_pool(v)
    }),
    row("QLinearLeakyRelu", "", |i, v| {
        let alpha = v.float("alpha", 0.01)?;
        i.quantised_unary(v, UnaryKind::LeakyRelu { alpha })
    }),
    row("QLinearMul", "", |i, v| i.quantised_binary(v, BinaryOp::Mul)),
    row("QLinearSigmoid", "", |i, v| i.quantised_unary(v, UnaryKind::LOGISTIC)),
    row("QLinearSoftmax", "", |i, v| i.quantised_softmax(v)),
    row("QuantizeLinear", "", |i, v| i.quantize_linear(v)),
];

impl<'a> Importer<'_, 'a> {
    /// The real values of the operand at `position`; its scale and zero point stand behind it.
    fn real_operand(&mut self, view: View<'_, 'a>, position: usize) -> Result<Value> {
        let (x, scale) = (self.operand(view, position)?, self.operand(view, position + 1)?);
        let zero = self.optional(view, position + 2)?;
        self.dequantized(view, &x, &scale, zero.as_ref())
    }

    /// Binds the result, quantised by the scale at `position` and the zero point behind it; without one it is of the first operand's type.
    fn bind_quantised(&mut self, view: View<'_, 'a>, y: &Value, position: usize, first: usize) -> Result<()> {
        let (scale, zero) = (self.operand(view, position)?, self.optional(view, position + 1)?);
        let elem = match &zero {
            Some(zero) => self.elem(zero),
            None => {
                let first = self.operand(view, first)?;
                self.elem(&first)
            }
        };
        let y = self.quantized(view, y, &scale, zero.as_ref(), elem)?;
        self.bind(view, 0, y)
    }

    fn quantised_unary(&mut self, view: View<'_, 'a>, kind: UnaryKind) -> Result<()> {
        let x = self.real_operand(view, 0)?;
        let y = self.unary(kind, &x)?;
        self.bind_quantised(view, &y, 3, 0)
    }

    fn quantised_binary(&mut self, view: View<'_, 'a>, op: BinaryOp) -> Result<()> {
        let (a, b) = (self.real_operand(view, 0)?, self.real_operand(view, 3)?);
        let y = self.binary(op, &a, &b)?;
        self.bind_quantised(view, &y, 6, 0)
    }

    fn quantised_gemm(&mut self, view: View<'_, 'a>) -> Result<()> {
        let a = self.real_operand(view, 0)?;
        // A scale for each column of the result.
        let axis = usize::from(!view.flag("transB", false)?);
        let (b, b_scale, b_zero) = (self.operand(view, 3)?, self.operand(view, 4)?, self.operand(view, 5)?);
        let (b_scale, b_zero) = (self.along_axis(&b_scale, axis, 2)?, self.along_axis(&b_zero, axis, 2)?);
        let b = self.product_operand(&b, &b_scale, &b_zero)?;
        let c = match self.optional(view, 6)? {
            None => None,
            Some(Value::Array(c)) => {
                let (a, b) = (self.operand(view, 1)?, self.operand(view, 4)?);
                let unit = self.binary(BinaryOp::Mul, &a, &b)?;
                let unit = self.with(BinaryOp::Mul, &unit, view.float("alpha", 1.0)?)?;
                let c = c.cast(&self.budget, Elem::FLOAT)?.into();
                Some(self.binary(BinaryOp::Mul, &c, &unit)?)
            }
            Some(_) => return Err(unsupported(Elem::INT32, "a bias that is computed")),
        };
        let y = self.general_product(view, a, b, c)?;
        match view.optional(7) {
            Some(_) => self.bind_quantised(view, &y, 7, 0),
            None => self.bind(view, 0, y),
        }
    }

    fn quantised_concat(&mut self, view: View<'_, 'a>) -> Result<()> {
        let mut parts = Vec::new();
        for position in (2..view.node.inputs.len()).step_by(3) {
            parts.push(self.real_operand(view, position)?);
        }
        let rank = parts.first().map_or(0, |part| self.shape(part).len());
        let y = self.concat(&parts, axis_of(view.int("axis", 1)?, rank)?)?;
        self.bind_quantised(view, &y, 0, 2)
    }

    fn quantised_pool(&mut self, view: View<'_, 'a>) -> Result<()> {
        channels_first(view)?;
        let x = self.real_operand(view, 0)?;
        let y = self.pooled_by(view, &x, false)?;
        self.bind_quantised(view, &y, 3, 0)
    }

    fn quantised_global_pool(&mut self, view: View<'_, 'a>) -> Result<()> {
        channels_first(view)?;
        let x = self.real_operand(view, 0)?;
        let axes: Vec<usize> = (2..self.shape(&x).len()).collect();
        let y = self.reduce(ReduceKind::Mean, &x, &axes, true)?;
        self.bind_quantised(view, &y, 3, 0)
    }

    fn quantised_softmax(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.real_operand(view, 0)?;
        let since_13 = view.int("opset", 13)? >= 13;
        let y = self.softmax_along(&x, view.int("axis", -1)?, since_13, false)?;
        self.bind_quantised(view, &y, 3, 0)
    }
}

fn channels_first(view: View<'_, '_>) -> Result<()> {
    if view.flag("channels_last", false)? {
        return Err(Error::unsupported("channels that are the last axis").expected("channels_last 0"));
    }
    Ok(())
}
