//! Rolling: the first steps of a network make their outputs row by row, as rows are wanted, and only the rows that are still needed are in the arena. Nothing
//! is computed twice and no row is moved: each row is a buffer of its own, placed like any other.
//!
//! [`chain`] finds the steps that can roll, [`order`] the order of rows, [`mod@bodies`] says when each row lives, [`places`] what the file has of it, which
//! `docs/rolling.md` states.

mod bodies;
mod chain;
mod order;
pub mod places;

use arenite::MAX_ROLLED;

use super::place::{Placed, Request, place};
use crate::error::{Error, ErrorKind, Result};
use crate::program::Program;
use crate::stage::Progress;
use places::RolledPlaces;

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
        rolled: Some(RolledPlaces::new(roll, rows)),
        ..placed
    })
}
