//! Loops of [`dot`](crate::kernels::primitives::dot_s8) for ARMv6-M.

#![cfg(kernel_isa = "armv6m")]

frame! {
    /// Registers pushed by [`dots`], and its last argument.
    DotsFrame { sums, r8, r9, r10, r11, r4, r5, r6, r7, lr, zero }
}

frame! {
    /// Registers pushed first by [`rows`], and its last arguments.
    RowsSaved { r8, r9, r10, r11, r4, r5, r6, r7, lr, zero, fours }
}

frame! {
    /// Words pushed next by [`rows`]: the address of the next sums, their end, and the index at which groups of four begin.
    RowsFrame { to, to_end, fours_from }
}

/// An element of the input, from r0, with that of each row, from r1 to r4, all at index r7: zero point r12, which has its sign changed, sums r8 to r11.
macro_rules! element {
    () => {
        concat!(
            "ldrsb r6, [r0, r7]\n",
            "add r6, r12\n",
            "ldrsb r5, [r1, r7]\n",
            "muls r5, r6, r5\n",
            "add r8, r5\n",
            "ldrsb r5, [r2, r7]\n",
            "muls r5, r6, r5\n",
            "add r9, r5\n",
            "ldrsb r5, [r3, r7]\n",
            "muls r5, r6, r5\n",
            "add r10, r5\n",
            "ldrsb r5, [r4, r7]\n",
            "muls r5, r6, r5\n",
            "add r11, r5\n",
            "adds r7, #1\n"
        )
    };
}

/// Four products in sixteen instructions: the sums are in registers that only add. `len` is not 0.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn dots(
    x: *const i8,
    rows: *const *const i8,
    len: usize,
    sums: *mut i32,
    zero: i32,
) {
    naked!(
        DotsFrame { zero } =>
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "push {{r3-r7}}",
        "ldr r4, [sp, #{zero}]",
        "rsbs r4, r4, #0",
        "mov r12, r4",
        "movs r4, #0",
        "mov r8, r4",
        "mov r9, r4",
        "mov r10, r4",
        "mov r11, r4",
        // Everything from its end on, with an index from -len to 0.
        "rsbs r7, r2, #0",
        "adds r0, r0, r2",
        "mov r6, r2",
        "ldm r1!, {{r2-r5}}",
        "adds r1, r2, r6",
        "adds r2, r3, r6",
        "adds r3, r4, r6",
        "adds r4, r5, r6",
        "2:",
        element!(),
        "bne 2b",
        "pop {{r3}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "stm r3!, {{r4-r7}}",
        "pop {{r4-r7}}",
        "mov r8, r4",
        "mov r9, r5",
        "mov r10, r6",
        "mov r11, r7",
        "pop {{r4-r7, pc}}",
    )
}

/// [`dots`] of many rows one behind the other, four at a time: `fours` of them, not 0. `len` is not 0. Sixteen products in 61 instructions.
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
        RowsSaved { zero, fours }, RowsFrame { to, to_end, fours_from } =>
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "push {{r4-r7}}",
        "ldr r4, [sp, #{zero}]",
        "rsbs r4, r4, #0",
        "mov r12, r4",
        // The sums, their end, and the index at which fours begin.
        "ldr r4, [sp, #{fours}]",
        "lsls r4, r4, #4",
        "adds r4, r4, r3",
        "lsrs r5, r2, #2",
        "lsls r5, r5, #2",
        "rsbs r5, r5, #0",
        "push {{r3-r5}}",
        // Everything from its end on, with an index from -len to 0.
        "adds r0, r0, r2",
        "rsbs r7, r2, #0",
        "mov lr, r7",
        "mov r4, r1",
        // The end of the last row is where the next one begins.
        "1: mov r7, lr",
        "subs r1, r4, r7",
        "subs r2, r1, r7",
        "subs r3, r2, r7",
        "subs r4, r3, r7",
        "movs r5, #0",
        "mov r8, r5",
        "mov r9, r5",
        "mov r10, r5",
        "mov r11, r5",
        "ldr r6, [sp, #{fours_from}]",
        "cmp r7, r6",
        "beq 4f",
        // Elements that do not fill a group of four come first.
        "2:",
        element!(),
        "ldr r5, [sp, #{fours_from}]",
        "cmp r7, r5",
        "bne 2b",
        "cmp r7, #0",
        "beq 5f",
        "4:",
        element!(),
        element!(),
        element!(),
        element!(),
        "bne 4b",
        "5: ldr r7, [sp, #{to}]",
        "mov r1, r8",
        "mov r2, r9",
        "mov r3, r10",
        "mov r6, r11",
        "stm r7!, {{r1-r3, r6}}",
        "str r7, [sp, #{to}]",
        "ldr r6, [sp, #{to_end}]",
        "cmp r7, r6",
        "beq 6f",
        "b 1b",
        "6: add sp, #12",
        "pop {{r4-r7}}",
        "mov r8, r4",
        "mov r9, r5",
        "mov r10, r6",
        "mov r11, r7",
        "pop {{r4-r7, pc}}",
    )
}
