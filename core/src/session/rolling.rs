//! Runs of files that roll: an input that is fed row by row, and the turns of the steps that make rows of it.

use super::{Progress, Session, all_inputs, cells, copy};
use crate::arena::Mem;
use crate::blob::record;
use crate::error::RunError;
use crate::events;
use crate::kernels::table::{Kernels, run_step};
use crate::rolled::{Rolled, Turn, TurnAt, Turning};

/// Turn at which turns stopped.
enum Stop {
    /// The last one, or as many as were wanted.
    Done,
    /// The next one, which takes a row of this input.
    Row(u32),
}

impl<K: Kernels> Session<'_, '_, K> {
    /// Feeds the next rows of an input that the model takes row by row, one or several whole ones, and computes what they make possible. Returns the number of
    /// rows that are left; behind the last one, [`Session::run`] does what remains. Other inputs are set before.
    ///
    /// Rows are fed once. A run of which all rows were fed and one that is over take no more: [`Session::restart`] begins with the first row of the next one,
    /// and gives up one that is half-way.
    ///
    /// # Errors
    /// [`RunError::RowSize`] and [`RunError::RowsOver`], which take none of the rows; [`RunError::NotByRows`], [`RunError::NoSuchPort`];
    /// [`RunError::RowsMissing`] where rows of another input come before these; what [`Session::step`] says.
    pub fn feed_rows(&mut self, input: usize, rows: &[u8]) -> Result<u32, RunError> {
        let (index, tensor) = self.fed(input)?;
        let (row_bytes, given) = (usize::from(tensor.bytes), u32::try_from(rows.len()).unwrap_or(u32::MAX));
        let (input, whole) = (input as u32, rows.len().checked_rem(row_bytes) == Some(0));
        if rows.is_empty() || !whole {
            let needed = tensor.bytes.into();
            return Err(RunError::RowSize { input, needed, given });
        }
        let left = match (&self.rest, self.next) {
            (None, 0) => tensor.rows.into(),
            (None, _) => 0,
            _ => self.left(index, &tensor),
        };
        let given = given.checked_div(tensor.bytes.into()).unwrap_or(0);
        if given > left {
            return Err(RunError::RowsOver { input, left, given });
        }
        self.begin()?;
        for row in rows.chunks_exact(row_bytes.max(1)) {
            if !self.take(index, &tensor, row) {
                match self.turns(u32::MAX, &mut |_| {})? {
                    Stop::Row(next) if next == input && self.take(index, &tensor, row) => {}
                    Stop::Row(other) if other != input => return Err(self.rows_missing(other)),
                    _ => return Err(RunError::Corrupt { step: 0 }),
                }
            }
            self.turns(u32::MAX, &mut |_| {})?;
        }
        Ok(self.left(index, &tensor))
    }

    /// Gives up a run that is half-way, and makes one that is over, or whose rows are all fed, a thing of the past: the next run begins, and wants its inputs
    /// anew.
    pub fn restart(&mut self) {
        (self.rest, self.next) = (None, 0);
        self.missing = all_inputs(&self.model);
    }

    /// The rolled tensor of an input that is fed, and its index.
    fn fed(&self, input: usize) -> Result<(usize, Rolled), RunError> {
        let index = input as u32;
        let fed = self.rolling.and_then(|rolling| rolling.fed(index));
        fed.ok_or_else(|| match self.model.parts().input_place(input) {
            Some(_) => RunError::NotByRows { input: index },
            None => RunError::NoSuchPort { index },
        })
    }

    /// As [`Session::set_input`], of an input that is fed: all of its rows. `None` for another one.
    pub(super) fn set_rows(&mut self, input: usize, bytes: &[u8]) -> Option<Result<(), RunError>> {
        let (_, tensor) = self.fed(input).ok()?;
        let needed = u32::from(tensor.bytes) * u32::from(tensor.rows);
        let given = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if needed != given {
            let input = input as u32;
            return Some(Err(RunError::InputSize { input, needed, given }));
        }
        if self.rest.is_some() || self.next > 0 {
            self.restart();
        }
        Some(self.feed_rows(input, bytes).map(|_| ()))
    }

    /// Whether this input is fed row by row.
    pub(super) fn is_fed(&self, input: usize) -> bool {
        self.fed(input).is_ok()
    }

    /// Before the first turn of a run.
    pub(super) fn begin_turns(&mut self) {
        self.cursor.turn = TurnAt::START;
        let rolling = self.rolling;
        for (index, made) in self.cursor.made.iter_mut().enumerate() {
            let tensor = rolling.and_then(|rolling| rolling.tensor(index));
            *made = tensor
                .filter(|tensor| tensor.is_resident())
                .map_or(0, |tensor| tensor.rows);
        }
    }

    /// Runs the turns that are left, or `most` of them; then the steps that do not roll come next. Gives whether any was run.
    ///
    /// # Errors
    /// [`RunError::RowsMissing`] and what [`Session::step`] says.
    pub(super) fn run_turns(&mut self, most: u32, after: &mut dyn FnMut(u32)) -> Result<Option<u32>, RunError> {
        let Some(rolling) = self.rolling else {
            return Ok(None);
        };
        let step = rolling
            .turn(self.cursor.turn)
            .and_then(|(index, _)| rolling.tensor(index.into()))
            .map(|tensor| tensor.step.into());
        if step.is_none() {
            return Ok(None);
        }
        match self.turns(most, after)? {
            Stop::Done => Ok(step),
            Stop::Row(input) => Err(self.rows_missing(input)),
        }
    }

    /// Runs the next turn as a step; nothing where steps that do not roll come next.
    pub(super) fn run_turn(&mut self) -> Result<Option<Progress>, RunError> {
        let Some(step) = self.run_turns(1, &mut |_| {})? else {
            return Ok(None);
        };
        let steps = self.model.parts().step_count();
        if self.next < steps {
            return Ok(Some(Progress::Step { step, steps }));
        }
        self.end(steps);
        Ok(Some(Progress::Done))
    }

    /// Runs turns until one takes a row, at most so many. Behind the last one the run goes on with the steps that do not roll; where there are none, whoever
    /// called for the run ends it.
    fn turns(&mut self, most: u32, after: &mut dyn FnMut(u32)) -> Result<Stop, RunError> {
        let parts = self.model.parts();
        let Some(rolling) = self.rolling else {
            return Ok(Stop::Done);
        };
        let (steps, records) = (parts.step_count(), parts.steps().rest());
        let mut failed = None;
        {
            let [a, b, c, d] = &mut self.regions;
            let turn = Turn::new(rolling);
            let mem = Mem {
                regions: [cells(a), cells(b), cells(c), cells(d)],
                state: cells(self.state),
                weights: self.model.weights(),
                rounding: self.rounding,
                turning: Turning { turn: Some(&turn) },
            };
            let cursor = &mut self.cursor;
            for _ in 0..most {
                let Some((index, behind)) = rolling.turn(cursor.turn) else {
                    break;
                };
                let next = rolling
                    .tensor(index.into())
                    .zip(cursor.made.get_mut(usize::from(index)));
                let Some((tensor, made)) = next else {
                    failed = Some(0);
                    break;
                };
                if let Some(input) = tensor.input() {
                    return Ok(Stop::Row(input));
                }
                let step = tensor.step.into();
                turn.begin(index, (*made).into());
                let done = record(records, tensor.source.into()).and_then(|(id, params)| {
                    events::step(step, steps, id);
                    run_step::<K>(id, params, &mem)
                });
                if done.is_none() {
                    failed = Some(step);
                    break;
                }
                *made = made.saturating_add(1);
                cursor.turn = behind;
                after(step);
            }
        }
        if let Some(step) = failed {
            return Err(self.corrupt(step));
        }
        if rolling.turn(self.cursor.turn).is_none() && self.next < rolling.steps() {
            for _ in 0..rolling.steps() {
                self.rest.as_mut().and_then(Iterator::next);
            }
            self.next = rolling.steps();
        }
        Ok(Stop::Done)
    }

    /// Puts a row into its place, where the next turn takes a row of this tensor.
    fn take(&mut self, index: usize, tensor: &Rolled, row: &[u8]) -> bool {
        let mut taken = || {
            let rolling = self.rolling?;
            let (next, behind) = rolling.turn(self.cursor.turn)?;
            let made = self.cursor.made.get_mut(index).filter(|_| usize::from(next) == index)?;
            let (region, offset) = rolling.place(tensor, (*made).into())?;
            let arena = self.regions.get_mut(usize::from(region))?;
            copy(arena.get_mut(offset as usize..)?.get_mut(..row.len())?, row);
            *made = made.saturating_add(1);
            self.cursor.turn = behind;
            Some(())
        };
        taken().is_some()
    }

    /// Rows that this run still takes of a tensor.
    fn left(&self, index: usize, tensor: &Rolled) -> u32 {
        let made = self.cursor.made.get(index).copied().unwrap_or(0);
        tensor.rows.saturating_sub(made).into()
    }

    fn rows_missing(&self, input: u32) -> RunError {
        let (fed, needed) = self.fed(input as usize).map_or((0, 0), |(index, tensor)| {
            let needed = u32::from(tensor.rows);
            (needed - self.left(index, &tensor).min(needed), needed)
        });
        RunError::RowsMissing { input, fed, needed }
    }
}
