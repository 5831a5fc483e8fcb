//! [`dwconv_small_window`] for ARMv7-M: eight instructions a tap of three windows, seven the first; three a tap of one alone.
//!
//! r0 a window's first tap, r1 from window to window, r2 a tap's offset, then the outputs' stride, r3 a weight, r4 a tap, r5-r7 sums, r8 output, r9 the job,
//! r10 multiplier, r11 addend, r12 code, lr the end of the groups, then outputs that are left. The taps but for the first are a list of code that is entered
//! where as many are left. Weights are shifted, so that no sum is.

#![cfg(kernel_isa = "armv7m")]

use super::super::args::{DwconvSmallWindowArgs, MOST_TAPS};

// The lists are of as many, but for the first.
const _: () = assert!(MOST_TAPS == 9);
consecutive!(DwconvSmallWindowArgs: multiplier, addend, code);
consecutive!(DwconvSmallWindowArgs: step, lines);

macro_rules! m3 {
    // 28 bytes.
    (three $at:literal) => { concat!(
        "ldrd r3, r2, [r9, #", $at, "]\n",
        "add.n r2, r0\n",
        "ldrsb.w r4, [r2]\n", "mla r5, r3, r4, r5\n",
        "ldrsb.n r4, [r2, r1]\n", "mla r6, r3, r4, r6\n",
        "ldrsb.w r4, [r2, r1, lsl #1]\n", "mla r7, r3, r4, r7\n")
    };
    // Ten.
    (one $at:literal) => { concat!("ldrd r3, r2, [r9, #", $at, "]\n", "ldrsb.n r4, [r0, r2]\n", "mla r5, r3, r4, r5\n") };
    (list $taps:tt) => { concat!(
        m3!($taps "64"), m3!($taps "56"), m3!($taps "48"), m3!($taps "40"),
        m3!($taps "32"), m3!($taps "24"), m3!($taps "16"), m3!($taps "8"))
    };
    (short $acc:literal, $at:literal) => { concat!(
        "smull r3, ", $acc, ", ", $acc, ", r10\n",
        "add ", $acc, ", ", $acc, ", r3, lsr #31\n",
        "add r3, ", $acc, ", r11\n",
        "add r3, r3, ", $acc, ", asr #31\n",
        "asr r3, r12\n",
        "ssat r3, #8, r3\n",
        "strb r3, ", $at, "\n")
    };
    (single $acc:literal, $at:literal) => { concat!(
        "smull r3, ", $acc, ", ", $acc, ", r10\n",
        "add ", $acc, ", r11\n",
        "asr ", $acc, ", r12\n",
        "ssat ", $acc, ", #8, ", $acc, "\n",
        "strb ", $acc, ", ", $at, "\n")
    };
    (group $form:tt) => { concat!(m3!($form "r5", "[r8]"), m3!($form "r6", "[r8, r2]"), m3!($form "r7", "[r8, r2, lsl #1]")) };
}

/// All outputs of the lines.
///
/// # Safety
/// Every tap of every window is readable, and every output writable.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn dwconv_small_window(job: &mut DwconvSmallWindowArgs) {
    naked!(
        DwconvSmallWindowArgs { taps, x, out, next, stride, multiplier, code, groups, rest, step, lines, count, own } =>
        ".cpu cortex-m3",
        "push {{r4-r11, lr}}",
        "mov r9, r0",
        "ldr r2, [r9, #{count}]",
        "subs r2, #1",
        "movs r3, #28",
        "adr.w r4, 5f",
        "adds r4, #1", // Thumb
        "mls r4, r2, r3, r4",
        "movs r3, #10",
        "adr.w r5, 6f",
        "adds r5, #1",
        "mls r5, r2, r3, r5",
        "strd r4, r5, [r9, #{own}]",
        "ldr r0, [r9, #{x}]",
        "ldr r8, [r9, #{out}]",
        "ldr r1, [r9, #{next}]",
        "ldrd r10, r11, [r9, #{multiplier}]", // addend
        "ldr r12, [r9, #{code}]",
        "1:",
        "ldr r2, [r9, #{groups}]",
        "add lr, r0, r2",
        "cmp r2, #0",
        "beq 4f",
        "2:",
        "ldrd r3, r2, [r9, #{taps}]",
        "ldrsb r4, [r0]",
        "mla r5, r3, r4, r2",
        "ldrsb r4, [r0, r1]",
        "mla r6, r3, r4, r2",
        "ldrsb r4, [r0, r1, lsl #1]",
        "mla r7, r3, r4, r2",
        "ldr pc, [r9, #{own}]",
        m3!(list three),
        "5:",
        "add r0, r0, r1, lsl #1",
        "add r0, r1",
        "ldr r2, [r9, #{stride}]",
        "tst r12, #0xff00",
        "bne 7f",
        m3!(group short),
        "3:",
        "add r8, r8, r2, lsl #1",
        "add r8, r2",
        "cmp r0, lr",
        "bne 2b",
        "4:",
        "ldr lr, [r9, #{rest}]",
        "cmp lr, #0",
        "beq 9f",
        "8:",
        "ldrd r3, r2, [r9, #{taps}]",
        "ldrsb r4, [r0]",
        "mla r5, r3, r4, r2",
        "ldr pc, [r9, #{own_of_one}]",
        m3!(list one),
        "6:",
        "add r0, r1",
        "ldr r2, [r9, #{stride}]",
        "tst r12, #0xff00",
        "bne 10f",
        m3!(short "r5", "[r8]"),
        "11:",
        "add r8, r2",
        "subs lr, #1",
        "bne 8b",
        "9:",
        "ldrd r2, r3, [r9, #{step}]", // lines
        "add r0, r2",
        "subs r3, #1",
        "str r3, [r9, #{lines}]",
        "bne 1b",
        "pop {{r4-r11, pc}}",
        "7:",
        m3!(group single),
        "b 3b",
        "10:",
        m3!(single "r5", "[r8]"),
        "b 11b";
        // Entry of a single window; a group of three enters at the first word.
        own_of_one = const core::mem::offset_of!(DwconvSmallWindowArgs, own) + 4,
    )
}
