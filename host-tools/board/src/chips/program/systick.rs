//! Cycles of the core, which SysTick counts.

use cortex_m::peripheral::{SYST, syst::SystClkSource};

/// The counter has 24 bits.
const LARGEST: u32 = 0xFF_FFFF;

/// Starts the counter at the core's clock.
pub fn start(mut systick: SYST) {
    systick.set_clock_source(SystClkSource::Core);
    systick.set_reload(LARGEST);
    systick.clear_current();
    systick.enable_counter();
}

/// Does some work, and counts its cycles: at most 16,777,215 of them. SysTick counts down.
pub fn count<T>(work: impl FnOnce() -> T) -> (T, u32) {
    let start = SYST::get_current();
    let done = work();
    (done, start.wrapping_sub(SYST::get_current()) & LARGEST)
}
