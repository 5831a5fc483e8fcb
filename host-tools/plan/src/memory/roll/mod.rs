//! Rolling: the first steps of a network make their outputs row by row, as rows are wanted, and only the rows that are still needed are in the arena. Nothing
//! is computed twice and no row is moved: each row is a buffer of its own, placed like any other.
//!
//! [`chain`] finds the steps that can roll, [`order`] the order of rows, [`mod@bodies`] says when each row lives. `docs/rolling.md` states what the file has of it.

mod bodies;
mod chain;
mod order;

use arenite::{MAX_ROLLED, NO_STEP, RESIDENT, Rolled, Rolling};

use super::place::{Placed, Request, place};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::TensorId;
use crate::program::Program;
use crate::stage::Progress;

/// Bytes that rows are aligned to, as a power of two.
const ALIGN: u32 = 2;
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
}

/// The first steps of a program, which roll.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roll {
    /// How many steps.
    pub steps: usize,
    /// What they touch: inputs, then what each of them makes.
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
    /// The number of a tensor among those that roll.
    pub fn index(&self, id: TensorId) -> Option<usize> {
        self.roll.tensors.iter().position(|tensor| tensor.id == id)
    }

    /// The section of the file, for steps whose records begin at `records`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for an arena that places of two bytes do not reach.
    pub(crate) fn section(&self, placed: &Placed, records: &[u32]) -> Result<Vec<u8>> {
        let offset = |&(body, bytes): &(usize, u64)| placed.offsets[body] + bytes;
        // In units as large as all places allow: rows of a whole tensor follow each other without a gap.
        let all = || self.rows.iter().flatten().map(offset);
        let unit = all().fold(0, |bits, place| bits | place).trailing_zeros().min(MOST_UNIT);
        if let Some(place) = all().find(|place| place >> unit > u16::MAX.into()) {
            return Err(Error::unsupported(format!("rows of rolled tensors at byte {place} of the arena"))
                .expected(format!("at most {}", u64::from(u16::MAX) << unit))
                .help("leave --stream-input out, or take a smaller network"));
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

/// Finds the steps that roll and places their rows, with all that the other steps touch. The inputs at these places are fed by rows.
///
/// # Errors
/// [`ErrorKind::Unsupported`] where no step rolls, or an input is not one that is read by rows alone; what [`place()`] says.
pub fn roll(program: &Program, fed: &[usize], request: &Request, progress: &mut Progress<'_>) -> Result<Placed> {
    let mut roll = chain::chain(program, fed)?;
    if roll.tensors.len() > MAX_ROLLED {
        return Err(Error::unsupported(format!("{} tensors that roll", roll.tensors.len()))
            .expected(format!("at most {MAX_ROLLED}"))
            .help("leave --stream-input out"));
    }
    if request.regions.len() != 1 || request.max_step.is_some() {
        return Err(Error::new(ErrorKind::Usage, "--stream-input with several regions or --max-step")
            .expected("one of them")
            .help("rows lie in one memory, and a turn is as short as steps become"));
    }
    progress("finding an order of rows", 0, 0);
    roll.turns = order::order(program, &roll)?;
    let (bodies, rows) = bodies::bodies(program, &roll, request.in_place);
    let placed = place(bodies, request, progress)?;
    Ok(Placed {
        rolled: Some(RolledPlaces { roll, rows }),
        ..placed
    })
}
