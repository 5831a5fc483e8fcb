//! The other cores of a board that has several: parked from the start on, woken for the runs of a session.
//!
//! Cores wait with an instruction that gives the processor away in qemu, which runs all of them in turn on one thread; what they execute meanwhile lies between
//! two marks, so that a tracer can tell it from their work.

use core::cell::UnsafeCell;
use core::hint::black_box;
use core::mem::transmute;
use core::sync::atomic::{AtomicU32, Ordering};

use arenite::{Cores, MAX_CORES};

use crate::board::cores as board;

/// Bytes of stack of each core but the first.
const STACK: usize = 64 << 10;

/// Function that a core runs with its index.
type Work = &'static (dyn Fn(usize) + Sync);

#[repr(C, align(64))]
struct Stacks(UnsafeCell<[[u8; STACK]; MAX_CORES - 1]>);
// SAFETY: each core uses its own, as its stack.
unsafe impl Sync for Stacks {}

/// The stacks of the cores behind the first one.
static STACKS: Stacks = Stacks(UnsafeCell::new([[0; STACK]; MAX_CORES - 1]));

struct Job(UnsafeCell<Option<Work>>);
// SAFETY: written by the first core alone, before it raises `TURN`; read by others after they have seen that, and before they raise `DONE`, on which it waits.
unsafe impl Sync for Job {}

static JOB: Job = Job(UnsafeCell::new(None));
/// Counts the jobs.
static TURN: AtomicU32 = AtomicU32::new(0);
/// The last job that each core has done.
static DONE: [AtomicU32; MAX_CORES] = [const { AtomicU32::new(0) }; MAX_CORES];

/// All cores of the board.
pub struct All {
    count: usize,
}

impl All {
    /// Wakes the others, which wait for work from then on.
    ///
    /// # Safety
    /// Call it once, on the first core.
    pub unsafe fn wake() -> Self {
        // That of core 1 ends where the memory of the second one begins.
        let tops = core::array::from_fn(|core| STACKS.0.get().expose_provenance() + core * STACK);
        let count = board::wake(work, tops).min(MAX_CORES);
        Self { count }
    }
}

// SAFETY: each core calls the work of a turn once, with its own index; `run` waits for all of them, on words that are stored with release and loaded with
// acquire. The board's memory is one, without caches that differ.
unsafe impl Cores for All {
    fn count(&self) -> usize {
        self.count
    }

    fn run(&self, work: &(dyn Fn(usize) + Sync)) {
        // SAFETY: `run` returns when all cores have raised `DONE`, after which none uses the work: it does not outlive `work`.
        let job = unsafe { transmute::<&(dyn Fn(usize) + Sync), Work>(work) };
        // SAFETY: the others read it after `TURN` is raised, below, and all have raised `DONE` of the turn before.
        unsafe { *JOB.0.get() = Some(job) };
        let turn = TURN.load(Ordering::Relaxed).wrapping_add(1);
        TURN.store(turn, Ordering::Release);
        work(0);
        for done in DONE.iter().take(self.count).skip(1) {
            let ready = || done.load(Ordering::Acquire) == turn;
            if !ready() {
                self.wait(&ready);
            }
        }
    }

    fn wait(&self, ready: &dyn Fn() -> bool) {
        arenite_wait_begin();
        while !ready() {
            board::give_way();
        }
        arenite_wait_end();
    }
}

/// Where a core behind the first one goes, with its index.
extern "C" fn work(index: usize) -> ! {
    let mut turn = 0;
    let all = All { count: 0 };
    loop {
        all.wait(&|| TURN.load(Ordering::Acquire) != turn);
        turn = TURN.load(Ordering::Acquire);
        // SAFETY: written by the first core before it raised the `TURN` that was just seen, with release and acquire, and not again before `DONE`.
        let job = unsafe { *JOB.0.get() };
        if let Some(job) = job {
            job(index);
        }
        if let Some(done) = DONE.get(index) {
            done.store(turn, Ordering::Release);
        }
    }
}

/// Marks that this core begins to wait.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn arenite_wait_begin() {
    mark(2);
}

/// Marks that this core goes on.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn arenite_wait_end() {
    mark(3);
}

/// As in `counter`: equal functions would be merged.
#[inline(always)]
fn mark(which: usize) {
    black_box(which);
}
