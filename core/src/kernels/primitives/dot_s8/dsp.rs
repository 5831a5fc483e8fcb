//! Loops of [`dot`](crate::kernels::primitives::dot_s8) for the DSP extension.

#![cfg(all(kernel_isa = "dsp", not(kernel_isa = "mve")))]

frame!(
    /// The frame of [`rows`].
    Frame { input, next_sums, end }
);
consecutive!(Frame: input, next_sums);

/// Sixteen products in 26 instructions: every register is in use. `len` is a multiple of four and not 0.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn dots(
    x: *const i8,
    rows: *const *const i8,
    len: usize,
    sums: *mut i32,
    zero: i32,
) {
    naked!(
        ".cpu cortex-m33",
        "ldr r12, [sp]",
        "push {{r4-r11, lr}}",
        "add r2, r0, r2",
        "push {{r2, r3}}",
        "rsb r12, r12, #0",
        "pkhbt r12, r12, r12, lsl #16",
        "ldm r1, {{r1-r4}}",
        "mov r5, #0",
        "mov r6, #0",
        "mov r7, #0",
        "mov r8, #0",
        "2: ldr r10, [r0], #4",
        "sxtab16 r9, r12, r10",
        "sxtab16 r10, r12, r10, ror #8",
        "ldr r11, [r1], #4",
        "sxtb16 lr, r11",
        "smlad r5, r9, lr, r5",
        "sxtb16 r11, r11, ror #8",
        "smlad r5, r10, r11, r5",
        "ldr r11, [r2], #4",
        "sxtb16 lr, r11",
        "smlad r6, r9, lr, r6",
        "sxtb16 r11, r11, ror #8",
        "smlad r6, r10, r11, r6",
        "ldr r11, [r3], #4",
        "sxtb16 lr, r11",
        "smlad r7, r9, lr, r7",
        "sxtb16 r11, r11, ror #8",
        "smlad r7, r10, r11, r7",
        "ldr r11, [r4], #4",
        "sxtb16 lr, r11",
        "smlad r8, r9, lr, r8",
        "sxtb16 r11, r11, ror #8",
        "smlad r8, r10, r11, r8",
        "ldr r11, [sp]",
        "cmp r0, r11",
        "bne 2b",
        "pop {{r2, r3}}",
        "stm r3, {{r5-r8}}",
        "pop {{r4-r11, pc}}",
    )
}

/// [`dots`] of many rows one behind the other, four at a time: `fours` of them, not 0. `len` is a multiple of four and not 0. Sixteen products in 24
/// instructions.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn rows(
    x: *const i8,
    weights: *const i8,
    len: usize,
    sums: *mut i32,
    zero: i32,
    fours: usize,
) {
    /// A word of the input with that of each row: the input r0, the first row r1, rows apart r2 and three times that r3; sums r5 to r8.
    macro_rules! four {
        () => {
            concat!(
                "ldr r10, [r0], #4\n",
                "ldr r11, [r1, r2]\n",
                "sxtab16 r9, r12, r10\n",
                "sxtab16 r10, r12, r10, ror #8\n",
                "sxtb16 lr, r11\n",
                "smlad r6, r9, lr, r6\n",
                "sxtb16 r11, r11, ror #8\n",
                "smlad r6, r10, r11, r6\n",
                "ldr r11, [r1, r2, lsl #1]\n",
                "sxtb16 lr, r11\n",
                "smlad r7, r9, lr, r7\n",
                "sxtb16 r11, r11, ror #8\n",
                "smlad r7, r10, r11, r7\n",
                "ldr r11, [r1, r3]\n",
                "sxtb16 lr, r11\n",
                "smlad r8, r9, lr, r8\n",
                "sxtb16 r11, r11, ror #8\n",
                "smlad r8, r10, r11, r8\n",
                "ldr r11, [r1], #4\n",
                "sxtb16 lr, r11\n",
                "smlad r5, r9, lr, r5\n",
                "sxtb16 r11, r11, ror #8\n",
                "smlad r5, r10, r11, r5\n"
            )
        };
    }
    naked!(Frame { input, next_sums, end } =>
        ".cpu cortex-m33",
        "push {{r4-r11, lr}}",
        "sub sp, #12",
        // The input's end r4.
        "ldrd r12, r4, [sp, #{zero}]", // fours
        "add r4, r3, r4, lsl #4",
        "str r4, [sp, #{end}]",
        "strd r0, r3, [sp, #{input}]", // next_sums
        "add r4, r0, r2",
        "add r3, r2, r2, lsl #1",
        "rsb r12, r12, #0",
        "pkhbt r12, r12, r12, lsl #16",
        "1: mov r5, #0",
        "mov r6, #0",
        "mov r7, #0",
        "mov r8, #0",
        "lsls r11, r2, #29",
        "bpl 2f",
        // An odd word first.
        four!(),
        "cmp r0, r4",
        "beq 3f",
        "2:",
        four!(),
        four!(),
        "cmp r0, r4",
        "bne 2b",
        "3: ldrd r0, r11, [sp, #{input}]", // next_sums
        "ldr lr, [sp, #{end}]",
        "stm r11!, {{r5-r8}}",
        "str r11, [sp, #{next_sums}]",
        // The first of the next four rows.
        "add r1, r3",
        "cmp r11, lr",
        "bne 1b",
        "add sp, #12",
        "pop {{r4-r11, pc}}";
        // Behind the frame and nine registers.
        zero = const size_of::<Frame>() + 9 * 4,
    )
}

/// Adds the products of `count` lines of halves one behind the other, none of them empty, to their sums. `len` is a multiple of four.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn lines_s16(
    x: *const i16,
    w: *const i16,
    len: usize,
    sums: *mut i32,
    count: usize,
) {
    naked!(
        ".cpu cortex-m33",
        "push {{r4-r7, lr}}",
        "ldr r4, [sp, #{count}]",
        "1: ldr r12, [r3]",
        "mov r5, r2",
        "2: ldr r6, [r0], #4",
        "ldr r7, [r1], #4",
        "smlad r12, r6, r7, r12",
        "ldr r6, [r0], #4",
        "ldr r7, [r1], #4",
        "smlad r12, r6, r7, r12",
        "subs r5, #4",
        "bne 2b",
        "str r12, [r3], #4",
        "subs r4, #1",
        "bne 1b",
        "pop {{r4-r7, pc}}";
        // Behind five registers.
        count = const 5 * 4,
    )
}
