//! Packed kernels under attack: a case of [`super::compare`] with bits of its constants or parameters changed. Load must refuse it, or the kernel must run and
//! write nothing but its output and scratch.

use super::field::{Bed, Guard, Memory};
use super::functions::Functions;
use super::guarded::guarded_step;
use super::memory::{Alike, BROKEN, Data, Difference, Spots, Workspace};
use super::random::Random;
use super::run::memory;
use crate::arena::{Access, Bounds, Operand, Slot};
use crate::crc::Crc32;

/// Kind of change of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    /// Every bit of the constants and of the parameters, one at a time.
    EveryBit,
    /// This many times one or two places at random: bits, or whole words that are at the ends of some range.
    Random(u32),
}

/// Outcomes of the changed cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mutations {
    /// Refused as load refuses them.
    pub refused: u32,
    /// Accepted and run within bounds.
    pub ran: u32,
    /// A checksum over the outputs of those that ran and whose results no core may differ in.
    pub digest: u32,
}

/// One change.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// Bits of a byte of the constants that are inverted.
    Constant(usize, u8),
    /// A word of the constants.
    Word(usize, u32),
    /// Bits of a byte of the encoded parameters that are inverted.
    Param(usize, u8),
}

/// An unchanged case, whose encoded parameters and constants lie in the workspace.
#[derive(Clone, Copy)]
pub(super) struct Case<'c> {
    pub(super) functions: Functions,
    pub(super) spots: &'c Spots,
    pub(super) data: &'c Data,
}

/// The memory of a case, which is filled anew for each run.
pub(super) struct CaseBed<'c> {
    pub(super) data: &'c Data,
    pub(super) spots: &'c Spots,
    pub(super) arena: &'c mut [u8],
    pub(super) constants: &'c [u8],
}

impl CaseBed<'_> {
    pub(super) fn fill(&mut self) -> Option<()> {
        self.spots.fill(self.arena, self.data)
    }
}

impl Bed for CaseBed<'_> {
    fn before(&mut self) -> Memory<'_> {
        // It fitted before.
        let _ = self.fill();
        let arena = self.arena.get_mut(..self.spots.end).unwrap_or_default();
        Memory {
            regions: [arena, &mut [], &mut [], &mut []],
            state: &mut [],
            weights: self.constants,
        }
    }
}

/// An arena and constants of just these sizes.
pub(super) fn bounds(arena: usize, constants: &[u8]) -> Bounds<'_> {
    Bounds::new([arena as u32, 0, 0, 0], 0, constants, &[])
}

/// Bytes of constants that a step reads.
pub(super) fn constants_len(functions: &Functions, params: &[u8]) -> usize {
    let mut len = 0;
    let _ = functions.operands(params, false, &mut |operand| {
        if operand.place.region == Slot::WEIGHTS {
            len = len.max(operand.place.offset.saturating_add(operand.bytes));
        }
    });
    len as usize
}

/// Changes a case. `None` where load does not accept it as it is.
#[inline(never)]
pub(super) fn attack(
    case: &Case<'_>,
    params_len: usize,
    (attack, mut guard): (Attack, Option<&mut Guard<'_>>),
    workspace: &mut Workspace,
    random: &mut Random,
    tally: &mut Mutations,
) -> Result<Option<()>, Difference> {
    let &Case { functions, spots, data } = case;
    let Workspace {
        arena,
        constants,
        params: [own, changed],
        ..
    } = workspace;
    let Some(unplaced) = own.get(..params_len) else {
        return Ok(None);
    };
    let len = constants_len(&functions, unplaced);
    let Some(constants) = constants.0.get_mut(..len) else {
        return Ok(None);
    };
    let Some(size) = (functions.place)(unplaced, &mut |place, _| spots.slot(place), changed) else {
        return Ok(None);
    };
    let (Some(original), Some(params)) = (own.get_mut(..size), changed.get_mut(..size)) else {
        return Ok(None);
    };
    original.copy_from_slice(params);
    let original = &*original;
    let filled = spots.fill(&mut arena.0, data).is_some();
    if !filled || (functions.check)(original, &bounds(spots.end, constants)).is_err() {
        return Ok(None);
    }
    let bits = 8 * (len + original.len());
    let count = match attack {
        Attack::EveryBit => bits,
        Attack::Random(count) => count as usize,
    };
    for index in 0..count {
        let mut changes = [None; 2];
        match attack {
            Attack::EveryBit => changes[0] = Some(bit(index, len)),
            Attack::Random(_) => {
                let two = random.below(4) == 0;
                changes = [true, two].map(|wanted| wanted.then(|| change(random, len, original.len())));
            }
        }
        params.copy_from_slice(original);
        let mut saved = [None; 2];
        for (change, saved) in changes.iter().flatten().zip(&mut saved) {
            let (at, size) = match *change {
                Change::Constant(at, _) => (at, 1),
                Change::Word(at, _) => (at, 4),
                Change::Param(at, bits) => {
                    params.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bits);
                    continue;
                }
            };
            let Some(bytes) = constants.get_mut(at..at + size) else {
                continue;
            };
            let mut old = [0; 4];
            old.iter_mut().zip(bytes.iter()).for_each(|(old, byte)| *old = *byte);
            *saved = Some((at, size, old));
            match *change {
                Change::Constant(_, bits) => bytes.iter_mut().for_each(|byte| *byte ^= bits),
                Change::Word(_, word) => bytes.copy_from_slice(&word.to_le_bytes()),
                Change::Param(..) => {}
            }
        }
        let exact = data.exact
            && changes
                .iter()
                .flatten()
                .all(|&change| is_exact(&functions, original, change));
        let mut bed = CaseBed {
            data,
            spots,
            arena: &mut arena.0,
            constants,
        };
        let result = one(&functions, params, &mut bed, exact, tally, guard.as_deref_mut());
        for (at, size, old) in saved.into_iter().rev().flatten() {
            let places = constants.iter_mut().skip(at).take(size);
            places.zip(old).for_each(|(place, old)| *place = old);
        }
        result?;
        spots.fill(&mut arena.0, data);
    }
    Ok(Some(()))
}

/// Checks a changed step, and runs it where load would, in the first bytes of memory.
#[inline(never)]
fn one(
    functions: &Functions,
    params: &[u8],
    bed: &mut CaseBed<'_>,
    exact: bool,
    tally: &mut Mutations,
    guard: Option<&mut Guard<'_>>,
) -> Result<(), Difference> {
    let (arena, end, constants) = (&mut *bed.arena, bed.spots.end, bed.constants);
    if (functions.check)(params, &bounds(end, constants)).is_err() {
        tally.refused += 1;
        return Ok(());
    }
    let before = kept(functions, params, arena);
    // Nothing behind the step's arena is given to it; the guards there catch what assembly writes.
    let constants_before = Crc32::new().update(constants).finish();
    let (given, _) = arena.split_at_mut(end);
    let memory = memory(given, constants);
    if (functions.refuses)(params, &memory) {
        // A capacity or a place that was changed: a run gives the index back as an error, and does not begin.
        tally.refused += 1;
        return match (functions.run)(params, &memory) {
            Some(()) => Err(BROKEN),
            None => Ok(()),
        };
    }
    (functions.run)(params, &memory).ok_or(BROKEN)?;
    if kept(functions, params, arena) != before || Crc32::new().update(constants).finish() != constants_before {
        return Err(BROKEN);
    }
    tally.ran += 1;
    if exact && bed.data.alike == Alike::Bytes {
        let mut digest = Crc32::new().update(&tally.digest.to_le_bytes());
        let _ = functions.operands(params, false, &mut |operand| {
            if matches!(operand.access, Access::Write | Access::Update) {
                digest = digest.update(bytes_of(arena, &operand));
            }
        });
        tally.digest = digest.finish();
    }
    match guard {
        // Changed, it may write less than before: what it leaves is compared as it was.
        Some(guard) => guarded_step(*functions, params, bed.data.gaps, bed, guard).map_err(|_| BROKEN),
        None => Ok(()),
    }
}

/// A checksum over all of memory that the step must not write.
fn kept(functions: &Functions, params: &[u8], memory: &[u8]) -> u32 {
    let (mut sum, mut at) = (Crc32::new(), 0);
    // The written operands in the order of their places.
    while at < memory.len() {
        let mut next = memory.len()..memory.len();
        let _ = functions.operands(params, false, &mut |operand| {
            let start = operand.place.offset as usize;
            let range = start..start + operand.bytes as usize;
            let written = operand.place.region == 0 && operand.access != Access::Read && operand.bytes > 0;
            if written && range.end > at && range.start < next.start {
                next = range;
            }
        });
        sum = sum.update(memory.get(at..next.start.max(at)).unwrap_or_default());
        at = next.end.max(at + 1);
    }
    sum.finish()
}

fn bytes_of<'m>(memory: &'m [u8], operand: &Operand) -> &'m [u8] {
    let from = memory.get(operand.place.offset as usize..);
    from.and_then(|bytes| bytes.get(..operand.bytes as usize))
        .unwrap_or_default()
}

/// Bit `index` of `constants` bytes, or of the parameters behind them.
fn bit(index: usize, constants: usize) -> Change {
    let (byte, bits) = (index / 8, 1 << (index % 8));
    if byte < constants {
        Change::Constant(byte, bits)
    } else {
        Change::Param(byte - constants, bits)
    }
}

fn change(random: &mut Random, constants: usize, params: usize) -> Change {
    let words = constants as u32 / 4;
    // Records lie behind the weights or between them; parameters are few.
    match random.below(4) {
        0 if words > 0 => {
            let word = random.next();
            let word = match random.below(8) {
                0 => 0,
                1 => u32::MAX,
                2 => i32::MIN as u32,
                3 => i32::MAX as u32,
                4 => word & 0xff,
                5 => (word & 0xff).wrapping_neg(),
                6 => 1 << (word & 31),
                _ => word,
            };
            Change::Word(4 * random.below(words) as usize, word)
        }
        1 | 2 if words > 0 => Change::Constant(random.below(constants as u32) as usize, 1 << random.below(8)),
        _ => Change::Param(random.below(params as u32) as usize, random.next() as u8),
    }
}

/// Whether the outputs after a change are the same on every core, but for sums of f32, which never are.
fn is_exact(functions: &Functions, params: &[u8], change: Change) -> bool {
    match change {
        Change::Constant(at, _) | Change::Word(at, _) => !(functions.varies)(params, at),
        Change::Param(..) => true,
    }
}
