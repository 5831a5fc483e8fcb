//! [`dwconv_3x3_plane`] for RV32IM, with all nine weights in registers.
//!
//! a0-a2 three rows of the plane, a3 output, a4 its stride, a5 twice the groups left, a6 addend, a7 the job, s0-s8 weights, s9 bias, s10 multiplier, s11 code,
//! t0-t2 sums, t3 a tap, t5 and t6 the limits. The compiler, which spills here, takes 1.4 times the instructions.

#![cfg(kernel_isa = "rv32im")]

use super::super::args::Dwconv3x3PlaneArgs;

/// All outputs of the channel; windows are `stride` columns apart, 1 or 2.
///
/// # Safety
/// The plane holds every window, and `out` takes every output; `weights` has nine bytes.
#[inline(always)]
pub(in super::super) unsafe fn dwconv_3x3_plane(plane: &Dwconv3x3PlaneArgs, stride: usize) {
    match (stride, plane.code >> 8) {
        // SAFETY: plane, weights and outputs are valid (fn docs); stride 1, short form.
        (1, 0) => unsafe { stride_1(plane) },
        // SAFETY: plane, weights and outputs are valid (fn docs); stride 2, short form.
        (_, 0) => unsafe { stride_2(plane) },
        // SAFETY: plane, weights and outputs are valid (fn docs); stride 1, single form.
        (1, _) => unsafe { single_stride_1(plane) },
        // SAFETY: plane, weights and outputs are valid (fn docs); stride 2, single form.
        _ => unsafe { single_stride_2(plane) },
    }
}

macro_rules! rv {
    (mac $acc:literal $from:literal $w:literal) => { concat!("mul t4, t3, ", $w, "\n", "add ", $acc, ", ", $from, ", t4\n") };
    (tap $at:literal $p:literal) => { concat!("lb t3, ", $at, "(", $p, ")\n") };
    (row 1 $p:literal $w0:literal $w1:literal $w2:literal $a0:literal $a1:literal $a2:literal) => { concat!(
        rv!(tap 0 $p), rv!(mac "t0" $a0 $w0),
        rv!(tap 1 $p), rv!(mac "t0" "t0" $w1), rv!(mac "t1" $a1 $w0),
        rv!(tap 2 $p), rv!(mac "t0" "t0" $w2), rv!(mac "t1" "t1" $w1), rv!(mac "t2" $a2 $w0),
        rv!(tap 3 $p), rv!(mac "t1" "t1" $w2), rv!(mac "t2" "t2" $w1),
        rv!(tap 4 $p), rv!(mac "t2" "t2" $w2),
        "addi ", $p, ", ", $p, ", 3\n")
    };
    (row 2 $p:literal $w0:literal $w1:literal $w2:literal $a0:literal $a1:literal $a2:literal) => { concat!(
        rv!(tap 0 $p), rv!(mac "t0" $a0 $w0),
        rv!(tap 1 $p), rv!(mac "t0" "t0" $w1),
        rv!(tap 2 $p), rv!(mac "t0" "t0" $w2), rv!(mac "t1" $a1 $w0),
        rv!(tap 3 $p), rv!(mac "t1" "t1" $w1),
        rv!(tap 4 $p), rv!(mac "t1" "t1" $w2), rv!(mac "t2" $a2 $w0),
        rv!(tap 5 $p), rv!(mac "t2" "t2" $w1),
        rv!(tap 6 $p), rv!(mac "t2" "t2" $w2),
        "addi ", $p, ", ", $p, ", 6\n")
    };
    // One window's row, and on by a window.
    (alone $s:literal $p:literal $w0:literal $w1:literal $w2:literal $a:literal) => { concat!(
        rv!(tap 0 $p), rv!(mac "t0" $a $w0),
        rv!(tap 1 $p), rv!(mac "t0" "t0" $w1),
        rv!(tap 2 $p), rv!(mac "t0" "t0" $w2),
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
        save!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8" "s9" "s10" "s11"),
        "mv a7, a0\n",
        "lw s9, {bias}(a7)\n", "lw s10, {multiplier}(a7)\n", "lw a6, {addend}(a7)\n", "lw s11, {code}(a7)\n",
        "lw a0, {plane}(a7)\n", "lw t0, {pitch}(a7)\n", "add a1, a0, t0\n", "add a2, a1, t0\n",
        "lw t0, {weights}(a7)\n",
        bytes!("lb" "t0": "s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8"),
        rv!(shifts $form),
        "lw a3, {out}(a7)\n", "lw a4, {stride}(a7)\n",
        "li t5, -128\n", "li t6, 127\n",
        "2:\n",
        "lw a5, {groups}(a7)\n",
        "1:\n",
        rv!(row $s "a0" "s0" "s1" "s2" "s9" "s9" "s9"),
        rv!(row $s "a1" "s3" "s4" "s5" "t0" "t1" "t2"),
        rv!(row $s "a2" "s6" "s7" "s8" "t0" "t1" "t2"),
        rv!(stores $form),
        "addi a5, a5, -2\n",
        "bgtz a5, 1b\n",
        "bnez a5, 3f\n",
        "lw t0, {back}(a7)\n", "lw t1, {back_out}(a7)\n",
        "beqz t0, 4f\n",
        "sub a0, a0, t0\n", "sub a1, a1, t0\n", "sub a2, a2, t0\n", "sub a3, a3, t1\n",
        "j 1b\n",
        "4:\n",
        rv!(alone $s "a0" "s0" "s1" "s2" "s9"),
        rv!(alone $s "a1" "s3" "s4" "s5" "t0"),
        rv!(alone $s "a2" "s6" "s7" "s8" "t0"),
        rv!(stores one $form),
        "3:\n",
        "lw t0, {step}(a7)\n",
        "add a0, a0, t0\n", "add a1, a1, t0\n", "add a2, a2, t0\n",
        "lw t0, {step_out}(a7)\n", "add a3, a3, t0\n",
        "lw t0, {end}(a7)\n",
        "bne a0, t0, 2b\n",
        restore!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8" "s9" "s10" "s11"),
        "ret\n",
        ".option pop\n")
    };
}

macro_rules! planes {
    ($($name:ident $stride:tt $form:tt)*) => { $(
        #[unsafe(naked)]
        unsafe extern "C" fn $name(plane: &Dwconv3x3PlaneArgs) {
            naked!(
                Dwconv3x3PlaneArgs {
                    bias, multiplier, addend, code, plane, pitch, weights, out, stride, end, groups, back, back_out, step, step_out,
                } =>
                rv!(plane $stride $form)
            )
        }
    )* };
}

planes! {
    stride_1 1 short
    stride_2 2 short
    single_stride_1 1 single
    single_stride_2 2 single
}
