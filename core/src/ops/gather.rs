//! Slices of a tensor at indices that are computed.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, OUTPUT};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};

operator! {
    /// `y[o, i, :] = x[o, index[i], :]`: elements of 1, 2, 4 or 8 bytes. An index outside the axis is taken as its nearest end.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Gather<P> {
        /// `[outer, count, inner]`
        pub output: P,
        /// `[outer, extent, inner]`
        pub input: P,
        /// `[count]`, int32.
        pub indices: P;
        /// Bytes of an element.
        pub element: u8,
        /// outer, extent, inner
        pub shape: [u32; 3],
        /// Number of indices.
        pub count: u32,
    }
}

impl<P: Place> Operator for Gather<P> {
    fn check(&self) -> Result<(), Fault> {
        if !matches!(self.element, 1 | 2 | 4 | 8) {
            return Err(Fault::Shape);
        }
        let [outer, extent, inner] = self.shape;
        let element = u32::from(self.element);
        checked_size(&[outer, extent, inner, element])?;
        checked_size(&[outer, self.count, inner, element])?;
        checked_size(&[self.count, 4]).map(|_| ())
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
        visit(of(Access::Write, self.output, &[outer, self.count, inner]));
        visit(of(Access::Read, self.input, &self.shape));
        visit(Operand::of::<i32>(Access::Read, self.indices, self.count));
    }

    fn cost(&self, _: Needs) -> Cost {
        // The input is read where an index points; a row is begun for each index.
        let [outer, _, inner] = self.shape.map(u64::from);
        let rows = outer.saturating_mul(self.count.into());
        let elements = rows.saturating_mul(inner);
        let moved = Cost {
            products: elements,
            reads: elements.saturating_add(rows),
            writes: elements,
        };
        moved.computations(rows, OUTPUT)
    }
}
