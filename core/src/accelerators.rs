//! Runs with an accelerator: something on the board that takes over steps of a model that `pack --accelerator` planned for it, while the core runs others.
//!
//! To load it is one more core: between two barriers it touches nothing that the core writes, and writes nothing that the core touches. To the run it is what
//! can fail at any time: it may be another one than the model is for, not start, not end, or say that it is done and have written nothing.

use core::cell::Cell;
use core::ptr::slice_from_raw_parts_mut;

use crate::arena::{Access, MAX_REGIONS, Mem, Operand, Rounding, Slot};
use crate::blob::Records;
use crate::cores::{Lent, cells};
use crate::declared::Declaration;
use crate::error::{AcceleratorFault, RunError};
use crate::events;
use crate::groups::{ACCELERATOR, BARRIER};
use crate::kernels::table::{All, KernelId, Kernels, operands_step, run_step};
use crate::session::Session;

/// Something on a board that takes over steps.
///
/// # Safety
/// An implementation guarantees:
///
/// - from [`Accelerator::start`] on it touches of the memory of the session what the operands of the job are, and writes only those that are not
///   [`Access::Read`]; nothing of it, and nothing of the job, after [`Accelerator::poll`] has returned [`Poll::Done`], [`Accelerator::start`] an error,
///   or [`Accelerator::stop`] at all;
/// - it sees what was written before [`Accelerator::start`] was called, and what it wrote is seen when [`Accelerator::poll`] returns [`Poll::Done`]: where
///   caches are not coherent, they are cleaned and invalidated there. The core reads and writes other bytes meanwhile, which may lie in the same line of a
///   cache: such an accelerator has its operands in memory that is not cached.
pub unsafe trait Accelerator {
    /// Kind and version of the accelerator; a model for another one is refused.
    fn declaration(&self) -> Declaration;

    /// Whether it reaches so many bytes from `start` on: of arenas, where a session was given them, and of the weights.
    fn reaches(&self, start: *const u8, bytes: usize) -> bool {
        let _ = (start, bytes);
        true
    }

    /// Begins a step, when none is under way.
    ///
    /// # Errors
    /// A code of the implementation's own, for [`AcceleratorFault::Failed`].
    fn start(&mut self, job: Job<'_>) -> Result<(), u32>;

    /// Whether the step that was started is done. It may wait a while, with an instruction that sleeps until an interrupt.
    ///
    /// # Errors
    /// As [`Accelerator::start`]; [`Accelerator::stop`] is called then.
    fn poll(&mut self) -> Result<Poll, u32>;

    /// Ends what is under way: called after errors and when the time is over. It returns when nothing of the session's memory is touched any more.
    fn stop(&mut self);

    /// Number of times that [`Accelerator::poll`] may say [`Poll::Busy`] in one step, before that counts as never done.
    fn polls(&self) -> u32 {
        100_000_000
    }
}

/// Progress of an accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Poll {
    /// It works.
    Busy,
    /// The step is done.
    Done,
}

/// A step that is handed over.
pub struct Job<'r> {
    step: Handed<'r>,
    lent: Lent<'r>,
    operands: Operands,
    compute: Compute,
}

/// An operand of a [`Job`].
#[derive(Debug, Clone, Copy)]
pub struct JobOperand {
    /// Access to the operand.
    pub access: Access,
    /// Its address; not to be written where the operand is only read.
    pub start: *mut u8,
    /// Its bytes.
    pub bytes: usize,
}

/// A job for a program that is not this one: another core's, of which the build has other kernels. Addresses and bytes, as it is passed on in a mailbox.
#[derive(Debug, Clone, Copy)]
pub struct JobParts {
    /// The kernel's number.
    pub kernel: u8,
    /// The step's parameters.
    pub params: *const [u8],
    /// Regions, then the state.
    pub memories: [*mut [u8]; MAX_REGIONS + 1],
    /// The weights.
    pub weights: *const [u8],
    /// Whether products of f32 may be fused with their sums ([`Session::allow_fused`]).
    pub fused: bool,
}

impl JobParts {
    /// Computes the step with the kernels of this build; false where it has not the step's.
    ///
    /// # Safety
    /// The parts are those of a job ([`Job::parts`]) that a session of the same version of this crate has started and that is not done; nobody else runs it.
    #[must_use]
    pub unsafe fn run(&self) -> bool {
        // SAFETY: parameters and weights are of the file of the session that has started the job (fn docs); it does not change while the session runs it.
        let (params, weights) = unsafe { (&*self.params, &*self.weights) };
        let lent = Lent {
            memories: self.memories.map(|memory| (memory.cast::<u8>(), memory.len())),
            weights,
            rounding: Rounding::of(self.fused),
        };
        // SAFETY: the session lends the memories to the job, and nobody else runs it (fn docs): nobody else touches the bytes that the step touches.
        let mem = unsafe { lent.mem() };
        run_step::<All>(self.kernel, params, &mem).is_some()
    }
}

type Operands = fn(u8, &[u8], &mut dyn FnMut(Operand)) -> Option<()>;
type Compute = fn(u8, &[u8], &Mem<'_>) -> Option<()>;

/// A record that is handed over.
#[derive(Clone, Copy)]
struct Handed<'r> {
    index: u32,
    kernel: u8,
    params: &'r [u8],
}

// SAFETY: what it points to is touched by whoever runs it and by nobody else, for as long as the implementation of `Accelerator` promises: load has compared
// the operands with those of the steps that the core runs meanwhile. One at a time can run it: it is not `Sync`, nor can it be copied.
unsafe impl Send for Job<'_> {}

impl<'r> Job<'r> {
    /// The index of the step.
    pub fn step(&self) -> u32 {
        self.step.index
    }

    /// The kernel that the step's weights are laid out for.
    pub fn kernel(&self) -> Option<KernelId> {
        KernelId::from_u8(self.step.kernel)
    }

    /// The step's parameters, as the file has them.
    pub fn record(&self) -> &'r [u8] {
        self.step.params
    }

    /// Visits the operands in the order of the format's description: the output first, constants last. `None` where the file changed since it was loaded.
    pub fn operands(&self, visit: &mut dyn FnMut(JobOperand)) -> Option<()> {
        let mut inside = true;
        (self.operands)(
            self.step.kernel,
            self.step.params,
            &mut |operand| match self.operand(&operand) {
                Some(operand) => visit(operand),
                None => inside = false,
            },
        )?;
        inside.then_some(())
    }

    /// Computes the step where this is called: for an accelerator that is another core with this program. False where the file changed since it was loaded.
    #[must_use]
    pub fn run(&self) -> bool {
        // SAFETY: while the job lasts, the session lends the memory, and nobody else touches the bytes that the step touches.
        let mem = unsafe { self.lent.mem() };
        (self.compute)(self.step.kernel, self.step.params, &mem).is_some()
    }

    /// The job as another program takes it.
    pub fn parts(&self) -> JobParts {
        JobParts {
            kernel: self.step.kernel,
            params: self.step.params,
            memories: (self.lent.memories).map(|(start, len)| slice_from_raw_parts_mut(start, len)),
            weights: self.lent.weights,
            fused: self.lent.rounding.is_fused(),
        }
    }

    fn operand(&self, operand: &Operand) -> Option<JobOperand> {
        let Slot { region, offset } = operand.place;
        let (start, len) = match region {
            Slot::WEIGHTS => (self.lent.weights.as_ptr().cast_mut(), self.lent.weights.len()),
            region => self.lent.memory(region)?,
        };
        let (offset, bytes) = (offset as usize, operand.bytes as usize);
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= len);
        inside.then(|| JobOperand {
            access: operand.access,
            start: start.wrapping_add(offset),
            bytes,
        })
    }
}

impl JobOperand {
    /// The bytes of one that the step writes and that is worth something after it: for the session, while nothing of the accelerator's is under way.
    fn output<'m>(&self) -> Option<&'m [Cell<u8>]> {
        // SAFETY: the session has the memory, and the accelerator does not touch it before it is started, nor when it is done.
        (self.access == Access::Write).then(|| unsafe { cells((self.start, self.bytes)) })
    }
}

impl<K: Kernels> Session<'_, '_, K> {
    /// Runs all remaining steps; those that the model has for an accelerator are handed to it, and the core runs others meanwhile where the plan has some. The
    /// outputs are those of [`Session::run`], bit for bit, which runs all steps on the core. A model that is for none runs on the core.
    ///
    /// Before each step that is handed over its output is filled with a pattern. Where a part of it (sixteen bytes, or all) is unchanged behind the step,
    /// the step is handed over once more with the opposite pattern: what is unchanged then was not written, whatever the data.
    ///
    /// # Errors
    /// [`RunError::Accelerator`], after which nothing of the accelerator's is under way: set the inputs anew for the next run, with it or without. See
    /// [`Session::step`] for others.
    pub fn run_accelerated(&mut self, accelerator: &mut impl Accelerator) -> Result<(), RunError> {
        let Some((declared, assigned)) = self.model().parts().accelerator() else {
            return self.run();
        };
        if let Some(fault) = difference(&declared, &accelerator.declaration()) {
            let first = assigned.iter().position(|&on| on & !BARRIER == ACCELERATOR);
            let step = first.unwrap_or(0) as u32;
            return Err(RunError::Accelerator { step, fault });
        }
        let steps = self.model().parts().step_count();
        let (records, first, lent) = self.lend()?;
        let mut run = Run {
            accelerator,
            lent,
            operands: operands_step::<K>,
            compute: run_step::<K>,
            under_way: None,
        };
        let done = run.all(records, assigned, (first, steps));
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

/// Byte that outputs are filled with before their step; its complement, where the step is handed over once more.
pub(crate) const PATTERN: u8 = 0x5B;
/// Bytes of an output of which one at least changes.
const BLOCK: usize = 16;

/// In what the accelerator that there is differs from the model's.
fn difference(model: &Declaration, own: &Declaration) -> Option<AcceleratorFault> {
    let differ = [
        (model.name != own.name, AcceleratorFault::Name),
        (model.version != own.version, AcceleratorFault::Version),
        (model.layout != own.layout, AcceleratorFault::Layout),
        (model.regions != own.regions, AcceleratorFault::Regions),
        (model.alignment != own.alignment, AcceleratorFault::Alignment),
    ];
    let mut found = differ.into_iter().filter(|&(differs, _)| differs);
    found.next().map(|(_, fault)| fault)
}

/// A run with an accelerator. A step under way when it is dropped is stopped.
struct Run<'r, 'a, A: Accelerator> {
    accelerator: &'a mut A,
    lent: Lent<'r>,
    operands: Operands,
    compute: Compute,
    under_way: Option<Handed<'r>>,
}

impl<A: Accelerator> Drop for Run<'_, '_, A> {
    fn drop(&mut self) {
        if self.under_way.is_some() {
            self.accelerator.stop();
        }
    }
}

impl<'r, A: Accelerator> Run<'r, '_, A> {
    /// The steps from `first` on.
    fn all(&mut self, records: Records<'r>, assigned: &[u8], (first, steps): (u32, u32)) -> Result<(), RunError> {
        let mut step = first;
        for record in records {
            let corrupt = RunError::Corrupt { step };
            let on = assigned.get(step as usize).copied().ok_or(corrupt)?;
            let (kernel, params) = record.ok_or(corrupt)?;
            let handed = on & !BARRIER == ACCELERATOR;
            if handed || on & BARRIER != 0 {
                self.wait()?;
            }
            events::step(step, steps, kernel);
            let next = Handed {
                index: step,
                kernel,
                params,
            };
            if handed {
                self.hand(next, PATTERN)?;
            } else if !self.job(next).run() {
                return Err(corrupt);
            }
            step += 1;
        }
        self.wait()?;
        if step == steps {
            Ok(())
        } else {
            Err(RunError::Corrupt { step })
        }
    }

    fn job(&self, step: Handed<'r>) -> Job<'r> {
        Job {
            step,
            lent: self.lent,
            operands: self.operands,
            compute: self.compute,
        }
    }

    /// Fills the outputs with the pattern and hands the step over.
    fn hand(&mut self, step: Handed<'r>, pattern: u8) -> Result<(), RunError> {
        let (job, index) = (self.job(step), step.index);
        // Offsets have the alignment that the file declares, as load has checked, and memories begin at multiples of more.
        let mut reached = true;
        let all = job.operands(&mut |operand| {
            reached &= operand.bytes == 0 || self.accelerator.reaches(operand.start, operand.bytes);
            if let Some(output) = operand.output() {
                output.iter().for_each(|byte| byte.set(pattern));
            }
        });
        all.ok_or(RunError::Corrupt { step: index })?;
        if !reached {
            let fault = AcceleratorFault::Reach;
            return Err(RunError::Accelerator { step: index, fault });
        }
        self.under_way = Some(step);
        self.accelerator.start(job).map_err(|code| failed(index, code))
    }

    /// Waits for the step that is under way, if any, and looks whether its output was written.
    fn wait(&mut self) -> Result<(), RunError> {
        let Some(step) = self.under_way else {
            return Ok(());
        };
        let index = step.index;
        self.end(index)?;
        let Some(block) = self.unchanged(step, PATTERN, None)? else {
            return Ok(());
        };
        // It may be what the step computes.
        self.hand(step, !PATTERN)?;
        self.end(index)?;
        match self.unchanged(step, !PATTERN, Some(block))? {
            None => Ok(()),
            Some(_) => Err(RunError::Accelerator {
                step: index,
                fault: AcceleratorFault::Unwritten,
            }),
        }
    }

    /// Waits until the accelerator is done.
    fn end(&mut self, step: u32) -> Result<(), RunError> {
        let done = until_done(self.accelerator.polls(), || self.accelerator.poll());
        done.map_err(|fault| RunError::Accelerator { step, fault })?;
        self.under_way = None;
        Ok(())
    }

    /// The number of the first block of the outputs that is as the pattern left it, of all or of `only` one.
    fn unchanged(&self, step: Handed<'r>, pattern: u8, only: Option<usize>) -> Result<Option<usize>, RunError> {
        let (mut block, mut found) = (0, None);
        let all = self.job(step).operands(&mut |operand| {
            each_block(operand.output().unwrap_or_default(), &mut |bytes| {
                let asked = found.is_none() && only.is_none_or(|only| only == block);
                if asked && bytes.iter().all(|byte| byte.get() == pattern) {
                    found = Some(block);
                }
                block += 1;
            });
        });
        all.ok_or(RunError::Corrupt { step: step.index })?;
        Ok(found)
    }
}

/// Polls until the step is done.
pub(crate) fn until_done(mut polls: u32, mut poll: impl FnMut() -> Result<Poll, u32>) -> Result<(), AcceleratorFault> {
    loop {
        match poll() {
            Ok(Poll::Done) => return Ok(()),
            Ok(Poll::Busy) if polls > 0 => polls -= 1,
            Ok(Poll::Busy) => return Err(AcceleratorFault::TimedOut),
            Err(code) => return Err(AcceleratorFault::Failed { code }),
        }
    }
}

/// Visits an output in blocks. The bytes left over belong to the last one: a byte by itself would be as the pattern is too often.
pub(crate) fn each_block(output: &[Cell<u8>], visit: &mut dyn FnMut(&[Cell<u8>])) {
    let mut rest = output;
    while !rest.is_empty() {
        let len = if rest.len() < 2 * BLOCK { rest.len() } else { BLOCK };
        let (now, next) = rest.split_at_checked(len).unwrap_or((rest, &[]));
        visit(now);
        rest = next;
    }
}

fn failed(step: u32, code: u32) -> RunError {
    RunError::Accelerator {
        step,
        fault: AcceleratorFault::Failed { code },
    }
}
