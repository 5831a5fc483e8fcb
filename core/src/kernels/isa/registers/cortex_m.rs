//! Cortex-M, in the instructions that all have: r12 is free at a function's begin and end.

use core::arch::naked_asm;
use core::mem::offset_of;

use super::frame::{Frame, NEXT, PATTERNS, compare};

/// The core that the assembly is for.
#[cfg(kernel_isa = "fpu")]
macro_rules! head {
    () => {
        ".cpu cortex-m4\n .fpu fpv4-sp-d16"
    };
}
#[cfg(not(kernel_isa = "fpu"))]
macro_rules! head {
    () => {
        ".cpu cortex-m0"
    };
}

/// The instructions where there are registers s16 to s31, which lie behind nine others.
#[cfg(kernel_isa = "fpu")]
macro_rules! floats {
    ($instruction:literal) => {
        concat!($instruction, "\n")
    };
}
#[cfg(not(kernel_isa = "fpu"))]
macro_rules! floats {
    ($instruction:literal) => {
        ""
    };
}

/// Begins a function: r12 has its return address, lr where it goes on.
///
/// # Safety
/// Called by `naked!` alone.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter() {
    naked_asm!(
        head!(),
        "push {{r4-r7}}",
        "ldr r4, 7f",
        "ldr r5, [r4]",
        "mov r6, r5",
        "adds r6, #{frame}",
        "str r6, [r4]",
        "mov r4, r5",
        "mov r6, r8",
        "mov r7, r9",
        "stm r5!, {{r6, r7}}",
        "mov r6, r10",
        "mov r7, r11",
        "stm r5!, {{r6, r7}}",
        "pop {{r6, r7}}",
        "stm r5!, {{r6, r7}}",
        "pop {{r6, r7}}",
        "stm r5!, {{r6, r7}}",
        "mov r6, sp",
        "stm r5!, {{r6}}",
        floats!("vstmia r5, {{s16-s31}}"),
        "mov r6, r12",
        "str r6, [r4, #{back}]",
        "mov r6, lr",
        "str r6, [r4, #{function}]",
        "mov r12, lr",
        "ldr r4, 9f",
        "mov lr, r4",
        "ldr r4, 8f",
        floats!("add r5, r4, #(9*4)\n vldmia r5, {{s16-s31}}"),
        "ldm r4!, {{r5, r6}}",
        "mov r8, r5",
        "mov r9, r6",
        "ldm r4!, {{r5, r6}}",
        "mov r10, r5",
        "mov r11, r6",
        "ldm r4, {{r4-r7}}",
        "bx r12",
        ".p2align 2",
        "7: .word {next}",
        "8: .word {patterns}",
        "9: .word {leave}",
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
        head!(),
        "push {{r0-r3}}",
        "ldr r1, 8f",
        "ldr r0, [r1]",
        "subs r0, #{frame}",
        "str r0, [r1]",
        "mov r1, r0",
        "adds r1, #{left}",
        "mov r2, r8",
        "mov r3, r9",
        "stm r1!, {{r2, r3}}",
        "mov r2, r10",
        "mov r3, r11",
        "stm r1!, {{r2, r3}}",
        "stm r1!, {{r4-r7}}",
        "add r2, sp, #{results}",
        "stm r1!, {{r2}}",
        floats!("vstmia r1, {{s16-s31}}"),
        "mov r4, r0",
        "bl {compare}",
        "pop {{r0-r3}}",
        "ldr r5, [r4, #{back}]",
        "mov r12, r5",
        floats!("add r5, r4, #(9*4)\n vldmia r5, {{s16-s31}}"),
        "ldm r4!, {{r5, r6}}",
        "mov r8, r5",
        "mov r9, r6",
        "ldm r4!, {{r5, r6}}",
        "mov r10, r5",
        "mov r11, r6",
        "mov r5, r4",
        "adds r5, #{low}",
        "ldr r5, [r5]",
        "mov sp, r5",
        "ldm r4, {{r4-r7}}",
        "bx r12",
        ".p2align 2",
        "8: .word {next}",
        frame = const size_of::<Frame>(),
        left = const offset_of!(Frame, left),
        results = const 4 * size_of::<usize>(),
        back = const offset_of!(Frame, back),
        // From r4 to the stack pointer.
        low = const 4 * size_of::<usize>(),
        next = sym NEXT,
        compare = sym compare,
    )
}
