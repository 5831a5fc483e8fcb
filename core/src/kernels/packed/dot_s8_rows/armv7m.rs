//! [`rows`] for ARMv7-M: 14 registers, LDM, MLA, SSAT.
//!
//! In the loop: r0 words of x, r1 weights, r2 end of x, r3 a weight, r4-r7 words and the block's sums, r8 and r10 totals, r9 and r11 high halves, r12
//! 2^15, lr the next record.

#![cfg(kernel_isa = "armv7m")]

use super::super::args::DotRowsArgs;
use crate::kernels::packed::channel_record::Record;

consecutive!(DotRowsArgs: half, out, stride, end, twice, left);

frame!(
    /// The frame: the words of x, their end, their bytes; 2^15; the job.
    Frame { x, x_end, bytes, half_of_words, job }
);

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
    // The single form: r12 what shifts to the left, r3 the shift less one, which saturating makes up for.
    (single $acc:literal, $at:literal) => { concat!(
        "lsl ", $acc, ", r12\n",
        "smull r0, ", $acc, ", ", $acc, ", r2\n",
        "add ", $acc, ", r7\n",
        "asr ", $acc, ", r3\n",
        "ssat ", $acc, ", #8, ", $acc, ", asr #1\n",
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
/// `x` has `2 * inputs` words, `w` a row for each record, there is a record at `at`, every one from there to `end` is valid, and `out` takes four pixels of
/// `stride` bytes.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn rows(
    x: *const i32,
    w: *const i8,
    at: *const Record,
    job: &mut DotRowsArgs,
) -> *const Record {
    naked!(
        DotRowsArgs { inputs, sums }, Frame { job } =>
        ".cpu cortex-m3",
        "push {{r4-r11, lr}}",
        "mov lr, r2",
        "ldr r6, [r3, #{inputs}]",
        "lsl r6, #3",
        "add r4, r0, r6",
        "mov r7, #0x8000",
        "mov r8, r3",
        "push {{r0, r4, r6-r8}}",
        "1:",
        "ldm sp, {{r0, r2, r6, r12}}",
        "ldm lr!, {{r9-r11}}", // bias, multiplier, code
        "ubfx r3, r11, #8, #4",
        "mov r11, r9",
        "add r8, r9, r9, lsl #16",
        "tbh [pc, r3, lsl #1]",
        "7:",
        ".hword (14f - 7b) / 2, (12f - 7b) / 2, (13f - 7b) / 2, (18f - 7b) / 2", // blocks
        ".hword (14f - 7b) / 2, (12f - 7b) / 2, (13f - 7b) / 2, (18f - 7b) / 2", // the same, GENERAL
        ".hword (10f - 7b) / 2, (10f - 7b) / 2, (10f - 7b) / 2, (10f - 7b) / 2", // CONSTANT
        ".hword (10f - 7b) / 2, (10f - 7b) / 2, (10f - 7b) / 2, (10f - 7b) / 2",
        "10:",
        "mov r8, r9",
        "mov r10, r9",
        "add r1, r1, r6, lsr #3",
        "b 5f",
        "12:",
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
        "13:",
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
        "18:",
        m3!(start 9),
        "2:",
        m3!(8),
        "cmp r0, r2",
        "bne 2b",
        "b 4f",
        "14:",
        m3!(start 10),
        "tst r6, #32",
        "bne 3f",
        "2:",
        m3!(4),
        "3:",
        m3!(4),
        "cmp r0, r2",
        "bne 2b",
        "4:",
        "sub r8, r8, r9, lsl #16",
        "sub r10, r10, r11, lsl #16",
        "5:",
        "ldr r0, [sp, #{job}]",
        "ldrd r2, r3, [lr, #{multiplier_before}]", // code
        "ldm r0, {{r0, r4-r7, r12}}", // half, y, stride, end, twice, left
        "tst r3, #0x8000",            // SINGLE
        "beq 50f",
        "add r4, r4, r3, lsr #16",
        "sub r3, #1",
        "lsl r7, r3",
        "add r7, r0",
        m3!(four single),
        "cmp lr, r6",
        "bne 1b",
        "b 6f",
        "50:",
        "tst r3, #0x400", // GENERAL
        "bne 9f",
        "sub r0, r3, #1",
        "lsl r7, r0",
        "add r4, r4, r3, lsr #16",
        m3!(four store),
        "cmp lr, r6",
        "bne 1b",
        "6:",
        "mov r0, lr",
        "8:",
        "add sp, #20",
        "pop {{r4-r11, pc}}",
        "9:",
        "ldr r0, [sp, #{job}]",
        "add r0, #{sums}",
        "stm r0, {{r8-r11}}",
        "sub r0, lr, #12",
        "b 8b";
        // Of the record that ends at lr: a bias lies before it.
        multiplier_before = const 4 - size_of::<Record>() as i32,
    )
}
