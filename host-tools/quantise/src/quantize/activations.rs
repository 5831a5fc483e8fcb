//! The integers that a quantised network's activations are.

use arenite::DType;
use arenite::quant::quantize;

use crate::error::{Error, Result};
use crate::graph::{Quant, Tensor};

/// Number format of activations. Weights are int8 with a scale for each output channel either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Activations {
    /// int8 with a scale and a zero point each; biases of 32 bits.
    #[default]
    Int8,
    /// int16 with a scale each, zero is 0; biases of 64 bits.
    Int16,
}

impl Activations {
    /// Their element type.
    pub const fn dtype(self) -> DType {
        match self {
            Self::Int8 => DType::I8,
            Self::Int16 => DType::I16,
        }
    }

    /// As `--dtype` says it.
    pub const fn option(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::Int16 => "int16x8",
        }
    }

    /// Those of a tensor that is quantised with one scale.
    pub(super) fn of(tensor: &Tensor) -> Option<(Self, &Quant)> {
        let quant = tensor.quant.as_ref().filter(|quant| quant.axis.is_none())?;
        let activations = match tensor.dtype {
            DType::I8 => Self::Int8,
            DType::I16 => Self::Int16,
            _ => return None,
        };
        Some((activations, quant))
    }

    /// The least and the greatest stored number.
    pub(super) const fn ends(self) -> [i32; 2] {
        match self {
            Self::Int8 => [-128, 127],
            Self::Int16 => [-32768, 32767],
        }
    }

    /// The largest stored bias: the products of a layer have room beside it.
    pub(crate) const fn most_bias(self) -> f64 {
        match self {
            Self::Int8 => (1_u64 << 30) as f64,
            // Sums are multiplied by 16 bits within 64: 48 are left for them.
            Self::Int16 => (1_u64 << 46) as f64,
        }
    }

    /// Returns the right shift of numbers for sums of their products, for which 8 bits of each are enough.
    pub(super) const fn coarser(self) -> u32 {
        match self {
            Self::Int8 => 0,
            Self::Int16 => 8,
        }
    }

    /// From one stored number to the next, where a range is stored.
    pub(super) fn step(self, [low, high]: [f64; 2]) -> f64 {
        match self {
            Self::Int8 => (high - low) / 255.0,
            Self::Int16 => high.max(-low) / 32767.0,
        }
    }

    /// Scale and zero point for a range with zero in it, which is stored exactly. A range of nothing but zero gets the scale 1.
    ///
    /// # Errors
    /// A range that no scale holds.
    pub(super) fn affine(self, [low, high]: [f64; 2], name: &str) -> Result<Quant> {
        let scale = self.step([low, high]) as f32;
        if low == 0.0 && high == 0.0 {
            return Ok(Quant::per_tensor(1.0, 0));
        }
        if !scale.is_finite() || scale < f32::MIN_POSITIVE {
            let least = f64::from(f32::MIN_POSITIVE) / self.step([0.0, 1.0]);
            return Err(Error::input(format!(
                "no scale of f32 holds the values of `{name}`, {low:e} to {high:e}"
            ))
            .expected(format!("a range of {least:e} to {:e}", f32::MAX))
            .help("scale the layer's weights, or leave it in f32 with --keep-f32"));
        }
        let zero = match self {
            Self::Int8 => (-128.0 - low / f64::from(scale)).round().clamp(-128.0, 127.0),
            Self::Int16 => 0.0,
        };
        Ok(Quant::per_tensor(scale, zero as i32))
    }

    /// The range that a scale and a zero point hold.
    pub(super) fn held(self, quant: &Quant) -> [f64; 2] {
        let (scale, zero) = (f64::from(quant.scale[0]), f64::from(quant.zero_point[0]));
        self.ends().map(|end| (f64::from(end) - zero) * scale)
    }

    /// A real number as a stored one.
    pub(super) fn quantize(self, value: f32, quant: &Quant) -> i32 {
        let [low, high] = self.ends();
        quantize(value, quant.scale[0], quant.zero_point[0], low, high)
    }

    /// Real numbers as an activation's bytes.
    pub(super) fn stored(self, values: impl Iterator<Item = f32>, quant: &Quant) -> Vec<u8> {
        let numbers = values.map(|value| self.quantize(value, quant));
        match self {
            Self::Int8 => numbers.map(|number| number as u8).collect(),
            Self::Int16 => numbers.flat_map(|number| (number as i16).to_le_bytes()).collect(),
        }
    }

    /// An activation's bytes as stored numbers.
    pub(super) fn numbers(self, bytes: &[u8]) -> Vec<i16> {
        match self {
            Self::Int8 => bytes.iter().map(|&byte| i16::from(byte as i8)).collect(),
            Self::Int16 => bytes
                .as_chunks()
                .0
                .iter()
                .map(|&word| i16::from_le_bytes(word))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Activations; 2] = [Activations::Int8, Activations::Int16];

    #[test]
    fn zero_is_stored_exactly_and_a_range_fits() {
        for activations in BOTH {
            for range in [[-1.0, 3.0], [0.0, 7.5], [-0.2, 0.0], [-1e-3, 1e5]] {
                let quant = activations.affine(range, "x").expect("a scale");
                assert_eq!(activations.quantize(0.0, &quant), quant.zero_point[0]);
                let [low, high] = activations.held(&quant);
                let step = f64::from(quant.scale[0]);
                assert!(low <= range[0] + step && high >= range[1] - step, "{range:?}");
                let used = activations.step(range) * f64::from(activations.ends()[1] - activations.ends()[0]);
                assert!((high - low - used).abs() <= 1e-6 * used, "{range:?} of {low} to {high}");
            }
            let nothing = activations.affine([0.0, 0.0], "x").expect("a scale");
            assert_eq!(nothing, Quant::per_tensor(1.0, 0));
        }
        let int16 = Activations::Int16.affine([-1.0, 3.0], "x").expect("a scale");
        assert_eq!(
            (int16.zero_point[0], Activations::Int16.quantize(3.0, &int16)),
            (0, 32767)
        );
    }

    #[test]
    fn a_range_that_no_scale_holds_is_named() {
        for activations in BOTH {
            for range in [[0.0, 1e-42], [-1e44, 0.0]] {
                let error = activations.affine(range, "conv7").expect_err("no scale").to_string();
                assert!(error.contains("conv7") && error.contains("--keep-f32"), "{error}");
            }
        }
    }

    #[test]
    fn numbers_come_back_from_their_bytes() {
        for activations in BOTH {
            let quant = Quant::per_tensor(0.5, 0);
            let bytes = activations.stored([-3.0, 63.5, 1e9, -1e9].into_iter(), &quant);
            let [low, high] = activations.ends();
            let numbers: Vec<i32> = activations.numbers(&bytes).into_iter().map(i32::from).collect();
            assert_eq!(numbers, [-6, 127, high, low]);
        }
    }
}
