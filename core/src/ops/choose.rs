//! A choice between two operands, element by element.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::elementwise::{Loop, MAX_LOOPS, is_walkable, operand_len, output_len};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;

operator! {
    /// `y = a` where the condition holds, else `b`: elements of 1, 2, 4 or 8 bytes, which are moved and not looked at.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Choose<P> {
        /// Contiguous, of the broadcast shape.
        pub output: P,
        /// Contiguous truth values, of the same shape.
        pub condition: P,
        /// Elements where the condition holds.
        pub a: P,
        /// Elements where it does not.
        pub b: P;
        /// Bytes of an element.
        pub element: u8,
        /// Axes of a and b, outermost first.
        pub loops: heapless::Vec<Loop, MAX_LOOPS>,
    }
}

impl<P: Place> Operator for Choose<P> {
    fn check(&self) -> Result<(), Fault> {
        if !matches!(self.element, 1 | 2 | 4 | 8) {
            return Err(Fault::Shape);
        }
        let element = u32::from(self.element);
        checked_size(&[output_len(&self.loops).ok_or(Fault::Shape)?, element])?;
        checked_size(&[operand_len(&self.loops, |l| l.a).ok_or(Fault::Shape)?, element])?;
        checked_size(&[operand_len(&self.loops, |l| l.b).ok_or(Fault::Shape)?, element])?;
        if is_walkable(&self.loops, |l| l.a) && is_walkable(&self.loops, |l| l.b) {
            Ok(())
        } else {
            Err(Fault::Shape)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let element = u32::from(self.element);
        let mut of = |access, place, len: Option<u32>, element: u32| {
            visit(Operand {
                access,
                place,
                bytes: len.map_or(u32::MAX, |len| len.saturating_mul(element)),
                align: element,
            });
        };
        of(Access::Write, self.output, output_len(&self.loops), element);
        of(Access::Read, self.condition, output_len(&self.loops), 1);
        of(Access::Read, self.a, operand_len(&self.loops, |l| l.a), element);
        of(Access::Read, self.b, operand_len(&self.loops, |l| l.b), element);
    }
}
