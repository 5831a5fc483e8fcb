//! Operators that move elements and compute nothing: transpose, slice, tile-like copies, concatenation, padding.
//!
//! All are one strided copy from a base in the source to a base in the destination; the host turns a concatenation or a padding into
//! several of them (or into none, where it places operands inside the result).

use heapless::Vec;
use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::elementwise::MAX_LOOPS;
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, product};

/// An axis of a copy: its extent, and the elements between neighbours along it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct CopyLoop {
    /// Extent.
    pub count: u32,
    /// Stride in the destination.
    pub to: u32,
    /// Stride in the source; negative for a reversed slice, 0 to repeat.
    pub from: i32,
}

operator! {
    /// A strided copy of elements of 1, 2, 4 or 8 bytes.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct CopyStrided<P> {
        /// Start of the destination tensor, or of the part of it that this step writes.
        pub output: P,
        /// Start of the source tensor.
        pub input: P;
        /// Bytes of an element.
        pub element: u8,
        /// Elements of the source.
        pub input_len: u32,
        /// Elements from the source's start to the first one copied.
        pub from: u32,
        /// Axes, outermost first.
        pub loops: Vec<CopyLoop, MAX_LOOPS>,
    }
}

impl<P: Place> CopyStrided<P> {
    /// Elements from the first one written to the last one, inclusive.
    pub fn output_len(&self) -> Option<u32> {
        self.loops
            .iter()
            .try_fold(1u32, |len, l| len.checked_add(product(l.count.checked_sub(1)?, l.to)?))
    }

    fn source_in_range(&self) -> bool {
        let mut low = i64::from(self.from);
        let mut high = low;
        for l in &self.loops {
            let reach = (i64::from(l.count) - 1).saturating_mul(i64::from(l.from));
            low = low.saturating_add(reach.min(0));
            high = high.saturating_add(reach.max(0));
        }
        low >= 0 && high < i64::from(self.input_len)
    }
}

impl<P: Place> Operator for CopyStrided<P> {
    fn check(&self) -> Result<(), Fault> {
        if !matches!(self.element, 1 | 2 | 4 | 8) || !self.source_in_range() {
            return Err(Fault::Shape);
        }
        let element = u32::from(self.element);
        let output_len = self.output_len().ok_or(Fault::Shape)?;
        checked_size(&[output_len, element])?;
        checked_size(&[self.input_len, element])?;
        // No place is written twice, so that a copy ends.
        let mut writes = Some(1u32);
        self.loops
            .iter()
            .for_each(|l| writes = writes.and_then(|writes| product(writes, l.count)));
        if writes.is_some_and(|writes| writes <= output_len) {
            Ok(())
        } else {
            Err(Fault::Shape)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let element = u32::from(self.element);
        let operand = |access, place, len: u32| Operand {
            access,
            place,
            bytes: len.saturating_mul(element),
            align: element,
        };
        visit(operand(
            Access::Write,
            self.output,
            self.output_len().unwrap_or(u32::MAX),
        ));
        visit(operand(Access::Read, self.input, self.input_len));
    }
}
