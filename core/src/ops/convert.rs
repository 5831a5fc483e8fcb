//! Pointwise operators of one operand that are a table, a rescaling or a change of type.

use serde::{Deserialize, Serialize};

use super::{Needs, Operator, checked_size};
use crate::arena::{Access, Operand, Slot};
use crate::error::Fault;
use crate::quant::{Multiplier, SigmoidI16};
use crate::tensor::DType;

/// `y = table[x]` on bytes: any int8 or uint8 function, computed when packing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Table {
    /// Contiguous bytes.
    pub output: Slot,
    /// Contiguous bytes.
    pub input: Slot,
    /// Elements.
    pub count: u32,
    /// Offset of 256 bytes, ordered by the operand's unsigned value.
    pub table: u32,
}

/// `y = clamp(zero_out + M(x - zero_in))` between integer types, with one multiplier for x' >= 0 and one for x' < 0: requantisation,
/// ReLU, leaky ReLU, absolute value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Rescale {
    /// Contiguous.
    pub output: Slot,
    /// Contiguous.
    pub input: Slot,
    /// Elements.
    pub count: u32,
    /// Type of the operand: int8, uint8, int16 or int32.
    pub from: DType,
    /// Type of the result, likewise.
    pub to: DType,
    /// Zero point of the operand.
    pub zero_in: i32,
    /// Zero point of the result.
    pub zero_out: i32,
    /// Take the absolute value of x - zero_in first.
    pub absolute: bool,
    /// Multiplier above the zero point.
    pub positive: Multiplier,
    /// Multiplier below the zero point; may be negative.
    pub negative: Multiplier,
    /// Clamp of the result, in stored terms.
    pub clamp: [i32; 2],
}

/// Logistic function or hyperbolic tangent of int16, with scale 1/32768.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SigmoidS16 {
    /// Contiguous.
    pub output: Slot,
    /// Contiguous.
    pub input: Slot,
    /// Elements.
    pub count: u32,
    /// For the operand's scale.
    pub sigmoid: SigmoidI16,
    /// The hyperbolic tangent.
    pub tanh: bool,
}

/// Between real and stored numbers: `q = round(x / scale) + zero_point`, `x = scale * (q - zero_point)`; with scale 0 the plain
/// conversion of a cast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Convert {
    /// Contiguous.
    pub output: Slot,
    /// Contiguous.
    pub input: Slot,
    /// Elements.
    pub count: u32,
    /// Type of the operand: f32, int8, uint8, int16, int32 or bool.
    pub from: DType,
    /// Type of the result, likewise.
    pub to: DType,
    /// Scale of the integer side; 0 for a cast.
    pub scale: f32,
    /// Zero point of the integer side.
    pub zero_point: i32,
}

fn pointwise(output: Slot, to: DType, input: Slot, from: DType, count: u32, visit: &mut dyn FnMut(Operand)) {
    visit(Operand::of_type(to, Access::Write, output, count));
    visit(Operand::of_type(from, Access::Read, input, count));
}

impl Operator for Table {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand)) {
        pointwise(self.output, DType::U8, self.input, DType::U8, self.count, visit);
        visit(Operand::constant::<u8>(self.table, 256));
    }

    fn slots_mut(&mut self, visit: &mut dyn FnMut(&mut Slot)) {
        visit(&mut self.output);
        visit(&mut self.input);
    }
}

impl Operator for Rescale {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 4])?;
        let integer = |dtype| matches!(dtype, DType::I8 | DType::U8 | DType::I16 | DType::I32);
        let valid = self.positive.is_valid() && self.negative.is_valid() && self.clamp[0] <= self.clamp[1];
        match valid && integer(self.from) && integer(self.to) {
            true => Ok(()),
            false => Err(Fault::Quantisation),
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand)) {
        pointwise(self.output, self.to, self.input, self.from, self.count, visit);
    }

    fn slots_mut(&mut self, visit: &mut dyn FnMut(&mut Slot)) {
        visit(&mut self.output);
        visit(&mut self.input);
    }
}

impl Operator for SigmoidS16 {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 2]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand)) {
        pointwise(self.output, DType::I16, self.input, DType::I16, self.count, visit);
    }

    fn slots_mut(&mut self, visit: &mut dyn FnMut(&mut Slot)) {
        visit(&mut self.output);
        visit(&mut self.input);
    }
}

impl Operator for Convert {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 4])?;
        let known = |dtype| !matches!(dtype, DType::I64);
        let moves = (self.from, self.to) != (DType::F32, DType::F32);
        match moves && known(self.from) && known(self.to) && self.scale.is_finite() && self.scale >= 0.0 {
            true => Ok(()),
            false => Err(Fault::Quantisation),
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand)) {
        pointwise(self.output, self.to, self.input, self.from, self.count, visit);
    }

    fn slots_mut(&mut self, visit: &mut dyn FnMut(&mut Slot)) {
        visit(&mut self.output);
        visit(&mut self.input);
    }
}
