//! Averages over all rows and columns of an image, by sums in scratch, so that its rows may come one by one.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::pool2d::MOST_SUMMED_S8;
use crate::ops::size::checked_size;

operator! {
    /// The mean of each channel of an int8 image, rounded half away from zero, clamped.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct GlobalAvgPoolS8<P> {
        /// `[channels]`
        pub output: P,
        /// `[rows, columns, channels]`
        pub input: P,
        /// A sum of 32 bits for each channel.
        pub scratch: P;
        /// Rows, columns, channels.
        pub extents: [u16; 3],
        /// Clamp of the result, in stored terms.
        pub clamp: [i8; 2],
    }
}

impl<P: Place> GlobalAvgPoolS8<P> {
    /// Bytes of the sums.
    pub fn sums(&self) -> u32 {
        u32::from(self.extents[2]) * 4
    }
}

impl<P: Place> Operator for GlobalAvgPoolS8<P> {
    fn check(&self) -> Result<(), Fault> {
        let [rows, columns, channels] = self.extents.map(u32::from);
        checked_size(&[rows, columns, channels])?;
        if checked_size(&[rows, columns])? > MOST_SUMMED_S8 {
            return Err(Fault::Shape);
        }
        if self.clamp[0] <= self.clamp[1] {
            Ok(())
        } else {
            Err(Fault::Quantisation)
        }
    }

    fn operands(&self, needs: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let [rows, columns, channels] = self.extents.map(u32::from);
        let all = (rows * columns).saturating_mul(channels);
        visit(Operand::of::<i8>(Access::Write, self.output, channels));
        visit(Operand::of::<i8>(Access::Read, self.input, all));
        visit(Operand::scratch(self.scratch, needs.scratch));
    }

    fn cost(&self, needs: Needs) -> Cost {
        let [rows, columns, channels] = self.extents.map(u64::from);
        of_operands(|visit| self.operands(needs, visit)).sums(channels, rows.saturating_mul(columns))
    }

    fn summed_mut(&mut self) -> Option<&mut u16> {
        Some(&mut self.extents[0])
    }
}
