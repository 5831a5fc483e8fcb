//! [`plane3`] for RV32IM, with all nine weights in registers.
//!
//! a0-a2 three rows of the plane, a3 output, a4 its stride, a5 twice the groups left, a6 addend, a7 the job, s0-s8 weights, s9 bias, s10 multiplier, s11 code,
//! t0-t2 sums, t3 a tap, t5 and t6 the limits. The compiler, which spills here, takes 1.4 times the instructions.

#![cfg(kernel_isa = "rv32im")]

use super::super::args::Plane;

/// All outputs of the channel; windows are `stride` columns apart, 1 or 2.
///
/// # Safety
/// The plane holds every window, and `out` every output.
#[inline(always)]
pub(in super::super) unsafe fn plane3(plane: &Plane, stride: usize) {
    match (stride, plane.code >> 8) {
        // SAFETY: passed on.
        (1, 0) => unsafe { stride_1(plane) },
        // SAFETY: passed on.
        (_, 0) => unsafe { stride_2(plane) },
        // SAFETY: passed on.
        (1, _) => unsafe { single_stride_1(plane) },
        // SAFETY: passed on.
        _ => unsafe { single_stride_2(plane) },
    }
}

macro_rules! rv {
    (mac $acc:literal $from:literal $w:literal) => { concat!("mul t4, t3, ", $w, "\n", "add ", $acc, ", ", $from, ", t4\n") };
    (row 1 $p:literal $w0:literal $w1:literal $w2:literal $a0:literal $a1:literal $a2:literal) => { concat!(
        "lb t3, 0(", $p, ")\n", rv!(mac "t0" $a0 $w0),
        "lb t3, 1(", $p, ")\n", rv!(mac "t0" "t0" $w1), rv!(mac "t1" $a1 $w0),
        "lb t3, 2(", $p, ")\n", rv!(mac "t0" "t0" $w2), rv!(mac "t1" "t1" $w1), rv!(mac "t2" $a2 $w0),
        "lb t3, 3(", $p, ")\n", rv!(mac "t1" "t1" $w2), rv!(mac "t2" "t2" $w1),
        "lb t3, 4(", $p, ")\n", rv!(mac "t2" "t2" $w2),
        "addi ", $p, ", ", $p, ", 3\n")
    };
    (row 2 $p:literal $w0:literal $w1:literal $w2:literal $a0:literal $a1:literal $a2:literal) => { concat!(
        "lb t3, 0(", $p, ")\n", rv!(mac "t0" $a0 $w0),
        "lb t3, 1(", $p, ")\n", rv!(mac "t0" "t0" $w1),
        "lb t3, 2(", $p, ")\n", rv!(mac "t0" "t0" $w2), rv!(mac "t1" $a1 $w0),
        "lb t3, 3(", $p, ")\n", rv!(mac "t1" "t1" $w1),
        "lb t3, 4(", $p, ")\n", rv!(mac "t1" "t1" $w2), rv!(mac "t2" $a2 $w0),
        "lb t3, 5(", $p, ")\n", rv!(mac "t2" "t2" $w1),
        "lb t3, 6(", $p, ")\n", rv!(mac "t2" "t2" $w2),
        "addi ", $p, ", ", $p, ", 6\n")
    };
    // One window's row, and on by a window.
    (alone $s:literal $p:literal $w0:literal $w1:literal $w2:literal $a:literal) => { concat!(
        "lb t3, 0(", $p, ")\n", rv!(mac "t0" $a $w0),
        "lb t3, 1(", $p, ")\n", rv!(mac "t0" "t0" $w1),
        "lb t3, 2(", $p, ")\n", rv!(mac "t0" "t0" $w2),
        "addi ", $p, ", ", $p, ", ", $s, "\n")
    };
    (store $acc:literal) => { concat!(
        "slli ", $acc, ", ", $acc, ", 1\n",
        "mulh t3, ", $acc, ", s10\n",
        "mul t4, ", $acc, ", s10\n",
        "srli t4, t4, 31\n",
        "add t3, t3, t4\n",
        "srai t4, t3, 31\n",
        "add t3, t3, a6\n",
        "add t3, t3, t4\n",
        "sra t3, t3, s11\n",
        rv!(limit))
    };
    // Bias and weights are shifted to the left already.
    (single $acc:literal) => { concat!(
        "mulh t3, ", $acc, ", s10\n",
        "add t3, t3, a6\n",
        "sra t3, t3, s11\n",
        rv!(limit))
    };
    (limit) => { concat!(
        "bge t3, t5, 5f\n", "mv t3, t5\n", "5:\n",
        "bge t6, t3, 5f\n", "mv t3, t6\n", "5:\n",
        "sb t3, 0(a3)\n", "add a3, a3, a4\n")
    };
    (stores short) => { concat!(rv!(store "t0"), rv!(store "t1"), rv!(store "t2")) };
    (stores single) => { concat!(rv!(single "t0"), rv!(single "t1"), rv!(single "t2")) };
    (stores one short) => { rv!(store "t0") };
    (stores one single) => { rv!(single "t0") };
    (shifts short) => { "" };
    (shifts single) => { concat!(
        "srli t0, s11, 8\n", "sll s9, s9, t0\n",
        "sll s0, s0, t0\n", "sll s1, s1, t0\n", "sll s2, s2, t0\n", "sll s3, s3, t0\n", "sll s4, s4, t0\n",
        "sll s5, s5, t0\n", "sll s6, s6, t0\n", "sll s7, s7, t0\n", "sll s8, s8, t0\n")
    };
    (plane $s:tt $form:tt) => { concat!(
        ".option push\n", ".option arch, +m\n",
        "addi sp, sp, -48\n",
        "sw s0, 0(sp)\n", "sw s1, 4(sp)\n", "sw s2, 8(sp)\n", "sw s3, 12(sp)\n", "sw s4, 16(sp)\n", "sw s5, 20(sp)\n",
        "sw s6, 24(sp)\n", "sw s7, 28(sp)\n", "sw s8, 32(sp)\n", "sw s9, 36(sp)\n", "sw s10, 40(sp)\n", "sw s11, 44(sp)\n",
        "mv a7, a0\n",
        "lw s9, 0(a7)\n", "lw s10, 4(a7)\n", "lw a6, 8(a7)\n", "lw s11, 12(a7)\n",
        "lw a0, 16(a7)\n", "lw t0, 20(a7)\n", "add a1, a0, t0\n", "add a2, a1, t0\n",
        "lw t0, 24(a7)\n",
        "lb s0, 0(t0)\n", "lb s1, 1(t0)\n", "lb s2, 2(t0)\n", "lb s3, 3(t0)\n", "lb s4, 4(t0)\n", "lb s5, 5(t0)\n",
        "lb s6, 6(t0)\n", "lb s7, 7(t0)\n", "lb s8, 8(t0)\n",
        rv!(shifts $form),
        "lw a3, 28(a7)\n", "lw a4, 32(a7)\n",
        "li t5, -128\n", "li t6, 127\n",
        "2:\n",
        "lw a5, 40(a7)\n",
        "1:\n",
        rv!(row $s "a0" "s0" "s1" "s2" "s9" "s9" "s9"),
        rv!(row $s "a1" "s3" "s4" "s5" "t0" "t1" "t2"),
        rv!(row $s "a2" "s6" "s7" "s8" "t0" "t1" "t2"),
        rv!(stores $form),
        "addi a5, a5, -2\n",
        "bgtz a5, 1b\n",
        "bnez a5, 3f\n",
        "lw t0, 44(a7)\n", "lw t1, 48(a7)\n", // back, back_out
        "beqz t0, 4f\n",
        "sub a0, a0, t0\n", "sub a1, a1, t0\n", "sub a2, a2, t0\n", "sub a3, a3, t1\n",
        "j 1b\n",
        "4:\n",
        rv!(alone $s "a0" "s0" "s1" "s2" "s9"),
        rv!(alone $s "a1" "s3" "s4" "s5" "t0"),
        rv!(alone $s "a2" "s6" "s7" "s8" "t0"),
        rv!(stores one $form),
        "3:\n",
        "lw t0, 52(a7)\n",
        "add a0, a0, t0\n", "add a1, a1, t0\n", "add a2, a2, t0\n",
        "lw t0, 56(a7)\n", "add a3, a3, t0\n",
        "lw t0, 36(a7)\n", // the end
        "bne a0, t0, 2b\n",
        "lw s0, 0(sp)\n", "lw s1, 4(sp)\n", "lw s2, 8(sp)\n", "lw s3, 12(sp)\n", "lw s4, 16(sp)\n", "lw s5, 20(sp)\n",
        "lw s6, 24(sp)\n", "lw s7, 28(sp)\n", "lw s8, 32(sp)\n", "lw s9, 36(sp)\n", "lw s10, 40(sp)\n", "lw s11, 44(sp)\n",
        "addi sp, sp, 48\n",
        "ret\n",
        ".option pop\n")
    };
}

#[unsafe(naked)]
unsafe extern "C" fn stride_1(plane: &Plane) {
    core::arch::naked_asm!(rv!(plane 1 short))
}

#[unsafe(naked)]
unsafe extern "C" fn stride_2(plane: &Plane) {
    core::arch::naked_asm!(rv!(plane 2 short))
}

#[unsafe(naked)]
unsafe extern "C" fn single_stride_1(plane: &Plane) {
    core::arch::naked_asm!(rv!(plane 1 single))
}

#[unsafe(naked)]
unsafe extern "C" fn single_stride_2(plane: &Plane) {
    core::arch::naked_asm!(rv!(plane 2 single))
}
