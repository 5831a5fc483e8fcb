//! Loops of [`dot`](crate::kernels::primitives::dot_s8) for Helium.

#![cfg(kernel_isa = "mve")]

/// Eight elements of four rows in ten instructions, in halves that have room for the zero point. `len` is not 0.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn dots(
    x: *const i8,
    rows: *const *const i8,
    len: usize,
    sums: *mut i32,
    zero: i32,
) {
    naked!(
        ".cpu cortex-m55",
        // Loads that widen take their address from r0 to r7, and sums have even registers.
        "ldr r12, [sp]",
        "push {{r4-r11, lr}}",
        "vdup.16 q3, r12",
        "ldrd r4, r5, [r1]",
        "ldr r7, [r1, #{third_row}]",
        "ldr r1, [r1, #{fourth_row}]",
        "mov r6, #0",
        "mov r8, #0",
        "mov r10, #0",
        "mov r12, #0",
        "dlstp.16 lr, r2",
        "2: vldrb.s16 q0, [r0], #8",
        "vldrb.s16 q1, [r4], #8",
        "vsub.i16 q0, q0, q3",
        "vmladava.s16 r6, q0, q1",
        "vldrb.s16 q2, [r5], #8",
        "vmladava.s16 r8, q0, q2",
        "vldrb.s16 q1, [r7], #8",
        "vmladava.s16 r10, q0, q1",
        "vldrb.s16 q2, [r1], #8",
        "vmladava.s16 r12, q0, q2",
        "letp lr, 2b",
        "strd r6, r8, [r3]",
        "strd r10, r12, [r3, #{third_sum}]",
        "pop {{r4-r11, pc}}";
        third_row = const 2 * 4,
        fourth_row = const 3 * 4,
        third_sum = const 2 * 4,
    )
}

/// [`dots`] of many rows one behind the other, four at a time: `fours` of them, not 0. `len` is not 0.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn rows(
    x: *const i8,
    weights: *const i8,
    len: usize,
    sums: *mut i32,
    zero: i32,
    fours: usize,
) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r11, lr}}",
        "sub sp, #4",
        "ldrd r12, r9, [sp, #{zero}]", // fours
        "vdup.16 q3, r12",
        "mov r11, r3",
        "mov r3, r0",
        "1: mov r0, r3",
        "adds r4, r1, r2",
        "adds r5, r4, r2",
        "adds r7, r5, r2",
        // Start of the next rows: vectors read on beyond a row's end.
        "adds r6, r7, r2",
        "str r6, [sp]",
        "mov r6, #0",
        "mov r8, #0",
        "mov r10, #0",
        "mov r12, #0",
        "dlstp.16 lr, r2",
        "2: vldrb.s16 q0, [r0], #8",
        "vldrb.s16 q1, [r1], #8",
        "vsub.i16 q0, q0, q3",
        "vmladava.s16 r6, q0, q1",
        "vldrb.s16 q2, [r4], #8",
        "vmladava.s16 r8, q0, q2",
        "vldrb.s16 q1, [r5], #8",
        "vmladava.s16 r10, q0, q1",
        "vldrb.s16 q2, [r7], #8",
        "vmladava.s16 r12, q0, q2",
        "letp lr, 2b",
        "strd r6, r8, [r11], #8",
        "strd r10, r12, [r11], #8",
        "ldr r1, [sp]",
        "subs r9, #1",
        "bne 1b",
        "add sp, #4",
        "pop {{r4-r11, pc}}";
        // Behind a word and nine registers.
        zero = const 4 + 9 * 4,
    )
}

/// Adds the products of `count` lines one behind the other to their sums; neither number is 0.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn lines_s8(
    x: *const i8,
    w: *const i8,
    len: usize,
    sums: *mut i32,
    count: usize,
    zero: i32,
) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r6, lr}}",
        "ldrd r4, r5, [sp, #{count}]", // zero
        "vdup.16 q3, r5",
        // Back from the last vector's end to the line's.
        "add r5, r2, #7",
        "bic r5, r5, #7",
        "sub r5, r2, r5",
        "1: ldr r12, [r3]",
        "dlstp.16 lr, r2",
        "2: vldrb.s16 q0, [r0], #8",
        "vldrb.s16 q1, [r1], #8",
        "vsub.i16 q0, q0, q3",
        "vmladava.s16 r12, q0, q1",
        "letp lr, 2b",
        "add r0, r5",
        "add r1, r5",
        "str r12, [r3], #4",
        "subs r4, #1",
        "bne 1b",
        "pop {{r4-r6, pc}}";
        // Behind four registers.
        count = const 4 * 4,
    )
}

/// The same of halves.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn lines_s16(
    x: *const i16,
    w: *const i16,
    len: usize,
    sums: *mut i32,
    count: usize,
) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r6, lr}}",
        "ldr r4, [sp, #{count}]",
        "add r5, r2, #7",
        "bic r5, r5, #7",
        "sub r5, r2, r5",
        "lsls r5, r5, #1",
        "1: ldr r12, [r3]",
        "dlstp.16 lr, r2",
        "2: vldrh.u16 q0, [r0], #16",
        "vldrh.u16 q1, [r1], #16",
        "vmladava.s16 r12, q0, q1",
        "letp lr, 2b",
        "add r0, r5",
        "add r1, r5",
        "str r12, [r3], #4",
        "subs r4, #1",
        "bne 1b",
        "pop {{r4-r6, pc}}";
        // Behind four registers.
        count = const 4 * 4,
    )
}
