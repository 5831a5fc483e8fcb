//! Rows of int8 divided by their length, as TensorFlow Lite Micro computes them.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;

/// The most channels: their squares add up to 31 bits.
pub const MOST_CHANNELS: u32 = i32::MAX as u32 / (255 * 255);

operator! {
    /// `y = x / sqrt(sum of x^2)` along rows; the result has scale 1/128 and zero point 0. A row of zeros stays one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct L2NormS8<P> {
        /// `[rows, channels]`
        pub output: P,
        /// `[rows, channels]`
        pub input: P;
        /// Rows.
        pub rows: u32,
        /// Numbers of a row.
        pub channels: u32,
        /// Zero point of the input.
        pub zero: i32,
    }
}

impl<P: Place> Operator for L2NormS8<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.rows, self.channels])?;
        if self.channels > MOST_CHANNELS {
            return Err(Fault::Unsupported);
        }
        if (-128..=127).contains(&self.zero) {
            Ok(())
        } else {
            Err(Fault::Quantisation)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let len = self.rows.saturating_mul(self.channels);
        visit(Operand::of::<i8>(Access::Write, self.output, len));
        visit(Operand::of::<i8>(Access::Read, self.input, len));
    }

    /// Every number is read twice; the root of a row takes a score of products.
    fn cost(&self, needs: Needs) -> Cost {
        let rows = u64::from(self.rows);
        let elements = rows.saturating_mul(self.channels.into());
        of_operands(|visit| self.operands(needs, visit)).plus(Cost {
            products: elements.saturating_add(rows.saturating_mul(32)),
            reads: elements,
            writes: 0,
        })
    }
}
