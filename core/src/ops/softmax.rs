//! Softmax and its logarithm along the innermost axis.
//!
//! `y = exp(beta * (x - max)) / sum exp(beta * (x - max))`; the logarithm is `beta * (x - max) - ln(sum)`.

use serde::{Deserialize, Serialize};

use super::{Needs, Operator, checked_size};
use crate::arena::{Access, Operand, Slot};
use crate::error::Fault;

/// An f32 softmax over rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SoftmaxF32 {
    /// `[rows, classes]`
    pub output: Slot,
    /// `[rows, classes]`
    pub input: Slot,
    /// Product of the outer extents.
    pub rows: u32,
    /// Extent of the axis that sums to one.
    pub classes: u32,
    /// Factor of the argument.
    pub beta: f32,
    /// Give the logarithm.
    pub log: bool,
}

impl Operator for SoftmaxF32 {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.rows, self.classes, 4]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand)) {
        let len = self.rows.saturating_mul(self.classes);
        visit(Operand::of::<f32>(Access::Write, self.output, len));
        visit(Operand::of::<f32>(Access::Read, self.input, len));
    }

    fn slots_mut(&mut self, visit: &mut dyn FnMut(&mut Slot)) {
        visit(&mut self.output);
        visit(&mut self.input);
    }
}
