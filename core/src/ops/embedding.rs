//! Rows of a table at indices that a run is given: embeddings of tokens.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, OUTPUT};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};

operator! {
    /// `y[i, :] = table[index[i], :]`: elements of 1, 2, 4 or 8 bytes. An index outside the table is refused.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Embedding<P> {
        /// `[count, width]`
        pub output: P,
        /// `[count]`, int32.
        pub indices: P,
        /// `[rows, width]`
        pub table: P;
        /// Bytes of an element.
        pub element: u8,
        /// Number of indices.
        pub count: u32,
        /// Rows of the table.
        pub rows: u32,
        /// Elements of a row.
        pub width: u32,
    }
}

operator! {
    /// `y[i, :] = scale[index[i], :] * table[index[i], :]`: f32 rows of an int8 table with a scale for each `share` neighbours of a row, at whose end there may
    /// be fewer. An index outside the table is refused.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct EmbeddingW8<P> {
        /// `[count, width]`, f32.
        pub output: P,
        /// `[count]`, int32.
        pub indices: P;
        /// Offset of the table `[rows, width]`, int8.
        pub table: u32,
        /// Offset of the scales `[rows, ceil(width / share)]`, f32.
        pub scales: u32,
        /// Number of indices.
        pub count: u32,
        /// Rows of the table.
        pub rows: u32,
        /// Elements of a row.
        pub width: u32,
        /// Neighbours that share a scale.
        pub share: u32,
    }
}

impl EmbeddingW8 {
    /// Scales of a row.
    pub(crate) fn groups(&self) -> u32 {
        groups(self.width, self.share)
    }
}

/// Scales of a row of `width` elements.
fn groups(width: u32, share: u32) -> u32 {
    width.div_ceil(share.max(1))
}

impl<P: Place> Operator for Embedding<P> {
    fn check(&self) -> Result<(), Fault> {
        if !matches!(self.element, 1 | 2 | 4 | 8) {
            return Err(Fault::Shape);
        }
        let element = u32::from(self.element);
        checked_size(&[self.rows, self.width, element])?;
        checked_size(&[self.count, self.width, element])?;
        checked_size(&[self.count, 4]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let element = u32::from(self.element);
        let of = |access, place, rows: u32| Operand {
            access,
            place,
            bytes: size(&[rows, self.width, element]).unwrap_or(u32::MAX),
            align: element,
        };
        visit(of(Access::Write, self.output, self.count));
        visit(Operand::of::<i32>(Access::Read, self.indices, self.count));
        visit(of(Access::Read, self.table, self.rows));
    }

    fn cost(&self, _: Needs) -> Cost {
        rows(self.count, self.width)
    }
}

impl<P: Place> Operator for EmbeddingW8<P> {
    fn check(&self) -> Result<(), Fault> {
        if self.share == 0 {
            return Err(Fault::Shape);
        }
        checked_size(&[self.rows, self.width])?;
        checked_size(&[self.rows, groups(self.width, self.share), 4])?;
        checked_size(&[self.count, self.width, 4]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let len = |extents: &[u32]| size(extents).unwrap_or(u32::MAX);
        visit(Operand::of::<f32>(
            Access::Write,
            self.output,
            len(&[self.count, self.width]),
        ));
        visit(Operand::of::<i32>(Access::Read, self.indices, self.count));
        visit(Operand::constant::<i8>(self.table, len(&[self.rows, self.width])));
        let scales = len(&[self.rows, groups(self.width, self.share)]);
        visit(Operand::constant::<f32>(self.scales, scales));
    }

    fn cost(&self, _: Needs) -> Cost {
        let scales = u64::from(self.count).saturating_mul(groups(self.width, self.share).into());
        rows(self.count, self.width).computations(scales, OUTPUT)
    }
}

/// So many rows that are read and written, whatever the table has.
fn rows(count: u32, width: u32) -> Cost {
    let elements = u64::from(count).saturating_mul(width.into());
    let moved = Cost {
        products: elements,
        reads: elements.saturating_add(count.into()),
        writes: elements,
    };
    moved.computations(count.into(), OUTPUT)
}
