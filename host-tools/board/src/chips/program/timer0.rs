//! Cycles of the core, which TIMER0 counts: both have 16 MHz. The nRF51822 has no SysTick.

use nrf51_hal::pac::TIMER0;

/// Starts the counter, with 32 bits.
pub fn start(timer: TIMER0) {
    timer.bitmode.write(|w| w.bitmode()._32bit());
    // SAFETY: no division, of the 0 to 9 that are allowed.
    timer.prescaler.write(|w| unsafe { w.prescaler().bits(0) });
    // SAFETY: 1 starts a task.
    timer.tasks_start.write(|w| unsafe { w.bits(1) });
}

fn now() -> u32 {
    // SAFETY: `start` has taken the timer, and nothing else uses it.
    let timer = unsafe { &*TIMER0::ptr() };
    // SAFETY: 1 starts a task.
    timer.tasks_capture[0].write(|w| unsafe { w.bits(1) });
    timer.cc[0].read().bits()
}

/// Does some work, and counts its cycles.
pub fn count<T>(work: impl FnOnce() -> T) -> (T, u32) {
    let start = now();
    let done = work();
    (done, now().wrapping_sub(start))
}
