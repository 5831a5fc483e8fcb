//! Training of fully connected layers, and of biases: gradient of the input, and gradient descent on weights and bias.
//!
//! With `y` as in [`crate::ops::linear`] and `dy` the gradient of the loss by it, before the clamp:
//!
//! - `dx[r, i] = sum over o of dy[r, o] * w[o, i]`;
//! - `w[o, i] -= rate * sum over r of dy[r, o] * x[r, i]`;
//! - `bias[o] -= rate * sum over r of dy[r, o]`, of a convolution over all pixels of all images.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, TURN, blocks, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;

operator! {
    /// Gradient of a fully connected layer's input, f32.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct LinearInputGradF32<P> {
        /// Gradient of the input, `[rows, in]`.
        pub output: P,
        /// Gradient of the layer's output, `[rows, out]`.
        pub gradient: P,
        /// `[out, in]`
        pub weights: P;
        /// Rows of the input.
        pub rows: u32,
        /// Features of the input.
        pub inputs: u32,
        /// Features of the output.
        pub outputs: u32,
    }
}

operator! {
    /// A step of gradient descent on a fully connected layer's weights, f32; the gradient is in no memory.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct LinearWeightSgdF32<P> {
        /// `[out, in]`; updated.
        pub weights: P,
        /// Gradient of the layer's output, `[rows, out]`.
        pub gradient: P,
        /// The layer's input, `[rows, in]`.
        pub input: P,
        /// Learning rate, `[1]`.
        pub rate: P;
        /// Rows of the input.
        pub rows: u32,
        /// Features of the input.
        pub inputs: u32,
        /// Features of the output.
        pub outputs: u32,
    }
}

operator! {
    /// A step of gradient descent on a bias, f32: of a fully connected layer, or of a convolution, whose rows are pixels.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct BiasSgdF32<P> {
        /// `[channels]`; updated.
        pub bias: P,
        /// Gradient of the layer's output, `[rows, channels]`.
        pub gradient: P,
        /// Learning rate, `[1]`.
        pub rate: P;
        /// Rows, or pixels of all images.
        pub rows: u32,
        /// Features of the output, or channels.
        pub channels: u32,
    }
}

/// Checks the extents of the matrices.
fn check([rows, inputs, outputs]: [u32; 3]) -> Result<(), Fault> {
    checked_size(&[rows, inputs, 4])?;
    checked_size(&[rows, outputs, 4])?;
    checked_size(&[outputs, inputs, 4]).map(|_| ())
}

/// Neighbours that are summed at a time.
const LANES: u32 = 8;

/// Inputs and outputs of a tile of weights.
const TILE: u32 = 4;

fn matrix<P: Place>(access: Access, place: P, rows: u32, columns: u32) -> Operand<P> {
    Operand::of::<f32>(access, place, rows.saturating_mul(columns))
}

impl<P: Place> Operator for LinearInputGradF32<P> {
    fn check(&self) -> Result<(), Fault> {
        check([self.rows, self.inputs, self.outputs])
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(matrix(Access::Write, self.output, self.rows, self.inputs));
        visit(matrix(Access::Read, self.gradient, self.rows, self.outputs));
        visit(matrix(Access::Read, self.weights, self.outputs, self.inputs));
    }

    fn cost(&self, needs: Needs) -> Cost {
        let results = u64::from(self.rows).saturating_mul(self.inputs.into());
        let turns = u64::from(self.rows).saturating_mul(self.outputs.into());
        of_operands(|visit| self.operands(needs, visit))
            .sums(results, self.outputs.into())
            .computations(turns.saturating_mul(blocks(self.inputs, LANES)), TURN)
    }
}

impl<P: Place> Operator for LinearWeightSgdF32<P> {
    fn check(&self) -> Result<(), Fault> {
        check([self.rows, self.inputs, self.outputs])
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(matrix(Access::Update, self.weights, self.outputs, self.inputs));
        visit(matrix(Access::Read, self.gradient, self.rows, self.outputs));
        visit(matrix(Access::Read, self.input, self.rows, self.inputs));
        visit(matrix(Access::Read, self.rate, 1, 1));
    }

    fn cost(&self, needs: Needs) -> Cost {
        let results = u64::from(self.outputs).saturating_mul(self.inputs.into());
        let tiles = match self.rows {
            // No sums: a plain loop.
            1 => 0,
            _ => blocks(self.inputs, TILE).saturating_mul(blocks(self.outputs, TILE)),
        };
        of_operands(|visit| self.operands(needs, visit))
            .sums(results, self.rows.into())
            .computations(tiles.saturating_mul(self.rows.into()), TURN)
    }
}

impl<P: Place> Operator for BiasSgdF32<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.rows, self.channels, 4]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(matrix(Access::Update, self.bias, 1, self.channels));
        visit(matrix(Access::Read, self.gradient, self.rows, self.channels));
        visit(matrix(Access::Read, self.rate, 1, 1));
    }

    fn cost(&self, needs: Needs) -> Cost {
        let turns = blocks(self.channels, LANES).saturating_mul(self.rows.into());
        of_operands(|visit| self.operands(needs, visit))
            .sums(self.channels.into(), self.rows.into())
            .computations(turns, TURN)
    }
}
