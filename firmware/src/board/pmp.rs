//! Physical memory protection of RISC-V harts (Privileged Architecture, 3.7).

use core::arch::asm;
use core::ops::Range;

/// Locked, so that it holds in machine mode; a power of two of bytes, naturally aligned; no access.
const FORBIDDEN: usize = 1 << 7 | 3 << 3;

/// Forbids two pages around a field, until the next reset.
pub(crate) fn forbid(pages: [Range<usize>; 2], _: Range<usize>) -> bool {
    // The address in words, with as many ones at its end as say the size.
    let [before, behind] = pages.map(|page| page.start >> 2 | ((page.end - page.start) / 8 - 1));
    // SAFETY: machine mode may; what is forbidden is memory that the caller gave up.
    unsafe {
        asm!(
            "csrw pmpaddr0, {before}",
            "csrw pmpaddr1, {behind}",
            "csrw pmpcfg0, {both}",
            "sfence.vma",
            before = in(reg) before,
            behind = in(reg) behind,
            both = in(reg) FORBIDDEN << 8 | FORBIDDEN,
            options(nostack),
        );
    }
    true
}
