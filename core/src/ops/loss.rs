//! Losses with the gradient of what they judge.
//!
//! A learning rate that is not finite makes the loss NaN, so that who reads the loss hears of it before the weights are used.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, OUTPUT, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;

operator! {
    /// Cross-entropy of a softmax, f32: the mean of `log(sum over c of exp(x[r, c])) - x[r, label[r]]` over the rows whose label is a class, and its gradient
    /// by `x`. A row with any other label is counted; its gradient is 0. Without a row that has a class the loss is 0.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SoftmaxCrossEntropyF32<P> {
        /// Gradient of the logits, `[rows, classes]`.
        pub output: P,
        /// `[1]`
        pub loss: P,
        /// Rows whose label is no class, `[1]`, i32.
        pub ignored: P,
        /// `[rows, classes]`
        pub logits: P,
        /// `[rows]`, i32.
        pub labels: P,
        /// Learning rate, `[1]`.
        pub rate: P;
        /// Rows.
        pub rows: u32,
        /// Classes.
        pub classes: u32,
    }
}

operator! {
    /// `factor * sum (x - target)^2`, f32, and its gradient by `x`, `2 * factor * (x - target)`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SquaredErrorF32<P> {
        /// Gradient of the input, `[count]`.
        pub output: P,
        /// `[1]`
        pub loss: P,
        /// `[count]`
        pub input: P,
        /// `[count]`; none is 0.
        pub target: Option<P>,
        /// Learning rate, `[1]`.
        pub rate: P;
        /// Elements.
        pub count: u32,
        /// Factor of the sum.
        pub factor: f32,
    }
}

/// Computations of an exponential or a logarithm.
const FUNCTION: u64 = 8;

impl<P: Place> Operator for SoftmaxCrossEntropyF32<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.rows, self.classes, 4]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let all = self.rows.saturating_mul(self.classes);
        visit(Operand::of::<f32>(Access::Write, self.output, all));
        visit(Operand::of::<f32>(Access::Write, self.loss, 1));
        visit(Operand::of::<i32>(Access::Write, self.ignored, 1));
        visit(Operand::of::<f32>(Access::Read, self.logits, all));
        visit(Operand::of::<i32>(Access::Read, self.labels, self.rows));
        visit(Operand::of::<f32>(Access::Read, self.rate, 1));
    }

    fn cost(&self, needs: Needs) -> Cost {
        let all = u64::from(self.rows).saturating_mul(self.classes.into());
        of_operands(|visit| self.operands(needs, visit))
            .computations(all, FUNCTION)
            .computations(self.rows.into(), FUNCTION + OUTPUT)
    }
}

impl<P: Place> Operator for SquaredErrorF32<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 4]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(Operand::of::<f32>(Access::Write, self.output, self.count));
        visit(Operand::of::<f32>(Access::Write, self.loss, 1));
        visit(Operand::of::<f32>(Access::Read, self.input, self.count));
        if let Some(target) = self.target {
            visit(Operand::of::<f32>(Access::Read, target, self.count));
        }
        visit(Operand::of::<f32>(Access::Read, self.rate, 1));
    }

    fn cost(&self, needs: Needs) -> Cost {
        of_operands(|visit| self.operands(needs, visit)).computations(self.count.into(), OUTPUT)
    }
}
