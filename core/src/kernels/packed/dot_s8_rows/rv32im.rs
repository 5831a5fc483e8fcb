//! [`rows`] for RV32IM: two channels at a time, which share the loads of x.
//!
//! In the loop: a4 words of x, a1 and a5 two rows of weights, a6 the first row's end, t0-t3 the block's sums, s0-s3 totals, s4-s7 high halves, s9
//! the lower limit, s10 inputs, ra 2^15, a2 and s11 the records (the same one where there is no second), a3 the job.

#![cfg(kernel_isa = "rv32im")]

use super::super::args::DotRowsArgs;
use crate::kernels::packed::channel_record::{Record, Words};

macro_rules! rv {
    // An element of each of two pixels.
    (x $to:literal $j:literal $pixel:literal) => { concat!("lw ", $to, ", 8*", $j, "+4*", $pixel, "(a4)\n") };
    (first $j:literal) => { concat!(
        rv!(x "t4" $j 0), rv!(x "t5" $j 1),
        "lb t6, ", $j, "(a1)\n", "lb a7, ", $j, "(a5)\n",
        "mul t0, t4, t6\n", "mul t1, t5, t6\n", "mul t2, t4, a7\n", "mul t3, t5, a7\n")
    };
    (next $j:literal) => { concat!(
        rv!(x "t4" $j 0), rv!(x "t5" $j 1),
        "lb t6, ", $j, "(a1)\n", "lb a7, ", $j, "(a5)\n",
        "mul s8, t4, t6\n", "mul t6, t5, t6\n", "mul t4, t4, a7\n", "mul t5, t5, a7\n",
        "add t0, t0, s8\n", "add t1, t1, t6\n", "add t2, t2, t4\n", "add t3, t3, t5\n")
    };
    (add) => { concat!(
        "add s0, s0, t0\n", "add s1, s1, t1\n", "add s2, s2, t2\n", "add s3, s3, t3\n",
        "add t0, t0, ra\n", "add t1, t1, ra\n", "add t2, t2, ra\n", "add t3, t3, ra\n",
        "srai t0, t0, 16\n", "srai t1, t1, 16\n", "srai t2, t2, 16\n", "srai t3, t3, 16\n",
        "add s4, s4, t0\n", "add s5, s5, t1\n", "add s6, s6, t2\n", "add s7, s7, t3\n")
    };
    (2 $a:literal $b:literal) => { concat!(rv!(first $a), rv!(next $b), rv!(add)) };
    (3 $a:literal $b:literal $c:literal) => { concat!(rv!(first $a), rv!(next $b), rv!(next $c), rv!(add)) };
    (4 $a:literal $b:literal $c:literal $d:literal) => { concat!(rv!(first $a), rv!(next $b), rv!(next $c), rv!(next $d), rv!(add)) };
    (8) => { concat!(rv!(first 0), rv!(next 1), rv!(next 2), rv!(next 3), rv!(next 4), rv!(next 5), rv!(next 6), rv!(next 7), rv!(add)) };
    (end $n:literal) => { concat!("addi a4, a4, 8*", $n, "\n", "addi a1, a1, ", $n, "\n", "addi a5, a5, ", $n, "\n", "bne a1, a6, 2b\n") };
    // Blocks of a length, eight inputs at a time, from the middle on where they are no multiple of eight.
    (middle) => { concat!("andi t0, s10, 4\n", "beqz t0, 2f\n", "addi a4, a4, -32\n", "addi a1, a1, -4\n", "addi a5, a5, -4\n", "j 3f\n") };
    (by 2) => { concat!(rv!(middle), "2:\n", rv!(2 0 1), rv!(2 2 3), "3:\n", rv!(2 4 5), rv!(2 6 7), rv!(end 8)) };
    (by 4) => { concat!(rv!(middle), "2:\n", rv!(4 0 1 2 3), "3:\n", rv!(4 4 5 6 7), rv!(end 8)) };
    (by 8) => { concat!("2:\n", rv!(8), rv!(end 8)) };
    // Rest of the totals, with the high halves taken off.
    (sums) => { concat!(
        "slli t0, s4, 16\n", "sub s0, s0, t0\n",
        "slli t0, s5, 16\n", "sub s1, s1, t0\n",
        "slli t0, s6, 16\n", "sub s2, s2, t0\n",
        "slli t0, s7, 16\n", "sub s3, s3, t0\n")
    };
    // Totals and high halves of both channels begin with their biases.
    (biases) => { concat!(
        "lw s4, {bias}(a2)\n", "lw s6, {bias}(s11)\n",
        "mv s5, s4\n", "mv s7, s6\n",
        "slli s0, s4, 16\n", "add s0, s0, s4\n", "mv s1, s0\n",
        "slli s2, s6, 16\n", "add s2, s2, s6\n", "mv s3, s2\n",
        "mv a4, a0\n")
    };
    // Fields of the job that requantising takes.
    (job) => {
        "mv a1, a5
        lw a4, {out}(a3)
        lw a5, {stride}(a3)
        lw a6, {twice}(a3)
        lw a7, {left}(a3)
        li s8, 127\n"
    };
    (four $channel:literal $a:literal $b:literal $c:literal $d:literal) => { concat!(
        "lw t4, {multiplier}(", $channel, ")\n",
        "addi t6, t5, -1\n",
        "sll t6, a6, t6\n",
        "srli t2, t5, 16\n",
        "add t2, t2, a4\n",
        "slli t0, t5, 16\n", "bgez t0, 51f\n", // SINGLE
        "lw t3, {half}(a3)\n", "add t6, t6, t3\n",
        rv!(single $a, "t5", "0(t2)"), "add t2, t2, a5\n",
        rv!(single $b, "t5", "0(t2)"), "add t2, t2, a5\n",
        rv!(single $c, "t5", "0(t2)"), "add t2, t2, a5\n",
        rv!(single $d, "t5", "0(t2)"),
        "j 52f\n",
        "51:\n",
        rv!(store $a, "0(t2)"), "add t2, t2, a5\n",
        rv!(store $b, "0(t2)"), "add t2, t2, a5\n",
        rv!(store $c, "0(t2)"), "add t2, t2, a5\n",
        rv!(store $d, "0(t2)"),
        "52:\n")
    };
    // Both channels of the single form: t3 its half, $code the record's code.
    (singles $channel:literal $code:literal $a:literal $b:literal $c:literal $d:literal) => { concat!(
        "lw t4, {multiplier}(", $channel, ")\n",
        "addi t6, ", $code, ", -1\n",
        "sll t6, a6, t6\n",
        "add t6, t6, t3\n",
        "srli t2, ", $code, ", 16\n",
        "add t2, t2, a4\n",
        rv!(single $a, $code, "0(t2)"), "add t2, t2, a5\n",
        rv!(single $b, $code, "0(t2)"), "add t2, t2, a5\n",
        rv!(single $c, $code, "0(t2)"), "add t2, t2, a5\n",
        rv!(single $d, $code, "0(t2)"))
    };
    // m t4, shift t5, addend t6, limits s9, s8
    (store $acc:literal, $at:literal) => { concat!(
        "slli ", $acc, ", ", $acc, ", 1\n",
        "mulh t0, ", $acc, ", t4\n",
        "mul t1, ", $acc, ", t4\n",
        "srli t1, t1, 31\n",
        "add t0, t0, t1\n",
        "srai t1, t0, 31\n",
        "add t0, t0, t6\n",
        "add t0, t0, t1\n",
        "sra t0, t0, t5\n",
        rv!(limit $at))
    };
    // The single form: a7 what shifts to the left.
    (single $acc:literal, $code:literal, $at:literal) => { concat!(
        "sll t0, ", $acc, ", a7\n",
        "mulh t0, t0, t4\n",
        "add t0, t0, t6\n",
        "sra t0, t0, ", $code, "\n",
        rv!(limit $at))
    };
    (limit $at:literal) => { concat!(
        "bge t0, s9, 5f\n", "mv t0, s9\n", "5:\n",
        "bge s8, t0, 5f\n", "mv t0, s8\n", "5:\n",
        "sb t0, ", $at, "\n")
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
    naked!(DotRowsArgs { half, out, stride, end, twice, left, inputs, sums }, Words { bias, multiplier, code } =>
        ".option push",
        ".option arch, +m",
        save!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8" "s9" "s10" "s11" "ra"),
        "lw s10, {inputs}(a3)",
        "li ra, 0x8000",
        "li s9, -128",
        "1:",
        "addi s11, a2, 12",
        "add a6, a1, s10",
        "mv a5, a6",
        "lw t2, {end}(a3)",
        "lw t0, {code}(a2)",
        "bne t2, s11, 3f",
        "mv s11, a2", // the second channel: the same one where there is no other
        "mv a5, a1",
        "3:",
        "lw t1, {code}(s11)",
        rv!(biases),
        "or t2, t0, t1",
        "slli t3, t2, 20",
        "bltz t3, 40f", // CONSTANT
        "14:",
        "andi t2, t2, 0x300",
        "bnez t2, 15f",
        rv!(by 4),
        "j 4f",
        "15:",
        "andi t0, t0, 0x300",
        "andi t1, t1, 0x300",
        "bne t0, t1, 10f", // rows of different blocks: pairs always fit
        "li t1, 0x200",
        "beq t0, t1, 20f",
        "bgtu t0, t1, 30f",
        "10:",
        rv!(by 2),
        "j 4f",
        "20:",
        "2:",
        rv!(3 0 1 2),
        rv!(3 3 4 5),
        rv!(end 6),
        "j 4f",
        "30:",
        rv!(by 8),
        "4:",
        rv!(sums),
        "7:",
        "lw t5, {code}(a2)",
        "lw t1, {code}(s11)",
        "and t2, t5, t1",
        "slli t2, t2, 16",
        "bgez t2, 60f", // SINGLE
        "lw t3, {half}(a3)",
        rv!(job),
        rv!(singles "a2" "t5" "s0" "s4" "s1" "s5"),
        "beq a2, s11, 6f",
        rv!(singles "s11" "t1" "s2" "s6" "s3" "s7"),
        "6:",
        "addi a2, s11, 12",
        "lw t0, {end}(a3)",
        "bne a2, t0, 1b",
        "j 8f",
        "60:",
        "or t2, t5, t1",
        "andi t2, t2, 0x400", // GENERAL
        "bnez t2, 9f",
        rv!(job),
        rv!(four "a2" "s0" "s4" "s1" "s5"),
        "beq a2, s11, 6f",
        "lw t5, {code}(s11)",
        rv!(four "s11" "s2" "s6" "s3" "s7"),
        "6:",
        "addi a2, s11, 12",
        "lw t0, {end}(a3)",
        "bne a2, t0, 1b",
        "8:",
        "mv a0, a2",
        restore!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8" "s9" "s10" "s11" "ra"),
        "ret",
        "40:",
        "and t3, t0, t1",
        "slli t3, t3, 20",
        "bgez t3, 14b", // one has products
        "mv s0, s4",
        "mv s1, s4",
        "mv s2, s6",
        "mv s3, s6",
        "add a5, a5, s10",
        "j 7b",
        "9:",
        words!("sw" "{sums}" "a3": "s0" "s4" "s1" "s5" "s2" "s6" "s3" "s7"),
        "j 8b",
        ".option pop",
    )
}

/// As [`rows`], where all channels have blocks of one length, and none is constant or of the general form: what a compiled model takes of it.
macro_rules! rows_by {
    ($($name:ident $block:tt)*) => { $(
        /// # Safety
        /// As for [`rows`], of records with blocks of this length, two by two, which are neither constant nor of the general form.
        #[unsafe(naked)]
        pub(in super::super) unsafe extern "C" fn $name(
            x: *const i32,
            w: *const i8,
            at: *const Record,
            job: &mut DotRowsArgs,
        ) -> *const Record {
            naked!(DotRowsArgs { half, out, stride, end, twice, left, inputs }, Words { bias, multiplier, code } =>
                ".option push",
                ".option arch, +m",
                save!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8" "s9" "s10" "s11" "ra"),
                "lw s10, {inputs}(a3)",
                "li ra, 0x8000",
                "li s9, -128",
                "1:",
                "addi s11, a2, 12",
                "add a6, a1, s10",
                "mv a5, a6",
                "lw t2, {end}(a3)",
                "bne t2, s11, 3f",
                "mv s11, a2", // the second channel: the same one where there is no other
                "mv a5, a1",
                "3:",
                rv!(biases),
                rv!(by $block),
                rv!(sums),
                rv!(job),
                "lw t5, {code}(a2)",
                rv!(four "a2" "s0" "s4" "s1" "s5"),
                "beq a2, s11, 6f",
                "lw t5, {code}(s11)",
                rv!(four "s11" "s2" "s6" "s3" "s7"),
                "6:",
                "addi a2, s11, 12",
                "lw t0, {end}(a3)",
                "bne a2, t0, 1b",
                "mv a0, a2",
                restore!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8" "s9" "s10" "s11" "ra"),
                "ret",
                ".option pop",
            )
        }
    )* };
}

rows_by!(rows_by_2 2 rows_by_4 4 rows_by_8 8);
