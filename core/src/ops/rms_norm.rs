//! Root mean square normalisation (Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019).

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, OUTPUT};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};

operator! {
    /// `y[r, c] = x[r, c] / sqrt(mean of x[r, :]^2 + epsilon) * gain[c]`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct RmsNormF32<P> {
        /// `[rows, channels]`
        pub output: P,
        /// `[rows, channels]`
        pub input: P,
        /// `[channels]`
        pub gain: P;
        /// Rows, each of which is normalised by itself.
        pub rows: u32,
        /// Elements of a row.
        pub channels: u32,
        /// Added to the mean of the squares; not negative.
        pub epsilon: f32,
    }
}

/// Computations of a row: a quotient and a root.
const ROW: u64 = 4 * OUTPUT;

impl<P: Place> Operator for RmsNormF32<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.rows, self.channels, 4])?;
        if self.epsilon >= 0.0 { Ok(()) } else { Err(Fault::Shape) }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let all = size(&[self.rows, self.channels]).unwrap_or(u32::MAX);
        visit(Operand::of::<f32>(Access::Write, self.output, all));
        visit(Operand::of::<f32>(Access::Read, self.input, all));
        visit(Operand::of::<f32>(Access::Read, self.gain, self.channels));
    }

    fn cost(&self, _: Needs) -> Cost {
        // Squared, scaled by the root, scaled by the gain.
        let all = u64::from(self.rows).saturating_mul(self.channels.into());
        let products = Cost {
            products: all.saturating_mul(3),
            reads: all.saturating_mul(3),
            writes: all,
        };
        products.computations(self.rows.into(), ROW)
    }
}
