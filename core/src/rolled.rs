//! Rolled tensors, of which only the rows that are still needed are in the arena: the section of the file that says where each row lies and in which order rows
//! are made, and one turn of it. Specified in `docs/rolling.md`.

#[cfg(feature = "pack")]
mod write;

use core::cell::Cell;
use core::mem::MaybeUninit;

/// Rows that a turn reads of a tensor, at most.
pub const MAX_TURN_ROWS: usize = 16;

/// Tensors of a file that roll, at most: a session keeps two bytes for each.
pub const MAX_ROLLED: usize = 128;

/// Bytes of the section's head.
const ROLLING_HEAD: usize = 16;

/// Bytes of a tensor in the section.
const ROLLED_BYTES: usize = 8;

/// The step of a tensor that no step makes.
pub const NO_STEP: u16 = u16::MAX;

/// The source of a tensor whose rows are all there when a run begins.
pub const RESIDENT: u16 = u16::MAX;

/// The bit of a byte of the turns that says again.
const AGAIN: u8 = 0x80;

/// A tensor that is never whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rolled {
    /// Offset of the record of the step that makes it, in the steps; where none does, the network's input whose rows are fed, or [`RESIDENT`].
    pub source: u16,
    /// Bytes of a row.
    pub bytes: u16,
    /// Index of its first row in the table of places.
    pub first: u16,
    /// Rows.
    pub rows: u16,
    /// Index of the step that makes it, or [`NO_STEP`].
    pub step: u16,
}

impl Rolled {
    /// The network's input whose rows it is fed.
    pub fn input(&self) -> Option<u32> {
        (self.step == NO_STEP && self.source != RESIDENT).then_some(self.source.into())
    }

    /// Whether its rows are all there when a run begins.
    pub fn is_resident(&self) -> bool {
        self.step == NO_STEP && self.source == RESIDENT
    }
}

/// The section, whose lengths agree; nothing else of it is checked.
#[derive(Debug, Clone, Copy)]
pub struct Rolling<'a> {
    region: u8,
    /// Places are multiples of two to the power of this, in bytes.
    unit: u8,
    /// Tensors that no step makes, the first ones.
    inputs: u8,
    tensors: &'a [[u8; ROLLED_BYTES]],
    /// Places that differ, where rows have a number of one of them each.
    distinct: &'a [[u8; 2]],
    /// Of each row its place, or the number of it.
    places: &'a [u8],
    turns: &'a [u8],
}

/// How far an iteration over turns is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnAt {
    /// The next byte.
    at: u32,
    /// How often the bytes before the next one that says so are still to be passed.
    again: u8,
}

impl TurnAt {
    /// Before the first turn.
    pub const START: Self = Self { at: 0, again: 0 };
}

impl<'a> Rolling<'a> {
    /// Reads a section; `None` where its lengths contradict each other.
    pub fn of(section: &'a [u8]) -> Option<Self> {
        let (head, rest) = section.split_first_chunk::<ROLLING_HEAD>()?;
        let [region, unit, count, inputs] = *head.first_chunk()?;
        let (rows, distinct) = (word(head, 4) as usize, usize::from(half(head, 8)));
        let (tensors, rest) = rest.split_at_checked(usize::from(count) * ROLLED_BYTES)?;
        let (distinct, rest) = rest.split_at_checked(distinct * 2)?;
        let width = if distinct.is_empty() { 2 } else { 1 };
        let (places, turns) = rest.split_at_checked(rows.checked_mul(width)?)?;
        let right = turns.len() == word(head, 12) as usize
            && usize::from(count) <= MAX_ROLLED
            && inputs <= count
            && half(head, 10) == 0
            && unit <= 6;
        right.then_some(Self {
            region,
            unit,
            inputs,
            tensors: tensors.as_chunks().0,
            distinct: distinct.as_chunks().0,
            places,
            turns,
        })
    }

    /// Number of steps that roll: the first ones of the file.
    pub fn steps(&self) -> u32 {
        (self.tensors.len() as u32).saturating_sub(self.inputs.into())
    }

    /// The tensor whose rows are fed to this input, and its index.
    pub(crate) fn fed(&self, input: u32) -> Option<(usize, Rolled)> {
        let inputs = 0..usize::from(self.inputs);
        let mut inputs = inputs.filter_map(|index| Some((index, self.tensor(index)?)));
        inputs.find(|(_, tensor)| tensor.input() == Some(input))
    }

    /// Number of tensors.
    pub fn count(&self) -> usize {
        self.tensors.len()
    }

    /// Tensor `index`.
    pub fn tensor(&self, index: usize) -> Option<Rolled> {
        let bytes = self.tensors.get(index)?;
        let made = index.checked_sub(self.inputs.into());
        Some(Rolled {
            source: half(bytes, 0),
            bytes: half(bytes, 2),
            first: half(bytes, 4),
            rows: half(bytes, 6),
            step: made.map_or(NO_STEP, |step| step as u16),
        })
    }

    /// The tensor of which the turn at `at` makes the next row, and where the turn behind it is; `None` behind the last one. It takes time in proportion to
    /// the bytes that it passes, which are two at most.
    pub fn turn(&self, at: TurnAt) -> Option<(u8, TurnAt)> {
        let TurnAt { mut at, mut again } = at;
        // A byte that says again is followed by a tensor: the bytes before it are, and one behind it that says so as well says nothing.
        for _ in 0..2 {
            let byte = *self.turns.get(at as usize)?;
            if byte & AGAIN == 0 {
                return Some((byte, TurnAt { at: at + 1, again }));
            }
            let times = *self.turns.get(at as usize + 1)?;
            again = if again == 0 { times } else { again - 1 };
            if again > 0 {
                let from = at.checked_sub(u32::from(byte & !AGAIN) + 1)?;
                let passed = self.turns.get(from as usize..at as usize)?;
                if passed.iter().any(|byte| byte & AGAIN != 0) {
                    return None;
                }
                at = from;
            } else {
                at += 2;
            }
        }
        None
    }

    /// Number of places.
    pub(crate) fn places(&self) -> u32 {
        self.places.len() as u32 / if self.distinct.is_empty() { 2 } else { 1 }
    }

    /// Writes where rows lie, from this one of all on, to all of `offsets`; gives the largest.
    fn offsets(&self, first: u32, offsets: &mut [MaybeUninit<u32>]) -> Option<u32> {
        let unit = self.unit & 7;
        let rows = first as usize..(first as usize).checked_add(offsets.len())?;
        let mut furthest = 0;
        let mut put = |place: &[u8; 2], offset: &mut MaybeUninit<u32>| {
            let at = u32::from(u16::from_le_bytes(*place)) << unit;
            offset.write(at);
            furthest = furthest.max(at);
        };
        if self.distinct.is_empty() {
            for (place, offset) in self.places.as_chunks().0.get(rows)?.iter().zip(offsets) {
                put(place, offset);
            }
        } else {
            for (&number, offset) in self.places.get(rows)?.iter().zip(offsets) {
                put(self.distinct.get(usize::from(number))?, offset);
            }
        }
        Some(furthest)
    }

    /// Where a row of a tensor lies: region and offset.
    pub fn place(&self, tensor: &Rolled, row: u32) -> Option<(u8, u32)> {
        let index = u32::from(tensor.first)
            .checked_add(row)
            .filter(|_| row < tensor.rows.into())? as usize;
        let place = if self.distinct.is_empty() {
            *self.places.as_chunks().0.get(index)?
        } else {
            *self.distinct.get(usize::from(*self.places.get(index)?))?
        };
        Some((self.region, u32::from(u16::from_le_bytes(place)) << (self.unit & 7)))
    }
}

/// One turn of a step: it makes one row of a tensor, from rows that need not be neighbours. It is set anew for each turn of a run.
#[derive(Debug, Clone)]
pub(crate) struct Turn<'a> {
    rolling: Rolling<'a>,
    now: Cell<Now>,
}

/// Row that a turn makes, and rows that it reads.
#[derive(Debug, Clone, Copy, Default)]
struct Now {
    /// The tensor that it makes a row of.
    tensor: u32,
    /// That row.
    row: u32,
    /// The first row that it reads of each other tensor, and how many; none until the operator was looked at.
    first: u32,
    count: u32,
}

impl<'a> Turn<'a> {
    /// Before the first turn.
    pub(crate) fn new(rolling: Rolling<'a>) -> Self {
        let now = Cell::default();
        Self { rolling, now }
    }

    /// The section.
    pub(crate) fn rolling(&self) -> Rolling<'a> {
        self.rolling
    }

    /// Makes it the turn that makes this row of this tensor, before it is known what it reads.
    pub(crate) fn begin(&self, tensor: u8, row: u32) {
        self.now.set(Now {
            tensor: tensor.into(),
            row,
            ..Now::default()
        });
    }

    /// Says which rows it reads: the first one, and how many.
    pub(crate) fn reads(&self, first: u32, count: u32) {
        self.now.set(Now {
            first,
            count,
            ..self.now.get()
        });
    }

    /// The row that it makes.
    pub(crate) fn row(&self) -> u32 {
        self.now.get().row
    }

    /// The tensor that it makes a row of.
    pub(crate) fn made(&self) -> Option<Rolled> {
        self.rolling.tensor(self.now.get().tensor as usize)
    }

    /// Whether it makes a row of tensor `index`.
    pub(crate) fn makes(&self, index: u32) -> bool {
        index == self.now.get().tensor
    }

    /// Tensor `index`, with the first row that the turn touches of it and their number.
    pub(crate) fn touched(&self, index: u32) -> Option<(Rolled, u32, u32)> {
        let tensor = self.rolling.tensor(index as usize)?;
        let now = self.now.get();
        let (first, count) = if index == now.tensor {
            (now.row, 1)
        } else {
            (now.first, now.count)
        };
        Some((tensor, first, count))
    }

    /// Where row `row` of those that the turn touches of tensor `index` lies: region and offset.
    #[inline(never)]
    pub(crate) fn place(&self, index: u32, row: u32) -> Option<(u8, u32)> {
        let (tensor, first, count) = self.touched(index)?;
        let place = self.rolling.place(&tensor, first.checked_add(row)?)?;
        (row < count).then_some(place)
    }

    /// The region of the rows that the turn reads of tensor `index`, and the largest of their offsets. Those of the first ones are written to all of `offsets`.
    pub(crate) fn places(&self, index: u32, offsets: &mut [MaybeUninit<u32>]) -> Option<(u8, u32)> {
        let (tensor, first, count) = self.touched(index)?;
        if offsets.len() > count as usize || first.checked_add(count)? > tensor.rows.into() {
            return None;
        }
        let furthest = self
            .rolling
            .offsets(u32::from(tensor.first).checked_add(first)?, offsets)?;
        Some((self.rolling.region, furthest))
    }
}

/// The turn that load checks, and of each tensor how many rows are made before it.
#[cfg(feature = "rolling")]
pub(crate) type CheckedTurn<'a> = (&'a Turn<'a>, &'a [Cell<u16>]);

/// A little-endian word; 0 out of bounds.
fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |&word| u32::from_le_bytes(word))
}

/// A little-endian half word; 0 out of bounds.
fn half(bytes: &[u8], at: usize) -> u16 {
    let half = bytes.get(at..).and_then(|rest| rest.first_chunk());
    half.map_or(0, |&half| u16::from_le_bytes(half))
}

/// How far a run is.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// The next turn.
    pub(crate) turn: TurnAt,
    /// Rows of each tensor that are made.
    pub(crate) made: [u16; MAX_ROLLED],
}

impl Cursor {
    /// Before the first turn.
    pub(crate) const START: Self = Self {
        turn: TurnAt::START,
        made: [0; MAX_ROLLED],
    };
}

/// The turn that a step makes, where it makes one; nothing in builds without rolled files.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Turning<'a> {
    #[cfg(feature = "rolling")]
    pub(crate) turn: Option<&'a Turn<'a>>,
    #[cfg(not(feature = "rolling"))]
    nothing: core::marker::PhantomData<&'a ()>,
}
