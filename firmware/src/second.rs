//! The second Cortex-M33 of an SSE-200, to which steps are handed: released once, asleep until the mailbox says that there is one.
//!
//! The two cores of `mps2-an521` differ: the first has no DSP extension. All of the program is built for that one; the second runs the kernels of another build
//! of the runtime (`arenite-second`), whose assembly has the extension. Interrupts are masked on both cores: a message that is pending ends their sleep and no
//! handler runs.

use core::arch::{asm, naked_asm};
use core::cell::UnsafeCell;
use core::hint::black_box;
use core::mem::transmute;
use core::ptr::{read_volatile, with_exposed_provenance, with_exposed_provenance_mut, write_volatile};
use core::sync::atomic::{AtomicU32, Ordering};

use arenite::{Accelerator, Declaration, Job, Name, Poll, Target};
use arenite_second::JobParts;

/// System control of the SSE-200: the second core's vectors, and which cores wait after a reset.
const SYSTEM_CONTROL: usize = 0x5002_1000;
const INITSVTOR1: usize = 0x114;
const CPUWAIT: usize = 0x118;
/// The first message handling unit: a word for each core, whose bits are its interrupt.
const MAILBOX: usize = 0x5000_3000;
const SET: usize = 0x4;
const CLEAR: usize = 0x8;
/// From the first core's registers to the second one's.
const OTHER: usize = 0x10;
/// Its interrupt, on both cores.
const INTERRUPT: u32 = 6;
/// The core's own interrupt controller.
const ENABLE: usize = 0xe000_e100;
const UNPEND: usize = 0xe000_e280;

/// Words of the second core's stack.
const STACK: usize = 4 << 10;
/// Vectors that it has: the stack, the start, and the faults.
const VECTORS: usize = 16;

/// Values that [`Second`] finds in `STATE`.
const IDLE: u32 = 0;
const GIVEN: u32 = 1;
const DONE: u32 = 2;
const CHANGED: u32 = 3;
const FAULT: u32 = 4;

#[repr(C, align(128))]
struct Shared<T>(UnsafeCell<T>);
// SAFETY: the first core writes each before the second begins, or in turns by `STATE`, as its own comment says.
unsafe impl<T> Sync for Shared<T> {}

/// Written before the second core begins, and then its stack.
static STACK_OF_SECOND: Shared<[u32; STACK]> = Shared(UnsafeCell::new([0; STACK]));
/// Written before the second core begins, which reads it alone.
static TABLE: Shared<[usize; VECTORS]> = Shared(UnsafeCell::new([0; VECTORS]));
/// Written by the first core while `STATE` is not `GIVEN`, read by the second while it is.
static JOB: Shared<Option<Job<'static>>> = Shared(UnsafeCell::new(None));
static STATE: AtomicU32 = AtomicU32::new(IDLE);

/// The second core.
pub struct Second(());

impl Second {
    /// Releases it; it sleeps until it is given a step.
    ///
    /// # Safety
    /// Call it once, on the first core.
    pub unsafe fn wake() -> Self {
        let top = STACK_OF_SECOND.0.get().wrapping_add(1).expose_provenance();
        let mut table = [fault as *const () as usize; VECTORS];
        (table[0], table[1]) = (top, begin as *const () as usize);
        // SAFETY: the second core does not run yet.
        unsafe { *TABLE.0.get() = table };
        listen();
        // SAFETY: aligned words of the board's system control block, which this function alone writes.
        unsafe {
            barrier();
            write(SYSTEM_CONTROL + INITSVTOR1, TABLE.0.get().expose_provenance() as u32);
            let waiting: u32 = read_volatile(with_exposed_provenance(SYSTEM_CONTROL + CPUWAIT));
            write(SYSTEM_CONTROL + CPUWAIT, waiting & !2);
        }
        Self(())
    }
}

// SAFETY: the second core touches a job while `STATE` is `GIVEN` and no longer; that is stored with release and loaded with acquire. It does not touch
// a job any more that it faulted on. `stop` waits for that. The memory of the cores is one, without caches.
unsafe impl Accelerator for Second {
    fn declaration(&self) -> Declaration {
        Declaration {
            name: const { Name::new("second-m33").unwrap() },
            version: 1,
            layout: Target::CortexM33,
            alignment: 4,
            regions: 1,
        }
    }

    fn start(&mut self, job: Job<'_>) -> Result<(), u32> {
        if STATE.load(Ordering::Acquire) == FAULT {
            return Err(FAULT);
        }
        // SAFETY: no step is under way, so the second core does not touch the place; it uses the job no more when that is over (`stop` waits).
        unsafe { *JOB.0.get() = Some(transmute::<Job<'_>, Job<'static>>(job)) };
        STATE.store(GIVEN, Ordering::Release);
        // SAFETY: a word of the board's mailbox, to be written by either core.
        unsafe { write(MAILBOX + OTHER + SET, 1) };
        Ok(())
    }

    fn poll(&mut self) -> Result<Poll, u32> {
        match STATE.load(Ordering::Acquire) {
            DONE => Ok(Poll::Done),
            GIVEN => {
                arenite_wait_begin();
                sleep(MAILBOX);
                arenite_wait_end();
                Ok(Poll::Busy)
            }
            wrong => Err(wrong),
        }
    }

    fn stop(&mut self) {
        // A step of this runtime ends, by its last instruction or by a fault.
        while STATE.load(Ordering::Acquire) == GIVEN {
            sleep(MAILBOX);
        }
    }
}

/// Where the second core begins. Its stack is in its vectors.
extern "C" fn begin() -> ! {
    listen();
    loop {
        while STATE.load(Ordering::Acquire) != GIVEN {
            arenite_wait_begin();
            sleep(MAILBOX + OTHER);
            arenite_wait_end();
        }
        // SAFETY: written by the first core before the `GIVEN` that was just seen, with release and acquire, and not again before `DONE`.
        let job = unsafe { &*JOB.0.get() };
        let done = job.as_ref().is_some_and(run);
        STATE.store(if done { DONE } else { CHANGED }, Ordering::Release);
        // SAFETY: a word of the board's mailbox, to be written by either core.
        unsafe { write(MAILBOX + SET, 1) };
    }
}

/// Computes a step with the second build's kernels.
fn run(job: &Job<'_>) -> bool {
    let arenite::JobParts {
        kernel,
        params,
        memories,
        weights,
        fused,
    } = job.parts();
    let parts = JobParts {
        kernel,
        params,
        memories,
        weights,
        fused,
    };
    // SAFETY: the job was started and is not done, and the two builds are of one version.
    unsafe { parts.run() }
}

/// Every fault of the second core: it says so and sleeps for ever.
#[unsafe(naked)]
extern "C" fn fault() -> ! {
    naked_asm!("b {told}", told = sym told)
}

extern "C" fn told() -> ! {
    STATE.store(FAULT, Ordering::Release);
    // SAFETY: a word of the board's mailbox, to be written by either core.
    unsafe { write(MAILBOX + SET, 1) };
    loop {
        // SAFETY: waits, and touches no memory and no register.
        unsafe { asm!("wfi", options(nomem, nostack)) };
    }
}

/// Masks interrupts on this core, and lets the mailbox's end its sleep.
fn listen() {
    // SAFETY: no handler is there to be called; a register of this core.
    unsafe {
        asm!("cpsid i", options(nomem, nostack));
        write(ENABLE, 1 << INTERRUPT);
    }
}

/// Sleeps until there is a message at these registers, and takes it. One that came before ends the sleep at once.
fn sleep(mailbox: usize) {
    // SAFETY: registers of the board and of this core.
    unsafe {
        asm!("dsb", "wfi", options(nostack));
        write(mailbox + CLEAR, 1);
        barrier();
        write(UNPEND, 1 << INTERRUPT);
    }
}

fn barrier() {
    // SAFETY: barriers alone: no memory is changed.
    unsafe { asm!("dsb", "isb", options(nostack)) };
}

/// # Safety
/// The address is a register's.
unsafe fn write(register: usize, value: u32) {
    // SAFETY: the address is a register's (fn docs).
    unsafe { write_volatile(with_exposed_provenance_mut(register), value) };
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
