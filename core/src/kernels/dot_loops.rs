//! The inner loops of [`dot`](super::dot) on the cores that have some of their own.

use core::arch::naked_asm;

/// Four products in sixteen instructions: the sums are in registers that only add. `len` is not 0.
#[cfg(cortex_m = "baseline")]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn dots(x: *const i8, rows: *const *const i8, len: usize, sums: *mut i32, zero: i32) {
    naked_asm!(
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "push {{r3-r7}}",
        "ldr r4, [sp, #40]",
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
        "2: ldrsb r6, [r0, r7]",
        "add r6, r12",
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

/// Sixteen products in 26 instructions: every register is in use. `len` is a multiple of four and not 0.
#[cfg(all(cortex_m = "dsp", feature = "dsp", not(all(cortex_m = "mve", feature = "mve"))))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn dots(x: *const i8, rows: *const *const i8, len: usize, sums: *mut i32, zero: i32) {
    naked_asm!(
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

/// Eight elements of four rows in ten instructions, in halves that have room for the zero point. `len` is not 0.
#[cfg(all(cortex_m = "mve", feature = "mve"))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn dots(x: *const i8, rows: *const *const i8, len: usize, sums: *mut i32, zero: i32) {
    naked_asm!(
        ".cpu cortex-m55",
        // Loads that widen take their address from r0 to r7, and sums have even registers.
        "ldr r12, [sp]",
        "push {{r4-r11, lr}}",
        "vdup.16 q3, r12",
        "ldrd r4, r5, [r1]",
        "ldr r7, [r1, #8]",
        "ldr r1, [r1, #12]",
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
        "strd r10, r12, [r3, #8]",
        "pop {{r4-r11, pc}}",
    )
}

/// Eight elements in five instructions. `len` is not 0.
#[cfg(all(cortex_m = "mve", feature = "mve"))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn dot_s8(x: *const i8, row: *const i8, len: usize, zero: i32) -> i32 {
    naked_asm!(
        ".cpu cortex-m55",
        "push {{r7, lr}}",
        "vdup.16 q3, r3",
        "mov r12, #0",
        "dlstp.16 lr, r2",
        "2: vldrb.s16 q0, [r0], #8",
        "vldrb.s16 q1, [r1], #8",
        "vsub.i16 q0, q0, q3",
        "vmladava.s16 r12, q0, q1",
        "letp lr, 2b",
        "mov r0, r12",
        "pop {{r7, pc}}",
    )
}

/// Eight elements in four instructions. `len` is not 0.
#[cfg(all(cortex_m = "mve", feature = "mve"))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn dot_s16(x: *const i16, row: *const i16, len: usize) -> i32 {
    naked_asm!(
        ".cpu cortex-m55",
        "push {{r7, lr}}",
        "mov r12, #0",
        "dlstp.16 lr, r2",
        "2: vldrh.u16 q0, [r0], #16",
        "vldrh.u16 q1, [r1], #16",
        "vmladava.s16 r12, q0, q1",
        "letp lr, 2b",
        "mov r0, r12",
        "pop {{r7, pc}}",
    )
}
