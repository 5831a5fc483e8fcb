//! TIMER0 of the nRF51 on the micro:bit: 32 bits at 16 MHz, read by capturing. It wraps after 2 G instructions, far more
//! than a network that fits the board takes.

use core::ptr;

use super::ticks::instructions_at_shift_7;

const TIMER0: usize = 0x4000_8000;
const TASKS_START: usize = TIMER0;
const TASKS_CAPTURE0: usize = TIMER0 + 0x40;
const BITMODE: usize = TIMER0 + 0x508;
const PRESCALER: usize = TIMER0 + 0x510;
const CC0: usize = TIMER0 + 0x540;
const BITMODE_32: u32 = 3;
const TICK_QUARTER_NS: u64 = 250;

/// A captured count.
pub(crate) type Reading = u32;

pub(crate) fn start() {
    write(BITMODE, BITMODE_32);
    write(PRESCALER, 0);
    write(TASKS_START, 1);
}

#[inline(always)]
pub(crate) fn now() -> Reading {
    write(TASKS_CAPTURE0, 1);
    // SAFETY: a timer register of this board, an aligned word that is always readable.
    unsafe { ptr::read_volatile(ptr::with_exposed_provenance(CC0)) }
}

pub(crate) fn instructions(start: Reading, end: Reading) -> u64 {
    instructions_at_shift_7(u64::from(end.wrapping_sub(start)), TICK_QUARTER_NS)
}

#[inline(always)]
fn write(register: usize, value: u32) {
    // SAFETY: a timer register of this board, which nothing else uses.
    unsafe { ptr::write_volatile(ptr::with_exposed_provenance_mut(register), value) }
}
