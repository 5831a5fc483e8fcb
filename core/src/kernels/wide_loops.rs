//! The inner loops of [`wide`](super::wide) on the cores without vectors that have some of their own.

use core::arch::naked_asm;

/// Lines of a multiple of four elements.
#[cfg(not(cortex_m = "baseline"))]
#[repr(C)]
pub(super) struct Args {
    /// Not 0.
    pub(super) lines: usize,
    /// Of a line of inputs, not 0.
    pub(super) bytes: usize,
    /// Bytes from the end of a line to the next one in the input.
    pub(super) skip: usize,
    /// The same in the weights.
    pub(super) weights_skip: usize,
}

/// Sixteen products in 26 instructions.
#[cfg(not(cortex_m = "baseline"))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn fours(x: *const i16, rows: *const *const i8, args: *const Args, sums: *mut i32) {
    naked_asm!(
        ".cpu cortex-m33",
        "push {{r4-r11, lr}}",
        "ldr r4, [r2]",
        // The lines left, the arguments, the sums.
        "sub sp, #12",
        "strd r4, r2, [sp]",
        "str r3, [sp, #8]",
        "ldm r1, {{r1-r4}}",
        "mov r5, #0",
        "mov r6, #0",
        "mov r7, #0",
        "mov r8, #0",
        "1: ldr r11, [sp, #4]",
        "ldr r12, [r11, #4]",
        "add r12, r0",
        // Elements 0 and 2, 1 and 3, as the weights are widened.
        "2: ldr r10, [r0], #4",
        "ldr r11, [r0], #4",
        "pkhbt r9, r10, r11, lsl #16",
        "pkhtb r10, r11, r10, asr #16",
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
        "cmp r0, r12",
        "bne 2b",
        "ldr r11, [sp, #4]",
        "ldrd r9, r10, [r11, #8]",
        "add r0, r9",
        "add r1, r10",
        "add r2, r10",
        "add r3, r10",
        "add r4, r10",
        "ldr r11, [sp]",
        "subs r11, #1",
        "str r11, [sp]",
        "bne 1b",
        "ldr r3, [sp, #8]",
        "stm r3, {{r5-r8}}",
        "add sp, #12",
        "pop {{r4-r11, pc}}",
    )
}

/// Adds a line's products to four sums: four in seventeen instructions. `len` is not 0.
#[cfg(cortex_m = "baseline")]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn line(x: *const i16, rows: *const *const i8, len: usize, sums: *mut i32) {
    naked_asm!(
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "push {{r3-r7}}",
        "ldm r3!, {{r4-r7}}",
        "mov r8, r4",
        "mov r9, r5",
        "mov r10, r6",
        "mov r11, r7",
        // The weights from their ends on, with an index from -len to 0.
        "rsbs r7, r2, #0",
        "mov r6, r2",
        "ldm r1!, {{r2-r5}}",
        "adds r1, r2, r6",
        "adds r2, r3, r6",
        "adds r3, r4, r6",
        "adds r4, r5, r6",
        "2: ldrh r6, [r0]",
        "sxth r6, r6",
        "adds r0, #2",
        "ldrsb r5, [r1, r7]",
        "muls r5, r6, r5",
        "add r8, r5",
        "ldrsb r5, [r2, r7]",
        "muls r5, r6, r5",
        "add r9, r5",
        "ldrsb r5, [r3, r7]",
        "muls r5, r6, r5",
        "add r10, r5",
        "ldrsb r5, [r4, r7]",
        "muls r5, r6, r5",
        "add r11, r5",
        "adds r7, #1",
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
