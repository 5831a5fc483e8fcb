//! Runs a checked model, step by step.

#[cfg(feature = "rolling")]
mod rolling;

use core::cell::Cell;

use crate::align::ARENA_ALIGN;
use crate::arena::{MAX_REGIONS, Mem, Rounding, Slot};
use crate::blob::{Model, Records};
#[cfg(feature = "accelerators")]
use crate::error::AcceleratorFault;
use crate::error::{RunError, SessionError};
use crate::events;
use crate::kernels::table::{All, Kernels, has_indexed, refused_index, run_step};
#[cfg(feature = "accelerators")]
use crate::kernels::table::{KernelId, is_built};
use crate::ops::position::OutOfRange;
use crate::rolled::Turning;
#[cfg(feature = "rolling")]
use crate::rolled::{Cursor, Rolling};

/// The caller's arenas, one slice for each region of the model.
#[derive(Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Arenas<'s>(pub(crate) [&'s mut [u8]; MAX_REGIONS]);

impl<'s> From<&'s mut [u8]> for Arenas<'s> {
    fn from(arena: &'s mut [u8]) -> Self {
        Self([arena, &mut [], &mut [], &mut []])
    }
}

impl<'s, const N: usize> From<&'s mut [u8; N]> for Arenas<'s> {
    fn from(arena: &'s mut [u8; N]) -> Self {
        Self::from(arena.as_mut_slice())
    }
}

impl<'s> From<[&'s mut [u8]; MAX_REGIONS]> for Arenas<'s> {
    fn from(arenas: [&'s mut [u8]; MAX_REGIONS]) -> Self {
        Self(arenas)
    }
}

/// State that other cores need for the rest of a run: the steps, the first one's index, the rounding of sums, and the memories: regions, then the state.
#[cfg(feature = "cores")]
pub(crate) type Shared<'m, 'r> = (Records<'m>, u32, Rounding, [&'r mut [u8]; MAX_REGIONS + 1]);

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Progress {
    /// Step `step` of `steps` is done, others follow.
    Step {
        /// Index of the step just done.
        step: u32,
        /// Number of steps.
        steps: u32,
    },
    /// The last step is done: outputs can be read.
    Done,
}

/// A model on the memory that it runs in.
///
/// A run: set every input, then [`Session::run`], or [`Session::step`] until it says [`Progress::Done`]; then read the outputs.
/// Dropping a session, or setting an input, half-way through a run leaves model, arena and state usable: the next run starts from
/// the first step. The state then holds what the steps done so far have written; [`Session::reset_state`] makes it defined again.
#[derive(Debug)]
pub struct Session<'m, 's, K: Kernels = All> {
    model: Model<'m, K>,
    regions: [&'s mut [u8]; MAX_REGIONS],
    state: &'s mut [u8],
    /// Records still to run; `None` between runs.
    rest: Option<Records<'m>>,
    next: u32,
    /// A bit for each input that is still to be set.
    missing: u32,
    rounding: Rounding,
    /// The tensors that roll, and how far a run is with them.
    #[cfg(feature = "rolling")]
    rolling: Option<Rolling<'m>>,
    #[cfg(feature = "rolling")]
    cursor: Cursor,
}

impl<'m, 's, K: Kernels> Session<'m, 's, K> {
    /// Opens a session and gives the state its initial value.
    ///
    /// # Errors
    /// See [`SessionError`]. An arena may be larger than needed; what lies beyond is not touched.
    pub fn new(model: Model<'m, K>, arenas: impl Into<Arenas<'s>>, state: &'s mut [u8]) -> Result<Self, SessionError> {
        let mut session = Self::resume(model, arenas, state)?;
        session.reset_state();
        Ok(session)
    }

    /// Opens a session on a state that an earlier session left.
    ///
    /// # Errors
    /// See [`Session::new`].
    pub fn resume(
        model: Model<'m, K>,
        arenas: impl Into<Arenas<'s>>,
        state: &'s mut [u8],
    ) -> Result<Self, SessionError> {
        let Arenas(regions) = arenas.into();
        for (index, arena) in regions.iter().enumerate() {
            let (region, needed) = (index as u8, model.arena_bytes(index));
            if arena.len() < needed {
                let given = u32::try_from(arena.len()).unwrap_or(u32::MAX);
                return Err(SessionError::ArenaTooSmall {
                    region,
                    needed: needed as u32,
                    given,
                });
            }
            if needed > 0 && !arena.as_ptr().addr().is_multiple_of(ARENA_ALIGN) {
                return Err(SessionError::ArenaMisaligned { region });
            }
        }
        if state.len() != model.state_bytes() {
            let given = u32::try_from(state.len()).unwrap_or(u32::MAX);
            return Err(SessionError::StateSize {
                needed: model.state_bytes() as u32,
                given,
            });
        }
        if !state.is_empty() && !state.as_ptr().addr().is_multiple_of(ARENA_ALIGN) {
            return Err(SessionError::StateMisaligned);
        }
        events::opened(&model);
        Ok(Self {
            missing: all_inputs(&model),
            #[cfg(feature = "rolling")]
            rolling: model.rolling(),
            model,
            regions,
            state,
            rest: None,
            next: 0,
            rounding: Rounding::default(),
            #[cfg(feature = "rolling")]
            cursor: Cursor::START,
        })
    }

    /// Lets runs fuse products of f32 with their sums where the processor can, which is faster: results are then within 1e-5 of the others, and differ with
    /// the processor. It is for x86-64 hosts; kernels elsewhere compute as they do without it.
    pub fn allow_fused(&mut self) {
        self.rounding = Rounding::of(true);
    }

    /// Gives the state its initial value.
    pub fn reset_state(&mut self) {
        self.model.state_init().reset(self.state);
    }

    /// Sets input `index` for the next run, in the model's dtype, little-endian, row-major. Of an input that the model takes row by row it feeds all rows, and
    /// so runs the steps that take them; other inputs are set before.
    ///
    /// # Errors
    /// [`RunError::NoSuchPort`], [`RunError::InputSize`].
    pub fn set_input(&mut self, index: usize, bytes: &[u8]) -> Result<(), RunError> {
        #[cfg(feature = "rolling")]
        if let Some(set) = self.set_rows(index, bytes) {
            return set;
        }
        let input = self.input_mut(index)?;
        let (needed, given) = (input.len() as u32, u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        if needed != given {
            self.missing |= 1u32.checked_shl(index as u32).unwrap_or(0);
            return Err(RunError::InputSize {
                input: index as u32,
                needed,
                given,
            });
        }
        copy(input, bytes);
        Ok(())
    }

    /// The bytes of input `index` in the arena, to be filled in place for the next run.
    ///
    /// # Errors
    /// [`RunError::NoSuchPort`].
    pub fn input_mut(&mut self, index: usize) -> Result<&mut [u8], RunError> {
        let missing = RunError::NoSuchPort { index: index as u32 };
        let place = self.model.parts().input_place(index).ok_or(missing)?;
        #[cfg(feature = "rolling")]
        if self.is_fed(index) {
            return Err(RunError::FedByRows { input: index as u32 });
        }
        if self.rest.take().is_some() || self.next > 0 {
            // A run was under way, or is over: its inputs are gone.
            self.missing = all_inputs(&self.model);
            self.next = 0;
        }
        let memory: &mut [u8] = match place.slot.region {
            Slot::STATE => self.state,
            region => self.regions.get_mut(usize::from(region)).ok_or(missing)?,
        };
        let input = memory
            .get_mut(place.slot.offset as usize..)
            .and_then(|m| m.get_mut(..place.bytes as usize))
            .ok_or(missing)?;
        self.missing &= !(1u32.checked_shl(index as u32).unwrap_or(0));
        Ok(input)
    }

    /// The bytes of output `index`, valid after a run until the next input is set.
    ///
    /// # Errors
    /// [`RunError::NoSuchPort`].
    pub fn output(&self, index: usize) -> Result<&[u8], RunError> {
        let missing = RunError::NoSuchPort { index: index as u32 };
        let place = self.model.parts().output_place(index).ok_or(missing)?;
        self.read(place.slot, place.bytes).ok_or(missing)
    }

    /// `len` bytes at `slot`: for tools that look at tensors between steps.
    pub fn read(&self, slot: Slot, len: u32) -> Option<&[u8]> {
        let memory: &[u8] = match slot.region {
            Slot::STATE => self.state,
            Slot::WEIGHTS => self.model.weights(),
            region => self.regions.get(usize::from(region))?,
        };
        memory.get(slot.offset as usize..)?.get(..len as usize)
    }

    /// Puts bytes at `slot` of an arena or the state: for tools that give the next steps other operands. `None` outside of them, where nothing changes.
    pub fn write(&mut self, slot: Slot, bytes: &[u8]) -> Option<()> {
        let memory: &mut [u8] = match slot.region {
            Slot::STATE => self.state,
            region => self.regions.get_mut(usize::from(region))?,
        };
        copy(memory.get_mut(slot.offset as usize..)?.get_mut(..bytes.len())?, bytes);
        Some(())
    }

    /// Runs one step.
    ///
    /// # Errors
    /// [`RunError::InputMissing`] before the first step; [`RunError::OutOfRange`] for an index among the inputs; [`RunError::Corrupt`].
    pub fn step(&mut self) -> Result<Progress, RunError> {
        self.begin()?;
        #[cfg(feature = "rolling")]
        if let Some(progress) = self.run_turn()? {
            return Ok(progress);
        }
        let step = self.next;
        self.advance(step.saturating_add(1), &mut |_| {})?;
        let steps = self.model.parts().step_count();
        Ok(match self.rest {
            Some(_) => Progress::Step { step, steps },
            None => Progress::Done,
        })
    }

    /// Runs the steps before step `end`, and calls `after` with the index of each one that is done but for the last one of all. The memories are looked up
    /// once for all of them.
    fn advance(&mut self, end: u32, after: &mut dyn FnMut(u32)) -> Result<(), RunError> {
        let steps = self.model.parts().step_count();
        let mem = Mem {
            regions: {
                let [a, b, c, d] = &mut self.regions;
                [cells(a), cells(b), cells(c), cells(d)]
            },
            state: cells(self.state),
            weights: self.model.weights(),
            rounding: self.rounding,
            turning: Turning::default(),
        };
        while self.next < end {
            let step = self.next;
            if let Some(record) = self.rest.as_mut().and_then(Iterator::next) {
                let done = record.and_then(|(id, params)| {
                    events::step(step, steps, id);
                    run_step::<K>(id, params, &mem)
                });
                if done.is_none() {
                    #[cfg(feature = "accelerators")]
                    if let Some((id, _)) = record.filter(|&(id, _)| !is_built(id) || id == KernelId::EthosU as u8) {
                        return Err(self.elsewhere(step, id));
                    }
                    return Err(self.failed(step));
                }
                self.next = step + 1;
            }
            if self.next >= steps {
                self.end(steps);
                break;
            }
            after(step);
        }
        Ok(())
    }

    /// Begins a run, unless one is under way.
    #[inline(always)]
    fn begin(&mut self) -> Result<(), RunError> {
        if self.rest.is_none() {
            if self.missing != 0 {
                return Err(RunError::InputMissing {
                    input: self.missing.trailing_zeros(),
                });
            }
            self.rest = Some(self.model.steps());
            self.next = 0;
            #[cfg(feature = "rolling")]
            self.begin_turns();
        }
        Ok(())
    }

    /// Ends a run of so many steps.
    #[inline(always)]
    fn end(&mut self, steps: u32) {
        self.rest = None;
        self.next = self.next.max(1);
        events::done(steps);
        self.missing = all_inputs(&self.model);
    }

    /// Begins a run, unless one is under way, of which all that is left is to be run by others: the steps, the first one's index, how sums are rounded, and the
    /// memories.
    ///
    /// # Errors
    /// [`RunError::InputMissing`].
    #[cfg(feature = "cores")]
    pub(crate) fn begin_shared(&mut self) -> Result<Shared<'m, '_>, RunError> {
        self.begin()?;
        let [a, b, c, d] = &mut self.regions;
        let records = self.rest.clone().unwrap_or(Records::new(&[]));
        Ok((records, self.next, self.rounding, [a, b, c, d, self.state]))
    }

    /// Ends such a run: all steps are done, or this one failed.
    ///
    /// # Errors
    /// [`RunError::OutOfRange`], [`RunError::Corrupt`].
    #[cfg(feature = "cores")]
    pub(crate) fn end_shared(&mut self, failed: Option<u32>) -> Result<(), RunError> {
        match failed {
            None => {
                self.next = self.model.parts().step_count();
                self.end(self.next);
                Ok(())
            }
            Some(step) => Err(self.failed(step)),
        }
    }

    /// The step's kernel is not in this build, or on no core: an accelerator has it.
    #[cfg(feature = "accelerators")]
    fn elsewhere(&mut self, step: u32, kernel: u8) -> RunError {
        self.give_up();
        match KernelId::from_u8(kernel) {
            Some(_) => RunError::Accelerator {
                step: self.in_file(step),
                fault: AcceleratorFault::Needed,
            },
            None => self.corrupt(step),
        }
    }

    /// Such a run is over before its end: the next one wants its inputs anew.
    #[cfg(feature = "accelerators")]
    pub(crate) fn give_up(&mut self) {
        self.rest = None;
        self.missing = all_inputs(&self.model);
    }

    /// The run is over at this step: it refuses an index that it was given, or is not what was checked.
    fn failed(&mut self, step: u32) -> RunError {
        // Where no kernel has an index, no function wants the session in memory for this.
        if !const { has_indexed::<K>() } {
            return self.corrupt(step);
        }
        match self.refused(step) {
            Some(OutOfRange { index, count }) => {
                self.rest = None;
                self.missing = all_inputs(&self.model);
                let step = self.in_file(step);
                RunError::OutOfRange { step, index, count }
            }
            None => self.corrupt(step),
        }
    }

    /// The index that this step refuses, if it has one. By itself, so that its record and memories are in no other frame.
    #[cold]
    #[inline(never)]
    fn refused(&mut self, step: u32) -> Option<OutOfRange> {
        let (id, params) = self.model.steps().nth(step as usize)??;
        let [a, b, c, d] = &mut self.regions;
        let mem = Mem {
            regions: [cells(a), cells(b), cells(c), cells(d)],
            state: cells(self.state),
            weights: self.model.weights(),
            rounding: self.rounding,
            turning: Turning::default(),
        };
        refused_index::<K>(id, params, &mem)
    }

    /// The run is over: this step is not what was checked.
    fn corrupt(&mut self, step: u32) -> RunError {
        events::corrupt(step);
        self.rest = None;
        self.missing = all_inputs(&self.model);
        let step = self.in_file(step);
        RunError::Corrupt { step }
    }

    /// The number by which errors name a step of the list that runs: those of training are counted behind those of inference.
    fn in_file(&self, step: u32) -> u32 {
        self.model.parts().first_step().saturating_add(step)
    }

    /// Runs all remaining steps.
    ///
    /// # Errors
    /// See [`Session::step`].
    pub fn run(&mut self) -> Result<(), RunError> {
        self.run_with(|_| {})
    }

    /// Runs all remaining steps and calls `after` with the index of each step that is done: the profiling hook.
    ///
    /// # Errors
    /// See [`Session::step`].
    pub fn run_with(&mut self, mut after: impl FnMut(u32)) -> Result<(), RunError> {
        self.begin()?;
        #[cfg(feature = "rolling")]
        self.run_turns(u32::MAX, &mut after)?;
        self.advance(u32::MAX, &mut after)?;
        after(self.model.parts().step_count().saturating_sub(1));
        Ok(())
    }

    /// The memories: arenas, and the state.
    pub(crate) fn memories(&self) -> (&[&'s mut [u8]; MAX_REGIONS], &[u8]) {
        (&self.regions, self.state)
    }

    /// Goes on with the steps of training, over the same arena and state; a run that is under way is given up, and inputs are to be set anew. `None` for a
    /// file without such steps, where nothing changes.
    #[cfg(feature = "training")]
    pub fn turn_to_training(&mut self) -> Option<()> {
        self.turn_to(self.model.training()?);
        Some(())
    }

    /// Goes on with the steps of inference, likewise.
    #[cfg(feature = "training")]
    pub fn turn_to_inference(&mut self) {
        self.turn_to(self.model.inference());
    }

    #[cfg(feature = "training")]
    fn turn_to(&mut self, model: Model<'m, K>) {
        (self.missing, self.rest, self.next) = (all_inputs(&model), None, 0);
        self.model = model;
    }

    /// The model.
    pub fn model(&self) -> &Model<'m, K> {
        &self.model
    }
}

#[cfg(feature = "defmt")]
impl<K: Kernels> defmt::Format for Session<'_, '_, K> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "session at step {} of {}", self.next, self.model);
    }
}

/// Copies between slices of one length. `copy_from_slice` panics on others, and the compiler does not see that there are none.
fn copy(to: &mut [u8], from: &[u8]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

fn cells(bytes: &mut [u8]) -> &[Cell<u8>] {
    Cell::from_mut(bytes).as_slice_of_cells()
}

fn all_inputs<K: Kernels>(model: &Model<'_, K>) -> u32 {
    // At most 32, as load has checked.
    let all = 1u32
        .checked_shl(model.parts().inputs() as u32)
        .map_or(u32::MAX, |bit| bit.wrapping_sub(1));
    // Rows are counted by themselves.
    #[cfg(feature = "rolling")]
    let all = all & !model.parts().fed_inputs();
    all
}
