//! Load's checks of rolled tensors: every turn as if it were a step of its own, in time in proportion to the section.

use core::cell::Cell;

use super::header::{Kind, Section, tabled};
use super::port::PortPlace;
use super::sections::Parts;
use crate::arena::{Bounds, Slot};
use crate::error::LoadError;
use crate::fields::Fields;
use crate::kernels::table::CheckStep;
use crate::ops::fault::Fault;
use crate::rolled::{NO_STEP, Rolled, Rolling, Turn, TurnAt};

impl<'a> Parts<'a> {
    /// The section of rolled tensors; empty in a file without, and for steps of training.
    pub(crate) fn rolling(self) -> &'a [u8] {
        #[cfg(feature = "training")]
        if self.list.is_some() {
            return &[];
        }
        let Section { offset, len } = tabled(self.bytes, Kind::Rolling);
        let from = self.bytes.get(offset as usize..);
        from.and_then(|bytes| bytes.get(..len as usize)).unwrap_or_default()
    }

    /// The inputs that are taken row by row, a bit for each.
    pub(crate) fn fed_inputs(self) -> u32 {
        let Some(rolling) = Rolling::of(self.rolling()) else {
            return 0;
        };
        let inputs = (0..rolling.count()).filter_map(|index| rolling.tensor(index)?.input());
        inputs.fold(0, |bits, input| bits | 1u32.checked_shl(input).unwrap_or(0))
    }
}

/// Number of steps that roll.
pub(super) fn steps(parts: Parts<'_>) -> u32 {
    Rolling::of(parts.rolling()).map_or(0, |rolling| rolling.steps())
}

/// Whether the rows of this input, whose place is that of a rolled tensor, are fed.
pub(super) fn is_fed(parts: Parts<'_>, input: u32, place: &PortPlace) -> bool {
    let tensor = |rolling: Rolling<'_>| rolling.tensor(place.slot.offset as usize);
    let tensor = Rolling::of(parts.rolling()).and_then(tensor);
    place.slot.region == Slot::ROLLED
        && tensor.is_some_and(|tensor| {
            tensor.input() == Some(input) && u32::from(tensor.bytes) * u32::from(tensor.rows) == place.bytes
        })
}

/// The record at an offset of the steps.
pub(crate) fn record(steps: &[u8], at: u32) -> Option<(u8, &[u8])> {
    Fields::new(steps.get(at as usize..)?).record()
}

/// Checks the section: that the tensors are those of the steps that roll, and every turn. A file for several cores does not roll. `made` counts the rows.
pub(super) fn check<'a>(
    parts: Parts<'a>,
    (turn, made, bounds): (&'a Turn<'a>, &'a [Cell<u16>], &Bounds<'a>),
    check_step: CheckStep,
) -> Result<(), LoadError> {
    let rolling = turn.rolling();
    if parts.shared().is_some() || !are_tensors_right(parts, rolling, made) {
        return Err(LoadError::Header);
    }
    let steps = parts.steps().rest();
    let mut at = TurnAt::default();
    while let Some((index, next)) = rolling.turn(at) {
        at = next;
        let tensor = rolling.tensor(index.into()).ok_or(LoadError::Header)?;
        let done = made.get(usize::from(index)).ok_or(LoadError::Header)?;
        let row = done.get();
        if row >= tensor.rows || tensor.is_resident() {
            return Err(LoadError::Header);
        }
        if tensor.input().is_some() {
            check_fed(rolling, &tensor, row.into(), bounds)?;
        } else {
            let step = tensor.step.into();
            let fault = |fault| Err(LoadError::Step { step, fault });
            let Some((id, params)) = record(steps, tensor.source.into()) else {
                return fault(Fault::Encoding);
            };
            turn.begin(index, row.into());
            bounds.turn.set(Some((turn, made)));
            match check_step(id, params, bounds) {
                Some(Ok(())) => {}
                Some(Err(wrong)) => return fault(wrong),
                None => return Err(parts.unknown_kernel(step, id)),
            }
        }
        done.set(row + 1);
    }
    let all = (0..rolling.count()).all(|index| {
        let rows = rolling.tensor(index).map(|tensor| tensor.rows);
        rows == made.get(index).map(Cell::get)
    });
    if all { Ok(()) } else { Err(LoadError::Header) }
}

/// Checks that the place of a row that is fed is in the arena.
fn check_fed(rolling: Rolling<'_>, tensor: &Rolled, row: u32, bounds: &Bounds<'_>) -> Result<(), LoadError> {
    let port = tensor.input().unwrap_or_default();
    let (region, offset) = rolling.place(tensor, row).ok_or(LoadError::Port { port })?;
    let inside = region < Slot::STATE && bounds.contain(Slot { region, offset }, tensor.bytes.into());
    if inside { Ok(()) } else { Err(LoadError::Port { port }) }
}

/// Whether the tensors that steps make are those of the first steps in their order, each by its own record, and the others inputs. Rows that are there when a
/// run begins count as made.
fn are_tensors_right(parts: Parts<'_>, rolling: Rolling<'_>, made: &[Cell<u16>]) -> bool {
    let all = parts.steps().rest();
    let mut records = parts.steps();
    let mut next = 0;
    for index in 0..rolling.count() {
        let Some(tensor) = rolling.tensor(index) else {
            return false;
        };
        if tensor.rows == 0 || u32::from(tensor.first) + u32::from(tensor.rows) > rolling.places() {
            return false;
        }
        if tensor.step == NO_STEP {
            let fed = tensor.input().is_some_and(|input| fed_at(parts, input) == Some(index));
            if !fed && !tensor.is_resident() {
                return false;
            }
            if let (true, Some(made)) = (tensor.is_resident(), made.get(index)) {
                made.set(tensor.rows);
            }
            continue;
        }
        let at = all.len() - records.rest().len();
        let known = matches!(records.next(), Some(Some(_)));
        if !known || u32::from(tensor.step) != next || usize::from(tensor.source) != at {
            return false;
        }
        next += 1;
    }
    next == rolling.steps() && next <= parts.step_count()
}

/// The rolled tensor at which an input's place points.
fn fed_at(parts: Parts<'_>, input: u32) -> Option<usize> {
    let place = parts.input_place(input as usize)?;
    (place.slot.region == Slot::ROLLED).then_some(place.slot.offset as usize)
}
