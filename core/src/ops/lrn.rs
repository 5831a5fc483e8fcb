//! Local response normalisation across channels (Krizhevsky, Sutskever, Hinton 2012, section 3.3).
//!
//! `y[p, c] = x[p, c] / (bias + alpha * sum x[p, c']^2)^beta` over `|c' - c| <= radius`. Alpha is not divided by the window.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, POWER, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;
use crate::quant::LrnI8;

operator! {
    /// An f32 local response normalisation; channels are innermost.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct LrnF32<P> {
        /// `[pixels, channels]`
        pub output: P,
        /// `[pixels, channels]`
        pub input: P;
        /// Product of the outer extents.
        pub pixels: u32,
        /// Channels.
        pub channels: u32,
        /// Channels on each side.
        pub radius: u16,
        /// Constant term.
        pub bias: f32,
        /// Factor of the sum of squares.
        pub alpha: f32,
        /// Exponent.
        pub beta: f32,
    }
}

operator! {
    /// The same of int8, as [`LrnI8`] computes it; channels are innermost.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct LrnS8<P> {
        /// `[pixels, channels]`
        pub output: P,
        /// `[pixels, channels]`
        pub input: P;
        /// Offset of the table, i32.
        pub table: u32,
        /// Product of the outer extents.
        pub pixels: u32,
        /// Channels.
        pub channels: u32,
        /// Channels on each side.
        pub radius: u16,
        /// The arithmetic.
        pub lrn: LrnI8,
        /// Zero point of the input.
        pub input_zero_point: i8,
        /// Zero point of the output.
        pub output_zero_point: i8,
    }
}

impl<P> LrnS8<P> {
    /// The most elements whose squares are summed.
    pub fn near(&self) -> u32 {
        (u32::from(self.radius) * 2 + 1).min(self.channels)
    }
}

impl<P: Place> Operator for LrnF32<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.pixels, self.channels, 4]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let len = self.pixels.saturating_mul(self.channels);
        visit(Operand::of::<f32>(Access::Write, self.output, len));
        visit(Operand::of::<f32>(Access::Read, self.input, len));
    }

    fn cost(&self, needs: Needs) -> Cost {
        let near = u64::from(self.radius) * 2 + 1;
        let outputs = u64::from(self.pixels).saturating_mul(self.channels.into());
        of_operands(|visit| self.operands(needs, visit))
            .sums(outputs, near.min(self.channels.into()))
            .computations(outputs, POWER)
    }
}

impl<P: Place> Operator for LrnS8<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.pixels, self.channels])?;
        // Sums of squares have 32 bits.
        checked_size(&[self.near(), 255 * 255])?;
        if self.lrn.is_valid() {
            Ok(())
        } else {
            Err(Fault::Quantisation)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let len = self.pixels.saturating_mul(self.channels);
        visit(Operand::of::<i8>(Access::Write, self.output, len));
        visit(Operand::of::<i8>(Access::Read, self.input, len));
        visit(Operand::constant::<i32>(self.table, self.lrn.words()));
    }

    fn cost(&self, needs: Needs) -> Cost {
        // An element comes and goes with each output, and half of the window comes first.
        let outputs = u64::from(self.pixels).saturating_mul(self.channels.into());
        let first = u64::from(self.pixels).saturating_mul(self.near().into());
        let base = of_operands(|visit| self.operands(needs, visit));
        base.sums(outputs, 3).computations(first, 3)
    }
}
