//! [`dwconv_small_window`] for ARMv6-M: 13 instructions a tap of three windows, 15 the first; five a tap of one alone.
//!
//! r0 where the next tap's weight and offset are, then output, r1 a weight, r2 a tap's place, r3 from window to window, r4-r6 sums, r7 a tap, r8 a window's
//! first tap, r9 the outputs' stride, r10 addend, r11 from group to group, r12 half, lr the multiplier's upper bits. The taps but for the first are a list of
//! code that is entered where as many are left. When requantising, r2 and r7 are the multiplier's lower bits, r1 and r3 free.
//!
//! On the stack: where the list is entered for groups and for one window, two parts of the multiplier, the code, the job, the output, the end of the groups or
//! outputs that are left, and what is from window to window.

#![cfg(kernel_isa = "armv6m")]

use core::mem::offset_of;

use super::super::args::{DwconvSmallWindowArgs, MOST_TAPS};
use crate::kernels::packed::requantize;

/// All outputs of the lines, where [`holds`](super::holds): the short form's accumulators are below 2^20 in magnitude.
///
/// # Safety
/// Every tap of every window is readable, and every output writable.
#[inline(always)]
pub(in super::super) unsafe fn dwconv_small_window(job: &mut DwconvSmallWindowArgs) {
    // The short form's product goes by ten bits, as the single one's goes by eight.
    let m = job.multiplier;
    let [low, middle, high] = match job.code >> 8 {
        0 => [m & 0x3ff, (m >> 10) & 0x3ff, m >> 20],
        left => requantize::bytes(m, left as u32 - 1),
    };
    job.own = [low as usize, middle as usize];
    // SAFETY: the taps and outputs of `job` are valid (fn docs), and `job.own` has the parts of the multiplier.
    unsafe { loops(job, high) }
}

// The first tap is loaded from the start.
const _: () = assert!(offset_of!(DwconvSmallWindowArgs, taps) == 0 && MOST_TAPS == 9);

frame! {
    /// The stack frame, in the order of the file's head.
    Frame { enter_three, enter_one, low, middle, places, job, at, until, apart }
}

macro_rules! m0 {
    // 26 bytes.
    (three) => {
        concat!(
            "ldm r0!, {{r1, r2}}\n",
            "add r2, r8\n",
            "ldrsb r7, [r2, r3]\n",
            "muls r7, r1, r7\n",
            "adds r4, r4, r7\n",
            "adds r2, r2, r3\n",
            "ldrsb r7, [r2, r3]\n",
            "muls r7, r1, r7\n",
            "adds r5, r5, r7\n",
            "adds r2, r2, r3\n",
            "ldrsb r7, [r2, r3]\n",
            "muls r7, r1, r7\n",
            "adds r6, r6, r7\n"
        )
    };
    // Ten.
    (one) => {
        concat!(
            "ldm r0!, {{r1, r2}}\n",
            "add r2, r8\n",
            "ldrsb r7, [r2, r3]\n",
            "muls r7, r1, r7\n",
            "adds r4, r4, r7\n"
        )
    };
    (list $taps:tt) => {
        concat!(
            m0!($taps),
            m0!($taps),
            m0!($taps),
            m0!($taps),
            m0!($taps),
            m0!($taps),
            m0!($taps),
            m0!($taps)
        )
    };
    (short $acc:literal) => {
        concat!(
            "mov r1, ",
            $acc,
            "\n",
            "muls r1, r2, r1\n",
            "asrs r1, r1, #10\n",
            "mov r3, ",
            $acc,
            "\n",
            "muls r3, r7, r3\n",
            "adds r1, r1, r3\n",
            "asrs r1, r1, #10\n",
            "mov r3, lr\n",
            "muls ",
            $acc,
            ", r3, ",
            $acc,
            "\n",
            "adds r1, r1, ",
            $acc,
            "\n",
            "add r1, r12\n",
            "asrs r1, r1, #11\n",
            "asrs r3, r1, #31\n",
            "adds r1, r1, r3\n",
            m0!(limit)
        )
    };
    // As `requantize::product_by_bytes` goes.
    (single $acc:literal) => {
        concat!(
            "mov r1, ",
            $acc,
            "\n",
            "muls r1, r2, r1\n",
            "asrs r1, r1, #8\n",
            "mov r3, ",
            $acc,
            "\n",
            "muls r3, r7, r3\n",
            "adds r1, r1, r3\n",
            "asrs r1, r1, #8\n",
            "mov r3, lr\n",
            "muls ",
            $acc,
            ", r3, ",
            $acc,
            "\n",
            "adds r1, r1, ",
            $acc,
            "\n",
            m0!(limit)
        )
    };
    (limit) => {
        concat!(
            "add r1, r10\n",
            "ldr r3, [sp, #{places}]\n", // code
            "asrs r1, r3\n",
            "sxtb r3, r1\n",
            "cmp r3, r1\n",
            "beq 7f\n",
            "asrs r3, r1, #31\n",
            "mvns r3, r3\n",
            "movs r1, #128\n",
            "eors r3, r1\n",
            "7:\n",
            "strb r3, [r0]\n",
            "add r0, r9\n"
        )
    };
}

/// # Safety
/// As for [`dwconv_small_window`].
#[unsafe(naked)]
unsafe extern "C" fn loops(job: &mut DwconvSmallWindowArgs, high: i32) {
    naked!(
        DwconvSmallWindowArgs { x, out, next, stride, addend, code, groups, rest, step, lines, count, own },
        Frame { enter_three, enter_one, low, middle, places, job, at, until, apart } =>
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "push {{r4-r7}}",
        "sub sp, #36",
        "mov lr, r1",
        "str r0, [sp, #{job}]",
        "ldr r2, [r0, #{own}]", // the multiplier's lower parts
        "str r2, [sp, #{low}]",
        "ldr r2, [r0, #{second_own}]",
        "str r2, [sp, #{middle}]",
        "ldr r2, [r0, #{out}]",
        "str r2, [sp, #{at}]",
        "ldr r2, [r0, #{x}]",
        "mov r8, r2",
        "ldr r2, [r0, #{stride}]",
        "mov r9, r2",
        "ldr r2, [r0, #{addend}]",
        "mov r10, r2",
        "ldr r2, [r0, #{code}]",
        "str r2, [sp, #{places}]",
        "ldr r3, [r0, #{next}]",
        "str r3, [sp, #{apart}]",
        "lsls r2, r3, #1",
        "adds r2, r2, r3",
        "mov r11, r2",
        "movs r2, #1",
        "lsls r2, r2, #10",
        "mov r12, r2",
        "ldr r2, [r0, #{count}]",
        "subs r2, #1",
        "movs r1, #26",
        "muls r1, r2, r1",
        "ldr r4, 20f",
        "add r4, pc",
        "30:",
        "subs r1, r4, r1",
        "str r1, [sp, #{enter_three}]",
        "movs r1, #10",
        "muls r1, r2, r1",
        "ldr r4, 21f",
        "add r4, pc",
        "31:",
        "subs r1, r4, r1",
        "str r1, [sp, #{enter_one}]",
        "b 1f",
        ".p2align 2",
        "20:",
        ".word 5f - 30b - 2",
        "21:",
        ".word 6f - 31b - 2",
        "1:",
        "ldr r0, [sp, #{job}]",
        "ldr r1, [r0, #{groups}]",
        "cmp r1, #0",
        "bne 3f",
        "b 4f",
        "3:",
        "add r1, r8",
        "str r1, [sp, #{until}]",
        "2:",
        "ldr r0, [sp, #{job}]",
        "ldr r3, [sp, #{apart}]",
        "ldm r0!, {{r1, r4}}",
        "mov r5, r4",
        "mov r6, r4",
        "mov r2, r8",
        "movs r7, #0",
        "ldrsb r7, [r2, r7]",
        "muls r7, r1, r7",
        "adds r4, r4, r7",
        "ldrsb r7, [r2, r3]",
        "muls r7, r1, r7",
        "adds r5, r5, r7",
        "adds r2, r2, r3",
        "ldrsb r7, [r2, r3]",
        "muls r7, r1, r7",
        "adds r6, r6, r7",
        "ldr r7, [sp, #{enter_three}]",
        "mov pc, r7",
        m0!(list three),
        "5:",
        "add r8, r11",
        "ldr r0, [sp, #{at}]",
        "ldr r2, [sp, #{low}]",
        "ldr r7, [sp, #{middle}]",
        "ldr r1, [sp, #{places}]",
        "lsrs r1, r1, #8",
        "bne 8f",
        m0!(short "r4"),
        m0!(short "r5"),
        m0!(short "r6"),
        "3:",
        "str r0, [sp, #{at}]",
        "ldr r1, [sp, #{until}]",
        "cmp r8, r1",
        "beq 4f",
        "b 2b",
        "8:",
        m0!(single "r4"),
        m0!(single "r5"),
        m0!(single "r6"),
        "b 3b",
        "4:",
        "ldr r0, [sp, #{job}]",
        "ldr r1, [r0, #{rest}]",
        "str r1, [sp, #{until}]",
        "cmp r1, #0",
        "bne 2f",
        "b 9f",
        "2:",
        "ldr r0, [sp, #{job}]",
        "ldr r3, [sp, #{apart}]",
        "ldm r0!, {{r1, r4}}",
        "mov r2, r8",
        "movs r7, #0",
        "ldrsb r7, [r2, r7]",
        "muls r7, r1, r7",
        "adds r4, r4, r7",
        "ldr r7, [sp, #{enter_one}]",
        "mov pc, r7",
        m0!(list one),
        "6:",
        "add r8, r3",
        "ldr r0, [sp, #{at}]",
        "ldr r2, [sp, #{low}]",
        "ldr r7, [sp, #{middle}]",
        "ldr r1, [sp, #{places}]",
        "lsrs r1, r1, #8",
        "bne 8f",
        m0!(short "r4"),
        "3:",
        "str r0, [sp, #{at}]",
        "ldr r1, [sp, #{until}]",
        "subs r1, #1",
        "str r1, [sp, #{until}]",
        "bne 2b",
        "b 9f",
        "8:",
        m0!(single "r4"),
        "b 3b",
        "9:",
        "ldr r0, [sp, #{job}]",
        "ldr r1, [r0, #{step}]",
        "add r8, r1",
        "ldr r1, [r0, #{lines}]",
        "subs r1, #1",
        "str r1, [r0, #{lines}]",
        "beq 8f",
        "b 1b",
        "8:",
        "add sp, #36",
        "pop {{r4-r7}}",
        "mov r8, r4",
        "mov r9, r5",
        "mov r10, r6",
        "mov r11, r7",
        "pop {{r4-r7, pc}}";
        second_own = const offset_of!(DwconvSmallWindowArgs, own) + size_of::<usize>(),
    )
}
