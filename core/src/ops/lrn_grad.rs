//! Gradient of the local response normalisation of [`crate::ops::lrn`].
//!
//! With `s[c] = bias + alpha * sum x[c']^2` over `|c' - c| <= radius` and `y[c] = x[c] / s[c]^beta` in every pixel:
//!
//! `dx[c] = dy[c] / s[c]^beta - 2 alpha beta x[c] * sum dy[c'] x[c'] / s[c']^(beta + 1)` over `|c' - c| <= radius`.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, POWER, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;

operator! {
    /// Gradient of an f32 local response normalisation; channels are innermost.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct LrnGradF32<P> {
        /// Gradient of the input, `[pixels, channels]`.
        pub output: P,
        /// Gradient of the output, `[pixels, channels]`.
        pub gradient: P,
        /// Input of the normalisation, `[pixels, channels]`.
        pub input: P,
        /// An f32 for each channel.
        pub scratch: P;
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

impl<P: Place> Operator for LrnGradF32<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.pixels, self.channels, 4])?;
        checked_size(&[self.channels, 4]).map(|_| ())
    }

    fn operands(&self, needs: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let len = self.pixels.saturating_mul(self.channels);
        visit(Operand::of::<f32>(Access::Write, self.output, len));
        visit(Operand::of::<f32>(Access::Read, self.gradient, len));
        visit(Operand::of::<f32>(Access::Read, self.input, len));
        visit(Operand::scratch(self.scratch, needs.scratch));
    }

    fn cost(&self, needs: Needs) -> Cost {
        // Two sums over the neighbours of each element.
        let near = (u64::from(self.radius) * 2 + 1).min(self.channels.into());
        let outputs = u64::from(self.pixels).saturating_mul(self.channels.into());
        of_operands(|visit| self.operands(needs, visit))
            .sums(outputs, near.saturating_mul(2))
            .computations(outputs, POWER)
    }
}
