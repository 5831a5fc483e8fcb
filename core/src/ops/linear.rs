//! Fully connected layer: `y[r, o] = act(bias[o] + sum x[r, i] * w[o, i])`.

use serde::{Deserialize, Serialize};

use super::{Needs, Operator, checked_size};
use crate::arena::{Access, Operand, Slot};
use crate::error::Fault;

/// An f32 fully connected layer. Weights: `[out, in]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LinearF32 {
    /// `[rows, out]`
    pub output: Slot,
    /// `[rows, in]`
    pub input: Slot,
    /// `[out, in]`; in the weights where they are constant, in the arena where they are computed.
    pub weights: Slot,
    /// `[out]`
    pub bias: Slot,
    /// Rows of the input.
    pub rows: u32,
    /// Features of the input.
    pub inputs: u32,
    /// Features of the output.
    pub outputs: u32,
    /// Clamp of the result.
    pub clamp: [f32; 2],
}

impl Operator for LinearF32 {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.rows, self.inputs, 4])?;
        checked_size(&[self.rows, self.outputs, 4])?;
        checked_size(&[self.outputs, self.inputs, 4])?;
        Ok(())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand)) {
        visit(Operand::of::<f32>(
            Access::Write,
            self.output,
            self.rows.saturating_mul(self.outputs),
        ));
        visit(Operand::of::<f32>(
            Access::Read,
            self.input,
            self.rows.saturating_mul(self.inputs),
        ));
        visit(Operand::of::<f32>(
            Access::Read,
            self.weights,
            self.outputs.saturating_mul(self.inputs),
        ));
        visit(Operand::of::<f32>(Access::Read, self.bias, self.outputs));
    }

    fn slots_mut(&mut self, visit: &mut dyn FnMut(&mut Slot)) {
        visit(&mut self.output);
        visit(&mut self.input);
        visit(&mut self.weights);
        visit(&mut self.bias);
    }
}
