//! Fully connected layer: `y[r, o] = act(bias[o] + sum x[r, i] * w[o, i])`.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;

operator! {
    /// An f32 fully connected layer. Weights: `[out, in]`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct LinearF32<P> {
        /// `[rows, out]`
        pub output: P,
        /// `[rows, in]`
        pub input: P,
        /// `[out, in]`; in the weights where they are constant, in the arena where they are computed.
        pub weights: P,
        /// `[out]`
        pub bias: P;
        /// Rows of the input.
        pub rows: u32,
        /// Features of the input.
        pub inputs: u32,
        /// Features of the output.
        pub outputs: u32,
        /// Clamp of the result.
        pub clamp: [f32; 2],
    }
}

impl<P: Place> Operator for LinearF32<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.rows, self.inputs, 4])?;
        checked_size(&[self.rows, self.outputs, 4])?;
        checked_size(&[self.outputs, self.inputs, 4])?;
        Ok(())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
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

    fn cost(&self, needs: Needs) -> Cost {
        let outputs = u64::from(self.rows).saturating_mul(self.outputs.into());
        of_operands(|visit| self.operands(needs, visit)).sums(outputs, self.inputs.into())
    }
}
