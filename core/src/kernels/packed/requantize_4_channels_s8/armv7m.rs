//! [`four`] for ARMv7-M: 12 instructions an output, where compilers take 30.

#![cfg(kernel_isa = "armv7m")]

use crate::kernels::packed::channel_record::Record;

macro_rules! m3 {
    (one $sum:literal) => {
        concat!(
            "ldm r1!, {{r4-r6}}\n", // bias, multiplier, code
            "add r4, ",
            $sum,
            "\n",
            "lsl r4, #1\n",
            "smull r7, r4, r4, r5\n",
            "add r4, r4, r7, lsr #31\n",
            "sub r7, r6, #1\n",
            "lsl r7, r3, r7\n",
            "add r7, r4\n",
            "add r7, r7, r4, asr #31\n",
            "asr r7, r6\n",
            "ssat r7, #8, r7\n",
            "strb r7, [r2], #1\n"
        )
    };
}

/// Biases are added, sums requantised and stored; `twice` is `2 * zero_point + 1` of the output.
///
/// # Safety
/// Four sums, records and outputs.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn four(sums: *const i32, records: *const Record, y: *mut i8, twice: i32) {
    naked!(
        ".cpu cortex-m3",
        "push {{r4-r11}}",
        "ldm r0, {{r8-r11}}",
        m3!(one "r8"),
        m3!(one "r9"),
        m3!(one "r10"),
        m3!(one "r11"),
        "pop {{r4-r11}}",
        "bx lr",
    )
}
