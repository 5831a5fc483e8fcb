//! The parts of a guarded step: the field, who watches it, what is found, and the operands that lie in it together.

use core::cell::Cell;
use core::ops::Range;

use crate::arena::{Access, MAX_REGIONS, Mem, Operand, Rounding, Slot};

/// The most operands of a step.
pub(super) const OPERANDS: usize = 48;

/// The end of an operand that lies against forbidden bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Side {
    /// Its last byte, as far as its alignment permits.
    End,
    /// Its first byte.
    Start,
}

impl Side {
    /// Both, in the order in which they are tried.
    pub const BOTH: [Self; 2] = [Side::End, Side::Start];

    /// First values of outputs and scratch: other bytes on each side.
    pub(super) const fn paint(self) -> u8 {
        match self {
            Side::End => 0x33,
            Side::Start => 0xCC,
        }
    }
}

/// The operand that lies in the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Guarded {
    /// Its index among the step's operands.
    pub operand: u8,
    /// Use by the step.
    pub access: Access,
    /// Whether it is a constant.
    pub constant: bool,
    /// The end that lies against forbidden bytes.
    pub side: Side,
}

/// A finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Finding {
    /// The step does not run in its own memory.
    Stopped,
    /// It touched forbidden bytes, as [`Watch::ended`] says.
    Touched(Guarded),
    /// It does not run with the operand in memory of exactly its bytes: it wants more of it.
    Wants(Guarded),
    /// Its outputs are others than in its own memory: it takes in or leaves what the operand held.
    Differs(Guarded),
    /// The offset of a constant is not among the parameters.
    Fixed(Guarded),
    /// The field or the room for parameters is too small.
    Room,
}

impl Finding {
    /// Findings of a word, and their operand.
    pub fn parts(self) -> (&'static str, Option<Guarded>) {
        match self {
            Finding::Stopped => ("stopped", None),
            Finding::Room => ("room", None),
            Finding::Touched(guarded) => ("touched", Some(guarded)),
            Finding::Wants(guarded) => ("wants", Some(guarded)),
            Finding::Differs(guarded) => ("differs", Some(guarded)),
            Finding::Fixed(guarded) => ("fixed", Some(guarded)),
        }
    }
}

/// Whoever forbids the bytes.
pub trait Watch {
    /// A run begins, with the operand at these addresses.
    fn begins(&mut self, guarded: Guarded, bytes: Range<*const u8>);

    /// It has ended; `false` where it touched forbidden bytes, if that has not ended the program.
    fn ended(&mut self) -> bool;
}

/// The field, and who watches.
pub struct Guard<'g> {
    /// Memory between forbidden bytes; both ends at multiples of 16.
    pub field: &'g mut [u8],
    /// Room for the encoded parameters, three times.
    pub room: &'g mut [u8],
    /// The guard that forbids them.
    pub watch: &'g mut dyn Watch,
    /// The finding.
    pub found: &'g mut Found,
}

impl Guard<'_> {
    /// The same for a shorter time.
    pub fn again(&mut self) -> Guard<'_> {
        Guard {
            field: self.field,
            room: self.room,
            watch: self.watch,
            found: self.found,
        }
    }
}

/// Findings of guarded runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Found {
    /// Guarded runs without a finding.
    pub runs: u64,
    /// The last finding.
    pub finding: Option<Finding>,
}

/// The memory of a step.
pub struct Memory<'m> {
    /// Regions of the arena; one of them is empty.
    pub regions: [&'m mut [u8]; MAX_REGIONS],
    /// The state.
    pub state: &'m mut [u8],
    /// The constants.
    pub weights: &'m [u8],
}

/// First values of a step's memory.
pub trait Bed {
    /// The memory, as it is before the step.
    fn before(&mut self) -> Memory<'_>;
}

/// An item of the field: the operands of one place, or constants that one offset gives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// The first of its operands.
    pub(super) operand: u8,
    pub(super) access: Access,
    /// The index of its place, from 1; 0 of constants.
    pub(super) place: usize,
    /// Offset of its first byte.
    pub(super) at: Slot,
    pub(super) bytes: u32,
    pub(super) align: u32,
    /// Whether anything in it is read that was there before.
    pub(super) read: bool,
}

pub(super) type Blocks = heapless::Vec<Block, OPERANDS>;

impl Block {
    /// With another operand at `offset` of the same memory.
    pub(super) fn with(self, operand: &Operand, offset: u32) -> Option<Self> {
        let start = self.at.offset.min(offset);
        let end = self
            .at
            .offset
            .checked_add(self.bytes)?
            .max(offset.checked_add(operand.bytes)?);
        Some(Self {
            at: Slot {
                offset: start,
                ..self.at
            },
            bytes: end - start,
            align: self.align.max(operand.align),
            read: self.read || matches!(operand.access, Access::Read | Access::Update),
            ..self
        })
    }
}

/// The varint at the start of `bytes`, and its length.
pub(super) fn varint(bytes: &[u8]) -> Option<(u32, usize)> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7F) << (7 * index);
        if byte < 0x80 {
            return u32::try_from(value).ok().map(|value| (value, index + 1));
        }
    }
    None
}

pub(super) fn mem<'m>(regions: [&'m mut [u8]; MAX_REGIONS], state: &'m mut [u8], weights: &'m [u8]) -> Mem<'m> {
    Mem {
        regions: regions.map(|region| Cell::from_mut(region).as_slice_of_cells()),
        state: Cell::from_mut(state).as_slice_of_cells(),
        weights,
        rounding: Rounding::default(),
        turning: Default::default(),
    }
}
