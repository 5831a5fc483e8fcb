//! Short lines of bytes or words on cores that read no word at an odd address: a copy of the longest line, entered where the line's own length begins.

use core::mem::offset_of;

/// Bytes, or words, of the longest line.
pub(crate) const MOST: usize = 32;

/// Lines of one length.
#[repr(C)]
pub(crate) struct CopyShortArgs {
    /// Lines, or the bytes between the first one and the end of what is written.
    count: usize,
    step: usize,
    ahead: usize,
    /// Bytes of code that are left out.
    skip: usize,
    /// Bytes that the lines' addresses are before their first elements.
    before: usize,
    words: bool,
}

impl CopyShortArgs {
    /// `count` lines of `bytes`, 1 to [`MOST`], or to as many words, with `steps` between them in what is written and what is read.
    pub(crate) fn new(count: usize, [step, ahead]: [usize; 2], bytes: usize, words: bool) -> Self {
        // Instructions of two bytes, or of four.
        const PAIR: usize = if cfg!(kernel_isa = "armv6m") { 4 } else { 8 };
        let element = if words { 4 } else { 1 };
        let missing = MOST.wrapping_sub(bytes / element);
        Self {
            count: if cfg!(kernel_isa = "armv6m") {
                count
            } else {
                count.wrapping_mul(step)
            },
            step,
            ahead,
            skip: missing.wrapping_mul(PAIR),
            before: missing.wrapping_mul(element),
            words,
        }
    }

    /// Copies them, in order.
    ///
    /// # Safety
    /// 1. `args.count` lines (at least one) are writable at `to` and readable at `from`.
    /// 2. With `words`, the addresses and steps are multiples of four.
    #[inline(always)]
    pub(crate) unsafe fn copy(&self, to: *mut u8, from: *const u8) {
        let (to, from) = (to.wrapping_sub(self.before), from.wrapping_sub(self.before));
        // SAFETY: the contract guarantees the lines at both, aligned where `words` (points 1 and 2). The addresses passed on lie `before` bytes ahead of the
        // first elements, and the loop skips as many.
        unsafe {
            if self.words {
                words(to, from, self);
            } else {
                bytes(to, from, self);
            }
        }
    }
}

// ARMv6-M loads them at once.
consecutive!(CopyShortArgs: count, step, ahead, skip);
const _: () = assert!(offset_of!(CopyShortArgs, count) == 0);

/// Two instructions an element, of which `$load` and `$store` have the place.
#[cfg(kernel_isa = "armv6m")]
macro_rules! lines {
    ($(#[$doc:meta])* $name:ident, $load:literal, $store:literal, $shift:literal) => {
        $(#[$doc])*
        #[unsafe(naked)]
        unsafe extern "C" fn $name(to: *mut u8, from: *const u8, args: &CopyShortArgs) {
            naked!(
                ".cpu cortex-m0",
                "push {{r4-r7, lr}}",
                "ldm r2!, {{r3-r6}}",
                "adr r7, 2f",
                "adds r7, r7, r6",
                "1: mov pc, r7",
                ".p2align 2",
                "2:",
                ".set .Lplace, 0",
                ".rept 32",
                concat!($load, " r2, [r1, #.Lplace]"),
                concat!($store, " r2, [r0, #.Lplace]"),
                concat!(".set .Lplace, .Lplace + ", $shift),
                ".endr",
                "adds r0, r0, r4",
                "adds r1, r1, r5",
                "subs r3, #1",
                "bne 1b",
                "pop {{r4-r7, pc}}",
            )
        }
    };
}

#[cfg(target_arch = "riscv32")]
macro_rules! lines {
    ($(#[$doc:meta])* $name:ident, $load:literal, $store:literal, $shift:literal) => {
        $(#[$doc])*
        #[unsafe(naked)]
        unsafe extern "C" fn $name(to: *mut u8, from: *const u8, args: &CopyShortArgs) {
            naked!(
                CopyShortArgs { count, step, ahead, skip } =>
                ".option push",
                ".option norvc",
                "lw a3, {count}(a2)",
                "lw a4, {step}(a2)",
                "lw a5, {ahead}(a2)",
                "lw a6, {skip}(a2)",
                "lla t1, 2f",
                "add t1, t1, a6",
                // The end of what is written.
                "add a3, a3, a0",
                "1: jr t1",
                "2:",
                ".set .Lplace, 0",
                ".rept 32",
                concat!($load, " t0, .Lplace(a1)"),
                concat!($store, " t0, .Lplace(a0)"),
                concat!(".set .Lplace, .Lplace + ", $shift),
                ".endr",
                "add a0, a0, a4",
                "add a1, a1, a5",
                "bne a0, a3, 1b",
                "ret",
                ".option pop",
            )
        }
    };
}

#[cfg(kernel_isa = "armv6m")]
lines! { bytes, "ldrb", "strb", "1" }
#[cfg(kernel_isa = "armv6m")]
lines! { words, "ldr", "str", "4" }
#[cfg(target_arch = "riscv32")]
lines! { bytes, "lbu", "sb", "1" }
#[cfg(target_arch = "riscv32")]
lines! { words, "lw", "sw", "4" }
