//! Conversions between real numbers and integers, and parameters that are stored as integers.

use super::fields::Role;
use super::trace::{Declared, Operator};
use super::work::Work;
use crate::build::Weights;
use crate::error::Result;
use crate::graph::{DType, Data, Expr, Op, Quant, TensorId};

impl Work<'_, '_, '_> {
    /// Integers that count, as the same numbers in f32.
    pub(super) fn cast(&mut self, o: &Operator<'_>) -> Result<TensorId> {
        let x = self.input(o, 0)?;
        let tensor = self.builder.graph().tensor(x);
        if tensor.dtype != DType::I32 {
            return Err(o
                .json
                .error(format!("operand 0 is {}", tensor.dtype.name()))
                .expected("i32"));
        }
        let shape = tensor.shape.clone();
        let id = self.node_of_shape(o, Op::Cast, &[x], &shape)?;
        self.builder.set_dtype(id, DType::F32);
        Ok(id)
    }

    /// Real numbers as the integers that the result's `quant` says.
    pub(super) fn quantize(&mut self, o: &Operator<'_>) -> Result<TensorId> {
        let x = self.f32_input(o, 0)?;
        let declared = self.trace.declared(&o.output, &o.json)?;
        if declared.quant.is_none() {
            return Err(declared
                .json
                .error(format!("`{}` has no `quant`", o.output))
                .expected("the scale that operator `quantize` goes by"));
        }
        let dtype = declared.dtype;
        let shape = self.builder.shape(x).to_vec();
        let id = self.node_of_shape(o, Op::Quantize, &[x], &shape)?;
        self.builder.set_dtype(id, dtype);
        Ok(id)
    }

    /// The real numbers that integers stand for.
    pub(super) fn dequantize(&mut self, o: &Operator<'_>) -> Result<TensorId> {
        let (name, at) = o.named(0)?;
        let declared = self.trace.declared(name, at)?;
        if declared.quant.is_none() || matches!(declared.role, Role::Parameter | Role::Constant) {
            return Err(at
                .error(format!("`{name}` has no `quant`, or is a parameter or constant"))
                .expected("integers that the network computes or is given"));
        }
        let x = self.input(o, 0)?;
        let shape = self.builder.shape(x).to_vec();
        let id = self.node_of_shape(o, Op::Dequantize, &[x], &shape)?;
        self.builder.set_dtype(id, DType::F32);
        Ok(id)
    }

    /// The real numbers that a parameter's or a constant's integers stand for, moved as the operator wants them.
    pub(super) fn real(
        &mut self,
        name: &str,
        declared: &Declared<'_>,
        quant: &Quant,
        bytes: &[u8],
        weights: &Weights,
    ) -> Result<TensorId> {
        let shape = declared.shape.clone();
        let inner: usize = shape.iter().skip(quant.axis.map_or(0, |axis| axis + 1)).product();
        let channel = |index: usize| quant.axis.map_or(0, |axis| index / inner.max(1) % shape[axis]);
        let whole: Vec<f32> = match declared.dtype {
            DType::I8 => bytes.iter().map(|&byte| f32::from(byte as i8)).collect(),
            DType::U8 => bytes.iter().map(|&byte| f32::from(byte)).collect(),
            // As others of that type, beyond 24 bits they are rounded.
            _ => {
                let words = bytes.as_chunks::<4>().0.iter();
                words.map(|word| i32::from_le_bytes(*word) as f32).collect()
            }
        };
        let (whole, steps): (Vec<f32>, Vec<f32>) = whole
            .into_iter()
            .enumerate()
            .map(|(index, stored)| {
                let channel = channel(index);
                (stored - quant.zero_point[channel] as f32, quant.scale[channel])
            })
            .unzip();
        let value = weights.of(Expr::multiples(whole, steps, &shape))?;
        let id = self
            .builder
            .constant(name, &value.shape(), DType::F32, Data::Lazy(value));
        if let (Role::Parameter, Some(index)) = (declared.role, self.trace.order.iter().position(|n| n == name)) {
            let elements = shape.iter().map(|&extent| extent as u64).product();
            self.builder.state_param(id, (index, elements));
        }
        Ok(id)
    }
}
