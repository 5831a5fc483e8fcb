//! [`four`] for ARMv6-M: 36 instructions an output, where compilers take 100.
//!
//! r0 records, r7 output, r9 `twice`, r12 2^14, lr sums.

#![cfg(kernel_isa = "armv6m")]

use core::mem::offset_of;

use crate::kernels::packed::channel_record::{Record, Words};

/// Output `$i` at r7 of the sum in r4: r2 and r5 high and low half of the multiplier, r6 the code, r12 2^14, `twice` in a register that stays.
macro_rules! output {
    ($i:literal $twice:literal) => {
        concat!(
            // As `requant::high_mul_by_halves` goes.
            "sxth r3, r4\n",
            "subs r4, r4, r3\n",
            "asrs r4, r4, #16\n",
            "mov r1, r3\n",
            "muls r1, r5, r1\n",
            "asrs r1, r1, #16\n",
            "muls r3, r2, r3\n",
            "adds r1, r1, r3\n",
            "muls r5, r4, r5\n",
            "adds r1, r1, r5\n",
            "add r1, r12\n",
            "asrs r1, r1, #15\n",
            "muls r4, r2, r4\n",
            "lsls r4, r4, #1\n",
            "adds r1, r1, r4\n",
            "asrs r3, r1, #31\n",
            "adds r1, r1, r3\n",
            "mov r4, ",
            $twice,
            "\n",
            "subs r5, r6, #1\n",
            "lsls r4, r5\n", // addend
            "adds r1, r1, r4\n",
            "asrs r1, r6\n",
            "sxtb r3, r1\n",
            "cmp r3, r1\n",
            "beq 8f\n",
            "asrs r3, r1, #31\n",
            "mvns r3, r3\n",
            "movs r1, #128\n",
            "eors r3, r1\n",
            "8: strb r3, [r7, #",
            $i,
            "]\n"
        )
    };
}

pub(in super::super) use output;

macro_rules! m0 {
    (one $i:literal) => {
        concat!(
            "ldr r4, [r0, #{record}*",
            $i,
            "+{bias}]\n",
            "ldrh r5, [r0, #{record}*",
            $i,
            "+{multiplier}]\n",
            "ldrh r2, [r0, #{record}*",
            $i,
            "+{upper_half}]\n",
            "ldr r6, [r0, #{record}*",
            $i,
            "+{code}]\n",
            "mov r1, lr\n",
            "ldr r1, [r1, #4*",
            $i,
            "]\n",
            "adds r4, r4, r1\n",
            output!($i "r9")
        )
    };
}

/// Biases are added, sums requantised and stored; `twice` is `2 * zero_point + 1` of the output.
///
/// # Safety
/// Four sums, records and outputs.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn four(sums: *const i32, records: *const Record, y: *mut i8, twice: i32) {
    naked!(Words { bias, multiplier, code } =>
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r5, r9",
        "push {{r5}}",
        "movs r7, r2",
        "mov r9, r3",
        "mov lr, r0",
        "mov r0, r1",
        "movs r1, #1",
        "lsls r1, r1, #14",
        "mov r12, r1",
        m0!(one 0),
        m0!(one 1),
        m0!(one 2),
        m0!(one 3),
        "pop {{r5}}",
        "mov r9, r5",
        "pop {{r4-r7, pc}}";
        record = const size_of::<Record>(),
        upper_half = const offset_of!(Words, multiplier) + 2,
    )
}
