//! Rolling: the first steps of a network make their outputs row by row, as rows are wanted, and only the rows that are still needed are in the arena. Nothing
//! is computed twice and no row is moved: each row is a buffer of its own, placed like any other.
//!
//! `chain` finds the steps that can roll, `order` the order of rows, `bodies` says when each row lives, [`places`] what the file has of it, which
//! `docs/rolling.md` states.

mod bodies;
mod chain;
mod order;
pub mod places;
mod sums;

use arenite::{MAX_ROLLED, Step};

use super::bodies::Bodies;
use super::place::{Placed, Request, place};
use super::plan::lower_bound;
use crate::error::{Error, ErrorKind, Result};
use crate::program::{Place, Program};
use crate::stage::Progress;
use places::{Roll, RolledPlaces};

/// Nodes of the search for places of fewer steps, at most: where so many do not find it, more steps roll.
const TRIAL_NODES: u64 = 100_000;

/// Finds the steps that roll and places their rows, with all that the other steps touch. The inputs at these places are fed by rows.
///
/// As few steps roll as the arena allows: as many as fit the region's size, or, where it has none, as make the arena least. A step that does not roll is
/// called once, may be of any kind and keeps its kernel; those that roll get kernels that make rows.
///
/// # Errors
/// [`ErrorKind::Unsupported`] where no step rolls, or an input is not one that is read by rows alone; what [`place()`] says.
pub fn roll(program: &mut Program, fed: &[usize], request: &Request, progress: &mut Progress<'_>) -> Result<Placed> {
    let own: Vec<Step<Place>> = program.steps.iter().map(|step| step.step.clone()).collect();
    let taken = take_kernels_of_rows(program);
    let longest = chain::chain(program, fed, usize::MAX)?;
    if longest.tensors.len() > MAX_ROLLED {
        return Err(
            Error::unsupported(format!("{} tensors that roll", longest.tensors.len()))
                .expected(format!("at most {MAX_ROLLED}"))
                .help("leave --stream-input out"),
        );
    }
    let [region] = &request.regions[..] else {
        return Err(not_with("several regions"));
    };
    if request.max_step.is_some() {
        return Err(not_with("--max-step"));
    }
    let steps = longest.steps;
    let by_rows: Vec<Step<Place>> = program.steps[..taken].iter().map(|step| step.step.clone()).collect();
    let take = |program: &mut Program, count: usize| {
        let steps = by_rows[..count].iter().chain(&own[count..]);
        program
            .steps
            .iter_mut()
            .zip(steps)
            .for_each(|(to, step)| to.step = step.clone());
    };
    take(program, steps);
    let trial = Request {
        nodes: request.nodes.min(TRIAL_NODES),
        ..request.clone()
    };
    // The least so far, or what there is.
    let mut most = region.size;
    let mut least = None;
    if most.is_none() {
        let all = ordered(program, longest.clone(), request, progress)?.place(request, progress)?;
        most = Some(all.arena_bytes());
        least = Some((all, steps));
    }
    let mut is_shorter = false;
    for count in 1..steps {
        take(program, count);
        let Ok(shorter) = chain::chain(program, fed, count) else {
            continue;
        };
        let shorter = ordered(program, shorter, request, progress)?;
        if most.is_some_and(|most| shorter.bound > most) {
            continue;
        }
        let Ok(placed) = shorter.place(&trial, progress) else {
            continue;
        };
        if region.size.is_some() {
            return Ok(placed);
        }
        // Of those that are as low the shortest comes first.
        let bytes = placed.arena_bytes();
        if most.is_none_or(|most| bytes < most || !is_shorter && bytes == most) {
            (most, least, is_shorter) = (Some(bytes), Some((placed, count)), true);
        }
    }
    let (count, placed) = match least {
        Some((placed, count)) => (count, Ok(placed)),
        None => {
            take(program, steps);
            (
                steps,
                ordered(program, longest, request, progress)?.place(request, progress),
            )
        }
    };
    take(program, count);
    placed
}

fn not_with(what: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("--stream-input with {what}"))
        .expected("one of them")
        .help("rows lie in one memory, and a turn is as short as steps become")
}

/// Takes kernels that make rows for the first steps, where theirs do not; gives for how many.
fn take_kernels_of_rows(program: &mut Program) -> usize {
    let mut taken = 0;
    for step in &mut program.steps {
        let Some(by_rows) = sums::by_sums(&step.step).or_else(|| step.step.by_rows()) else {
            break;
        };
        step.step = by_rows;
        taken += 1;
    }
    taken
}

/// Steps that roll in an order, not placed yet.
struct Ordered {
    roll: Roll,
    bodies: Bodies,
    rows: bodies::Rows,
    /// Bytes of the arena, at least.
    bound: u64,
}

fn ordered(program: &Program, mut roll: Roll, request: &Request, progress: &mut Progress<'_>) -> Result<Ordered> {
    progress("finding an order of rows", 0, 0);
    roll.turns = order::order(program, &roll)?;
    let (bodies, rows) = bodies::bodies(program, &roll, request.in_place);
    let bound = lower_bound(&bodies.problem).map_err(|e| Error::internal(e.to_string()))?;
    Ok(Ordered {
        roll,
        bodies,
        rows,
        bound,
    })
}

impl Ordered {
    fn place(self, request: &Request, progress: &mut Progress<'_>) -> Result<Placed> {
        Ok(Placed {
            rolled: Some(RolledPlaces::new(self.roll, self.rows)),
            ..place(self.bodies, request, progress)?
        })
    }
}
