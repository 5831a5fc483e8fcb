//! AArch64: x9 to x17 are free at a function's begin and end.

use core::arch::naked_asm;
use core::mem::offset_of;

use super::frame::{Frame, NEXT, PATTERNS, compare};

/// All registers of a frame from x21 on, x9 the address of x21's word; x11 stands for the stack pointer.
macro_rules! from_x21 {
    ($op:literal) => {
        from_x21!($op: "x21, x22" "x23, x24" "x25, x26" "x27, x28" "x29, x11" "d8, d9" "d10, d11" "d12, d13" "d14, d15")
    };
    ($op:literal: $($two:literal)+) => { concat!($($op, " ", $two, ", [x9], #16\n"),+) };
}

/// Begins a function: x16 has its return address, x30 where it goes on.
///
/// # Safety
/// Called by `naked!` alone.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter() {
    naked_asm!(
        ".arch armv8-a",
        "adrp x10, {next}",
        "add x10, x10, :lo12:{next}",
        "ldr x12, [x10]",
        "add x11, x12, #{frame}",
        "str x11, [x10]",
        "mov x11, sp",
        "mov x9, x12",
        "stp x19, x20, [x9], #16",
        from_x21!("stp"),
        "str x16, [x12, #{back}]",
        "str x30, [x12, #{function}]",
        "adrp x9, {patterns}",
        "add x9, x9, :lo12:{patterns}",
        "ldp x19, x20, [x9], #16",
        from_x21!("ldp"),
        "mov x16, x30",
        "adrp x30, {leave}",
        "add x30, x30, :lo12:{leave}",
        "br x16",
        frame = const size_of::<Frame>(),
        back = const offset_of!(Frame, back),
        function = const offset_of!(Frame, function),
        next = sym NEXT,
        patterns = sym PATTERNS,
        leave = sym leave,
    )
}

/// Ends a function.
///
/// # Safety
/// Returned to by a function that [`enter`] began.
#[unsafe(naked)]
unsafe extern "C" fn leave() {
    naked_asm!(
        ".arch armv8-a",
        "mov x11, sp",
        "stp x0, x1, [sp, #-16]!",
        "adrp x10, {next}",
        "add x10, x10, :lo12:{next}",
        "ldr x0, [x10]",
        "sub x0, x0, #{frame}",
        "str x0, [x10]",
        "add x9, x0, #{left}",
        "stp x19, x20, [x9], #16",
        from_x21!("stp"),
        "mov x19, x0",
        "bl {compare}",
        "ldp x0, x1, [sp], #16",
        "add x9, x19, #16",
        from_x21!("ldp"),
        "mov sp, x11",
        "ldr x30, [x19, #{back}]",
        "ldp x19, x20, [x19]",
        "ret",
        frame = const size_of::<Frame>(),
        left = const offset_of!(Frame, left),
        back = const offset_of!(Frame, back),
        next = sym NEXT,
        compare = sym compare,
    )
}
