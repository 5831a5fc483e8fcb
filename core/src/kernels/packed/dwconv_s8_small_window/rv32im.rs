//! [`dwconv_small_window`] for RV32IM: 14 instructions a tap of three windows, 12 the second and the third, 11 the first; six, four and three a tap of one
//! alone.
//!
//! a0 a window's first tap, a1 from window to window, a2 a weight, a3 a tap's place, a4 output, a5 its stride, a6 addend, a7 the job, t0-t2 sums, t3 and t4
//! free, t5 and t6 the limits, s0 multiplier, s1 code, s2 the end of the groups, then outputs that are left, s3 start of the sums, s4 the first weight, s5 from
//! group to group, s6 where a group's taps begin, s7 the form, s8-s11 weights and offsets of the second and the third tap. The taps but for the first are a
//! list of code that is entered where as many are left. Weights are shifted, so that no sum is.

#![cfg(kernel_isa = "rv32im")]

use super::super::args::{DwconvSmallWindowArgs, MOST_TAPS};

const _: () = assert!(MOST_TAPS == 9);

macro_rules! rv {
    (mac $acc:literal $x:literal $w:literal) => { concat!("mul ", $x, ", ", $x, ", ", $w, "\n", "add ", $acc, ", ", $acc, ", ", $x, "\n") };
    // 12 instructions of four bytes.
    (three $w:literal $at:literal) => { concat!(
        "add a3, a0, ", $at, "\n", "lb t3, 0(a3)\n", "add a3, a3, a1\n", "lb t4, 0(a3)\n", "add a3, a3, a1\n", "lb a3, 0(a3)\n",
        rv!(mac "t0" "t3" $w), rv!(mac "t1" "t4" $w), rv!(mac "t2" "a3" $w))
    };
    // Four.
    (one $w:literal $at:literal) => { concat!("add a3, a0, ", $at, "\n", "lb t3, 0(a3)\n", rv!(mac "t0" "t3" $w)) };
    // Two more.
    (load $taps:tt $tap:literal) => { concat!(
        "lw a2, {taps}+{tap}*", $tap, "(a7)\n", "lw t3, {taps}+{tap}*", $tap, "+{place}(a7)\n", rv!($taps "a2" "t3"))
    };
    (list $taps:tt) => { concat!(
        ".option push\n", ".option norvc\n", ".option norelax\n",
        rv!(load $taps "8"), rv!(load $taps "7"), rv!(load $taps "6"),
        rv!(load $taps "5"), rv!(load $taps "4"), rv!(load $taps "3"),
        rv!($taps "s10" "s11"), rv!($taps "s8" "s9"),
        ".option pop\n")
    };
    (short $acc:literal) => { concat!(
        "mulh t3, ", $acc, ", s0\n",
        "mul t4, ", $acc, ", s0\n",
        "srli t4, t4, 31\n",
        "add t3, t3, t4\n",
        "srai t4, t3, 31\n",
        "add t3, t3, a6\n",
        "add t3, t3, t4\n",
        rv!(limit))
    };
    (single $acc:literal) => { concat!("mulh t3, ", $acc, ", s0\n", "add t3, t3, a6\n", rv!(limit)) };
    (limit) => { concat!(
        "sra t3, t3, s1\n",
        "bge t3, t5, 7f\n", "mv t3, t5\n", "7:\n",
        "bge t6, t3, 7f\n", "mv t3, t6\n", "7:\n",
        "sb t3, 0(a4)\n", "add a4, a4, a5\n")
    };
}

/// All outputs of the lines.
///
/// # Safety
/// Every tap of every window is readable, and every output writable.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn dwconv_small_window(job: &mut DwconvSmallWindowArgs) {
    naked!(
        DwconvSmallWindowArgs { taps, x, out, next, stride, multiplier, addend, code, groups, rest, step, lines, count, own } =>
        ".option push",
        ".option arch, +m",
        save!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8" "s9" "s10" "s11"),
        "mv a7, a0",
        "lw t0, {count}(a7)",
        "li t1, 2",
        "addi t0, t0, -1",
        "mv t2, t0",
        "bge t1, t0, 3f",
        "mv t2, t1",
        "3:",
        "slli t2, t2, 3",
        "li t1, 24",
        "mul t3, t0, t1",
        "sub t3, t2, t3",
        "lla t4, 6f",
        "add t3, t3, t4",
        "sw t3, {own}(a7)",
        "li t1, 56",
        "mul t3, t0, t1",
        "sub t3, t2, t3",
        "lla t4, 5f",
        "add s6, t3, t4",
        words!("lw" "{taps}" "a7": "s4" "s3" "s8" "s9" "s10" "s11"),
        "lw a0, {x}(a7)",
        "lw a4, {out}(a7)",
        "lw a1, {next}(a7)",
        "lw a5, {stride}(a7)",
        "lw s0, {multiplier}(a7)",
        "lw a6, {addend}(a7)",
        "lw s1, {code}(a7)",
        "srli s7, s1, 8",
        "slli s5, a1, 1",
        "add s5, s5, a1",
        "li t5, -128",
        "li t6, 127",
        "1:",
        "lw s2, {groups}(a7)",
        "add s2, s2, a0",
        "beq s2, a0, 4f",
        "2:",
        "lb t0, 0(a0)",
        "add a3, a0, a1",
        "lb t1, 0(a3)",
        "add a3, a3, a1",
        "lb t2, 0(a3)",
        "mul t0, t0, s4",
        "add t0, t0, s3",
        "mul t1, t1, s4",
        "add t1, t1, s3",
        "mul t2, t2, s4",
        "add t2, t2, s3",
        "jr s6",
        rv!(list three),
        "5:",
        "add a0, a0, s5",
        "bnez s7, 8f",
        rv!(short "t0"),
        rv!(short "t1"),
        rv!(short "t2"),
        "bne a0, s2, 2b",
        "j 4f",
        "8:",
        rv!(single "t0"),
        rv!(single "t1"),
        rv!(single "t2"),
        "bne a0, s2, 2b",
        "4:",
        "lw s2, {rest}(a7)",
        "beqz s2, 9f",
        "2:",
        "lb t0, 0(a0)",
        "mul t0, t0, s4",
        "add t0, t0, s3",
        "lw t3, {own}(a7)",
        "jr t3",
        rv!(list one),
        "6:",
        "add a0, a0, a1",
        "addi s2, s2, -1",
        "bnez s7, 8f",
        rv!(short "t0"),
        "bnez s2, 2b",
        "j 9f",
        "8:",
        rv!(single "t0"),
        "bnez s2, 2b",
        "9:",
        "lw t3, {step}(a7)",
        "lw t4, {lines}(a7)",
        "add a0, a0, t3",
        "addi t4, t4, -1",
        "sw t4, {lines}(a7)",
        "bnez t4, 1b",
        restore!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8" "s9" "s10" "s11"),
        "ret",
        ".option pop";
        // A tap: its weight, and where it lies.
        tap = const size_of::<[i32; 2]>(),
        place = const size_of::<i32>(),
    )
}
