//! [`dwconv_single_output`] for ARMv7-M: five instructions a tap, in pairs.
//!
//! r0 the job, r1 taps and r2 weights of the channel, r3 its record, r4 the sum, r5 a tap's place, then the multiplier, r6 a weight's place, r7 the code, r8
//! from tap to tap, r9 pairs of taps, r10 and r11 a tap and a weight, r12 output, lr rows.

#![cfg(kernel_isa = "armv7m")]

use super::super::args::DwconvSingleOutputArgs;

consecutive!(DwconvSingleOutputArgs: x, weights, records, out);
consecutive!(DwconvSingleOutputArgs: half, left);

macro_rules! m3 {
    (tap) => {
        "ldrsb r10, [r5]\n ldrsb r11, [r6], #1\n add r5, r8\n mla r4, r10, r11, r4\n"
    };
}

/// Channels from the job's on, until one that is neither of the short nor of the single form, or their end: there the job is afterwards.
///
/// # Safety
/// Every tap of every window is readable, and every output writable; `weights` has a row for each channel; there is a channel at least.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn dwconv_single_output(job: &mut DwconvSingleOutputArgs) {
    naked!(
        DwconvSingleOutputArgs { x, records, end, right, down, columns, rows, row_bytes, twice, half } =>
        ".cpu cortex-m3",
        "push {{r4-r11, lr}}",
        "ldrd r1, r2, [r0, #{x}]", // weights
        "ldrd r3, r12, [r0, #{records}]", // out
        "ldr r8, [r0, #{right}]",
        "1:",
        "ldr r7, [r3, #{code}]",
        "tst r7, #0xc00", // CONSTANT, GENERAL
        "bne 9f",
        "ldr r4, [r3]",
        "mov r5, r1",
        "mov r6, r2",
        "ldr lr, [r0, #{rows}]",
        "2:",
        "ldr r9, [r0, #{columns}]",
        "lsrs r9, r9, #1",
        "bcc 3f",
        m3!(tap),
        "3:",
        "beq 5f", // as the shift says
        "4:",
        m3!(tap),
        m3!(tap),
        "subs r9, #1",
        "bne 4b",
        "5:",
        "ldr r10, [r0, #{down}]",
        "add r5, r10",
        "subs lr, #1",
        "bne 2b",
        "ldr r5, [r3, #{multiplier}]",
        "ldr r10, [r0, #{twice}]",
        "sub r11, r7, #1",
        "lsl r10, r11",
        "tst r7, #0x8000", // SINGLE
        "bne 7f",
        "lsl r4, #1",
        "smull r11, r4, r4, r5",
        "add r4, r4, r11, lsr #31",
        "add r10, r4",
        "add r10, r10, r4, asr #31",
        "6:",
        "asr r10, r7",
        "ssat r10, #8, r10",
        "strb r10, [r12], #1",
        "ldr r11, [r0, #{row_bytes}]",
        "ldr r10, [r0, #{end}]",
        "add r1, #1",
        "add r2, r11",
        "add r3, #12",
        "cmp r3, r10",
        "bne 1b",
        "9:",
        "strd r1, r2, [r0, #{x}]", // weights
        "strd r3, r12, [r0, #{records}]", // out
        "pop {{r4-r11, pc}}",
        "7:",
        "ldrd r11, r9, [r0, #{half}]", // left
        "add r10, r11",
        "lsl r4, r9",
        "smull r11, r4, r4, r5",
        "add r10, r4",
        "b 6b";
        // Of a [`Record`](super::super::record::Record), behind the bias.
        multiplier = const 4,
        code = const 8,
    )
}
