//! Counting instructions.
//!
//! Under `-icount shift=S` every instruction takes 2^S ns of the board's time, so any timer counts instructions. With
//! S = 7 each of the Cortex-M boards' timers ticks more than twice an instruction, which makes the rounded quotient
//! exact; RISC-V's `instret` and AArch64's cycle counter (1 GHz in qemu) are exact at S = 0.

use core::arch::asm;
use core::hint::black_box;

use crate::board::timer;

/// Counts the instructions of a piece of work, less its own.
pub struct Counter {
    overhead: u64,
}

/// The readings of the timer around a piece of work.
#[derive(Clone, Copy)]
pub struct Interval {
    start: timer::Reading,
    end: timer::Reading,
}

impl Counter {
    /// Starts the board's timer and measures the counter's own cost.
    pub fn start() -> Self {
        timer::start();
        let mut counter = Self { overhead: 0 };
        counter.overhead = counter.count(&mut || {});
        counter
    }

    /// Instructions of `work`; those of an empty closure count as none.
    pub fn count(&self, work: &mut dyn FnMut()) -> u64 {
        self.instructions(Self::time(work))
    }

    /// Reads the timer before and after `work`. Converting the readings takes stack of its own, so [`Counter::instructions`]
    /// is a call apart.
    ///
    /// Never inlined, and the closure is opaque, so the instructions around it are the same for all work.
    #[inline(never)]
    pub fn time(work: &mut dyn FnMut()) -> Interval {
        let work = black_box(work);
        arenite_count_begin();
        let start = timer::now();
        work();
        let end = timer::now();
        arenite_count_end();
        black_box(Interval { start, end })
    }

    /// Instructions in an interval.
    #[inline(never)]
    pub fn instructions(&self, interval: Interval) -> u64 {
        timer::instructions(interval.start, interval.end).saturating_sub(self.overhead)
    }
}

/// Two instructions a round on every core: decrement, branch.
#[inline(never)]
pub fn spin(rounds: u32) {
    // SAFETY: counts one register down; no memory and no stack.
    unsafe {
        #[cfg(target_arch = "arm")]
        asm!("2:", "subs {0}, {0}, #1", "bne 2b", inout(reg) rounds => _, options(nomem, nostack));
        #[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
        asm!("2:", "addi {0}, {0}, -1", "bnez {0}, 2b", inout(reg) rounds => _, options(nomem, nostack));
        #[cfg(target_arch = "aarch64")]
        asm!("2:", "sub {0:w}, {0:w}, #1", "cbnz {0:w}, 2b", inout(reg) rounds => _, options(nomem, nostack));
    }
}

/// Marks the start of a counted interval for a tracer that watches this address.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn arenite_count_begin() {
    mark(0);
}

/// Marks the end of a counted interval.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn arenite_count_end() {
    mark(1);
}

/// Does nothing, in a way that keeps the two marks apart: equal functions would be merged.
#[inline(always)]
fn mark(which: usize) {
    black_box(which);
}
