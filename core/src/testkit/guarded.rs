//! One step, with one operand at a time in memory of exactly its bytes, between bytes that nothing may touch.
//!
//! The *field* is memory whose first and last bytes lie against forbidden ones: pages without access, regions of an MPU. Each operand of a step lies there
//! twice, once flush at the field's end and once at its start, as far as its alignment permits, while the others stay where they are; a constant together with
//! the step's other constants, itself last or first. Whoever forbids the bytes sees what touches them, and every run must compute what the step computes in
//! its own memory: what an operand is painted with before it is written shows outputs that are not.

use super::field::{Bed, Block, Blocks, Finding, Guard, Guarded, Memory, OPERANDS, Side, mem, varint};
use super::functions::{Functions, MARK};
use crate::arena::{Access, Mem, Operand, Slot};
use crate::kernels::api::candidate::Candidate;
use crate::kernels::table::{KernelId, KernelVisitor};

/// Whether this build holds guarded runs.
const HELD: bool = !cfg!(feature = "testkit-small");

/// Whether a step's output may keep bytes between those that it writes: the strides are parameters, so a changed one may leave gaps where there were none.
pub(super) fn may_leave_gaps(kernel: KernelId) -> bool {
    kernel == KernelId::CopyBytes
}

/// Runs a step of the encoded parameters in its own memory, then with each operand in the field; `None` where this build has not the kernel.
///
/// # Errors
/// The first finding.
pub fn guarded(
    kernel: KernelId,
    params: &[u8],
    bed: &mut dyn Bed,
    guard: &mut Guard<'_>,
) -> Option<Result<(), Finding>> {
    if !HELD {
        return None;
    }
    let functions = kernel.visit_available(Find)?;
    let step = Step {
        functions,
        params,
        gaps: may_leave_gaps(kernel),
    };
    Some(step.reported(bed, guard))
}

struct Find;
impl KernelVisitor for Find {
    type Output = Functions;

    fn visit<K: Candidate>(self) -> Functions {
        Functions::of::<K>()
    }
}

/// Runs a step in its own memory; `None` where this build has not the kernel, or it does not run.
pub(super) fn run_alone(kernel: KernelId, params: &[u8], memory: Memory<'_>) -> Option<()> {
    let Memory {
        regions,
        state,
        weights,
    } = memory;
    let functions = kernel.visit_available(Find)?;
    (functions.run)(params, &mem(regions, state, weights))
}

/// As [`guarded`], of a case of the kit; `gaps`: whether its output may keep bytes between those that it writes.
pub(super) fn guarded_step(
    functions: Functions,
    params: &[u8],
    gaps: bool,
    bed: &mut dyn Bed,
    guard: &mut Guard<'_>,
) -> Result<(), Finding> {
    if !HELD {
        return Err(Finding::Stopped);
    }
    let step = Step {
        functions,
        params,
        gaps,
    };
    step.reported(bed, guard)
}

/// Bytes of the largest parameters.
const PARAMS: usize = 512;

/// A step with encoded parameters.
#[derive(Clone, Copy)]
struct Step<'p> {
    functions: Functions,
    params: &'p [u8],
    /// Whether its output may keep bytes between those that it writes, as a part of a concatenation does.
    gaps: bool,
}

impl Step<'_> {
    fn reported(self, bed: &mut dyn Bed, guard: &mut Guard<'_>) -> Result<(), Finding> {
        let done = self.guarded(bed, guard);
        guard.found.finding = done.err().or(guard.found.finding);
        done
    }

    fn guarded(self, bed: &mut dyn Bed, guard: &mut Guard<'_>) -> Result<(), Finding> {
        let expected = {
            let Memory {
                regions,
                state,
                weights,
            } = bed.before();
            let mem = mem(regions, state, weights);
            (self.functions.run)(self.params, &mem).ok_or(Finding::Stopped)?;
            self.outputs(None, &mem).ok_or(Finding::Stopped)?
        };
        let blocks = self.blocks().ok_or(Finding::Room)?;
        for block in blocks.iter().filter(|block| block.bytes > 0) {
            for side in Side::BOTH {
                let guarded = Guarded {
                    operand: block.operand,
                    access: block.access,
                    constant: block.place == 0,
                    side,
                };
                let found = if block.place == 0 {
                    self.constant(&blocks, guarded, bed, guard)?
                } else {
                    self.place(block, guarded, bed, guard)?
                };
                if !guard.watch.ended() {
                    return Err(Finding::Touched(guarded));
                }
                match found {
                    None => return Err(Finding::Wants(guarded)),
                    Some(found) if found != expected => return Err(Finding::Differs(guarded)),
                    Some(_) => guard.found.runs += 1,
                }
            }
        }
        Ok(())
    }

    /// Runs with the operands of a place in the field. The outputs; `None` where it does not run.
    fn place(
        self,
        block: &Block,
        guarded: Guarded,
        bed: &mut dyn Bed,
        guard: &mut Guard<'_>,
    ) -> Result<Option<u32>, Finding> {
        let Memory {
            mut regions,
            state,
            weights,
        } = bed.before();
        let bytes = block.bytes as usize;
        let start = match guarded.side {
            Side::Start => 0,
            Side::End => {
                let room = guard.field.len().checked_sub(bytes).ok_or(Finding::Room)?;
                room - room % block.align as usize
            }
        };
        let field = guard.field.get_mut(start..).and_then(|field| field.get_mut(..bytes));
        let field = field.ok_or(Finding::Room)?;
        field.fill(guarded.side.paint());
        if block.read {
            let from = match block.at.region {
                Slot::STATE => &*state,
                Slot::WEIGHTS => weights,
                region => regions.get(usize::from(region)).map_or(&[][..], |region| &**region),
            };
            let held = from.get(block.at.offset as usize..).and_then(|from| from.get(..bytes));
            field.copy_from_slice(held.ok_or(Finding::Room)?);
        }
        let bytes = field.as_ptr_range();
        let free = regions
            .iter()
            .rposition(|region| region.is_empty())
            .ok_or(Finding::Room)?;
        if let Some(region) = regions.get_mut(free) {
            *region = field;
        }
        let to = Slot {
            region: free as u8,
            offset: 0,
        };
        let mem = mem(regions, state, weights);
        let moved = Some((block.place, to));
        let mut there = |place, slot| if place + 1 == block.place { to } else { slot };
        let len = (self.functions.place)(self.params, &mut there, guard.room);
        let params = Some(guard.room.get(..len.ok_or(Finding::Room)?).ok_or(Finding::Room)?);
        guard.watch.begins(guarded, bytes);
        let ran = params.and_then(|params| (self.functions.run)(params, &mem));
        Ok(ran.and_then(|()| self.outputs(moved, &mem)))
    }

    /// Runs with all constants in the field, the guarded one against its end or its start.
    fn constant(
        self,
        blocks: &[Block],
        guarded: Guarded,
        bed: &mut dyn Bed,
        guard: &mut Guard<'_>,
    ) -> Result<Option<u32>, Finding> {
        let Memory {
            regions,
            state,
            weights,
        } = bed.before();
        let is_own = |block: &&Block| block.operand == guarded.operand;
        let own = blocks.iter().find(is_own).ok_or(Finding::Room)?;
        let others = || {
            blocks
                .iter()
                .filter(|block| block.place == 0 && block.operand != guarded.operand)
        };
        let fixed = Finding::Fixed(guarded);
        // The offsets, from the first byte of what the step gets.
        let behind = |at: u32, block: &Block| at.checked_add(block.bytes)?.checked_next_multiple_of(16);
        let (own_at, mut at) = match guarded.side {
            Side::Start => (0, behind(0, own).ok_or(Finding::Room)?),
            Side::End => {
                let front = others().try_fold(0, behind).ok_or(Finding::Room)?;
                let end = behind(front, own).ok_or(Finding::Room)?;
                let last = end - own.bytes;
                (last - last % own.align, 0)
            }
        };
        let len = match guarded.side {
            Side::Start => others().try_fold(at, behind),
            Side::End => own_at.checked_add(own.bytes),
        };
        let len = len.ok_or(Finding::Room)? as usize;
        let start = match guarded.side {
            Side::Start => 0,
            Side::End => guard
                .field
                .len()
                .checked_sub(len.next_multiple_of(16))
                .ok_or(Finding::Room)?,
        };
        let field = guard.field.get_mut(start..).and_then(|field| field.get_mut(..len));
        let field = field.ok_or(Finding::Room)?;
        field.fill(guarded.side.paint());
        let half = guard.room.len() / 2;
        let (mut params, mut next) = guard.room.split_at_mut_checked(half).ok_or(Finding::Room)?;
        let mut params_len = self.params.len();
        let copy = params.get_mut(..params_len).ok_or(Finding::Room)?;
        copy.copy_from_slice(self.params);
        for block in others().chain([own]) {
            let to = if block.operand == guarded.operand { own_at } else { at };
            if block.operand != guarded.operand {
                at = behind(at, block).ok_or(Finding::Room)?;
            }
            let held = weights
                .get(block.at.offset as usize..)
                .and_then(|from| from.get(..block.bytes as usize));
            let place = field
                .get_mut(to as usize..)
                .and_then(|field| field.get_mut(..block.bytes as usize));
            place.ok_or(Finding::Room)?.copy_from_slice(held.ok_or(Finding::Room)?);
            let step = Step {
                params: params.get(..params_len).ok_or(Finding::Room)?,
                ..self
            };
            match step.relocated(usize::from(block.operand), to, next) {
                Some((len, _)) => params_len = len,
                // Nothing says where it lies.
                None if block.bytes == 0 => continue,
                None => return Err(fixed),
            }
            core::mem::swap(&mut params, &mut next);
        }
        let params = params.get(..params_len).ok_or(Finding::Room)?;
        guard.watch.begins(guarded, field.as_ptr_range());
        let mem = mem(regions, state, field);
        let ran = (self.functions.run)(params, &mem);
        Ok(ran.and_then(|()| self.outputs(None, &mem)))
    }

    /// The blocks of the step's operands.
    fn blocks(self) -> Option<Blocks> {
        let (mut marked, mut plain) = (
            heapless::Vec::<Operand, OPERANDS>::new(),
            heapless::Vec::<_, OPERANDS>::new(),
        );
        let mut whole = true;
        self.functions
            .operands(self.params, true, &mut |operand| whole &= marked.push(operand).is_ok())?;
        self.functions.operands(self.params, false, &mut |operand: Operand| {
            whole &= plain.push(operand.place).is_ok();
        })?;
        let mut blocks = Blocks::new();
        let mut done = 0u64;
        for (index, (operand, &slot)) in (0u8..).zip(marked.iter().zip(&plain)).take_while(|_| whole) {
            if operand.bytes == 0 || done >> index & 1 == 1 {
                continue;
            }
            let mark = operand.place.offset >> MARK;
            let kept = self.gaps && operand.access == Access::Write;
            let read = kept || matches!(operand.access, Access::Read | Access::Update);
            let mut block = Block {
                operand: index,
                access: operand.access,
                place: mark as usize,
                at: slot,
                bytes: operand.bytes,
                align: operand.align.max(1),
                read,
            };
            if slot.region == Slot::WEIGHTS {
                // A constant, with those that the same offset gives.
                block.place = 0;
                let with = self.moved_with(usize::from(index), slot.offset);
                for (other, (operand, slot)) in (0u8..).zip(marked.iter().zip(&plain)) {
                    if with >> other & 1 == 1 && other != index {
                        done |= 1 << other;
                        block = block.with(operand, slot.offset)?;
                    }
                }
            } else {
                // From its place on, whatever its operands begin with.
                let delta = operand.place.offset & ((1 << MARK) - 1);
                block.at.offset -= delta;
                block.bytes += delta;
                for (other, (another, slot)) in (0u8..).zip(marked.iter().zip(&plain)).skip(usize::from(index) + 1) {
                    if another.place.offset >> MARK == mark && another.bytes > 0 {
                        done |= 1 << other;
                        block = block.with(another, slot.offset)?;
                    }
                }
            }
            blocks.push(block).ok()?;
        }
        // Constants of no bytes, whose places must lie in the weights as well.
        for (index, (operand, &slot)) in (0u8..).zip(marked.iter().zip(&plain)).take_while(|_| whole) {
            if operand.bytes == 0 && slot.region == Slot::WEIGHTS && done >> index & 1 == 0 {
                let block = Block {
                    operand: index,
                    access: operand.access,
                    place: 0,
                    at: slot,
                    bytes: 0,
                    align: operand.align.max(1),
                    read: false,
                };
                blocks.push(block).ok()?;
            }
        }
        whole.then_some(blocks)
    }

    /// The operands that move with constant `operand`: a bit each; itself alone where its offset is not found.
    fn moved_with(self, operand: usize, from: u32) -> u64 {
        let mut room = [0; PARAMS];
        let moved = self.relocated(operand, from ^ 0x1000, &mut room);
        moved.map_or(1 << operand, |(_, moved)| moved)
    }

    /// Writes the parameters that say of the constant `operand` that it lies at `to`, and nothing else of the others but that some move with it. The offset is
    /// found among the parameters by trying: gives the length, and a bit for each operand that moved.
    fn relocated(self, operand: usize, to: u32, room: &mut [u8]) -> Option<(usize, u64)> {
        let before = self.places()?;
        let from = before.get(operand)?.offset;
        if from == to {
            room.get_mut(..self.params.len())?.copy_from_slice(self.params);
            return Some((self.params.len(), 1 << operand));
        }
        let delta = to.wrapping_sub(from);
        for at in 0..self.params.len() {
            let (front, rest) = self.params.split_at_checked(at)?;
            let Some((value, len)) = varint(rest) else {
                continue;
            };
            if value != from {
                continue;
            }
            let mut digits = [0; 5];
            let digits = postcard::to_slice(&to, &mut digits).ok()?;
            let total = front.len() + digits.len() + rest.len() - len;
            let mut written = 0;
            for part in [front, digits, rest.get(len..)?] {
                room.get_mut(written..)?.get_mut(..part.len())?.copy_from_slice(part);
                written += part.len();
            }
            let changed = Step {
                params: room.get(..total)?,
                ..self
            };
            let Some(after) = changed.places() else {
                continue;
            };
            let mut moved = 0;
            let pairs = before.iter().zip(&after).enumerate();
            let same = before.len() == after.len()
                && pairs.fold(true, |same, (index, (before, after))| {
                    let went = after.region == before.region && after.offset == before.offset.wrapping_add(delta);
                    let moves = before.region == Slot::WEIGHTS && went;
                    moved |= u64::from(moves) << index;
                    same && (moves || before == after)
                });
            if same && moved >> operand & 1 == 1 {
                return Some((total, moved));
            }
        }
        None
    }

    fn places(self) -> Option<heapless::Vec<Slot, OPERANDS>> {
        let (mut places, mut whole) = (heapless::Vec::new(), true);
        self.functions.operands(self.params, false, &mut |operand| {
            whole &= places.push(operand.place).is_ok();
        })?;
        whole.then_some(places)
    }

    /// A sum over all that the step has written, where it lies; any byte that differs changes it.
    fn outputs(self, moved: Option<(usize, Slot)>, mem: &Mem<'_>) -> Option<u32> {
        let (mut sum, mut whole) = (0x811C_9DC5u32, true);
        let mut take = |operand: &Operand, slot: Slot| {
            if !matches!(operand.access, Access::Write | Access::Update) {
                return;
            }
            match mem.src::<u8>(slot, operand.bytes) {
                Some(bytes) => {
                    for byte in bytes.iter() {
                        sum = (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193).rotate_left(5);
                    }
                }
                None => whole = false,
            }
        };
        let mut marks = heapless::Vec::<u32, OPERANDS>::new();
        self.functions.operands(self.params, true, &mut |operand| {
            let _ = marks.push(operand.place.offset);
        })?;
        let mut marks = marks.into_iter();
        self.functions.operands(self.params, false, &mut |operand| {
            let mark = marks.next().unwrap_or(0);
            let slot = match moved {
                Some((place, to)) if (mark >> MARK) as usize == place && mark != operand.place.offset => Slot {
                    offset: to.offset + (mark & ((1 << MARK) - 1)),
                    ..to
                },
                _ => operand.place,
            };
            take(&operand, slot);
        })?;
        whole.then_some(sum)
    }
}
