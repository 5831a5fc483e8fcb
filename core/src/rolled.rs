//! Rolled tensors, of which only the rows that are still needed are in the arena: the section of the file that says where each row lies and in which order rows
//! are made, and one turn of it. Specified in `docs/rolling.md`.

/// Rows that a turn reads of a tensor, at most.
pub const MAX_TURN_ROWS: usize = 16;

/// Tensors of a file that roll, at most: a session keeps two bytes for each.
pub const MAX_ROLLED: usize = 128;

/// Bytes of the section's head.
const ROLLING_HEAD: usize = 16;

/// Bytes of a tensor in the section.
const ROLLED_BYTES: usize = 16;

/// The step of a tensor that no step makes.
pub const NO_STEP: u16 = u16::MAX;

/// The input of a tensor whose rows are all there when a run begins.
pub const RESIDENT: u32 = u32::MAX;

/// A tensor that is never whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rolled {
    /// Offset of the record of the step that makes it, in the steps; where none does, the network's input whose rows are fed, or [`RESIDENT`].
    pub source: u32,
    /// Bytes of a row.
    pub bytes: u32,
    /// Index of its first row in the table of places.
    pub first: u32,
    /// Rows.
    pub rows: u16,
    /// Index of the step that makes it, or [`NO_STEP`].
    pub step: u16,
}

impl Rolled {
    /// The network's input whose rows it is fed.
    pub fn input(&self) -> Option<u32> {
        (self.step == NO_STEP && self.source != RESIDENT).then_some(self.source)
    }

    /// Whether its rows are all there when a run begins.
    pub fn is_resident(&self) -> bool {
        self.step == NO_STEP && self.source == RESIDENT
    }

    #[cfg(feature = "pack")]
    fn to_bytes(self) -> [u8; ROLLED_BYTES] {
        let words = [self.source, self.bytes, self.first].map(u32::to_le_bytes);
        let halves = [self.rows, self.step].map(u16::to_le_bytes);
        let mut bytes = [0; ROLLED_BYTES];
        let from = words.as_flattened().iter().chain(halves.as_flattened());
        bytes.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        bytes
    }
}

/// The section, whose lengths agree; nothing else of it is checked.
#[derive(Debug, Clone, Copy)]
pub struct Rolling<'a> {
    region: u8,
    /// Places are multiples of two to the power of this, in bytes.
    unit: u8,
    /// Number of steps that roll: the first ones of the file.
    steps: u32,
    tensors: &'a [[u8; ROLLED_BYTES]],
    places: &'a [[u8; 2]],
    turns: &'a [u8],
}

impl<'a> Rolling<'a> {
    /// Reads a section; `None` where its lengths contradict each other.
    pub fn of(section: &'a [u8]) -> Option<Self> {
        let (head, rest) = section.split_first_chunk::<ROLLING_HEAD>()?;
        let [region, unit, _, _] = *head.first_chunk()?;
        let count = usize::from(half(head, 2));
        let (tensors, rest) = rest.split_at_checked(count * ROLLED_BYTES)?;
        let (places, turns) = rest.split_at_checked((word(head, 4) as usize).checked_mul(2)?)?;
        let right = turns.len() == word(head, 8) as usize && count <= MAX_ROLLED && unit <= 6;
        right.then_some(Self {
            region,
            unit,
            steps: word(head, 12),
            tensors: tensors.as_chunks().0,
            places: places.as_chunks().0,
            turns,
        })
    }

    /// The section's bytes. Tensors come in the order of the steps that make them; of each turn there is the tensor whose next row it makes.
    #[cfg(feature = "pack")]
    pub fn write(
        (region, unit, steps): (u8, u8, u32),
        tensors: &[Rolled],
        places: &[u16],
        turns: &[u8],
        out: &mut impl Extend<u8>,
    ) {
        out.extend([region, unit]);
        out.extend((tensors.len() as u16).to_le_bytes());
        out.extend([places.len() as u32, turns.len() as u32, steps].into_iter().flat_map(u32::to_le_bytes));
        out.extend(tensors.iter().flat_map(|tensor| tensor.to_bytes()));
        out.extend(places.iter().flat_map(|place| place.to_le_bytes()));
        out.extend(turns.iter().copied());
    }

    /// Number of steps that roll: the first ones of the file.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Number of tensors.
    pub fn count(&self) -> usize {
        self.tensors.len()
    }

    /// Tensor `index`.
    pub fn tensor(&self, index: usize) -> Option<Rolled> {
        let bytes = self.tensors.get(index)?;
        Some(Rolled {
            source: word(bytes, 0),
            bytes: word(bytes, 4),
            first: word(bytes, 8),
            rows: half(bytes, 12),
            step: half(bytes, 14),
        })
    }

    /// The tensor whose next row turn `index` makes; `None` behind the last one.
    pub fn turn(&self, index: u32) -> Option<u8> {
        self.turns.get(index as usize).copied()
    }

    /// Number of turns.
    pub fn turns(&self) -> u32 {
        self.turns.len() as u32
    }

    /// Number of places.
    pub(crate) fn places(&self) -> u32 {
        self.places.len() as u32
    }

    /// Where a row of a tensor lies: region and offset.
    pub fn place(&self, tensor: &Rolled, row: u32) -> Option<(u8, u32)> {
        let index = tensor.first.checked_add(row)?;
        let place = self.places.get(index as usize).filter(|_| row < tensor.rows.into())?;
        Some((self.region, u32::from(u16::from_le_bytes(*place)) << (self.unit & 7)))
    }
}

/// One turn of a step: it makes one row of a tensor, from rows that need not be neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn<'a> {
    rolling: Rolling<'a>,
    /// The tensor that it makes a row of.
    tensor: u32,
    /// That row.
    pub(crate) row: u32,
    /// The first row that it reads of each other tensor, and how many; none until the operator was looked at.
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl<'a> Turn<'a> {
    /// The turn that makes this row of this tensor, before it is known what it reads.
    pub(crate) fn new(rolling: Rolling<'a>, tensor: u8, row: u32) -> Self {
        Self {
            rolling,
            tensor: tensor.into(),
            row,
            first: 0,
            count: 0,
        }
    }

    /// The tensor that it makes a row of.
    pub(crate) fn made(&self) -> Option<Rolled> {
        self.rolling.tensor(self.tensor as usize)
    }

    /// Whether it makes a row of tensor `index`.
    pub(crate) fn makes(&self, index: u32) -> bool {
        index == self.tensor
    }

    /// Tensor `index`, with the first row that the turn touches of it and their number.
    pub(crate) fn touched(&self, index: u32) -> Option<(Rolled, u32, u32)> {
        let tensor = self.rolling.tensor(index as usize)?;
        let (first, count) = if index == self.tensor {
            (self.row, 1)
        } else {
            (self.first, self.count)
        };
        Some((tensor, first, count))
    }

    /// Where row `row` of those that the turn touches of tensor `index` lies, and its bytes.
    #[inline(never)]
    pub(crate) fn place(&self, index: u32, row: u32) -> Option<(u8, u32, u32)> {
        let (tensor, first, count) = self.touched(index)?;
        let (region, offset) = self.rolling.place(&tensor, first.checked_add(row)?)?;
        (row < count).then_some((region, offset, tensor.bytes))
    }
}

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

/// The turn that a step makes, where it makes one; nothing in builds without rolled files.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Turning<'a> {
    #[cfg(feature = "rolling")]
    pub(crate) turn: Option<Turn<'a>>,
    #[cfg(not(feature = "rolling"))]
    nothing: core::marker::PhantomData<&'a ()>,
}
