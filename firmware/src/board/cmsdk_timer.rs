//! The CMSDK timers of the MPS2 boards: a 32-bit timer for exactness, and the dual timer behind a prescaler of 256 that
//! tells how often the first one wrapped.

use core::ptr;

use super::row::{CMSDK_QUARTER_NS, CMSDK_START};
use super::ticks::instructions_at_shift_7;

const TIMER0_CTRL: usize = CMSDK_START;
const TIMER0_VALUE: usize = CMSDK_START + 0x4;
const TIMER0_RELOAD: usize = CMSDK_START + 0x8;
const DUAL_LOAD: usize = CMSDK_START + 0x2000;
const DUAL_VALUE: usize = CMSDK_START + 0x2004;
const DUAL_CONTROL: usize = CMSDK_START + 0x2008;

const CTRL_ENABLE: u32 = 1;
/// Enabled, free-running, clock / 256, 32 bits.
const DUAL_ENABLE: u32 = 1 << 7 | 0b10 << 2 | 1 << 1;
const DUAL_PRESCALE: u64 = 256;

/// A reading of both timers; they count down.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    fine: u32,
    coarse: u32,
}

pub(crate) fn start() {
    write(TIMER0_RELOAD, u32::MAX);
    write(TIMER0_VALUE, u32::MAX);
    write(TIMER0_CTRL, CTRL_ENABLE);
    write(DUAL_LOAD, u32::MAX);
    write(DUAL_CONTROL, DUAL_ENABLE);
}

#[inline(always)]
pub(crate) fn now() -> Reading {
    Reading {
        fine: read(TIMER0_VALUE),
        coarse: read(DUAL_VALUE),
    }
}

pub(crate) fn instructions(start: Reading, end: Reading) -> u64 {
    // The fine timer's period is its reload value: it is at zero and at the reload value in the same tick.
    const PERIOD: u64 = u32::MAX as u64;
    let (from, to) = (u64::from(start.fine), u64::from(end.fine));
    let fine = if from >= to { from - to } else { from + PERIOD - to };
    let coarse = u64::from(start.coarse.wrapping_sub(end.coarse)) * DUAL_PRESCALE;
    let wraps = (coarse.saturating_sub(fine) + PERIOD / 2) / PERIOD;
    instructions_at_shift_7(wraps * PERIOD + fine, CMSDK_QUARTER_NS)
}

#[inline(always)]
fn read(register: usize) -> u32 {
    // SAFETY: `register` is one of this board's timer, an aligned word that is always readable.
    unsafe { ptr::read_volatile(ptr::with_exposed_provenance(register)) }
}

fn write(register: usize, value: u32) {
    // SAFETY: a timer register of this board, which nothing else uses.
    unsafe { ptr::write_volatile(ptr::with_exposed_provenance_mut(register), value) }
}
