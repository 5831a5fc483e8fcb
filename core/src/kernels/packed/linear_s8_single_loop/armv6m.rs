//! [`halves`] for ARMv6-M: 17 instructions for two inputs' 8 products, 10 more a block, 47 an output.
//!
//! Of the products: r0 words, r1 index of the activation from -inputs to 0, r2 end of x, r3-r7 as in [`m0`], r8 and r10 totals, r9 and r11 high halves, r12
//! 2^15, lr what a block's indices are taken by. Of the outputs: r0 records, r7 output, r8 the sum's place, r9 and r10 the ends of outputs and sums, r12
//! 2^14, lr `twice`.

#![cfg(kernel_isa = "armv6m")]

use core::mem::offset_of;

use super::args::SingleLoopArgs;
use crate::kernels::packed::channel_record::{Record, Words};
use crate::kernels::packed::linear_s8_dot::m0;
use crate::kernels::packed::requantize_4_channels_s8::output;

frame! {
    /// The sums of four channels, and what is pushed before them.
    Frame { sum_0, sum_1, sum_2, sum_3, fields }
}

/// Weights as two words for each input, four channels at a time, until there are no outputs left.
///
/// # Safety
/// 1. Two words for each input and every four outputs, the last ones filled up with zeros; the inputs before `end` are readable.
/// 2. A record of the short form and room for each output from `y` to `y_end`.
#[unsafe(naked)]
pub(in crate::kernels::packed) unsafe extern "C" fn halves(args: &mut SingleLoopArgs) {
    naked!(
        SingleLoopArgs { words, end, minus_inputs, last, start, records, y, y_end, twice },
        Words { bias, multiplier, code },
        Frame { fields } =>
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "push {{r0, r4-r7}}",
        "sub sp, #{fields}",
        "1: ldr r7, [sp, #{fields}]",
        "ldr r4, [r7, #{start}]",
        "mov r8, r4",
        "mov r10, r4",
        "movs r4, #0",
        "mov r9, r4",
        "mov r11, r4",
        "movs r4, #1",
        "lsls r4, r4, #15",
        "mov r12, r4",
        "ldr r4, [r7, #{last}]",
        "mov lr, r4",
        "ldr r0, [r7, #{words}]",
        "ldr r2, [r7, #{end}]",
        "ldr r1, [r7, #{minus_inputs}]",
        "2: movs r4, #0",
        "movs r5, #0",
        "3:",
        m0!(next),
        m0!(next),
        "mov r3, lr",
        "tst r1, r3",
        "bne 3b",
        m0!(add),
        "cmp r1, #0",
        "bne 2b",
        "ldr r1, [sp, #{fields}]",
        "str r0, [r1, #{words}]",
        "mov r4, r8",
        "mov r5, r9",
        "lsls r2, r5, #16",
        "subs r4, r4, r2",
        "mov r6, r10",
        "mov r7, r11",
        "lsls r2, r7, #16",
        "subs r6, r6, r2",
        "mov r2, sp",
        "mov r8, r2",
        "stm r2!, {{r4-r7}}",
        "mov r10, r2",
        "ldr r0, [r1, #{records}]",
        "ldr r7, [r1, #{y}]",
        "ldr r2, [r1, #{y_end}]",
        "mov r9, r2",
        "ldr r2, [r1, #{twice}]",
        "mov lr, r2",
        "movs r2, #1",
        "lsls r2, r2, #14",
        "mov r12, r2",
        "4: ldr r4, [r0, #{bias}]",
        "ldrh r5, [r0, #{multiplier}]",
        "ldrh r2, [r0, #{upper_half}]",
        "ldr r6, [r0, #{code}]",
        "mov r1, r8",
        "ldm r1!, {{r3}}",
        "mov r8, r1",
        "adds r4, r4, r3",
        output!("0" "lr"),
        "adds r0, #{record}",
        "adds r7, #1",
        "cmp r7, r9",
        "beq 9f",
        "cmp r8, r10",
        "bne 4b",
        "ldr r1, [sp, #{fields}]",
        "str r0, [r1, #{records}]",
        "str r7, [r1, #{y}]",
        "b 1b",
        "9: add sp, #{fields}",
        "pop {{r0, r4-r7}}",
        "mov r8, r4",
        "mov r9, r5",
        "mov r10, r6",
        "mov r11, r7",
        "pop {{r4-r7, pc}}";
        record = const size_of::<Record>(),
        upper_half = const offset_of!(Words, multiplier) + 2,
    )
}
