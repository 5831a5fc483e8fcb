//! Numbers of quantised steps: scales, zero points, clamps and multipliers, as TensorFlow Lite computes them.

use arenite::DType;
use arenite::quant::{Multiplier, quantize};

use crate::error::{Error, Result};
use crate::graph::{Activation, Quant, Tensor};

/// Scale and zero point.
pub(crate) type Affine = (f32, i32);

/// Scale and zero point of a per-tensor quantised tensor.
pub(crate) fn per_tensor(tensor: &Tensor) -> Result<Affine> {
    match &tensor.quant {
        Some(Quant {
            scale,
            zero_point,
            axis: None,
        }) => Ok((scale[0], zero_point[0])),
        _ => Err(Error::input(format!(
            "`{}` ({}) has no per-tensor quantisation",
            tensor.name,
            tensor.dtype.name()
        ))),
    }
}

/// A zero point as int8.
pub(crate) fn zero_point_s8(zero_point: i32) -> Result<i8> {
    i8::try_from(zero_point)
        .map_err(|_| Error::input(format!("the zero point {zero_point} of an int8 tensor")).expected("-128 to 127"))
}

/// The clamp of a fused activation on stored numbers: TensorFlow Lite's `CalculateActivationRangeQuantized`.
pub(crate) fn clamp_int(activation: Activation, (scale, zero_point): Affine, dtype: DType) -> Result<[i32; 2]> {
    let [min, max] = limits(dtype)?;
    let [low, high] = activation.bounds();
    let stored = |real: f32, open: i32| {
        if real.is_finite() {
            quantize(real, scale, zero_point, min, max)
        } else {
            open
        }
    };
    Ok([stored(low, min), stored(high, max)])
}

/// The stored number nearest to a real one, ties to even: of ONNX's QuantizeLinear, in f32.
pub(crate) fn quantize_to_even(real: f32, (scale, zero_point): Affine, [min, max]: [i32; 2]) -> i32 {
    // Of NaN 0, and saturated.
    let stored = (real / scale).round_ties_even() as i32;
    stored.saturating_add(zero_point).clamp(min, max)
}

/// The same on int8.
pub(crate) fn clamp_s8(activation: Activation, affine: Affine) -> Result<[i8; 2]> {
    Ok(clamp_int(activation, affine, DType::I8)?.map(|bound| bound as i8))
}

/// The range of an integer type.
pub(crate) fn limits(dtype: DType) -> Result<[i32; 2]> {
    match dtype {
        DType::I8 => Ok([-128, 127]),
        DType::U8 => Ok([0, 255]),
        DType::I16 => Ok([-32768, 32767]),
        DType::I32 => Ok([i32::MIN, i32::MAX]),
        other => Err(Error::unsupported(format!("arithmetic on {}", other.name()))),
    }
}

/// The multiplier of a factor.
pub(crate) fn factor(real: f64) -> Result<Multiplier> {
    Multiplier::from_real(real).ok_or_else(|| Error::input(format!("the scales give the factor {real}")))
}

/// The multiplier of a factor that TensorFlow Lite Micro wants below 1.
pub(crate) fn below_one(real: f64) -> Result<Multiplier> {
    if real < 1.0 {
        factor(real)
    } else {
        Err(Error::input(format!("the scales give the factor {real}"))
            .expected("less than 1")
            .help("TensorFlow Lite Micro refuses these scales as well; convert the model again"))
    }
}

/// The multiplier of each output channel: `input scale * weight scale / output scale`, in f64.
pub fn multipliers(weights: &Tensor, channels: usize, input: f64, output: f64) -> Result<Vec<Multiplier>> {
    let Some(quant) = &weights.quant else {
        return Err(Error::input(format!(
            "the weights `{}` have no quantisation",
            weights.name
        )));
    };
    if let Some(zero) = quant.zero_point.iter().find(|&&z| z != 0) {
        return Err(Error::unsupported(format!("the weights `{}` have zero point {zero}", weights.name)).expected("0"));
    }
    (0..channels)
        .map(|channel| {
            let scale = if quant.axis.is_some() {
                quant.scale[channel]
            } else {
                quant.scale[0]
            };
            let real = input * f64::from(scale) / output;
            Multiplier::from_real(real)
                .ok_or_else(|| Error::input(format!("channel {channel} of `{}` has the factor {real}", weights.name)))
        })
        .collect()
}

/// The multiplier of each output of a fully connected layer: TensorFlow Lite multiplies the two input scales in f32 where the weights are per-tensor, in
/// f64 where they are per-channel.
pub(crate) fn linear_multipliers(weights: &Tensor, outputs: usize, input: f32, output: f32) -> Result<Vec<Multiplier>> {
    match &weights.quant {
        Some(Quant {
            scale,
            zero_point,
            axis: None,
        }) if zero_point[0] == 0 => {
            let real = f64::from(input * scale[0]) / f64::from(output);
            let multiplier = Multiplier::from_real(real)
                .ok_or_else(|| Error::input(format!("`{}` gives the factor {real}", weights.name)))?;
            Ok(vec![multiplier; outputs])
        }
        _ => multipliers(weights, outputs, f64::from(input), f64::from(output)),
    }
}
