//! Positions and other indices that a run is given: tokens of a vocabulary, lines of a state.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Mem, Operand, Place, Slot};
use crate::ops::cost::{Cost, OUTPUT};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;

/// An index that a run was given and that is none of `0..count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct OutOfRange {
    /// The index.
    pub index: i32,
    /// Indices that there are.
    pub count: u32,
}

/// `index` as one of `0..count`.
pub(crate) fn within(index: i32, count: u32) -> Result<usize, OutOfRange> {
    match u32::try_from(index) {
        Ok(at) if at < count => Ok(at as usize),
        _ => Err(OutOfRange { index, count }),
    }
}

/// The one index at `slot`, as one of `0..count`; the outer option is empty where the operand is out of bounds.
pub(crate) fn index_at(mem: &Mem<'_>, slot: Slot, count: u32) -> Option<Result<usize, OutOfRange>> {
    mem.src::<i32>(slot, 1)?.get(0).map(|index| within(index, count))
}

operator! {
    /// A position that may be the next one: `y = p` where `0 <= p <= n` and `p < capacity`, `n` being the lines that runs before have written; then
    /// `n = p + 1`. Any other position is refused and leaves `n` as it was. A smaller position than `n` truncates: lines behind it count as unwritten.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Position<P> {
        /// `[1]`, int32.
        pub output: P,
        /// `[1]`, int32.
        pub input: P,
        /// `[1]`, int32: the lines that are written, a state.
        pub lines: P;
        /// Lines that there can be.
        pub capacity: u32,
    }
}

impl Position {
    /// Lines that a position may be one of, with `lines` written.
    pub(crate) fn allowed(&self, lines: i32) -> u32 {
        let written = u32::try_from(lines).unwrap_or(0);
        written.saturating_add(1).min(self.capacity)
    }
}

impl<P: Place> Operator for Position<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.capacity]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(Operand::of::<i32>(Access::Write, self.output, 1));
        visit(Operand::of::<i32>(Access::Read, self.input, 1));
        visit(Operand::of::<i32>(Access::Update, self.lines, 1));
    }

    fn cost(&self, _: Needs) -> Cost {
        let all = Cost {
            products: 1,
            reads: 2,
            writes: 2,
        };
        all.computations(1, OUTPUT)
    }
}
