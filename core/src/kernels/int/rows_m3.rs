//! [`rows`] for ARMv7-M: 14 registers, LDM, MLA, SSAT.
//!
//! In the loop: r0 words of x, r1 weights, r2 end of x, r3 a weight, r4-r7 words and the block's sums, r8 and r10 totals, r9 and r11 high halves, r12
//! 2^15, lr the record. On the stack: x, its end, the job.

use super::super::args::Job;
use super::super::record::Record;

macro_rules! m3 {
    (two) => {
        concat!(
            "ldm r0!, {{r4-r7}}\n",
            "ldrsb r3, [r1], #1\n",
            "mla r4, r4, r3, r12\n",
            "mla r5, r5, r3, r12\n",
            "ldrsb r3, [r1], #1\n",
            "mla r4, r6, r3, r4\n",
            "mla r5, r7, r3, r5\n"
        )
    };
    (one) => {
        concat!(
            "ldrd r6, r7, [r0], #8\n",
            "ldrsb r3, [r1], #1\n",
            "mla r4, r6, r3, r4\n",
            "mla r5, r7, r3, r5\n"
        )
    };
    (add) => {
        concat!(
            "add r8, r4\n",
            "add r9, r9, r4, asr #16\n",
            "add r10, r5\n",
            "add r11, r11, r5, asr #16\n"
        )
    };
    (2) => {
        concat!(m3!(two), m3!(add))
    };
    (3) => {
        concat!(m3!(two), m3!(one), m3!(add))
    };
    (4) => {
        concat!(m3!(two), m3!(one), m3!(one), m3!(add))
    };
    (8) => {
        concat!(
            m3!(two),
            m3!(one),
            m3!(one),
            m3!(one),
            m3!(one),
            m3!(one),
            m3!(one),
            m3!(add)
        )
    };
    (start $shift:literal) => {
        concat!("sub r8, r8, r6, lsl #", $shift, "\n", "mov r10, r8\n")
    };
    (store $acc:literal, $at:literal) => { concat!(
        "lsl ", $acc, ", #1\n",
        "smull r0, ", $acc, ", ", $acc, ", r2\n",
        "add ", $acc, ", ", $acc, ", r0, lsr #31\n",
        "add r0, ", $acc, ", r7\n",
        "add r0, r0, ", $acc, ", asr #31\n",
        "asr r0, r3\n",
        "ssat r0, #8, r0\n",
        "strb r0, ", $at, "\n")
    };
    // The single form: r12 what shifts to the left.
    (single $acc:literal, $at:literal) => { concat!(
        "lsl ", $acc, ", r12\n",
        "smull r0, ", $acc, ", ", $acc, ", r2\n",
        "add ", $acc, ", r7\n",
        "asr ", $acc, ", r3\n",
        "ssat ", $acc, ", #8, ", $acc, "\n",
        "strb ", $acc, ", ", $at, "\n")
    };
    (four $form:tt) => { concat!(
        m3!($form "r8", "[r4]"),
        m3!($form "r9", "[r4, r5]"),
        m3!($form "r10", "[r4, r5, lsl #1]"),
        "add r5, r5, r5, lsl #1\n",
        m3!($form "r11", "[r4, r5]"))
    };
}

/// Rows of weights times the words at `x`, requantised and stored, until a channel of the general form: its sums are left in the job and its record
/// is returned. Otherwise the end.
///
/// # Safety
/// `x` has `2 * inputs` words, `w` a row for each record, every record from `at` to `end` is valid, and `out` takes four pixels of `stride` bytes.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn rows(
    x: *const i32,
    w: *const i8,
    at: *const Record,
    job: &mut Job,
) -> *const Record {
    core::arch::naked_asm!(
        ".cpu cortex-m3",
        "push {{r4-r11, lr}}",
        "ldr r4, [r3, #16]",
        "add r4, r0, r4, lsl #3",
        "mov r5, r3",
        "push {{r0, r4, r5}}",
        "mov lr, r2",
        "1:",
        "ldrd r0, r2, [sp]",
        "ldr r3, [lr, #8]",
        "ldr r9, [lr], #4",
        "mov r12, #0x8000",
        "sub r6, r2, r0",
        "add r8, r9, r9, lsl #16",
        "mov r11, r9",
        "lsls r3, r3, #21", // EMPTY to the carry
        "bcs 40f",
        "lsls r3, r3, #2", // bit 9 to the carry, bit 8 to the sign
        "bcs 20f",
        "bmi 10f",
        m3!(start 10),
        "tst r6, #32",
        "bne 3f",
        "2:",
        m3!(4),
        "3:",
        m3!(4),
        "cmp r0, r2",
        "bne 2b",
        "b 4f",
        "10:",
        m3!(start 11),
        "tst r6, #32",
        "bne 3f",
        "2:",
        m3!(2),
        m3!(2),
        "3:",
        m3!(2),
        m3!(2),
        "cmp r0, r2",
        "bne 2b",
        "b 4f",
        "20:",
        "bmi 30f",
        // k / 3 blocks: 8k bytes of x are 8 / 3 << 15 >> 3
        "movw r3, #10923", // 2^15 / 3, rounded up
        "mul r3, r6, r3",
        "lsr r3, r3, #18",
        "sub r8, r8, r3, lsl #15",
        "mov r10, r8",
        "2:",
        m3!(3),
        m3!(3),
        m3!(3),
        m3!(3),
        "cmp r0, r2",
        "bne 2b",
        "b 4f",
        "30:",
        m3!(start 9),
        "2:",
        m3!(8),
        "cmp r0, r2",
        "bne 2b",
        "4:",
        "sub r8, r8, r9, lsl #16",
        "sub r10, r10, r11, lsl #16",
        "5:",
        "ldr r12, [sp, #8]",
        "ldrd r2, r3, [lr], #8",
        "ldm r12, {{r4-r7}}", // y, stride, end, add
        "tst r3, #0x400",     // GENERAL
        "bne 9f",
        "sub r0, r3, #1",
        "lsl r7, r0",
        "add r4, r4, r3, lsr #16",
        "tst r3, #0x8000", // SINGLE
        "beq 50f",
        "ldrd r0, r12, [r12, #36]", // half, left
        "add r7, r0",
        m3!(four single),
        "cmp lr, r6",
        "bne 1b",
        "b 6f",
        "50:",
        m3!(four store),
        "cmp lr, r6",
        "bne 1b",
        "6:",
        "mov r0, lr",
        "8:",
        "add sp, #12",
        "pop {{r4-r11, pc}}",
        "40:",
        "mov r8, r9",
        "mov r10, r9",
        "add r1, r1, r6, lsr #3",
        "b 5b",
        "9:",
        "add r12, #20",
        "stm r12, {{r8-r11}}",
        "sub r0, lr, #12",
        "b 8b",
    )
}
