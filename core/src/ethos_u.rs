//! Runs with an Ethos-U: steps whose commands Vela has compiled are handed to the NPU, the core runs the others, one after the other.
//!
//! Load has followed the commands: on an NPU of the configuration that they are for they read and write what a job names, and nothing else. The run gives no
//! job to another one, and takes the NPU for what can fail at any time, as it does any accelerator.

use core::cell::Cell;

use crate::accelerators::{PATTERN, Poll, each_block, until_done};
use crate::arena::Slot;
use crate::blob::Records;
use crate::cores::{Lent, cells};
use crate::error::{AcceleratorFault, RunError};
use crate::events;
use crate::fields::Fields;
use crate::kernels::ethos_u::commands::{Config, Payload, payload};
use crate::kernels::table::{KernelId, Kernels, run_step};
use crate::ops::ethos_u::EthosU as Commands;
use crate::session::Session;

/// The driver of an Ethos-U.
///
/// # Safety
/// An implementation guarantees:
///
/// - [`EthosU::config`] is the NPU's register `CONFIG`, and the NPU is one that Arm's driver would run the stream on: of the payload's architecture;
/// - before a stream the NPU is reset, so that nothing of an earlier one holds; it runs the job's commands alone, and its region pointers 0, 1 and 2 are those
///   of [`EthosUJob::regions`];
/// - from [`EthosU::start`] on the NPU touches of the memory of the session what the job's commands touch; nothing of it, and nothing of the job, after
///   [`EthosU::poll`] has returned [`Poll::Done`], [`EthosU::start`] an error, or [`EthosU::stop`] at all;
/// - it sees what was written before [`EthosU::start`] was called, and what it wrote is seen when [`EthosU::poll`] returns [`Poll::Done`]: where caches are not
///   coherent, they are cleaned and invalidated there.
pub unsafe trait EthosU {
    /// Configuration of the NPU; a model with commands for another one is refused.
    fn config(&self) -> Config;

    /// Whether it reaches so many bytes from `start` on: of arenas, where a session was given them, and of the weights.
    fn reaches(&self, start: *const u8, bytes: usize) -> bool {
        let _ = (start, bytes);
        true
    }

    /// Begins a stream, when none is under way.
    ///
    /// # Errors
    /// A code of the implementation's own, for [`AcceleratorFault::Failed`].
    fn start(&mut self, job: EthosUJob<'_>) -> Result<(), u32>;

    /// Whether the stream that was started is done. It may wait a while, with an instruction that sleeps until an interrupt.
    ///
    /// # Errors
    /// As [`EthosU::start`]; [`EthosU::stop`] is called then.
    fn poll(&mut self) -> Result<Poll, u32>;

    /// Ends what is under way: called after errors and when the time is over. It returns when nothing of the session's memory is touched any more.
    fn stop(&mut self);

    /// Number of times that [`EthosU::poll`] may say [`Poll::Busy`] in one stream, before that counts as never done.
    fn polls(&self) -> u32 {
        100_000_000
    }
}

/// Memory that a command stream names by the number of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EthosURegion {
    /// Its first byte, at a multiple of 16.
    pub start: *mut u8,
    /// Its bytes.
    pub bytes: usize,
}

/// A command stream that is handed over.
#[derive(Debug)]
pub struct EthosUJob<'r> {
    step: u32,
    bytes: &'r [u8],
    payload: Payload<'r>,
    regions: [EthosURegion; 3],
}

// SAFETY: what it points to is touched by the NPU and by nobody else, for as long as the implementation of `EthosU` promises. It is not `Sync`, nor can it be
// copied.
unsafe impl Send for EthosUJob<'_> {}

impl<'r> EthosUJob<'r> {
    /// The index of the step.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// The payload, as `ethosu_invoke_v3` of Arm's driver takes it (`custom_data_ptr`).
    pub fn payload(&self) -> &'r [u8] {
        self.bytes
    }

    /// The command stream in it, for the queue of the NPU (`QBASE`, `QSIZE`).
    pub fn commands(&self) -> &'r [u8] {
        self.payload.commands
    }

    /// The NPU that it is compiled for.
    pub fn config(&self) -> Config {
        self.payload.config
    }

    /// The version of the architecture that it is compiled for, as the register `ID` has it.
    pub fn id(&self) -> u32 {
        self.payload.id
    }

    /// Memories of the region pointers: constants, which are only read, scratch, fast scratch. The driver takes these for `base_addr` and `base_addr_size`.
    pub fn regions(&self) -> [EthosURegion; 3] {
        self.regions
    }
}

impl<K: Kernels> Session<'_, '_, K> {
    /// Runs all remaining steps; those with commands for an Ethos-U are handed to it. A model without such steps runs on the core.
    ///
    /// Outputs that lie apart from their step's inputs are filled with a pattern before. Where a part of one (sixteen bytes, or all) is unchanged behind the
    /// step,
    /// and the inputs are as well, the step is handed over once more with the opposite pattern: what is unchanged then was not written, whatever the data.
    ///
    /// # Errors
    /// [`RunError::Accelerator`], after which nothing of the NPU's is under way: set the inputs anew for the next run, except where it is
    /// [`AcceleratorFault::Npu`]. See [`Session::step`] for others.
    pub fn run_ethos_u(&mut self, npu: &mut impl EthosU) -> Result<(), RunError> {
        let (weights, own) = (self.model().weights(), npu.config());
        for (record, step) in self.model().steps().zip(0..) {
            let Some(op) = record.and_then(commands) else {
                continue;
            };
            let (_, payload) = payload_of(&op, weights).ok_or(RunError::Corrupt { step })?;
            if !own.runs(payload.config) {
                let fault = AcceleratorFault::Npu;
                return Err(RunError::Accelerator { step, fault });
            }
        }
        let steps = self.model().parts().step_count();
        let (records, first, lent) = self.lend()?;
        let mut run = Run { npu, lent, busy: false };
        let done = run.all::<K>(records, (first, steps));
        drop(run);
        match done {
            Ok(()) => self.end_shared(None),
            Err(RunError::Corrupt { step }) => self.end_shared(Some(step)),
            Err(error) => {
                self.give_up();
                Err(error)
            }
        }
    }
}

/// The parameters of a record, where it is such a step.
fn commands((kernel, params): (u8, &[u8])) -> Option<Commands> {
    (kernel == KernelId::EthosU as u8).then(|| Fields::only(params).ok())?
}

fn payload_of<'w>(op: &Commands, weights: &'w [u8]) -> Option<(&'w [u8], Payload<'w>)> {
    let bytes = weights.get(op.payload as usize..)?.get(..op.payload_bytes as usize)?;
    Some((bytes, payload(bytes).ok()?))
}

/// A run with an NPU. A step under way when it is dropped is stopped.
struct Run<'r, 'a, N: EthosU> {
    npu: &'a mut N,
    lent: Lent<'r>,
    busy: bool,
}

impl<N: EthosU> Drop for Run<'_, '_, N> {
    fn drop(&mut self) {
        if self.busy {
            self.npu.stop();
        }
    }
}

impl<'r, N: EthosU> Run<'r, '_, N> {
    /// The steps from `first` on.
    fn all<K: Kernels>(&mut self, records: Records<'r>, (first, steps): (u32, u32)) -> Result<(), RunError> {
        let mut step = first;
        for record in records {
            let corrupt = RunError::Corrupt { step };
            let (kernel, params) = record.ok_or(corrupt)?;
            events::step(step, steps, kernel);
            if kernel == KernelId::EthosU as u8 {
                let op = commands((kernel, params)).ok_or(corrupt)?;
                match self.hand(step, &op).ok_or(corrupt)? {
                    Ok(()) => {}
                    Err(fault) => return Err(RunError::Accelerator { step, fault }),
                }
            } else {
                // SAFETY: the session lends the memory, and no stream is under way.
                let mem = unsafe { self.lent.mem() };
                run_step::<K>(kernel, params, &mem).ok_or(corrupt)?;
            }
            step += 1;
        }
        if step == steps {
            Ok(())
        } else {
            Err(RunError::Corrupt { step })
        }
    }

    /// Bytes of the session's memory.
    fn at(&self, slot: Slot, bytes: u32) -> Option<EthosURegion> {
        let (start, len) = self.lent.memory(slot.region)?;
        let (offset, bytes) = (slot.offset as usize, bytes as usize);
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= len);
        inside.then(|| EthosURegion {
            start: start.wrapping_add(offset),
            bytes,
        })
    }

    /// Hands a step over, as often as it takes to know that it was done; `None` where it is not what load has seen.
    fn hand(&mut self, step: u32, op: &Commands) -> Option<Result<(), AcceleratorFault>> {
        let before = self.checksum(op)?;
        self.fill(op, PATTERN)?;
        if let Err(fault) = self.once(step, op)? {
            return Some(Err(fault));
        }
        let Some(block) = self.unchanged(op, PATTERN, None)? else {
            return Some(Ok(()));
        };
        // It may be what the step computes. Where the inputs are others than before, the NPU has written: the step cannot be done again, nor need it be.
        if self.checksum(op)? != before {
            return Some(Ok(()));
        }
        self.fill(op, !PATTERN)?;
        if let Err(fault) = self.once(step, op)? {
            return Some(Err(fault));
        }
        let unwritten = self.unchanged(op, !PATTERN, Some(block))?.is_some();
        Some(if unwritten {
            Err(AcceleratorFault::Unwritten)
        } else {
            Ok(())
        })
    }

    /// Hands a step over and waits.
    fn once(&mut self, step: u32, op: &Commands) -> Option<Result<(), AcceleratorFault>> {
        let (bytes, payload) = payload_of(op, self.lent.weights)?;
        let constants = self.lent.weights.get(op.constants as usize..)?;
        let constants = constants.get(..op.constants_bytes as usize)?;
        let scratch = self.at(op.scratch, op.scratch_bytes)?;
        let fast = match op.fast_bytes {
            // A driver wants an address all the same.
            0 => EthosURegion { bytes: 0, ..scratch },
            bytes => self.at(op.fast, bytes)?,
        };
        let constants = EthosURegion {
            start: constants.as_ptr().cast_mut(),
            bytes: constants.len(),
        };
        let regions = [constants, scratch, fast];
        let stream = (bytes.as_ptr(), bytes.len());
        let all = regions.iter().map(|region| (region.start.cast_const(), region.bytes));
        let mut reached = all.chain([stream]);
        if !reached.all(|(start, bytes)| bytes == 0 || self.npu.reaches(start, bytes)) {
            return Some(Err(AcceleratorFault::Reach));
        }
        self.busy = true;
        let job = EthosUJob {
            step,
            bytes,
            payload,
            regions,
        };
        if let Err(code) = self.npu.start(job) {
            return Some(Err(AcceleratorFault::Failed { code }));
        }
        let done = until_done(self.npu.polls(), || self.npu.poll());
        self.busy = done.is_err();
        Some(done)
    }

    /// Visits the outputs of which it can be seen whether they were written: those that lie apart from the inputs.
    fn outputs(&self, op: &Commands, visit: &mut dyn FnMut(&[Cell<u8>])) -> Option<()> {
        let scratch = self.at(op.scratch, op.scratch_bytes)?;
        for output in &op.outputs {
            let (start, end) = (
                u64::from(output.offset),
                u64::from(output.offset) + u64::from(output.bytes),
            );
            let apart = op.inputs.each().all(|(slot, bytes)| {
                let at = i64::from(slot.offset) - i64::from(op.scratch.offset);
                let until = at + i64::from(bytes);
                slot.region != op.scratch.region || until <= start as i64 || end as i64 <= at
            });
            if apart && end <= scratch.bytes as u64 {
                // SAFETY: inside of the scratch, which the session lends; no stream is under way.
                visit(unsafe {
                    cells((
                        scratch.start.wrapping_add(output.offset as usize),
                        output.bytes as usize,
                    ))
                });
            }
        }
        Some(())
    }

    fn fill(&self, op: &Commands, pattern: u8) -> Option<()> {
        self.outputs(op, &mut |output| output.iter().for_each(|byte| byte.set(pattern)))
    }

    /// The number of the first block of the outputs that is as the pattern left it, of all or of `only` one.
    fn unchanged(&self, op: &Commands, pattern: u8, only: Option<usize>) -> Option<Option<usize>> {
        let (mut block, mut found) = (0, None);
        self.outputs(op, &mut |output| {
            each_block(output, &mut |bytes| {
                let asked = found.is_none() && only.is_none_or(|only| only == block);
                if asked && bytes.iter().all(|byte| byte.get() == pattern) {
                    found = Some(block);
                }
                block += 1;
            });
        })?;
        Some(found)
    }

    /// A number that is another one where the inputs are others.
    fn checksum(&self, op: &Commands) -> Option<u32> {
        let mut sum = 0u32;
        for (slot, bytes) in op.inputs.each() {
            let input = self.at(slot, bytes)?;
            // SAFETY: the session lends the memory; no stream is under way.
            for byte in unsafe { cells((input.start, input.bytes)) } {
                // FNV-1a.
                sum = (sum ^ u32::from(byte.get())).wrapping_mul(0x0100_0193);
            }
        }
        Some(sum)
    }
}
