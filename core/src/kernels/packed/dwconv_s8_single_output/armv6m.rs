//! [`points`] for ARMv6-M: eight instructions a tap.
//!
//! r0 a tap's place, r1 a tap, r2 a weight's place, r3 a weight, r4 the sum, r5 taps of a row that are left, r6 from tap to tap, r7 zero, r8 taps and r9
//! weights of the channel, r10 its record, r11 output, r12 rows, lr the job. Requantising goes as in `requant`.

#![cfg(kernel_isa = "armv6m")]

use super::super::args::Points;

const _: () = assert!(size_of::<Points>() == 56);

/// Channels from the job's on, until one that is neither of the short nor of the single form, or their end: there the job is afterwards.
///
/// # Safety
/// Every tap is there, weights for them, and every output; there is a channel.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn points(job: &mut Points) {
    core::arch::naked_asm!(
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "push {{r4-r7}}",
        "mov lr, r0",
        "ldm r0!, {{r1-r4}}",
        "mov r8, r1",
        "mov r9, r2",
        "mov r10, r3",
        "mov r11, r4",
        "1:",
        "mov r3, r10",
        "ldr r5, [r3, #8]",
        "movs r1, #0xc", // CONSTANT, GENERAL
        "lsls r1, r1, #8",
        "tst r5, r1",
        "bne 9f",
        "ldr r4, [r3]",
        "mov r0, r8",
        "mov r2, r9",
        "mov r7, lr",
        "ldr r6, [r7, #20]", // right
        "ldr r1, [r7, #32]", // rows
        "mov r12, r1",
        "movs r7, #0",
        "2:",
        "mov r1, lr",
        "ldr r5, [r1, #28]", // columns
        "4:",
        "ldrsb r1, [r0, r7]",
        "ldrsb r3, [r2, r7]",
        "muls r1, r3, r1",
        "adds r4, r4, r1",
        "adds r0, r0, r6",
        "adds r2, #1",
        "subs r5, #1",
        "bne 4b",
        "mov r1, lr",
        "ldr r3, [r1, #24]", // down
        "adds r0, r0, r3",
        "mov r3, r12",
        "subs r3, #1",
        "mov r12, r3",
        "bne 2b",
        "mov r3, r10",
        "ldr r2, [r3, #4]",
        "ldr r5, [r3, #8]",
        "mov r0, lr",
        "ldr r1, [r0, #40]", // twice
        "subs r6, r5, #1",
        "lsls r1, r6",
        "lsls r6, r5, #16", // SINGLE
        "bmi 7f",
        "lsrs r7, r2, #16",
        "uxth r2, r2",
        "sxth r3, r4",
        "subs r4, r4, r3",
        "asrs r4, r4, #16",
        "mov r6, r3",
        "muls r6, r2, r6",
        "asrs r6, r6, #16",
        "muls r3, r7, r3",
        "adds r6, r6, r3",
        "muls r2, r4, r2",
        "adds r6, r6, r2",
        "movs r3, #1",
        "lsls r3, r3, #14",
        "adds r6, r6, r3",
        "asrs r6, r6, #15",
        "muls r4, r7, r4",
        "lsls r4, r4, #1",
        "adds r6, r6, r4",
        "asrs r3, r6, #31",
        "adds r6, r6, r3",
        "6:",
        "adds r1, r1, r6",
        "asrs r1, r5",
        "sxtb r3, r1",
        "cmp r3, r1",
        "beq 8f",
        "asrs r3, r1, #31",
        "mvns r3, r3",
        "movs r1, #128",
        "eors r3, r1",
        "8:",
        "mov r1, r11",
        "strb r3, [r1]",
        "movs r1, #1",
        "add r11, r1",
        "add r8, r1",
        "ldr r3, [r0, #36]", // row_bytes
        "add r9, r3",
        "movs r3, #12",
        "add r10, r3",
        "ldr r3, [r0, #16]", // end
        "cmp r10, r3",
        "bne 1b",
        "9:",
        "mov r0, lr",
        "mov r1, r8",
        "mov r2, r9",
        "mov r3, r10",
        "mov r4, r11",
        "stm r0!, {{r1-r4}}",
        "pop {{r4-r7}}",
        "mov r8, r4",
        "mov r9, r5",
        "mov r10, r6",
        "mov r11, r7",
        "pop {{r4-r7, pc}}",
        "7:",
        "ldr r3, [r0, #44]", // half
        "adds r1, r1, r3",
        "ldr r3, [r0, #52]", // shift
        "asrs r2, r3",
        "uxtb r3, r2",
        "muls r3, r4, r3",
        "asrs r6, r3, #8",
        "lsrs r3, r2, #8",
        "uxtb r3, r3",
        "muls r3, r4, r3",
        "adds r6, r6, r3",
        "asrs r6, r6, #8",
        "asrs r2, r2, #16",
        "muls r2, r4, r2",
        "adds r6, r6, r2",
        "b 6b",
    )
}
