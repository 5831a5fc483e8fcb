//! Runs on several cores that share the memory: each takes its steps of a model that `pack --cores` planned for so many, and all meet at barriers.
//!
//! No operating system and no lock: a core says how many barriers it has come to, and waits until the others have come to as many. That takes loads and
//! stores of whole words and nothing else, so that cores without compare-and-swap can do it.

use core::cell::Cell;
use core::hint::spin_loop;
use core::slice;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::arena::{MAX_REGIONS, Mem, Rounding};
use crate::blob::Records;
use crate::error::RunError;
use crate::groups::{BARRIER, MAX_CORES};
use crate::kernels::table::{Kernels, run_step};
use crate::session::Session;

/// The cores of a board, which see one memory.
///
/// # Safety
/// The behaviour of [`Cores::run`] decides whether two cores write the same bytes. An implementation guarantees:
///
/// - `work` is called at most once with each index, and with none that is not below [`Cores::count`];
/// - [`Cores::run`] returns after every call of `work` has returned, and none begins later;
/// - what was written before [`Cores::run`] was called is seen by every core when its call begins, and what a call wrote is seen where `run` returns: as if
///   each call began with an acquire fence on what the caller released, and ended with a release fence that the caller acquires. Cores whose
///   caches are not coherent clean and invalidate theirs there; and because cores read what others wrote between two barriers as well, such cores must
///   have the arenas, the state and the variables of the run in memory that is not cached.
pub unsafe trait Cores: Sync {
    /// Number of cores, the calling one among them.
    fn count(&self) -> usize;

    /// Calls `work` with the index of each core, on that core, all at one time; returns when all have returned. They wait for each other: calls one after the
    /// other would not end.
    fn run(&self, work: &(dyn Fn(usize) + Sync));

    /// Waits until `ready`; called by a core that has come to a barrier before others. It may return earlier, and is called again then.
    fn wait(&self, ready: &dyn Fn() -> bool) {
        while !ready() {
            spin_loop();
        }
    }
}

impl<K: Kernels> Session<'_, '_, K> {
    /// Runs all remaining steps on the cores that the model was packed for, the first ones of those given. The outputs are those of [`Session::run`], bit for
    /// bit. A model of one core runs on the one that calls.
    ///
    /// # Errors
    /// [`RunError::Cores`] where the model is for more cores than there are; nothing was run then. See [`Session::step`] for others: a core that finds its step
    /// changed lets the others go, and the first such step is named.
    pub fn run_on(&mut self, cores: &mut impl Cores) -> Result<(), RunError> {
        let Some((wanted, assigned)) = self.model().parts().cores() else {
            // Of one core, or of one and an accelerator, whose steps a core takes as well.
            return self.run();
        };
        let (wanted, given) = (usize::from(wanted), cores.count());
        if given < wanted {
            let given = given as u32;
            return Err(RunError::Cores {
                needed: wanted as u32,
                given,
            });
        }
        let steps = self.model().parts().step_count();
        let (records, first, lent) = self.lend()?;
        let shared = Shared {
            lent,
            records,
            assigned,
            first,
            steps,
            meeting: Meeting::new(wanted),
        };
        let cores = &*cores;
        cores.run(&|core| shared.work::<K>(core, cores));
        let failed = shared.meeting.failed();
        self.end_shared(failed)
    }
}

impl<'m, K: Kernels> Session<'m, '_, K> {
    /// Begins a run, unless one is under way, whose remaining steps are run on lent memory: the steps, the first one's index, and the memory.
    ///
    /// # Errors
    /// [`RunError::InputMissing`].
    pub(crate) fn lend(&mut self) -> Result<(Records<'m>, u32, Lent<'m>), RunError> {
        let weights = self.model().weights();
        let (records, first, rounding, memories) = self.begin_shared()?;
        let lent = Lent {
            memories: memories.map(|memory| (memory.as_mut_ptr(), memory.len())),
            weights,
            rounding,
        };
        Ok((records, first, lent))
    }
}

/// Memory of a session, lent to those that run its steps, and how these compute.
#[derive(Clone, Copy)]
pub(crate) struct Lent<'r> {
    /// Regions, then the state.
    pub(crate) memories: [(*mut u8, usize); MAX_REGIONS + 1],
    pub(crate) weights: &'r [u8],
    pub(crate) rounding: Rounding,
}

impl<'r> Lent<'r> {
    /// The memory as steps see it.
    ///
    /// # Safety
    /// The session that lent the memory is borrowed exclusively by a call that does not return before what is returned here is done with. Nobody else touches
    /// the bytes that steps write through it, nor writes those that they read, at that time.
    pub(crate) unsafe fn mem(&self) -> Mem<'r> {
        // SAFETY: the bytes are the session's, which stays borrowed, and nobody touches those that are written meanwhile (fn docs).
        let [a, b, c, d, state] = self.memories.map(|memory| unsafe { cells(memory) });
        Mem {
            regions: [a, b, c, d],
            state,
            weights: self.weights,
            rounding: self.rounding,
            turning: Default::default(),
        }
    }

    /// Address and bytes of a memory: of a region, or of the state.
    #[cfg(feature = "accelerators")]
    pub(crate) fn memory(&self, region: u8) -> Option<(*mut u8, usize)> {
        match region {
            crate::arena::Slot::STATE => self.memories.last().copied(),
            region => self.memories.iter().take(MAX_REGIONS).nth(region.into()).copied(),
        }
    }
}

/// State that all cores of a run share.
struct Shared<'r> {
    lent: Lent<'r>,
    records: Records<'r>,
    /// A byte for each step: its core, and whether a barrier comes before it.
    assigned: &'r [u8],
    /// The index of the first record.
    first: u32,
    steps: u32,
    meeting: Meeting,
}

// SAFETY: the memories are borrowed exclusively by the call that made this, for as long as any core runs. Of their bytes no core touches what another one
// writes between the same barriers: load has compared the operands of all steps (`groups`), kernels touch nothing else, and the file does not change
// while it is borrowed. All else is read, or atomic.
unsafe impl Sync for Shared<'_> {}

impl Shared<'_> {
    /// The steps of one core, and all barriers.
    fn work<K: Kernels>(&self, core: usize, cores: &impl Cores) {
        let Some(own) = self.meeting.core(core) else {
            return;
        };
        if let Err(step) = self.steps_of::<K>(core, own, cores) {
            own.failed.store(step, Ordering::Relaxed);
        }
        own.leave();
    }

    /// # Errors
    /// The step that failed, or before which another core left.
    fn steps_of<K: Kernels>(&self, core: usize, own: &Arrived, cores: &impl Cores) -> Result<(), u32> {
        // SAFETY: borrowed exclusively while any core runs (see `Shared`); load has checked that no core touches what another one writes at one time.
        let mem = unsafe { self.lent.mem() };
        let mut step = self.first;
        for record in self.records.clone() {
            let on = self.assigned.get(step as usize).copied().ok_or(step)?;
            if on & BARRIER != 0 && !self.meeting.pass(own, cores) {
                return Err(step);
            }
            if usize::from(on & !BARRIER) == core {
                let done = record.and_then(|(id, params)| run_step::<K>(id, params, &mem));
                done.ok_or(step)?;
            }
            step += 1;
        }
        if step == self.steps { Ok(()) } else { Err(step) }
    }
}

/// The bytes of a memory as cells, for one of those that share it.
///
/// # Safety
/// `len` bytes at `start` are of a slice that is borrowed exclusively, by a call that does not return before this is done with. Cells may be written while
/// others have them; nobody touches those that another one writes at that time.
pub(crate) unsafe fn cells<'m>((start, len): (*mut u8, usize)) -> &'m [Cell<u8>] {
    // SAFETY: `len` bytes at `start` are of an exclusively borrowed slice that outlives the cells, and nobody touches bytes that another one writes (fn docs).
    unsafe { slice::from_raw_parts(start.cast::<Cell<u8>>(), len) }
}

/// Barrier at which the cores wait for each other.
struct Meeting {
    cores: [Arrived; MAX_CORES],
    /// Number of cores that run.
    count: usize,
}

/// Progress of a core. It alone writes this.
struct Arrived {
    /// The barriers that it has come to; with [`LEFT`] when it comes to no more. Fewer than a file has bytes.
    barriers: AtomicU32,
    /// The step at which it stopped; [`NEVER`] where it did all.
    failed: AtomicU32,
}

/// A core comes to no more barriers.
const LEFT: u32 = 1 << 31;
/// No step.
const NEVER: u32 = u32::MAX;

impl Meeting {
    fn new(count: usize) -> Self {
        Self {
            cores: [const {
                Arrived {
                    barriers: AtomicU32::new(0),
                    failed: AtomicU32::new(NEVER),
                }
            }; MAX_CORES],
            count,
        }
    }

    /// State of this core; `None` where it does not take part.
    fn core(&self, core: usize) -> Option<&Arrived> {
        self.cores.iter().take(self.count).nth(core)
    }

    /// Comes to the next barrier, and waits until all others have: what they wrote before it is seen behind it. False where one of them left without.
    fn pass(&self, own: &Arrived, cores: &impl Cores) -> bool {
        let mine = own.barriers.load(Ordering::Relaxed) + 1;
        own.barriers.store(mine, Ordering::Release);
        self.cores.iter().take(self.count).all(|other| {
            loop {
                let theirs = other.barriers.load(Ordering::Acquire);
                if theirs & !LEFT >= mine {
                    return true;
                }
                if theirs & LEFT != 0 {
                    return false;
                }
                cores.wait(&|| other.barriers.load(Ordering::Acquire) >= mine);
            }
        })
    }

    /// The first step that failed, and of cores that did not end the first one.
    fn failed(&self) -> Option<u32> {
        let of = |core: &Arrived| match core.barriers.load(Ordering::Acquire) & LEFT {
            0 => 0,
            _ => core.failed.load(Ordering::Relaxed),
        };
        let first = self.cores.iter().take(self.count).map(of).min();
        first.filter(|&step| step != NEVER)
    }
}

impl Arrived {
    /// Comes to no more barriers. In one word with their number, so that who sees it sees both.
    fn leave(&self) {
        let barriers = self.barriers.load(Ordering::Relaxed);
        self.barriers.store(barriers | LEFT, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::thread;

    use super::*;

    /// Cores that only wait.
    struct Waiting;

    // SAFETY: `run` returns without running anything: nothing overlaps.
    unsafe impl Cores for Waiting {
        fn count(&self) -> usize {
            0
        }

        fn run(&self, _: &(dyn Fn(usize) + Sync)) {}

        fn wait(&self, _: &dyn Fn() -> bool) {
            thread::yield_now();
        }
    }

    #[test]
    fn nobody_passes_a_barrier_before_all_have_come() {
        let (meeting, came) = (Meeting::new(MAX_CORES), AtomicU32::new(0));
        thread::scope(|scope| {
            for core in 0..MAX_CORES {
                let (meeting, came) = (&meeting, &came);
                scope.spawn(move || {
                    let own = meeting.core(core).expect("takes part");
                    for round in 1..500 {
                        came.fetch_add(1, Ordering::Relaxed);
                        assert!(meeting.pass(own, &Waiting));
                        assert!(came.load(Ordering::Relaxed) >= round * MAX_CORES as u32);
                        assert!(meeting.pass(own, &Waiting));
                    }
                    own.leave();
                });
            }
        });
        assert_eq!(meeting.failed(), None);
    }

    #[test]
    fn who_leaves_lets_others_go_and_only_from_the_next_barrier_on() {
        let meeting = Meeting::new(2);
        let [one, other] = [0, 1].map(|core| meeting.core(core).expect("takes part"));
        assert!(meeting.core(2).is_none());
        one.barriers.store(2, Ordering::Relaxed);
        one.failed.store(7, Ordering::Relaxed);
        one.leave();
        // It came to two.
        let passed = [(); 3].map(|()| meeting.pass(other, &Waiting));
        assert_eq!(passed, [true, true, false]);
        // One that has not ended is as bad as a step that failed.
        assert_eq!(meeting.failed(), Some(0));
        other.failed.store(9, Ordering::Relaxed);
        other.leave();
        assert_eq!(meeting.failed(), Some(7));
    }
}
