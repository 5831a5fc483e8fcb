//! The loops for RV32IM: 12 instructions for an input's 4 products, 17 where words are made from bytes, 10 more a block, 25 an output.
//!
//! Of the products: a0 words, a1 x, a2 a mask of even bytes, a3 the fields, a4 the end of x, a5 and a6 totals, a7 and t0 high halves, t1 and t2 the block's
//! sums, t3 and t4 words, t5 an activation, t6 2^15, s3 the inputs of a block less 1, s4 the index of the activation from -inputs to 0, s7 what bytes are more
//! than their weights, s8 what turns the bytes of a group. Of the outputs: a1 the sum's place, a4 the end of the sums, s0 records, s1 output, s2 its end, s3
//! `twice`, s5 and s6 the limits.

#![cfg(kernel_isa = "rv32im")]

use super::args::SingleLoopArgs;
use crate::kernels::packed::channel_record::{BLOCK, BLOCK2, Record, Words};
use crate::kernels::packed::linear_s8_dot::rv;
use crate::kernels::packed::requantize_4_channels_s8::output;

/// Two words from one of bytes, and their products.
macro_rules! product {
    (halves) => { concat!(rv!(next 0), "addi a0, a0, 8\n") };
    (bytes) => {
        "lw t3, 0(a0)
        lb t5, 0(a1)
        xor t3, t3, s8
        srli t4, t3, 8
        and t3, t3, a2
        and t4, t4, a2
        sub t3, t3, s7
        sub t4, t4, s7
        mul t3, t3, t5
        mul t4, t4, t5
        add t1, t1, t3
        add t2, t2, t4
        addi a0, a0, 4\n"
    };
}

/// Term that turns the bytes of a group: those in order have 128 added, as others have.
macro_rules! turn {
    (halves) => {
        ""
    };
    (bytes) => {
        "lw t1, {code}(s0)
        andi t1, t1, {block}
        li s8, 0
        addi t1, t1, -{in_order}
        bnez t1, 5f
        li s8, 0x80808080
        5:\n"
    };
}

/// The sums of channels 1 and 2 change places where bytes were in order.
macro_rules! sums {
    (halves) => { words!("sw" "sp": "a5" "a7" "a6" "t0") };
    (bytes) => {
        concat!(
            words!("sw" "sp": "a5" "a7" "a6" "t0"),
            "beqz s8, 5f\n",
            words!("sw" "sp": "a5" "a6" "a7" "t0"),
            "5:\n"
        )
    };
}

macro_rules! single_loop {
    ($($(#[$about:meta])* $name:ident { $($operands:tt)* })*) => { $(
        $(#[$about])*
        #[unsafe(naked)]
        pub(in crate::kernels::packed) unsafe extern "C" fn $name(args: &mut SingleLoopArgs) {
            naked!(
                SingleLoopArgs { words, end, minus_inputs, last, start, records, y, y_end, twice },
                Words { bias, multiplier, code } =>
                ".option push",
                ".option arch, +m",
                save!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8"),
                "addi sp, sp, -16",
                "mv a3, a0",
                "lw a0, {words}(a3)",
                "lw s0, {records}(a3)",
                "lw s1, {y}(a3)",
                "lw s2, {y_end}(a3)",
                "li s5, -128",
                "li s6, 127",
                "li a2, 0x00ff00ff",
                "li s7, 0x00800080",
                "lui t6, 8",
                "1:",
                turn!($name),
                "lw a4, {end}(a3)",
                "lw s4, {minus_inputs}(a3)",
                "lw s3, {last}(a3)",
                "lw a5, {start}(a3)",
                "add a1, a4, s4",
                "mv a6, a5",
                "li a7, 0",
                "li t0, 0",
                "2: li t1, 0",
                "li t2, 0",
                "3:",
                product!($name),
                "addi a1, a1, 1",
                "addi s4, s4, 1",
                "and t3, s4, s3",
                "bnez t3, 3b",
                rv!(add),
                "bnez s4, 2b",
                "slli t1, a7, 16",
                "sub a5, a5, t1",
                "slli t2, t0, 16",
                "sub a6, a6, t2",
                sums!($name),
                "mv a1, sp",
                "addi a4, sp, 16",
                "lw s3, {twice}(a3)",
                "4: lw t0, {bias}(s0)",
                "lw t1, {multiplier}(s0)",
                "lw t2, {code}(s0)",
                "lw t3, 0(a1)",
                "add t0, t0, t3",
                output!("0" "t0" "t1" "t2" "t3" "s3" "s5" "s6" "s1"),
                "addi s0, s0, {record}",
                "addi s1, s1, 1",
                "addi a1, a1, 4",
                "beq s1, s2, 9f",
                "bne a1, a4, 4b",
                "j 1b",
                "9: addi sp, sp, 16",
                restore!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8"),
                "ret",
                ".option pop";
                record = const size_of::<Record>(),
                $($operands)*
            )
        }
    )* };
}

single_loop! {
    /// Weights as two words for each input, four channels at a time, until there are no outputs left.
    ///
    /// # Safety
    /// 1. Two words for each input and every four outputs, the last ones filled up with zeros; the inputs before `end` are readable.
    /// 2. A record of the short form and room for each output from `y` to `y_end`.
    halves {}
    /// Weights as the bytes of a word for each input.
    ///
    /// # Safety
    /// As for [`halves`], with one word.
    bytes { block = const BLOCK, in_order = const BLOCK2 }
}
