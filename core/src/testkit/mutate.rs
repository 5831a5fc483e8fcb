//! Packed kernels under attack: a case of [`super::compare`] with bits of its constants or parameters changed. Load must refuse it, or the kernel must run and
//! write nothing but its output and scratch.

use super::cases::Random;
use super::field::{Bed, Guard, Memory};
use super::guarded::guarded_op;
use super::memory::{BROKEN, Difference, Places, Sizes, Workspace, assign, fill};
use super::run::run;
use crate::arena::{Access, Bounds, Operand, Slot};
use crate::crc::Crc32;
use crate::fields::Fields;
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::table::check;
#[cfg(feature = "pack")]
use crate::kernels::table::check_decoded;
use crate::ops::fault::Fault;
use crate::ops::operator::Operator;

/// Bytes for the parameters of any operator of a case.
const PARAMS: usize = 160;

/// How a case is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    /// Every bit of the constants and of the parameters, one at a time.
    EveryBit,
    /// This many times one or two places at random: bits, or whole words that are at the ends of some range.
    Random(u32),
}

/// What became of the changed cases.
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

/// An unchanged case.
#[derive(Clone, Copy)]
pub(super) struct Case<'c> {
    pub(super) sizes: Sizes,
    pub(super) data: &'c [Random; 2],
}

/// The memory of a case, which is filled anew for each run.
pub(super) struct CaseBed<'c> {
    pub(super) case: Case<'c>,
    pub(super) places: Places,
    pub(super) arena: &'c mut [u8],
    pub(super) constants: &'c [u8],
}

impl CaseBed<'_> {
    pub(super) fn fill(&mut self) -> Option<()> {
        fill(self.arena, self.case.sizes, self.places, self.case.data)
    }
}

impl Bed for CaseBed<'_> {
    fn before(&mut self) -> Memory<'_> {
        // It fitted before.
        let _ = self.fill();
        let arena = self.arena.get_mut(..self.places.end).unwrap_or_default();
        Memory {
            regions: [arena, &mut [], &mut [], &mut []],
            state: &mut [],
            weights: self.constants,
        }
    }
}

/// The step as load would check it, in an arena and constants of just these sizes.
///
/// # Errors
/// The fault that load would report.
#[cfg(feature = "pack")]
#[inline(never)]
pub(super) fn loads<K: Kernel>(op: &K::Op, arena: usize, constants: &[u8]) -> Result<(), Fault> {
    check_decoded::<K>(op, (0, &[]), &bounds(arena, constants))
}

fn accepts<K: Kernel>(params: &[u8], arena: usize, constants: &[u8]) -> Result<(), Fault> {
    check::<K>((0, params), &bounds(arena, constants))
}

fn bounds(arena: usize, constants: &[u8]) -> Bounds<'_> {
    Bounds::new([arena as u32, 0, 0, 0], 0, constants, &[])
}

/// Bytes of constants that a step reads.
pub(super) fn constants_len<K: Kernel>(op: &K::Op) -> usize {
    let mut len = 0;
    op.operands(K::needs(op), &mut |operand| {
        if operand.place.region == Slot::WEIGHTS {
            len = len.max(operand.place.offset.saturating_add(operand.bytes));
        }
    });
    len as usize
}

/// Changes the case of `op`, whose constants lie in the workspace. `None` where load does not accept it as it is.
#[inline(never)]
pub(super) fn attack<K: Candidate>(
    case: &Case<'_>,
    op: K::Op,
    (attack, mut guard): (Attack, Option<&mut Guard<'_>>),
    workspace: &mut Workspace,
    random: &mut Random,
    tally: &mut Mutations,
) -> Result<Option<()>, Difference> {
    let &Case { sizes, data } = case;
    let places = sizes.apart(K::needs(&op).scratch as usize);
    let len = constants_len::<K>(&op);
    let op = &assign(op, sizes, places);
    let Workspace {
        arena,
        constants,
        expected,
        ..
    } = workspace;
    // The parameters, as they are and changed, lie where nothing is expected: boards have little stack.
    let (Some((original, changed)), Some(constants)) =
        (expected.0.split_at_mut_checked(PARAMS), constants.0.get_mut(..len))
    else {
        return Ok(None);
    };
    let Ok(original) = postcard::to_slice(op, original) else {
        return Ok(None);
    };
    let Some(params) = changed.get_mut(..original.len()) else {
        return Ok(None);
    };
    let filled = fill(&mut arena.0, sizes, places, data).is_some();
    if !filled || accepts::<K>(original, places.end, constants).is_err() {
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
        let exact = !sizes.float && changes.iter().flatten().all(|&change| is_exact::<K>(op, change));
        let mut bed = CaseBed {
            case: *case,
            places,
            arena: &mut arena.0,
            constants,
        };
        let result = one::<K>(params, &mut bed, exact, tally, guard.as_deref_mut());
        for (at, size, old) in saved.into_iter().rev().flatten() {
            let places = constants.iter_mut().skip(at).take(size);
            places.zip(old).for_each(|(place, old)| *place = old);
        }
        result?;
        fill(&mut arena.0, sizes, places, data);
    }
    Ok(Some(()))
}

/// Checks a changed step, and runs it where load would, in the first bytes of memory.
#[inline(never)]
fn one<K: Kernel>(
    params: &[u8],
    bed: &mut CaseBed<'_>,
    exact: bool,
    tally: &mut Mutations,
    guard: Option<&mut Guard<'_>>,
) -> Result<(), Difference> {
    let (memory, arena, constants) = (&mut *bed.arena, bed.places.end, bed.constants);
    if accepts::<K>(params, arena, constants).is_err() {
        tally.refused += 1;
        return Ok(());
    }
    let op = Fields::only::<K::Op>(params).map_err(|_| BROKEN)?;
    let before = kept::<K>(&op, memory);
    // Nothing behind the step's arena is given to it; the guards there catch what assembly writes.
    let constants_before = Crc32::new().update(constants).finish();
    let (given, _) = memory.split_at_mut(arena);
    run::<K>(&op, given, constants).ok_or(BROKEN)?;
    if kept::<K>(&op, memory) != before || Crc32::new().update(constants).finish() != constants_before {
        return Err(BROKEN);
    }
    tally.ran += 1;
    if exact {
        let mut digest = Crc32::new().update(&tally.digest.to_le_bytes());
        op.operands(K::needs(&op), &mut |operand| {
            if operand.access == Access::Write {
                digest = digest.update(bytes_of(memory, &operand));
            }
        });
        tally.digest = digest.finish();
    }
    match guard {
        Some(guard) => guarded_op::<K>(&op, bed, guard).map_err(|_| BROKEN),
        None => Ok(()),
    }
}

/// A checksum over all of memory that the step must not write.
fn kept<K: Kernel>(op: &K::Op, memory: &[u8]) -> u32 {
    let (mut sum, mut at) = (Crc32::new(), 0);
    // The written operands in the order of their places: there are two at most.
    while at < memory.len() {
        let mut next = memory.len()..memory.len();
        op.operands(K::needs(op), &mut |operand| {
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
fn is_exact<K: Candidate>(op: &K::Op, change: Change) -> bool {
    match change {
        Change::Constant(at, _) | Change::Word(at, _) => !K::varies(op, at),
        Change::Param(..) => true,
    }
}
