//! [`fours`] for ARMv6-M.

#![cfg(kernel_isa = "armv6m")]

use core::mem::offset_of;

use super::LinearGroupsArgs;
use crate::kernels::packed::channel_record::{Record, Words};
use crate::kernels::packed::linear_s8_dot::m0;
use crate::kernels::packed::requantize_4_channels_s8::output;

frame! {
    /// The top of the stack.
    Frame { fields }
}

/// As [`four`](crate::kernels::packed::requantize_4_channels_s8), of the sum in a register: r0 records, r7 output, r12 2^14, lr `twice`.
macro_rules! one {
    ($($i:literal $sum:literal)*) => {
        concat!($(
            "ldr r4, [r0, #{record}*", $i, "+{bias}]\n",
            "ldrh r5, [r0, #{record}*", $i, "+{multiplier}]\n",
            "ldrh r2, [r0, #{record}*", $i, "+{upper_half}]\n",
            "ldr r6, [r0, #{record}*", $i, "+{code}]\n",
            "add r4, ", $sum, "\n",
            output!($i "lr")
        ),*)
    };
}

/// Until none are left, or the codes of one are not as expected. Sums as in [`linear_s8_dot`](crate::kernels::packed::linear_s8_dot); blocks
/// of 2, 4 or 8 by the expected code.
///
/// # Safety
/// 1. `groups` gives weights, records and outputs for `left` groups, at least one.
/// 2. The inputs before `end` are readable, `-minus_inputs` of them, which are not 0 and whole blocks.
#[unsafe(naked)]
pub(in crate::kernels::packed) unsafe extern "C" fn fours(groups: &mut LinearGroupsArgs) {
    naked!(
        LinearGroupsArgs { words, end, minus_inputs, records, y, left, twice, mask, expected, start },
        Words { bias, multiplier, code },
        Frame { fields } =>
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "push {{r0, r4-r7}}",
        "ldr r4, [r0, #{twice}]",
        "mov lr, r4",
        "1: ldr r7, [sp, #{fields}]",
        "ldr r0, [r7, #{records}]",
        "ldr r1, [r0, #{record}*0+{code}]",
        "ldr r2, [r0, #{record}*1+{code}]",
        "orrs r1, r2",
        "ldr r2, [r0, #{record}*2+{code}]",
        "orrs r1, r2",
        "ldr r2, [r0, #{record}*3+{code}]",
        "orrs r1, r2",
        "ldr r2, [r7, #{mask}]",
        "ands r1, r2",
        "ldr r3, [r7, #{expected}]",
        "cmp r1, r3",
        "beq 2f",
        "b 9f",
        "2: ldr r4, [r7, #{start}]",
        "mov r8, r4",
        "mov r10, r4",
        "movs r4, #0",
        "mov r9, r4",
        "mov r11, r4",
        "movs r4, #1",
        "lsls r4, r4, #15",
        "mov r12, r4",
        "ldr r0, [r7, #{words}]",
        "ldr r2, [r7, #{end}]",
        "ldr r1, [r7, #{minus_inputs}]",
        // 0 stands for blocks of 4, 0x100 for those of 2, 0x300 of 8.
        "cmp r3, #0",
        "beq 4f",
        "lsrs r3, r3, #9",
        "beq 3f",
        "5:",
        m0!(8),
        "cmp r1, #0",
        "bne 5b",
        "b 7f",
        "3:",
        m0!(2),
        "cmp r1, #0",
        "bne 3b",
        "b 7f",
        "4:",
        m0!(4),
        "cmp r1, #0",
        "bne 4b",
        "7: mov r1, r9",
        "lsls r1, r1, #16",
        "mov r4, r8",
        "subs r4, r4, r1",
        "mov r8, r4",
        "mov r1, r11",
        "lsls r1, r1, #16",
        "mov r4, r10",
        "subs r4, r4, r1",
        "mov r10, r4",
        "movs r1, #1",
        "lsls r1, r1, #14",
        "mov r12, r1",
        "ldr r7, [sp, #{fields}]",
        "str r0, [r7, #{words}]",
        "ldr r0, [r7, #{records}]",
        "ldr r7, [r7, #{y}]",
        one!("0" "r8" "1" "r9" "2" "r10" "3" "r11"),
        "ldr r1, [sp, #{fields}]",
        "adds r0, #48",
        "adds r7, #4",
        "str r0, [r1, #{records}]",
        "str r7, [r1, #{y}]",
        "ldr r2, [r1, #{left}]",
        "subs r2, #1",
        "str r2, [r1, #{left}]",
        "beq 9f",
        "b 1b",
        "9: pop {{r0, r4-r7}}",
        "mov r8, r4",
        "mov r9, r5",
        "mov r10, r6",
        "mov r11, r7",
        "pop {{r4-r7, pc}}";
        record = const size_of::<Record>(),
        upper_half = const offset_of!(Words, multiplier) + 2,
    )
}
