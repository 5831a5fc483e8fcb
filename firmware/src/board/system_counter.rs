//! The 64-bit system counter of the MPS3 boards, at 32 MHz.

use core::ptr;

use super::ticks::{instructions_at_shift_7, joined};

const CONTROL: usize = 0x5810_0000;
const COUNT_LOW: usize = 0x4810_1000;
const COUNT_HIGH: usize = 0x4810_1004;
const ENABLE: u32 = 1;
const TICK_QUARTER_NS: u64 = 125;

/// The high half is read on both sides of the low one, always, so that reading costs the same every time.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    before: u32,
    low: u32,
    after: u32,
}

pub(crate) fn start() {
    // SAFETY: the counter's control register, which nothing else uses.
    unsafe { ptr::write_volatile(ptr::with_exposed_provenance_mut(CONTROL), ENABLE) }
}

#[inline(always)]
pub(crate) fn now() -> Reading {
    Reading {
        before: read(COUNT_HIGH),
        low: read(COUNT_LOW),
        after: read(COUNT_HIGH),
    }
}

pub(crate) fn instructions(start: Reading, end: Reading) -> u64 {
    let ticks = |reading: Reading| joined(reading.before, reading.low, reading.after);
    instructions_at_shift_7(ticks(end).wrapping_sub(ticks(start)), TICK_QUARTER_NS)
}

#[inline(always)]
fn read(register: usize) -> u32 {
    // SAFETY: a read-only counter register.
    unsafe { ptr::read_volatile(ptr::with_exposed_provenance(register)) }
}
