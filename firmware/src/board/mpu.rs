//! The memory protection unit of Cortex-M cores, where there is one.

use core::arch::asm;
use core::ops::Range;
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

const TYPE: usize = 0xe000_ed90;
const CONTROL: usize = 0xe000_ed94;
const NUMBER: usize = 0xe000_ed98;
const BASE: usize = 0xe000_ed9c;
const SIZE_OR_LIMIT: usize = 0xe000_eda0;
#[cfg(armv8m)]
const ATTRIBUTES: usize = 0xe000_edc0;

/// Bits of the control register: the unit is on; what no region is for is as without it.
const ENABLED: u32 = 1;
#[cfg(not(armv8m))]
const BACKGROUND: u32 = 1 << 2;

/// Forbids two pages around a field; `false` where the core has no unit.
pub(crate) fn forbid(pages: [Range<usize>; 2], field: Range<usize>) -> bool {
    // SAFETY: a register of the core, read in privileged mode.
    let kind = unsafe { with_exposed_provenance::<u32>(TYPE).read_volatile() };
    if kind >> 8 & 0xff < 3 {
        return false;
    }
    regions(pages, field);
    // SAFETY: the new map holds from the next instruction on.
    unsafe { asm!("dsb", "isb", options(nostack)) };
    true
}

/// Armv7-M and Armv6-M: a region of no access for each page, over the map that is there without the unit.
#[cfg(not(armv8m))]
fn regions(pages: [Range<usize>; 2], _: Range<usize>) {
    /// No instructions, no access; 2^(11 + 1) bytes; on.
    const PAGE: u32 = 1 << 28 | 11 << 1 | 1;
    for (number, page) in (0..).zip(pages) {
        write(NUMBER, number);
        write(BASE, page.start as u32);
        write(SIZE_OR_LIMIT, PAGE);
    }
    write(CONTROL, ENABLED | BACKGROUND);
}

/// Armv8-M cannot deny privileged code to read: regions hold all but the pages, and what none holds is no memory.
#[cfg(armv8m)]
fn regions([before, behind]: [Range<usize>; 2], field: Range<usize>) {
    /// Bytes that a region's ends are multiples of.
    const GRANULE: usize = 32;
    /// Read and written by all.
    const ACCESS: u32 = 1 << 1;
    // Normal memory, without caches.
    write(ATTRIBUTES, 0x44);
    let all = [(0, before.start), (field.start, field.end), (behind.end, usize::MAX)];
    for (number, (start, end)) in (0..).zip(all) {
        write(NUMBER, number);
        write(BASE, start as u32 | ACCESS);
        write(SIZE_OR_LIMIT, ((end - 1) & !(GRANULE - 1)) as u32 | ENABLED);
    }
    write(CONTROL, ENABLED);
}

fn write(register: usize, value: u32) {
    // SAFETY: a register of the unit; what the map forbids is memory that the caller gave up.
    unsafe { with_exposed_provenance_mut::<u32>(register).write_volatile(value) };
}
