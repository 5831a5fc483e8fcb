//! Runs a compiled model, whole or step by step.

use core::cell::Cell;
use core::marker::PhantomData;

use super::place::PortPlace;
use super::refusal::Ended;
use crate::arena::{MAX_REGIONS, Mem, Rounding, Slot};
use crate::blob::StateInit;
use crate::cells::{Block, Element, Region, bytes_of, cast_slice};
use crate::error::{RunError, SessionError};
use crate::session::{Arenas, Progress};
use crate::typed::{Number, holds};

/// A compiled model. The macro implements it, of a file that it has checked.
pub trait Network: Copy {
    /// Memory that a session takes.
    type Memory<'s>: Memories<'s>;
    /// How a step ends, and a run.
    type End: Ended + 'static;
    /// The steps, in order.
    const STEPS: &'static [fn(&Mem<'_>) -> Self::End];
    /// The inputs.
    const INPUTS: &'static [PortPlace];
    /// The outputs.
    const OUTPUTS: &'static [PortPlace];
    /// The state's value after a reset.
    const STATE: StateInit<'static>;

    /// The weights.
    fn weights() -> &'static [u8];

    /// Runs all steps, up to one that refuses an index.
    fn run(mem: &Mem<'_>) -> Self::End;
}

/// Memory of a session: arenas, and the state.
pub trait Memories<'s>: Sized {
    /// Takes it from slices.
    ///
    /// # Errors
    /// [`SessionError`], by the same rules as [`crate::Session::new`].
    fn of(arenas: Arenas<'s>, state: &'s mut [u8]) -> Result<Self, SessionError>;

    /// All of it, to compute in.
    fn cells(&mut self) -> ([&[Cell<u8>]; MAX_REGIONS], &[Cell<u8>]);

    /// The bytes of an arena, or of the state.
    fn region(&self, region: u8) -> &[u8];

    /// The same to write.
    fn region_mut(&mut self, region: u8) -> &mut [u8];
}

/// Memory of these lengths: arenas, and the state.
#[derive(Debug)]
pub struct Memory<'s, const A: usize, const B: usize, const C: usize, const D: usize, const S: usize> {
    regions: (Region<'s, A>, Region<'s, B>, Region<'s, C>, Region<'s, D>),
    state: Region<'s, S>,
}

impl<'s, const A: usize, const S: usize> Memory<'s, A, 0, 0, 0, S> {
    /// Of blocks of the right lengths.
    #[inline(always)]
    pub fn fit(arena: &'s mut Block<A>, state: &'s mut Block<S>) -> Self {
        Self {
            regions: (Region::from(arena), Region::none(), Region::none(), Region::none()),
            state: Region::from(state),
        }
    }
}

impl<'s, const A: usize, const B: usize, const C: usize, const D: usize, const S: usize> Memories<'s>
    for Memory<'s, A, B, C, D, S>
{
    #[inline(always)]
    fn of(Arenas([a, b, c, d]): Arenas<'s>, state: &'s mut [u8]) -> Result<Self, SessionError> {
        if state.len() != S {
            return Err(SessionError::StateSize {
                needed: S as u32,
                given: len(state),
            });
        }
        Ok(Self {
            regions: (arena(a, 0)?, arena(b, 1)?, arena(c, 2)?, arena(d, 3)?),
            state: Region::of(state).ok_or(SessionError::StateMisaligned)?,
        })
    }

    #[inline(always)]
    fn cells(&mut self) -> ([&[Cell<u8>]; MAX_REGIONS], &[Cell<u8>]) {
        let (a, b, c, d) = &mut self.regions;
        ([a.cells(), b.cells(), c.cells(), d.cells()], self.state.cells())
    }

    #[inline(always)]
    fn region(&self, region: u8) -> &[u8] {
        let (a, b, c, d) = &self.regions;
        match region {
            0 => a.bytes(),
            1 => b.bytes(),
            2 => c.bytes(),
            3 => d.bytes(),
            Slot::STATE => self.state.bytes(),
            _ => &[],
        }
    }

    #[inline(always)]
    fn region_mut(&mut self, region: u8) -> &mut [u8] {
        let (a, b, c, d) = &mut self.regions;
        match region {
            0 => a.bytes_mut(),
            1 => b.bytes_mut(),
            2 => c.bytes_mut(),
            3 => d.bytes_mut(),
            Slot::STATE => self.state.bytes_mut(),
            _ => &mut [],
        }
    }
}

#[inline(always)]
fn arena<const N: usize>(given: &mut [u8], region: u8) -> Result<Region<'_, N>, SessionError> {
    if given.len() < N {
        return Err(SessionError::ArenaTooSmall {
            region,
            needed: N as u32,
            given: len(given),
        });
    }
    Region::of(given).ok_or(SessionError::ArenaMisaligned { region })
}

fn len(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// Step that is next where a run is over.
const OVER: u32 = u32::MAX;

/// A compiled model on the memory that it runs in. It does what [`crate::Session`] does; what can go wrong there by the file cannot here.
pub struct Session<'s, N: Network> {
    memory: N::Memory<'s>,
    /// The next step: 0 before a run, [`OVER`] behind one.
    next: u32,
    /// A bit for each input that is still to be set.
    missing: u32,
    network: PhantomData<N>,
}

impl<'s, N: Network> Session<'s, N> {
    /// Opens a session and gives the state its initial value.
    ///
    /// # Errors
    /// See [`SessionError`]. An arena may be larger than needed; what lies beyond is not touched.
    #[inline(always)]
    pub fn new(arenas: impl Into<Arenas<'s>>, state: &'s mut [u8]) -> Result<Self, SessionError> {
        let mut session = Self::resume(arenas, state)?;
        session.reset_state();
        Ok(session)
    }

    /// Opens a session on a state that an earlier session left.
    ///
    /// # Errors
    /// See [`Session::new`].
    #[inline(always)]
    pub fn resume(arenas: impl Into<Arenas<'s>>, state: &'s mut [u8]) -> Result<Self, SessionError> {
        Ok(Self::on(N::Memory::of(arenas.into(), state)?))
    }

    /// A session on memory of the right lengths, as it is.
    #[doc(hidden)]
    #[inline(always)]
    pub fn on(memory: N::Memory<'s>) -> Self {
        Self {
            memory,
            next: 0,
            missing: const { all_inputs(N::INPUTS.len()) },
            network: PhantomData,
        }
    }

    /// Gives the state its initial value.
    #[inline(always)]
    pub fn reset_state(&mut self) {
        if !N::STATE.is_none() {
            N::STATE.reset(self.memory.region_mut(Slot::STATE));
        }
    }

    /// Sets input `index` for the next run, in the model's dtype, little-endian, row-major.
    ///
    /// # Errors
    /// [`RunError::NoSuchPort`], [`RunError::InputSize`].
    pub fn set_input(&mut self, index: usize, bytes: &[u8]) -> Result<(), RunError> {
        let input = self.input_mut(index)?;
        let (needed, given) = (input.len() as u32, len(bytes));
        if needed != given {
            self.missing |= bit(index);
            return Err(RunError::InputSize {
                input: index as u32,
                needed,
                given,
            });
        }
        input.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Ok(())
    }

    /// The bytes of input `index` in the arena, to be filled in place for the next run.
    ///
    /// # Errors
    /// [`RunError::NoSuchPort`].
    pub fn input_mut(&mut self, index: usize) -> Result<&mut [u8], RunError> {
        let missing = RunError::NoSuchPort { index: index as u32 };
        let place = N::INPUTS.get(index).ok_or(missing)?;
        self.restart();
        self.missing &= !bit(index);
        Ok(place.of_mut(self.memory.region_mut(place.slot.region)))
    }

    /// The bytes of output `index`, valid after a run until the next input is set.
    ///
    /// # Errors
    /// [`RunError::NoSuchPort`].
    pub fn output(&self, index: usize) -> Result<&[u8], RunError> {
        let missing = RunError::NoSuchPort { index: index as u32 };
        N::OUTPUTS.get(index).map(|place| self.at(place)).ok_or(missing)
    }

    /// As [`Session::set_input`], of numbers.
    ///
    /// # Errors
    /// Those of [`Session::set_input`]; [`RunError::PortType`] where the input holds others.
    pub fn set_values<T: Number>(&mut self, index: usize, values: &[T]) -> Result<(), RunError> {
        match N::INPUTS.get(index) {
            Some(place) if !holds::<T>(place.dtype) => Err(RunError::PortType { port: index as u32 }),
            _ => self.set_input(index, bytes_of(values)),
        }
    }

    /// As [`Session::output`], of numbers.
    ///
    /// # Errors
    /// [`RunError::NoSuchPort`]; [`RunError::PortType`] where the output holds others.
    pub fn values<T: Number>(&self, index: usize) -> Result<&[T], RunError> {
        let port = (N::INPUTS.len() + index) as u32;
        match N::OUTPUTS.get(index) {
            Some(place) if !holds::<T>(place.dtype) => Err(RunError::PortType { port }),
            _ => cast_slice(self.output(index)?).ok_or(RunError::PortType { port }),
        }
    }

    /// Runs one step.
    ///
    /// # Errors
    /// [`RunError::InputMissing`] before the first step; [`RunError::OutOfRange`] for an index among the inputs.
    pub fn step(&mut self) -> Result<Progress, RunError> {
        self.begin()?;
        let step = self.next;
        self.advance(step.saturating_add(1), &mut |_| {})?;
        let steps = N::STEPS.len() as u32;
        Ok(if self.next == OVER {
            Progress::Done
        } else {
            Progress::Step { step, steps }
        })
    }

    /// Runs all remaining steps.
    ///
    /// # Errors
    /// See [`Session::step`].
    pub fn run(&mut self) -> Result<(), RunError> {
        self.begin()?;
        self.advance(OVER, &mut |_| {})
    }

    /// Runs all remaining steps and calls `after` with the index of each step that is done: the profiling hook.
    ///
    /// # Errors
    /// See [`Session::step`].
    pub fn run_with(&mut self, mut after: impl FnMut(u32)) -> Result<(), RunError> {
        self.begin()?;
        self.advance(OVER, &mut after)
    }

    /// Puts input `index` where it belongs; the compiler knows its type and length.
    #[inline(always)]
    pub(crate) fn put<T: Element>(&mut self, index: usize, values: &[T]) {
        self.restart();
        self.missing &= !bit(index);
        if let Some(place) = N::INPUTS.get(index) {
            let input = place.of_mut(self.memory.region_mut(place.slot.region));
            input
                .iter_mut()
                .zip(bytes_of(values))
                .for_each(|(to, from)| *to = *from);
        }
    }

    /// Output `index`; the compiler knows its type and length, zeros stand for one of others.
    #[inline(always)]
    pub(crate) fn array<T: Number, const LEN: usize>(&self, index: usize) -> &[T; LEN] {
        let place = N::OUTPUTS.get(index);
        let values = place.and_then(|place| cast_slice::<T>(self.at(place)));
        values.and_then(|values| values.first_chunk()).unwrap_or(T::zeros())
    }

    /// The bytes of a place.
    #[inline(always)]
    fn at(&self, place: &PortPlace) -> &[u8] {
        let memory = match place.slot.region {
            Slot::WEIGHTS => N::weights(),
            region => self.memory.region(region),
        };
        memory
            .get(place.slot.offset as usize..)
            .and_then(|memory| memory.get(..place.bytes as usize))
            .unwrap_or_default()
    }

    /// Memory that steps run in.
    #[inline(always)]
    pub(super) fn mem(&mut self) -> Mem<'_> {
        let (regions, state) = self.memory.cells();
        Mem {
            regions,
            state,
            weights: N::weights(),
            rounding: Rounding::default(),
            turning: Default::default(),
        }
    }

    /// Runs the steps before step `end`, and calls `after` with the index of each one.
    #[inline(always)]
    fn advance(&mut self, end: u32, after: &mut dyn FnMut(u32)) -> Result<(), RunError> {
        let mut next = self.next;
        let mem = self.mem();
        let mut error = None;
        while next < end {
            let Some(step) = N::STEPS.get(next as usize) else { break };
            error = step(&mem).error();
            if error.is_some() {
                break;
            }
            after(next);
            next += 1;
        }
        self.next = next;
        if next as usize >= N::STEPS.len() || error.is_some() {
            self.end();
        }
        error.map_or(Ok(()), Err)
    }

    /// Begins a run, unless one is under way.
    #[inline(always)]
    fn begin(&mut self) -> Result<(), RunError> {
        if self.next == 0 || self.next == OVER {
            if self.missing != 0 {
                return Err(RunError::InputMissing {
                    input: self.missing.trailing_zeros(),
                });
            }
            self.next = 0;
        }
        Ok(())
    }

    /// Ends a run: the inputs of the next one are missing.
    #[inline(always)]
    pub(super) fn end(&mut self) {
        self.next = OVER;
        self.missing = const { all_inputs(N::INPUTS.len()) };
    }

    /// An input is set: of a run that was under way, or is over, the inputs are gone.
    #[inline(always)]
    fn restart(&mut self) {
        if self.next != 0 {
            self.missing = const { all_inputs(N::INPUTS.len()) };
            self.next = 0;
        }
    }
}

impl<N: Network> core::fmt::Debug for Session<'_, N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

/// The bit of an input; load takes no more than 32.
fn bit(index: usize) -> u32 {
    1u32.checked_shl(index as u32).unwrap_or(0)
}

const fn all_inputs(inputs: usize) -> u32 {
    match 1u32.checked_shl(inputs as u32) {
        Some(bit) => bit.wrapping_sub(1),
        None => u32::MAX,
    }
}

#[cfg(feature = "defmt")]
impl<N: Network> defmt::Format for Session<'_, N> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "session of a compiled model at step {}", self.next);
    }
}
