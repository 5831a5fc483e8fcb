//! Mean, sum, maximum and minimum over axes.
//!
//! The host merges neighbouring axes, so that the operand is `[kept, reduced, kept, reduced, kept]` at most.

use serde::{Deserialize, Serialize};

use super::{Needs, Operator, checked_size};
use crate::arena::{Access, Operand, Slot};
use crate::error::Fault;

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
