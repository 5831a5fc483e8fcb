//! [`dwconv_1x3`] for ARMv7-M: where windows slide, six instructions a tap of all three and two a row for every three; nine a tap of others.
//!
//! r0 taps, r1 weights, r2 their end or what is left, r3 from tap to tap, r4 output, r5 its stride, r6 the job, r7-r9 sums, r10-r12 taps or, in windows that do
//! not slide, r10 from window to window, lr a weight. The compiler has no registers for them.

#![cfg(kernel_isa = "armv7m")]

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

consecutive!(Dwconv1x3Args: multiplier, addend);
consecutive!(Dwconv1x3Args: out, stride);
consecutive!(Dwconv1x3Args: down, weights_end);
consecutive!(Dwconv1x3Args: back, back_out);
consecutive!(Dwconv1x3Args: step, lines);

macro_rules! m3 {
    (tap $first:literal $second:literal $third:literal) => { concat!(
        "ldrsb lr, [r1], #1\n",
        "ldrsb ", $third, ", [r0]\n", "add r0, r3\n",
        "mla r7, lr, ", $first, ", r7\n",
        "mla r8, lr, ", $second, ", r8\n",
        "mla r9, lr, ", $third, ", r9\n")
    };
    (row slide) => { concat!(
        "ldrsb r10, [r0]\n", "ldrsb r11, [r0, r3]\n", "add r0, r0, r3, lsl #1\n",
        "cbz r2, 5f\n",
        "add r2, r1\n",
        "4:\n",
        m3!(tap "r10" "r11" "r12"),
        m3!(tap "r11" "r12" "r10"),
        m3!(tap "r12" "r10" "r11"),
        "cmp r1, r2\n", "bne 4b\n",
        "5:\n",
        "ldr r2, [r6, #{rest}]\n",
        "cbz r2, 6f\n",
        m3!(tap "r10" "r11" "r12"),
        "subs r2, #1\n", "beq 6f\n",
        m3!(tap "r11" "r12" "r10"),
        "6:\n")
    };
    (step) => { concat!(
        "ldrsb lr, [r1], #1\n",
        "ldrsb r11, [r0]\n", "ldrsb r12, [r0, r10]\n",
        "mla r7, lr, r11, r7\n",
        "ldrsb r11, [r0, r10, lsl #1]\n", "add r0, r3\n",
        "mla r8, lr, r12, r8\n",
        "mla r9, lr, r11, r9\n")
    };
    (row jump) => { concat!(
        "ldr r10, [r6, #{next}]\n",
        "cbz r2, 5f\n",
        "add r2, r1\n",
        "4:\n",
        m3!(step), m3!(step),
        "cmp r1, r2\n", "bne 4b\n",
        "5:\n",
        "ldr r2, [r6, #{rest}]\n",
        "cbz r2, 6f\n",
        m3!(step),
        "6:\n")
    };
    (store short $acc:literal, $at:literal) => { concat!(
        "lsl ", $acc, ", #1\n",
        "smull lr, ", $acc, ", ", $acc, ", r10\n",
        "add ", $acc, ", ", $acc, ", lr, lsr #31\n",
        "add lr, ", $acc, ", r11\n",
        "add lr, lr, ", $acc, ", asr #31\n",
        "asr lr, r12\n",
        "ssat lr, #8, lr\n",
        "strb lr, ", $at, "\n")
    };
    (store single $acc:literal, $at:literal) => { concat!(
        "lsl ", $acc, ", r2\n",
        "smull lr, ", $acc, ", ", $acc, ", r10\n",
        "add ", $acc, ", r11\n",
        "asr ", $acc, ", r12\n",
        "ssat ", $acc, ", #8, ", $acc, "\n",
        "strb ", $acc, ", ", $at, "\n")
    };
    (left short) => { "" };
    (left single) => { "ldrb r2, [r6, #{second_byte_of_code}]\n" };
    (lines $row:tt $form:tt) => { concat!(
        "push {{r4-r11, lr}}\n",
        "mov r6, r0\n",
        "ldr r3, [r6, #{right}]\n", "ldr r0, [r6, #{x}]\n", "ldrd r4, r5, [r6, #{out}]\n",
        "1:\n",
        "ldr r2, [r6, #{groups}]\n", "str r2, [r6, #{left}]\n",
        "2:\n",
        "ldr r7, [r6, #{bias}]\n", "ldr r1, [r6, #{weights}]\n", "mov r8, r7\n", "mov r9, r7\n",
        "3:\n",
        "ldr r2, [r6, #{leaps}]\n",
        m3!(row $row),
        "ldrd r10, r11, [r6, #{down}]\n", // weights_end
        "add r0, r10\n",
        "cmp r1, r11\n", "bne 3b\n",
        "ldrd r10, r11, [r6, #{multiplier}]\n", "ldrb r12, [r6, #{code}]\n",
        m3!(left $form),
        m3!(store $form "r7", "[r4]"),
        m3!(store $form "r8", "[r4, r5]"),
        m3!(store $form "r9", "[r4, r5, lsl #1]"),
        "add r4, r4, r5, lsl #1\n", "add r4, r5\n",
        "ldr r1, [r6, #{group}]\n", "ldr r2, [r6, #{left}]\n",
        "add r0, r1\n",
        "subs r2, #2\n", "str r2, [r6, #{left}]\n",
        "bgt 2b\n",
        "bne 7f\n",
        "ldrd r10, r11, [r6, #{back}]\n", // back_out
        "sub r0, r10\n", "sub r4, r11\n",
        "b 2b\n",
        "7:\n",
        "ldrd r10, r2, [r6, #{step}]\n", // lines
        "add r0, r10\n",
        "subs r2, #1\n", "str r2, [r6, #{lines}]\n",
        "bne 1b\n",
        "pop {{r4-r11, pc}}\n")
    };
}

#[unsafe(naked)]
unsafe extern "C" fn slide(job: &mut Dwconv1x3Args) {
    naked!(
        Dwconv1x3Args { bias, multiplier, code, x, out, right, weights, leaps, rest, down, group, groups, back, step, lines, left } =>
        ".cpu cortex-m3", m3!(lines slide short)
    )
}

#[unsafe(naked)]
unsafe extern "C" fn single_slide(job: &mut Dwconv1x3Args) {
    naked!(
        Dwconv1x3Args { bias, multiplier, code, x, out, right, weights, leaps, rest, down, group, groups, back, step, lines, left } =>
        ".cpu cortex-m3", m3!(lines slide single);
        second_byte_of_code = const core::mem::offset_of!(Dwconv1x3Args, code) + 1
    )
}

#[unsafe(naked)]
unsafe extern "C" fn jump(job: &mut Dwconv1x3Args) {
    naked!(
        Dwconv1x3Args { bias, multiplier, code, x, out, right, next, weights, leaps, rest, down, group, groups, back, step, lines, left } =>
        ".cpu cortex-m3", m3!(lines jump short)
    )
}

#[unsafe(naked)]
unsafe extern "C" fn single_jump(job: &mut Dwconv1x3Args) {
    naked!(
        Dwconv1x3Args { bias, multiplier, code, x, out, right, next, weights, leaps, rest, down, group, groups, back, step, lines, left } =>
        ".cpu cortex-m3", m3!(lines jump single);
        second_byte_of_code = const core::mem::offset_of!(Dwconv1x3Args, code) + 1
    )
}
