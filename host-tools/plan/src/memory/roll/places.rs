//! Tensors that roll, and where their rows lie.

use arenite::{NO_STEP, RESIDENT, Rolled, Rolling};

use crate::error::{Error, Result};
use crate::graph::TensorId;

/// Bytes that rows are aligned to, as a power of two.
pub(super) const ALIGN: u32 = 2;
/// The largest unit of places, likewise.
const MOST_UNIT: u32 = 6;

/// A tensor that rolls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledTensor {
    /// The tensor; it owns its memory.
    pub id: TensorId,
    /// The step that makes it.
    pub step: Option<usize>,
    /// The network's input whose rows are fed.
    pub fed: Option<usize>,
    /// Rows.
    pub rows: usize,
    /// Bytes of a row.
    pub bytes: u64,
    /// Whether its rows lie one behind the other, for steps that do not roll or the caller touch it as well.
    pub whole: bool,
    /// Whether all of its rows are one, which is there behind the last turn: that of a step that sums up rows.
    pub summed: bool,
}

/// The first steps of a program, which roll.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roll {
    /// How many steps.
    pub steps: usize,
    /// Tensors that they touch: inputs, then the result of each of them.
    pub tensors: Vec<RolledTensor>,
    /// The tensor of which each turn makes the next row.
    pub turns: Vec<u8>,
}

/// Where the rows lie.
#[derive(Debug, Clone)]
pub struct RolledPlaces {
    /// The tensors and the turns.
    pub roll: Roll,
    /// Of each row of each tensor the body, and the bytes from its start.
    rows: Vec<Vec<(usize, u64)>>,
}

impl RolledPlaces {
    /// Rows at these places.
    pub(super) fn new(roll: Roll, rows: Vec<Vec<(usize, u64)>>) -> Self {
        Self { roll, rows }
    }

    /// The number of a tensor among those that roll.
    pub fn index(&self, id: TensorId) -> Option<usize> {
        self.roll.tensors.iter().position(|tensor| tensor.id == id)
    }

    /// The section of the file, of bodies at these offsets, for steps whose records begin at `records`.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Unsupported`] for an arena that places of two bytes do not reach.
    pub(crate) fn section(&self, offsets: &[u64], records: &[u32]) -> Result<Vec<u8>> {
        let offset = |&(body, bytes): &(usize, u64)| offsets[body] + bytes;
        // In units as large as all places allow: rows of a whole tensor follow each other without a gap.
        let all = || self.rows.iter().flatten().map(offset);
        let unit = all()
            .fold(0, |bits, place| bits | place)
            .trailing_zeros()
            .min(MOST_UNIT);
        if let Some(place) = all().find(|place| place >> unit > u16::MAX.into()) {
            return Err(
                Error::unsupported(format!("rows of rolled tensors at byte {place} of the arena"))
                    .expected(format!("at most {}", u64::from(u16::MAX) << unit))
                    .help("leave --stream-input out, or take a smaller network"),
            );
        }
        let too_much = || {
            Error::unsupported("a network too large to roll")
                .expected("rows of at most 65,535 bytes, and as many of them")
                .help("leave --stream-input out")
        };
        let mut first = 0;
        let mut tensors = Vec::new();
        for (tensor, rows) in self.roll.tensors.iter().zip(&self.rows) {
            let (step, source) = match (tensor.step, tensor.fed) {
                (Some(step), _) => (step as u16, u16::try_from(records[step]).map_err(|_| too_much())?),
                (None, Some(input)) => (NO_STEP, input as u16),
                (None, None) => (NO_STEP, RESIDENT),
            };
            tensors.push(Rolled {
                source,
                bytes: u16::try_from(tensor.bytes).map_err(|_| too_much())?,
                first: u16::try_from(first).map_err(|_| too_much())?,
                rows: tensor.rows as u16,
                step,
            });
            first += rows.len();
        }
        let places: Vec<u16> = all().map(|place| (place >> unit) as u16).collect();
        Rolling::write((0, unit as u8), &tensors, &places, &self.roll.turns).ok_or_else(too_much)
    }
}
