//! Weights that are stored in fewer bits than they are computed with: float16 behind DEQUANTIZE, and the int8 weights of hybrid operators, whose
//! activations are float32. Both become float32 here, for the passes: the device computes what the numbers mean. Layers store their bits, where the passes
//! leave them the same numbers.

use super::constant::Constant;
use super::importer::{Importer, View, Widened};
use super::schema::{INT8, Model};
use crate::assume::Assumptions;
use crate::borders::usage;
use crate::error::{Error, Result};
use crate::graph::{DType, Data, LowBits, Quant, Tensor, TensorId, TensorKind};
use crate::half;

/// Weights of a layer from which on a step for their offsets costs less than their bytes.
const MANY: usize = 1024;

/// FLOAT16 in the schema.
pub(super) const FLOAT16: u8 = 1;

/// The word of `--assume` for the scales of what DEQUANTIZE reads.
const DEQUANTIZE: &str = "dequantize";

/// Whether a DEQUANTIZE of constants with several scales takes each channel's, as LiteRT does, or the first, as TensorFlow Lite Micro does. Asked where one is.
///
/// # Errors
/// [`crate::error::ErrorKind::Usage`] for another word.
pub(super) fn dequantises_by_channel(model: &Model<'_>, assumptions: &mut Assumptions<'_>) -> Result<bool> {
    let of_several = model.subgraphs.iter().find_map(|graph| {
        let mut read = graph.operators.iter().filter_map(|operator| {
            let first = operator.inputs.first().copied().flatten();
            first.filter(|_| model.codes[operator.code].name() == "DEQUANTIZE")
        });
        read.find_map(|index| {
            let info = &graph.tensors[index];
            (info.kind == INT8 && info.data.is_some() && info.scale.len() > 1).then_some(info)
        })
    });
    let Some(info) = of_several else { return Ok(false) };
    let reason =
        "TensorFlow Lite Micro takes the first of several scales; LiteRT each channel's: --assume dequantize=channel";
    let word = assumptions.or_default(DEQUANTIZE, "first".to_string(), &info.name, reason)?;
    match word.as_str() {
        "first" => Ok(false),
        "channel" => Ok(true),
        _ => Err(usage(format!("--assume {DEQUANTIZE}={word}")).expected("first or channel")),
    }
}

impl Importer<'_, '_> {
    /// Computes a DEQUANTIZE of float16 constants now; false where the operator is another one.
    pub(super) fn widen_halves(&mut self, view: View<'_, '_>) -> Result<bool> {
        let (Some(from), Ok(to)) = (view.optional(0), view.output(0)) else {
            return Ok(false);
        };
        let info = self.info(from);
        if view.kind == "DEQUANTIZE" && info.kind == INT8 {
            return self.widen_bytes(from, to);
        }
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
        let halves = LowBits { bits: 16, group: None };
        self.out.low_bits.insert(self.info(to).name.clone(), halves);
        self.widened.halves += usize::from(!self.scope.again);
        Ok(true)
    }

    /// Computes a DEQUANTIZE of int8 constants now, of which layers may keep the bytes; false where they are computed.
    fn widen_bytes(&mut self, from: usize, to: usize) -> Result<bool> {
        // Of a loop's body once for all of its runs.
        if self.scope.again && self.scope.bytes.contains_key(&to) {
            return Ok(true);
        }
        let Some(constant) = self.constant(from)? else {
            return Ok(false);
        };
        if let Some(values) = self.values_of_blocks([from, to], &constant)? {
            self.has_no_value(to)?;
            self.keep_f32(to, constant.shape, values)?;
            self.scope.made.insert(to, self.parameter_of(from));
            return Ok(true);
        }
        let Some(mut quant) = self.quant(from)? else {
            return Ok(false);
        };
        if !self.dequantises_by_channel && quant.axis.is_some() {
            quant = Quant::per_tensor(quant.scale[0], quant.zero_point[0]);
        }
        if self.shape(to)? != constant.shape || self.dtype(to)? != DType::F32 {
            return Ok(false);
        }
        self.has_no_value(to)?;
        let values = real_values(&constant, &quant, false);
        self.keep_f32(to, constant.shape, values)?;
        self.scope.made.insert(to, self.parameter_of(from));
        self.scope.bytes.insert(to, (from, quant));
        self.keep_bits(from, to);
        Ok(true)
    }

    /// Of weights `[out, …]` behind DEQUANTIZE whose distance from their zero points takes more than 8 bits: constants of the stored numbers times their
    /// scales, and what the sum of the activations counts for each output besides. None of few weights, which are no gain, and of those that fit.
    pub(super) fn apart_from_offsets(&mut self, w: usize) -> Result<Option<(TensorId, Vec<f32>)>> {
        if let Some(apart) = self.scope.apart.get(&w) {
            return Ok(Some(apart.clone()));
        }
        let Some((from, quant)) = self.scope.bytes.get(&w).cloned() else {
            return Ok(None);
        };
        let Some(constant) = self.constant(from)? else {
            return Ok(None);
        };
        let outputs = constant.shape.first().copied().unwrap_or(1);
        let inner = constant.bytes.len() / outputs.max(1);
        let zero = |index: usize| quant.zero_point[if quant.axis == Some(0) { index / inner } else { 0 }];
        let numbers = constant.bytes.iter().enumerate();
        let fits = |(index, &stored): (usize, &u8)| i8::try_from(i32::from(stored as i8) - zero(index)).is_ok();
        let by_output = quant.axis.is_none_or(|axis| axis == 0);
        if constant.bytes.len() < MANY || !by_output || numbers.into_iter().all(fits) {
            return Ok(None);
        }
        let offset = |output: usize| {
            let at = if quant.axis.is_some() { output } else { 0 };
            -(quant.scale[at] * quant.zero_point[at] as f32)
        };
        let offsets: Vec<f32> = (0..outputs).map(offset).collect();
        let name = self.info(w).name.clone();
        let numbers = self.add_f32(&name, &constant.shape, &real_values(&constant, &quant, true));
        self.parameter(w, numbers);
        self.scope.apart.insert(w, (numbers, offsets.clone()));
        Ok(Some((numbers, offsets)))
    }

    /// A constant of float32.
    pub(super) fn add_f32(&mut self, name: &str, shape: &[usize], values: &[f32]) -> TensorId {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.add_const(Tensor {
            kind: TensorKind::Const(Data::Bytes(bytes.into())),
            ..Tensor::activation(name, shape, DType::F32)
        })
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
        let Some(constant) = self.constant(w)? else {
            return Ok(false);
        };
        if let Some(values) = self.values_of_blocks([w, w], &constant)? {
            self.keep_f32(w, constant.shape, values)?;
            return Ok(true);
        }
        let Some(quant) = self.quant(w)? else {
            return Ok(false);
        };
        let values = real_values(&constant, &quant, false);
        let shape = constant.shape.clone();
        self.keep_f32(w, shape, values)?;
        self.keep_bits(w, w);
        Ok(true)
    }

    /// That layers may store what the int8 or INT4 constant `from` has become in its own bits.
    fn keep_bits(&mut self, from: usize, to: usize) {
        let bits = if self.info(from).nibbles { 4 } else { 8 };
        let low = LowBits { bits, group: None };
        self.out.low_bits.insert(self.info(to).name.clone(), low);
    }

    /// Says once what was widened.
    pub(super) fn report_widened(&mut self) {
        let Widened { halves, hybrid } = self.widened;
        if halves > 0 {
            self.warn(format!(
                "{halves} float16 tensors: convolutions and linear layers store their weights as they are and widen them as they read, which takes more \
                 instructions; the others are stored as float32 (--dtype f32 --weight-bits 32 stores all so, 8 or 4 fewer bits)"
            ));
        }
        if hybrid > 0 {
            self.warn(format!(
                "{hybrid} hybrid operators (float32 activations, weights of fewer bits) compute in float32: convolutions and linear layers store their weights \
                 as they are, the others as float32, and activations are not quantised at run time as TensorFlow Lite does"
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

/// The numbers that int8 ones stand for; or, as if their zero points were 0.
fn real_values(constant: &Constant<'_>, quant: &Quant, from_zero: bool) -> Vec<f32> {
    let stride = |axis: usize| constant.shape[axis + 1..].iter().product::<usize>();
    let channel = |index: usize| quant.axis.map_or(0, |axis| index / stride(axis) % constant.shape[axis]);
    let real = |(index, &stored): (usize, &u8)| {
        let channel = channel(index);
        let zero = if from_zero { 0 } else { quant.zero_point[channel] };
        (i32::from(stored as i8) - zero) as f32 * quant.scale[channel]
    };
    constant.bytes.iter().enumerate().map(real).collect()
}
