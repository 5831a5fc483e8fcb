//! One kernel against the reference of its operator, on a generated case.

use super::functions::{Functions, encode, moved, visit_op};
use super::guarded::{guarded_step, may_leave_gaps};
use super::memory::{Alike, BROKEN, Data, Difference, GUARD, Spots, Workspace};
use super::mutate::{Case, CaseBed, attack, bounds, constants_len};
use super::random::Random;
use super::run::memory;
use super::task::Task;
use crate::arena::{Mem, Slot};
use crate::cells::cast_slice;
use crate::kernels::api::candidate::Candidate;
use crate::kernels::table::KernelId;
use crate::ops::operator::{Needs, Operator};

/// `Ok(None)` for cases that the kernel does not compute.
pub(super) type Outcome = Result<Option<()>, Difference>;

/// The most operands that an output can be near, itself included.
const OPERANDS: u8 = 7;

/// Bytes of a case's encoded parameters, and what its operands hold.
pub(super) type Prepared = Option<(usize, Data)>;

/// An operator by plain loops.
pub(super) type Reference<O> = fn(&O, &Mem<'_>) -> Option<()>;

/// Offset of the constants that the reference takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Constants {
    /// In their plain form, beside those of the kernel.
    Plain,
    /// The kernel takes them in their plain form, too.
    Shared,
}

pub(super) struct Bench<'w> {
    pub(super) kernel: KernelId,
    pub(super) random: Random,
    pub(super) workspace: &'w mut Workspace,
    pub(super) task: Task<'w>,
}

// Functions of their own, so that a case takes the stack of its own alone: boards have little.
impl Bench<'_> {
    /// A step of kernel `K` beside the same operator for the reference, their constants in the workspace: the step's encoded parameters and the reference's
    /// outputs lie there as well. `None` where the kernel does not compute the step, or something has no room.
    pub(super) fn against<K, O>(
        &mut self,
        step: &K::Op,
        plain: O,
        reference: Reference<O>,
        constants: Constants,
        data: &Data,
    ) -> Prepared
    where
        K: Candidate,
        O: Operator<Place = Slot, Over<Slot> = O>,
    {
        if step.check().is_err() || plain.check().is_err() || !K::supports(step) {
            return None;
        }
        self.expect(plain, reference, constants, data)?;
        Some((encode(step, &mut self.workspace.params[0])?, *data))
    }

    /// The outputs of the reference.
    #[inline(never)]
    pub(super) fn expect<O>(
        &mut self,
        plain: O,
        reference: Reference<O>,
        constants: Constants,
        data: &Data,
    ) -> Option<()>
    where
        O: Operator<Place = Slot, Over<Slot> = O>,
    {
        let spots = Spots::new(&mut |visit| {
            visit_op(plain.clone(), Needs::default(), true, visit);
            Some(())
        })?;
        let Workspace {
            arena,
            plain: own,
            constants: shared,
            expected,
            ..
        } = &mut *self.workspace;
        let constants = if constants == Constants::Plain {
            &own.0[..]
        } else {
            &shared.0[..]
        };
        spots.fill(&mut arena.0, data)?;
        let op = moved(plain, &mut |place, _| spots.slot(place));
        reference(&op, &memory(&mut arena.0, constants))?;
        let mut at = 0;
        for spot in spots.iter().filter(|spot| spot.is_written()) {
            let outputs = arena.0.get(spot.range())?;
            expected
                .0
                .get_mut(at..)?
                .get_mut(..outputs.len())?
                .copy_from_slice(outputs);
            at += outputs.len();
        }
        Some(())
    }

    /// Does with a step what is to be done; its encoded parameters, so many bytes, lie in the workspace.
    #[inline(never)]
    pub(super) fn placements(&mut self, functions: Functions, (len, data): (usize, Data)) -> Outcome {
        let data = &data;
        let Workspace {
            arena,
            constants,
            expected,
            params: [own, placed],
            ..
        } = &mut *self.workspace;
        let params = own.get(..len).ok_or(BROKEN)?;
        let apart = Spots::of(&functions, params).ok_or(BROKEN)?;
        let constants_len = constants_len(&functions, params);
        match &mut self.task {
            Task::Compare => {}
            #[cfg(test)]
            Task::Spoil => {
                let byte = if data.alike == Alike::Bytes { 0 } else { 3 };
                expected.0.iter_mut().skip(byte).take(1).for_each(|byte| *byte ^= 0x40);
            }
            Task::Mutate(how, tally, guard) => {
                let gaps = may_leave_gaps(self.kernel);
                let case = Case {
                    functions,
                    spots: &apart,
                    data: &Data { gaps, ..*data },
                };
                let guard = guard.as_mut();
                return attack(&case, len, (*how, guard), self.workspace, &mut self.random, tally);
            }
            Task::Guard(guard) => {
                let len = (functions.place)(params, &mut |place, _| apart.slot(place), placed).ok_or(BROKEN)?;
                let mut bed = CaseBed {
                    data,
                    spots: &apart,
                    arena: &mut arena.0,
                    constants: constants.0.get(..constants_len).ok_or(BROKEN)?,
                };
                if bed.fill().is_none() {
                    return Ok(None);
                }
                let params = placed.get(..len).ok_or(BROKEN)?;
                return guarded_step(functions, params, data.gaps, &mut bed, guard)
                    .map(Some)
                    .map_err(|_| BROKEN);
            }
            Task::Export(params_out, lens) => {
                let len = (functions.place)(params, &mut |place, _| apart.slot(place), params_out);
                return Ok(len.map(|params| **lens = [params, constants_len, apart.end]));
            }
        }
        let mut ran = None;
        // Apart from all operands, then two ways near each of them; one at a time, for boards have little stack.
        for placement in 0..2 * OPERANDS {
            let (operand, at_it) = (placement / 2, usize::from(placement % 2));
            let spots = match placement {
                0 => Some(apart.clone()),
                // By pieces of the kernel's code.
                1 => functions.run_pieces.map(|_| apart.clone()),
                _ => {
                    let distances = (functions.near)(params, operand.into());
                    let distance = distances.get(at_it).copied().flatten();
                    distance.and_then(|distance| apart.near(operand, distance))
                }
            };
            let Some(spots) = spots.filter(|spots| spots.fill(&mut arena.0, data).is_some()) else {
                continue;
            };
            let len = (functions.place)(params, &mut |place, _| spots.slot(place), placed).ok_or(BROKEN)?;
            let params = placed.get(..len).ok_or(BROKEN)?;
            let weights = constants.0.get(..constants_len).ok_or(BROKEN)?;
            // Load accepts all that a packer writes.
            (functions.check)(params, &bounds(spots.end, weights)).map_err(|_| BROKEN)?;
            let by_pieces = functions.run_pieces.filter(|_| placement == 1);
            let run = by_pieces.unwrap_or(functions.run);
            run(params, &memory(&mut arena.0, weights)).ok_or(BROKEN)?;
            let mut at = 0;
            for (index, spot) in spots.iter().filter(|spot| spot.is_written()).enumerate() {
                let found = arena.0.get(spot.range()).ok_or(BROKEN)?;
                let of_reference = expected.0.get(at..).and_then(|rest| rest.get(..found.len()));
                // Bytes between others keep what lay there, where that may be an operand.
                let gaps = data.gaps && placement > 0;
                same(found, of_reference.ok_or(BROKEN)?, data.alike_of(index), gaps)?;
                at += found.len();
            }
            if !spots.are_guarded(&arena.0) {
                return Err(BROKEN);
            }
            ran = Some(());
        }
        Ok(ran)
    }
}

/// The first pair that differs.
fn same(found: &[u8], expected: &[u8], alike: Alike, gaps: bool) -> Result<(), Difference> {
    let Alike::Floats([most, of_largest]) = alike else {
        let differs = |(_, (found, expected)): &(u32, (&u8, &u8))| found != expected && !(gaps && **expected == GUARD);
        return match (0..).zip(found.iter().zip(expected)).find(differs) {
            None => Ok(()),
            Some((at, (&found, &expected))) => Err(Difference {
                at,
                found: found.into(),
                expected: expected.into(),
            }),
        };
    };
    let (Some(found), Some(expected)) = (cast_slice::<f32>(found), cast_slice::<f32>(expected)) else {
        return Err(BROKEN);
    };
    let finite = expected
        .iter()
        .map(|value| value.abs())
        .filter(|value| value.is_finite());
    let most = finite.fold(0.0, f32::max) * of_largest + most;
    let equal = |a: f32, b: f32| {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) || (most > 0.0 && (a - b).abs() <= most)
    };
    let differs = (0..)
        .zip(found.iter().zip(expected))
        .find(|(_, (a, b))| !equal(**a, **b));
    differs.map_or(Ok(()), |(at, (found, expected))| {
        Err(Difference {
            at,
            found: found.to_bits(),
            expected: expected.to_bits(),
        })
    })
}

/// Writes values, little-endian; `None` where they do not fit.
pub(super) fn write<T: Copy>(memory: &mut [u8], values: &[T], bytes: fn(T) -> [u8; 4]) -> Option<()> {
    let places = memory.get_mut(..4 * values.len())?.as_chunks_mut().0;
    places
        .iter_mut()
        .zip(values)
        .for_each(|(place, &value)| *place = bytes(value));
    Some(())
}
