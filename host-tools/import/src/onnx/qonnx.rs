//! `Quant` of QONNX, the form in which Brevitas and other trainers export networks of few bits: real numbers rounded to a grid of scale, zero point and bits
//! (`qonnx`, `docs/qonnx-custom-ops/quant_op.md`). Up to eight bits an activation is an int8 or uint8 tensor between conversions, clamped to the grid's ends.

use arenite::ops::pointwise::{Function, SpecialOp};

use super::array::{Array, paid};
use super::elem::Elem;
use super::importer::{Importer, Value, View};
use super::rows::{Row, of_domain as row};
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, UnaryKind};

/// The domains that writers of QONNX have used.
pub(super) const DOMAINS: [&str; 3] = ["qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"];

/// Advice for its other operators.
pub(super) const REMEDY: &str =
    "export the model with Quant of 2 to 8 bits, or as QCDQ: QuantizeLinear, Clip and DequantizeLinear";

pub(super) const ROWS: &[Row] = &[row(
    "Quant",
    "2 to 8 bits, constants to 24; constant scale, zero point and bits; ROUND, FLOOR and CEIL",
    |i, v| i.quant(v),
)];

/// Bits that an f32 holds exactly.
const MOST_BITS: u32 = 24;

/// Bits of the grids that are stored in bytes.
const BYTE: u32 = 8;

/// The ends of a grid of so many bits.
fn ends(bits: u32, signed: bool, narrow: bool) -> (f32, f32) {
    let (half, all) = ((1_u32 << (bits - 1)) as f32, ((1_u64 << bits) - 1) as f32);
    let narrow = if narrow { 1.0 } else { 0.0 };
    if signed {
        (narrow - half, half - 1.0)
    } else {
        (0.0, all - narrow)
    }
}

impl<'a> Importer<'_, 'a> {
    pub(super) fn quant(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let mut known = Vec::new();
        for (position, name) in [(1, "scale"), (2, "zero point"), (3, "number of bits")] {
            match self.operand(view, position)? {
                Value::Array(array) => known.push(array),
                _ => return Err(Error::unsupported(format!("a {name} that is computed")).expected("a constant")),
            }
        }
        let [scale, zero, bits] = known.as_slice() else {
            return Err(Error::internal("three constants"));
        };
        let constant = matches!(x, Value::Array(_));
        let most = if constant { MOST_BITS } else { BYTE };
        let bits = whole_bits(bits, most)?;
        // A single number of any rank is one for all elements.
        let broadcast = |net: &Self, array: &Array| match array.single() {
            Some(single) => Ok(Array::scalar(single)),
            None => array.cast(&net.budget, Elem::FLOAT),
        };
        let (scale, zero) = (broadcast(self, scale)?, broadcast(self, zero)?);
        let step = scale.single();
        let scale = Value::from(scale);
        self.check_scale(&scale, constant)?;
        if let Some(odd) = zero.real().iter().find(|zero| zero.fract() != 0.0 || !zero.is_finite()) {
            return Err(Error::unsupported(format!("a zero point is {odd}")).expected("whole numbers"));
        }
        let rounding = match view.text("rounding_mode", "ROUND")? {
            "ROUND" | "HALF_EVEN" => SpecialOp::Round,
            "FLOOR" => SpecialOp::Floor,
            "CEIL" => SpecialOp::Ceil,
            other => {
                return Err(Error::unsupported(format!("rounding mode {other}")).expected("ROUND, FLOOR or CEIL"));
            }
        };
        let signed = view.flag("signed", true)?;
        let ends = ends(bits, signed, view.flag("narrow", false)?);
        let y = match (&x, step, zero.single()) {
            (Value::Tensor(_), Some(step), Some(zero)) if rounding == SpecialOp::Round && stored(zero, signed) => {
                self.grid_of_bytes(view, &x, (step, zero), ends, signed)?
            }
            _ => self.grid(&x, &scale, zero.into(), ends, rounding)?,
        };
        self.bind(view, 0, y)
    }

    /// An activation that bytes hold, behind a clamp to the grid's ends.
    fn grid_of_bytes(
        &mut self,
        view: View<'_, 'a>,
        x: &Value,
        (scale, zero): (f32, f32),
        (low, high): (f32, f32),
        signed: bool,
    ) -> Result<Value> {
        let elem = if signed { Elem::INT8 } else { Elem::UINT8 };
        let whole = ends(BYTE, signed, false) == (low, high);
        let clamp = UnaryKind::Clamp {
            min: (low - zero) * scale,
            max: (high - zero) * scale,
        };
        let x = if whole { x.clone() } else { self.unary(clamp, x)? };
        let scale = Value::from(Array::scalar(scale));
        let zero = Value::from(Array::scalar(zero).cast(&self.budget, elem)?);
        let stored = self.quantized(view, &x, &scale, Some(&zero), elem)?;
        self.dequantized(view, &stored, &scale, Some(&zero))
    }

    /// The definition, on real numbers; a constant remembers its steps.
    fn grid(
        &mut self,
        x: &Value,
        scale: &Value,
        zero: Value,
        (min, max): (f32, f32),
        rounding: SpecialOp,
    ) -> Result<Value> {
        if let Value::Array(array) = x {
            paid(&self.budget, Elem::FLOAT, &array.shape)?;
        }
        let steps = self.binary(BinaryOp::Div, x, scale)?;
        let moved = self.binary(BinaryOp::Add, &steps, &zero)?;
        let held = self.unary(UnaryKind::Clamp { min, max }, &moved)?;
        let rounded = self.unary(UnaryKind::Function(Function::Special(rounding)), &held)?;
        let centred = self.binary(BinaryOp::Sub, &rounded, &zero)?;
        self.multiples(&centred, scale)
    }
}

/// Whether bytes hold a zero point.
fn stored(zero: f32, signed: bool) -> bool {
    let (low, high) = ends(BYTE, signed, false);
    (low..=high).contains(&zero)
}

fn whole_bits(bits: &Array, most: u32) -> Result<u32> {
    let found = bits.single();
    let fits = found.filter(|bits| bits.fract() == 0.0 && (2.0..=most as f32).contains(bits));
    fits.map(|bits| bits as u32).ok_or_else(|| {
        let text = found.map_or("several numbers of bits".to_owned(), |bits| format!("{bits} bits"));
        Error::unsupported(text).expected(format!("one whole number from 2 to {most}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_grid() {
        assert_eq!(ends(8, true, false), (-128.0, 127.0));
        assert_eq!(ends(8, true, true), (-127.0, 127.0));
        assert_eq!(ends(8, false, false), (0.0, 255.0));
        assert_eq!(ends(3, false, true), (0.0, 6.0));
        assert_eq!(ends(2, true, true), (-1.0, 1.0));
        assert_eq!(ends(24, true, false), (-8_388_608.0, 8_388_607.0));
    }

    #[test]
    fn zero_points_that_bytes_hold() {
        assert!(stored(0.0, true) && stored(-128.0, true) && stored(255.0, false));
        assert!(!stored(128.0, true) && !stored(-1.0, false) && !stored(256.0, false));
    }
}
