//! [`dwconv_1x3`] for RV32IM: where windows slide, nine instructions a tap of all three and two for every three; 13 a tap of others.
//!
//! a0 taps, a1 weights, a2 their end, a3 from tap to tap, a4 output, a5 its stride, a6 addend, a7 the job, t0-t2 sums, t3 a weight, t4 free, s0 multiplier, s1
//! code, s2 bias, s3 from row to row, s4 the weights' end, s5 and s6 weights that are taken at a time and those left, s7 weights, s8 those of a row that are
//! left, s9 to the next group, s10, s11 and t5 taps or, in windows that do not slide, s10 from window to window, t6 the upper limit. The compiler spills.

#![cfg(kernel_isa = "rv32im")]

use core::mem::offset_of;

use super::super::args::Dwconv1x3Args;

/// All groups of the lines.
///
/// # Safety
/// Every tap of every window is readable, and every output writable; `weights` has a byte for each tap.
#[inline(always)]
pub(in super::super) unsafe fn dwconv_1x3(job: &mut Dwconv1x3Args) {
    match (job.right == job.next, job.code >> 8) {
        // SAFETY: taps, weights and outputs are valid (fn docs); windows slide by one tap, short form.
        (true, 0) => unsafe { slide(job) },
        // SAFETY: taps, weights and outputs are valid (fn docs); windows slide by one tap, single form.
        (true, _) => unsafe { single_slide(job) },
        // SAFETY: taps, weights and outputs are valid (fn docs); windows any distance apart, short form.
        (false, 0) => unsafe { jump(job) },
        // SAFETY: taps, weights and outputs are valid (fn docs); windows any distance apart, single form.
        (false, _) => unsafe { single_jump(job) },
    }
}

macro_rules! rv {
    (mac $acc:literal $x:literal) => { concat!("mul t4, t3, ", $x, "\n", "add ", $acc, ", ", $acc, ", t4\n") };
    (tap $at:literal $first:literal $second:literal $third:literal) => { concat!(
        "lb t3, ", $at, "(a1)\n",
        "lb ", $third, ", 0(a0)\n", "add a0, a0, a3\n",
        rv!(mac "t0" $first), rv!(mac "t1" $second), rv!(mac "t2" $third))
    };
    (row slide) => { concat!(
        "lb s10, 0(a0)\n", "add a0, a0, a3\n", "lb s11, 0(a0)\n", "add a0, a0, a3\n",
        "beqz s5, 5f\n",
        "add a2, a1, s5\n",
        "4:\n",
        rv!(tap "0" "s10" "s11" "t5"),
        rv!(tap "1" "s11" "t5" "s10"),
        rv!(tap "2" "t5" "s10" "s11"),
        "addi a1, a1, 3\n", "bne a1, a2, 4b\n",
        "5:\n",
        "beqz s6, 6f\n",
        rv!(tap "0" "s10" "s11" "t5"),
        "add a1, a1, s6\n",
        "addi t4, s6, -1\n", "beqz t4, 6f\n",
        rv!(tap "-1" "s11" "t5" "s10"),
        "6:\n")
    };
    (step $at:literal) => { concat!(
        "lb t3, ", $at, "(a1)\n",
        "lb t5, 0(a0)\n", "add t4, a0, s10\n", "lb s11, 0(t4)\n", "add t4, t4, s10\n", "lb a2, 0(t4)\n", "add a0, a0, a3\n",
        rv!(mac "t0" "t5"), rv!(mac "t1" "s11"), rv!(mac "t2" "a2"))
    };
    (row jump) => { concat!(
        "lw s10, {next}(a7)\n",
        "mv s8, s5\n",
        "beqz s5, 5f\n",
        "4:\n",
        rv!(step "0"), rv!(step "1"),
        "addi a1, a1, 2\n", "addi s8, s8, -2\n", "bnez s8, 4b\n",
        "5:\n",
        "beqz s6, 6f\n",
        rv!(step "0"),
        "addi a1, a1, 1\n",
        "6:\n")
    };
    (store short $acc:literal) => { concat!(
        "slli ", $acc, ", ", $acc, ", 1\n",
        "mulh t3, ", $acc, ", s0\n",
        "mul t4, ", $acc, ", s0\n",
        "srli t4, t4, 31\n",
        "add t3, t3, t4\n",
        "srai t4, t3, 31\n",
        "add t3, t3, a6\n",
        "add t3, t3, t4\n",
        "sra t3, t3, s1\n",
        rv!(limit))
    };
    (store single $acc:literal) => { concat!(
        "sll ", $acc, ", ", $acc, ", a2\n",
        "mulh t3, ", $acc, ", s0\n",
        "add t3, t3, a6\n",
        "sra t3, t3, s1\n",
        rv!(limit))
    };
    (limit) => { concat!(
        "bge t3, t5, 7f\n", "mv t3, t5\n", "7:\n",
        "bge t6, t3, 7f\n", "mv t3, t6\n", "7:\n",
        "sb t3, 0(a4)\n", "add a4, a4, a5\n")
    };
    (left short) => { "" };
    (left single) => { "lbu a2, {left_of_code}(a7)\n" };
    (lines $row:tt $form:tt) => { concat!(
        ".option push\n", ".option arch, +m\n",
        save!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8" "s9" "s10" "s11"),
        "mv a7, a0\n",
        "lw s2, {bias}(a7)\n", "lw s0, {multiplier}(a7)\n", "lw a6, {addend}(a7)\n", "lw s1, {code}(a7)\n",
        "lw a0, {x}(a7)\n", "lw a4, {out}(a7)\n", "lw a5, {stride}(a7)\n", "lw a3, {right}(a7)\n",
        "lw s7, {weights}(a7)\n", "lw s5, {leaps}(a7)\n", "lw s6, {rest}(a7)\n", "lw s3, {down}(a7)\n", "lw s4, {weights_end}(a7)\n", "lw s9, {group}(a7)\n",
        "li t6, 127\n",
        "1:\n",
        "lw t3, {groups}(a7)\n", "sw t3, {left}(a7)\n",
        "2:\n",
        "mv a1, s7\n", "mv t0, s2\n", "mv t1, s2\n", "mv t2, s2\n",
        "3:\n",
        rv!(row $row),
        "add a0, a0, s3\n",
        "bne a1, s4, 3b\n",
        "li t5, -128\n",
        rv!(left $form),
        rv!(store $form "t0"), rv!(store $form "t1"), rv!(store $form "t2"),
        "lw t3, {left}(a7)\n",
        "add a0, a0, s9\n",
        "addi t3, t3, -2\n", "sw t3, {left}(a7)\n",
        "bgtz t3, 2b\n",
        "bnez t3, 8f\n",
        "lw t3, {back}(a7)\n", "lw t4, {back_out}(a7)\n",
        "sub a0, a0, t3\n", "sub a4, a4, t4\n",
        "j 2b\n",
        "8:\n",
        "lw t3, {step}(a7)\n", "lw t4, {lines}(a7)\n",
        "add a0, a0, t3\n",
        "addi t4, t4, -1\n", "sw t4, {lines}(a7)\n",
        "bnez t4, 1b\n",
        restore!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8" "s9" "s10" "s11"),
        "ret\n",
        ".option pop\n")
    };
}

macro_rules! outputs_1x3 {
    ($($name:ident $row:tt $form:tt ($($field:ident)?) ($($operand:tt)*);)*) => { $(
        #[unsafe(naked)]
        unsafe extern "C" fn $name(job: &mut Dwconv1x3Args) {
            naked!(
                Dwconv1x3Args {
                    bias, multiplier, addend, code, x, out, stride, right, weights, leaps, rest, down, weights_end, group, groups, back, back_out,
                    step, lines, left, $($field,)?
                } =>
                rv!(lines $row $form);
                $($operand)*
            )
        }
    )* };
}

outputs_1x3! {
    slide slide short () ();
    single_slide slide single () (left_of_code = const offset_of!(Dwconv1x3Args, code) + 1);
    jump jump short (next) ();
    single_jump jump single (next) (left_of_code = const offset_of!(Dwconv1x3Args, code) + 1);
}
