//! Weights that are stored in fewer bits than they are computed with: float16 behind DEQUANTIZE, and the int8 weights of hybrid operators, whose
//! activations are float32. Both become float32 here: the device computes what the numbers mean.

use super::constant::Constant;
use super::importer::{Importer, View, Widened};
use crate::error::{Error, Result};
use crate::graph::{DType, Quant};
use crate::half;

/// FLOAT16 in the schema.
pub(super) const FLOAT16: u8 = 1;

impl Importer<'_, '_> {
    /// Computes a DEQUANTIZE of float16 constants now; false where the operator is another one.
    pub(super) fn widen_halves(&mut self, view: View<'_, '_>) -> Result<bool> {
        let (Some(from), Ok(to)) = (view.optional(0), view.output(0)) else {
            return Ok(false);
        };
        let info = self.info(from);
        if view.kind != "DEQUANTIZE" || info.kind != FLOAT16 {
            return Ok(false);
        }
        let Some(data) = self.stored(from, 2)? else {
            return Err(Error::unsupported(format!("float16 activations `{}`", info.name))
                .help("convert the model with float32 activations; its weights may be float16"));
        };
        let (shape, result) = (self.shape(from)?, self.shape(to)?);
        if shape != result || self.dtype(to)? != DType::F32 {
            let text = format!("float16 values of shape {shape:?} into shape {result:?}");
            return Err(Error::input(text).expected("a float32 result of the same shape"));
        }
        let values = data
            .as_chunks::<2>()
            .0
            .iter()
            .map(|half| half::to_f32(u16::from_le_bytes(*half)));
        self.keep_f32(to, shape, values.collect())?;
        self.widened.halves += usize::from(!self.scope.again);
        Ok(true)
    }

    /// The int8 `weights` of an operator with the float32 activations `x`, as the float32 values that they stand for.
    pub(super) fn widen_hybrid(&mut self, x: usize, weights: &[usize]) -> Result<()> {
        if self.dtype(x)? != DType::F32 {
            return Ok(());
        }
        let mut widened = false;
        for &w in weights {
            widened |= self.widen_weights(w)?;
        }
        self.widened.hybrid += usize::from(widened && !self.scope.again);
        Ok(())
    }

    /// The constant `w` as float32 where it is int8: whether it was.
    pub(super) fn widen_weights(&mut self, w: usize) -> Result<bool> {
        if self.dtype(w)? != DType::I8 || self.scope.map[w].is_some() {
            return Ok(false);
        }
        let (Some(constant), Some(quant)) = (self.constant(w)?, self.quant(w)?) else {
            return Ok(false);
        };
        let stride = |axis: usize| constant.shape[axis + 1..].iter().product::<usize>();
        let channel = |index: usize| quant.axis.map_or(0, |axis| index / stride(axis) % constant.shape[axis]);
        let Quant { scale, zero_point, .. } = &quant;
        let real = |(index, &stored): (usize, &u8)| {
            let channel = channel(index);
            (i32::from(stored as i8) - zero_point[channel]) as f32 * scale[channel]
        };
        let values = constant.bytes.iter().enumerate().map(real).collect();
        let shape = constant.shape.clone();
        self.keep_f32(w, shape, values)?;
        Ok(true)
    }

    /// Says once what was widened.
    pub(super) fn report_widened(&mut self) {
        let Widened { halves, hybrid } = self.widened;
        if halves > 0 {
            self.warn(format!("{halves} float16 tensors are stored as float32"));
        }
        if hybrid > 0 {
            self.warn(format!(
                "{hybrid} hybrid operators (float32 activations, int8 weights) compute in float32: their weights are stored as float32, and their \
                 activations are not quantised at run time as TensorFlow Lite does"
            ));
        }
    }

    fn keep_f32(&mut self, index: usize, shape: Vec<usize>, values: Vec<f32>) -> Result<()> {
        self.budget.take(&"FLOAT32", &shape, 4)?;
        if let Some(value) = values.iter().find(|v| !v.is_finite()) {
            let name = &self.info(index).name;
            return Err(Error::input(format!("`{name}` holds {value}")).expected("finite values"));
        }
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let constant = Constant {
            dtype: DType::F32,
            shape,
            bytes: bytes.into(),
        };
        self.scope.folded.insert(index, constant);
        Ok(())
    }
}
