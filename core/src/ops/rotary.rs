//! Rotary positions (Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021).

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, OUTPUT};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};

operator! {
    /// Each pair `(a, b)` of a row's elements is turned by an angle of its own: `(a c - b s, a s + b c)`, c and s being row `position` of tables of cosines
    /// and sines. Pair i is elements `2 i` and `2 i + 1`, or, not interleaved, `i` and `i + width / 2`. A position outside the tables is refused.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct RotaryF32<P> {
        /// `[rows, width]`
        pub output: P,
        /// `[rows, width]`
        pub input: P,
        /// `[1]`, int32.
        pub position: P,
        /// `[positions, width / 2]`
        pub cosines: P,
        /// `[positions, width / 2]`
        pub sines: P;
        /// Rows: heads.
        pub rows: u32,
        /// Elements of a row, an even number.
        pub width: u32,
        /// Rows of the tables.
        pub positions: u32,
        /// Whether neighbours are pairs.
        pub interleaved: bool,
    }
}

impl<P: Place> Operator for RotaryF32<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.rows, self.width, 4])?;
        checked_size(&[self.positions, self.width, 4])?;
        if self.width.is_multiple_of(2) {
            Ok(())
        } else {
            Err(Fault::Shape)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let all = size(&[self.rows, self.width]).unwrap_or(u32::MAX);
        let table = size(&[self.positions, self.width / 2]).unwrap_or(u32::MAX);
        visit(Operand::of::<f32>(Access::Write, self.output, all));
        visit(Operand::of::<f32>(Access::Read, self.input, all));
        visit(Operand::of::<i32>(Access::Read, self.position, 1));
        visit(Operand::of::<f32>(Access::Read, self.cosines, table));
        visit(Operand::of::<f32>(Access::Read, self.sines, table));
    }

    fn cost(&self, _: Needs) -> Cost {
        // One row of the tables, whatever they have.
        let all = u64::from(self.rows).saturating_mul(self.width.into());
        let turned = Cost {
            products: all.saturating_mul(2),
            reads: all.saturating_mul(2),
            writes: all,
        };
        turned.computations(self.rows.into(), OUTPUT)
    }
}
