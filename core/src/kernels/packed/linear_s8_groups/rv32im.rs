//! [`fours`] for RV32IM.

#![cfg(kernel_isa = "rv32im")]

use super::LinearGroupsArgs;
use crate::kernels::packed::channel_record::{Record, Words};
use crate::kernels::packed::linear_s8_dot::rv;
use crate::kernels::packed::requantize_4_channels_s8::output;

/// As [`four`](crate::kernels::packed::requantize_4_channels_s8), of the sum in a register: s0 records, s1 output, s3 `twice`, s8 and s9 the limits.
macro_rules! one {
    ($($i:literal $sum:literal)*) => {
        concat!($(
            "lw t1, {record}*", $i, "+{bias}(s0)\n",
            "lw t2, {record}*", $i, "+{multiplier}(s0)\n",
            "lw t3, {record}*", $i, "+{code}(s0)\n",
            "add t1, t1, ", $sum, "\n",
            output!($i "t1" "t2" "t3" "t4" "s3" "s8" "s9" "s1")
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
        Words { bias, multiplier, code } =>
        ".option push",
        ".option arch, +m",
        save!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8" "s9"),
        // The fields a3, words a0, inputs s7 and their end a4, groups left s2, mask s4, expected s5, start s6.
        "mv a3, a0",
        "lw a0, {words}(a3)",
        "lw a4, {end}(a3)",
        "lw s7, {minus_inputs}(a3)",
        "add s7, s7, a4",
        "lw s0, {records}(a3)",
        "lw s1, {y}(a3)",
        "lw s2, {left}(a3)",
        "lw s3, {twice}(a3)",
        "lw s4, {mask}(a3)",
        "lw s5, {expected}(a3)",
        "lw s6, {start}(a3)",
        "li s8, -128",
        "li s9, 127",
        "lui t6, 8",
        "1: lw t1, {record}*0+{code}(s0)",
        "lw t2, {record}*1+{code}(s0)",
        "lw t3, {record}*2+{code}(s0)",
        "lw t4, {record}*3+{code}(s0)",
        "or t1, t1, t2",
        "or t3, t3, t4",
        "or t1, t1, t3",
        "and t1, t1, s4",
        "bne t1, s5, 9f",
        "mv a1, s7",
        "mv a5, s6",
        "mv a6, s6",
        "li a7, 0",
        "li t0, 0",
        // 0 stands for blocks of 4, 0x100 for those of 2, 0x300 of 8.
        "beqz s5, 4f",
        "andi t1, s5, 0x200",
        "beqz t1, 3f",
        "5:",
        rv!(block 0 1 2 3 4 5 6 7),
        "addi a0, a0, 64",
        "addi a1, a1, 8",
        "bne a1, a4, 5b",
        "j 7f",
        "3:",
        rv!(block 0 1),
        "addi a0, a0, 16",
        "addi a1, a1, 2",
        "bne a1, a4, 3b",
        "j 7f",
        "4:",
        rv!(block 0 1 2 3),
        "addi a0, a0, 32",
        "addi a1, a1, 4",
        "bne a1, a4, 4b",
        "7: slli t1, a7, 16",
        "sub a5, a5, t1",
        "slli t2, t0, 16",
        "sub a6, a6, t2",
        one!("0" "a5" "1" "a7" "2" "a6" "3" "t0"),
        "addi s0, s0, 48",
        "addi s1, s1, 4",
        "addi s2, s2, -1",
        "bnez s2, 1b",
        "9: sw a0, {words}(a3)",
        "sw s0, {records}(a3)",
        "sw s1, {y}(a3)",
        restore!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8" "s9"),
        "ret",
        ".option pop";
        record = const size_of::<Record>(),
    )
}
