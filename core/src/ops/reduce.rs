//! Mean, sum, maximum and minimum over axes.
//!
//! The host merges neighbouring axes, so that the operand is `[kept, reduced, kept, reduced, kept]` at most.

use serde::{Deserialize, Serialize};

use super::{Needs, Operator, checked_size};
use crate::arena::{Access, Operand, Slot};
use crate::error::Fault;
use crate::quant::Multiplier;
use crate::tensor::DType;

/// What a reduction computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[expect(missing_docs, reason = "named by their operation")]
pub enum Reduction {
    Mean,
    Sum,
    Max,
    Min,
}

/// An f32 reduction of `[a, r, b, s, c]` over `r` and `s` into `[a, b, c]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ReduceF32 {
    /// `[a, b, c]`
    pub output: Slot,
    /// `[a, r, b, s, c]`
    pub input: Slot,
    /// a, r, b, s, c
    pub shape: [u32; 5],
    /// The operation.
    pub kind: Reduction,
}

impl ReduceF32 {
    pub(crate) fn output_len(&self) -> u32 {
        let [a, _, b, _, c] = self.shape;
        super::size(&[a, b, c]).unwrap_or(u32::MAX)
    }
}

/// A reduction of int8 or int16, `[a, r, b, s, c]` over `r` and `s`. Mean and sum are `zero_out + M(sum of (x - zero_in))`, the mean's
/// divisor being part of the multiplier; maximum and minimum are stored numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ReduceInt {
    /// `[a, b, c]`
    pub output: Slot,
    /// `[a, r, b, s, c]`
    pub input: Slot,
    /// Type of both: int8 or int16.
    pub dtype: DType,
    /// a, r, b, s, c
    pub shape: [u32; 5],
    /// The operation.
    pub kind: Reduction,
    /// Zero point of the operand.
    pub zero_in: i32,
    /// Of the sum.
    pub multiplier: Multiplier,
    /// Zero point of the result.
    pub zero_out: i32,
}

impl Operator for ReduceInt {
    fn check(&self) -> Result<(), Fault> {
        let [a, r, b, s, c] = self.shape;
        checked_size(&[a, r, b, s, c, 2])?;
        match self.multiplier.is_valid() && matches!(self.dtype, DType::I8 | DType::I16) {
            true => Ok(()),
            false => Err(Fault::Quantisation),
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand)) {
        let [a, _, b, _, c] = self.shape;
        let len = |extents: &[u32]| super::size(extents).unwrap_or(u32::MAX);
        visit(Operand::of_type(
            self.dtype,
            Access::Write,
            self.output,
            len(&[a, b, c]),
        ));
        visit(Operand::of_type(self.dtype, Access::Read, self.input, len(&self.shape)));
    }

    fn slots_mut(&mut self, visit: &mut dyn FnMut(&mut Slot)) {
        visit(&mut self.output);
        visit(&mut self.input);
    }
}

impl Operator for ReduceF32 {
    fn check(&self) -> Result<(), Fault> {
        let [a, r, b, s, c] = self.shape;
        checked_size(&[a, r, b, s, c, 4]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand)) {
        visit(Operand::of::<f32>(Access::Write, self.output, self.output_len()));
        visit(Operand::of::<f32>(
            Access::Read,
            self.input,
            super::size(&self.shape).unwrap_or(u32::MAX),
        ));
    }

    fn slots_mut(&mut self, visit: &mut dyn FnMut(&mut Slot)) {
        visit(&mut self.output);
        visit(&mut self.input);
    }
}
