//! The memory management unit of AArch64, exception level 1: every address is itself, and two pages are not there.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::ops::Range;

/// Entries of a table of 4 KiB.
const ENTRIES: usize = 512;
/// Bits of an address below those that choose an entry: of the first table, of a second one and of a third one.
const SHIFTS: [u32; 3] = [30, 21, 12];
/// Tables: the first, and for each page a second and a third one.
const TABLES: usize = 5;

/// An entry that is a block, and one that leads to a table or is a page.
const BLOCK: u64 = 0b01;
const TABLE: u64 = 0b11;
/// It was accessed; inner shareable. Read and written at this level, of the first kind of memory.
const ATTRIBUTES: u64 = 1 << 10 | 0b11 << 8;

#[repr(C, align(4096))]
struct Tables(UnsafeCell<[[u64; ENTRIES]; TABLES]>);
// SAFETY: the tables are written by `forbid` alone, on one core, before the unit reads them.
unsafe impl Sync for Tables {}
static MAP: Tables = Tables(UnsafeCell::new([[0; ENTRIES]; TABLES]));

/// Forbids two pages around a field.
pub(crate) fn forbid(pages: [Range<usize>; 2], _: Range<usize>) -> bool {
    // SAFETY: `forbid` is called once, so this is the only reference; the unit does not read them while it is off.
    let tables = unsafe { &mut *MAP.0.get() };
    let first = tables.as_ptr().addr() as u64;
    let mut used = 1;
    if let Some(table) = tables.first_mut() {
        for (entry, address) in table.iter_mut().zip((0..).map(|index| index << SHIFTS[0])) {
            *entry = address | ATTRIBUTES | BLOCK;
        }
    }
    for page in pages {
        let mut table = 0;
        for (level, shift) in (0..).zip(SHIFTS) {
            let index = page.start >> shift & (ENTRIES - 1);
            let Some(entry) = tables.get_mut(table).and_then(|table| table.get_mut(index)) else {
                return false;
            };
            if level == 2 {
                *entry = 0;
                break;
            }
            if *entry & TABLE == BLOCK {
                // The block in parts, each as it was.
                let start = (page.start >> shift << shift) as u64;
                *entry = (first + (used * ENTRIES * size_of::<u64>()) as u64) | TABLE;
                let below = SHIFTS[level + 1];
                let kind = if level == 1 { TABLE } else { BLOCK };
                let Some(parts) = tables.get_mut(used) else {
                    return false;
                };
                for (part, offset) in parts.iter_mut().zip((0..).map(|index: u64| index << below)) {
                    *part = (start + offset) | ATTRIBUTES | kind;
                }
                table = used;
                used += 1;
            } else {
                table = ((*entry & !0xfff).wrapping_sub(first)) as usize / (ENTRIES * size_of::<u64>());
            }
        }
    }
    // 39 bits of address, pages of 4 KiB, no second half; 40 bits of physical address. Memory without caches.
    let control: u64 = 25 | 1 << 23 | 0b010 << 32;
    // SAFETY: the tables hold all memory but the pages, which the caller gave up.
    unsafe {
        asm!(
            "msr mair_el1, {kinds}",
            "msr tcr_el1, {control}",
            "msr ttbr0_el1, {first}",
            "dsb sy",
            "tlbi vmalle1",
            "dsb sy",
            "isb",
            "mrs {system}, sctlr_el1",
            "orr {system}, {system}, #1",
            "msr sctlr_el1, {system}",
            "isb",
            kinds = in(reg) 0x44u64,
            control = in(reg) control,
            first = in(reg) first,
            system = out(reg) _,
            options(nostack),
        );
    }
    true
}
