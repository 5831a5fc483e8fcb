//! Loops of [`dot`](crate::kernels::primitives::dot_s8) for ARMv7-M.

#![cfg(all(kernel_isa = "armv7m", not(any(kernel_isa = "dsp", kernel_isa = "mve"))))]

frame!(
    /// The frame of [`rows`].
    Frame { input, length, next_sums, end }
);
consecutive!(Frame: input, length, next_sums, end);

/// An element of the input, from r0, with that of each row, from r1 to r4: zero point r12, sums r5 to r8.
macro_rules! element {
    () => {
        concat!(
            "ldrsb r9, [r0], #1\n",
            "ldrsb r10, [r1], #1\n",
            "ldrsb r11, [r2], #1\n",
            "sub r9, r9, r12\n",
            "mla r5, r9, r10, r5\n",
            "mla r6, r9, r11, r6\n",
            "ldrsb r10, [r3], #1\n",
            "ldrsb r11, [r4], #1\n",
            "mla r7, r9, r10, r7\n",
            "mla r8, r9, r11, r8\n"
        )
    };
}

/// Sixteen products in 42 instructions, on ARMv7-M. `len` is a multiple of four and not 0.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn dots(
    x: *const i8,
    rows: *const *const i8,
    len: usize,
    sums: *mut i32,
    zero: i32,
) {
    naked!(
        ".cpu cortex-m3",
        "ldr r12, [sp]",
        "push {{r3-r11, lr}}",
        "add lr, r0, r2",
        "ldm r1, {{r1-r4}}",
        "movs r5, #0",
        "movs r6, #0",
        "movs r7, #0",
        "mov r8, #0",
        "2:",
        element!(),
        element!(),
        element!(),
        element!(),
        "cmp r0, lr",
        "bne 2b",
        "pop {{r3}}",
        "stm r3, {{r5-r8}}",
        "pop {{r4-r11, pc}}",
    )
}

/// [`dots`] of many rows one behind the other, four at a time: `fours` of them, not 0. `len` is not 0. Four products in ten instructions.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn rows(
    x: *const i8,
    weights: *const i8,
    len: usize,
    sums: *mut i32,
    zero: i32,
    fours: usize,
) {
    naked!(Frame { input, next_sums } =>
        ".cpu cortex-m3",
        "push {{r4-r11, lr}}",
        "ldrd r12, r4, [sp, #{zero}]", // fours
        "add r5, r3, r4, lsl #4",
        "mov r4, r3",
        "mov r3, r2",
        "mov r2, r0",
        "push {{r2-r5}}",
        "1: ldrd r0, r9, [sp, #{input}]", // length
        "add r2, r1, r9",
        "add r3, r2, r9",
        "add r4, r3, r9",
        "movs r5, #0",
        "movs r6, #0",
        "movs r7, #0",
        "mov r8, #0",
        // Elements that do not fill a group of four come first.
        "ands lr, r9, #3",
        "beq 3f",
        "add lr, r0",
        "2:",
        element!(),
        "cmp r0, lr",
        "bne 2b",
        "3: ldrd r9, r10, [sp, #{input}]", // length
        "add lr, r9, r10",
        "cmp r0, lr",
        "beq 5f",
        "4:",
        element!(),
        element!(),
        element!(),
        element!(),
        "cmp r0, lr",
        "bne 4b",
        "5: ldrd r9, r10, [sp, #{next_sums}]", // end
        "stm r9!, {{r5-r8}}",
        "str r9, [sp, #{next_sums}]",
        // The end of the last row is where the next one begins.
        "mov r1, r4",
        "cmp r9, r10",
        "bne 1b",
        "add sp, #16",
        "pop {{r4-r11, pc}}";
        // Behind nine registers.
        zero = const 9 * 4,
    )
}
