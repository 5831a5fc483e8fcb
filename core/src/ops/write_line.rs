//! A line of a state at a position that is computed: keys and values of a token, a frame of audio.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, OUTPUT};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};

operator! {
    /// `state[o, position, :] = line[o, :]`: elements of 1, 2, 4 or 8 bytes. A position outside the capacity is refused, and nothing is written.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct WriteLine<P> {
        /// `[outer, capacity, inner]`
        pub state: P,
        /// `[outer, inner]`
        pub line: P,
        /// `[1]`, int32.
        pub position: P;
        /// Bytes of an element.
        pub element: u8,
        /// outer, capacity, inner
        pub shape: [u32; 3],
    }
}

impl<P: Place> Operator for WriteLine<P> {
    fn check(&self) -> Result<(), Fault> {
        if !matches!(self.element, 1 | 2 | 4 | 8) {
            return Err(Fault::Shape);
        }
        let [outer, capacity, inner] = self.shape;
        checked_size(&[outer, capacity, inner, u32::from(self.element)]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let [outer, _, inner] = self.shape;
        let element = u32::from(self.element);
        let of = |access, place, extents: &[u32]| Operand {
            access,
            place,
            bytes: size(extents).map_or(u32::MAX, |len| len.saturating_mul(element)),
            align: element,
        };
        visit(of(Access::Update, self.state, &self.shape));
        visit(of(Access::Read, self.line, &[outer, inner]));
        visit(Operand::of::<i32>(Access::Read, self.position, 1));
    }

    fn cost(&self, _: Needs) -> Cost {
        // One line of each, whatever the capacity.
        let [outer, _, inner] = self.shape.map(u64::from);
        let elements = outer.saturating_mul(inner);
        let moved = Cost {
            products: elements,
            reads: elements.saturating_add(1),
            writes: elements,
        };
        moved.computations(outer, OUTPUT)
    }
}
