//! [`rows`] for ARMv6-M: eight registers that multiply, five more that add.
//!
//! In the loop: r0 words of x, r1 index of the weight from -inputs to 0, r2 end of the row, r3 a weight, r4-r7 words and the block's sums, r8 and r10
//! totals, r9 and r11 high halves, r12 2^15, lr the record. On the stack: x, the job, inputs.

#![cfg(kernel_isa = "armv6m")]

use super::super::args::DotRowsArgs;
use crate::kernels::packed::channel_record::{Record, Words};

frame! {
    /// The stack frame: the first pixels' words, the arguments, the inputs of a row.
    Frame { first_x, job, row }
}

macro_rules! m0 {
    (two $step:literal) => { concat!(
        "ldm r0!, {{r4-r7}}\n",
        "ldrsb r3, [r2, r1]\n",
        "adds r1, #1\n",
        "muls r4, r3, r4\n",
        "muls r5, r3, r5\n",
        "ldrsb r3, [r2, r1]\n",
        $step,
        "muls r6, r3, r6\n",
        "muls r7, r3, r7\n",
        "adds r4, r4, r6\n",
        "adds r5, r5, r7\n")
    };
    (one $step:literal) => { concat!(
        "ldm r0!, {{r6, r7}}\n",
        "ldrsb r3, [r2, r1]\n",
        $step,
        "muls r6, r3, r6\n",
        "muls r7, r3, r7\n",
        "adds r4, r4, r6\n",
        "adds r5, r5, r7\n")
    };
    (add) => { concat!(
        "add r8, r4\n",
        "add r10, r5\n",
        "add r4, r12\n",
        "add r5, r12\n",
        "asrs r4, r4, #16\n",
        "asrs r5, r5, #16\n",
        "adds r1, #1\n",
        "add r9, r4\n",
        "add r11, r5\n")
    };
    (2) => { concat!(m0!(two ""), m0!(add)) };
    (3) => { concat!(m0!(two "adds r1, #1\n"), m0!(one ""), m0!(add)) };
    (4) => { concat!(m0!(two "adds r1, #1\n"), m0!(one "adds r1, #1\n"), m0!(one ""), m0!(add)) };
    (8) => { concat!(m0!(two "adds r1, #1\n"), m0!(one "adds r1, #1\n"), m0!(one "adds r1, #1\n"), m0!(one "adds r1, #1\n"),
        m0!(one "adds r1, #1\n"), m0!(one "adds r1, #1\n"), m0!(one ""), m0!(add)) };
    // The sum in $acc, as `requant::high_mul_by_halves` goes, to the byte at r0: r5 low and r6 high half of the multiplier, r7 addend, r8 code, r11 2^14.
    (store $acc:literal, $next:literal) => { concat!(
        "mov r4, ", $acc, "\n",
        "sxth r3, r4\n",
        "subs r4, r4, r3\n",
        "asrs r4, r4, #16\n",      // ah
        "mov r1, r3\n",
        "muls r1, r5, r1\n",       // al * ml
        "asrs r1, r1, #16\n",
        "muls r3, r6, r3\n",       // al * mh
        "adds r1, r1, r3\n",
        "mov r3, r4\n",
        "muls r3, r5, r3\n",       // ah * ml
        "adds r1, r1, r3\n",
        "add r1, r11\n",           // 2^14
        "asrs r1, r1, #15\n",
        "muls r4, r6, r4\n",
        "lsls r4, r4, #1\n",
        "adds r1, r1, r4\n",       // q
        "asrs r3, r1, #31\n",
        "adds r1, r1, r3\n",
        "adds r1, r1, r7\n",
        m0!(limit), $next)
    };
    // The single form of the sum in r4, as `requant::product_by_bytes` goes: r5 to r7 parts of the mantissa, r11 addend, r8 code.
    (single $next:literal) => { concat!(
        "mov r1, r4\n",
        "muls r1, r5, r1\n",
        "asrs r1, r1, #8\n",
        "mov r3, r4\n",
        "muls r3, r6, r3\n",
        "adds r1, r1, r3\n",
        "asrs r1, r1, #8\n",
        "muls r4, r7, r4\n",
        "adds r1, r1, r4\n",
        "add r1, r11\n",
        m0!(limit), $next)
    };
    (limit) => { concat!(
        "mov r4, r8\n",
        "asrs r1, r4\n",
        "sxtb r3, r1\n",
        "cmp r3, r1\n",
        "beq 7f\n",
        "asrs r3, r1, #31\n",
        "mvns r3, r3\n",
        "movs r1, #128\n",
        "eors r3, r1\n",
        "7:\n",
        "strb r3, [r0]\n")
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
    naked!(
        DotRowsArgs { half, out, stride, end, twice, inputs, right, sums }, Words { bias, multiplier, code }, Frame { first_x, job, row } =>
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "push {{r4-r7}}",
        "mov lr, r2",
        "ldr r4, [r3, #{inputs}]",
        "adds r2, r1, r4",
        "push {{r0, r3, r4}}",
        "mov r1, r4",
        "movs r4, #1",
        "lsls r4, r4, #15",
        "mov r12, r4",
        "mov r4, lr",
        "1:", // r1 k, r4 the record
        "ldr r5, [r4, #{bias}]",
        "ldr r6, [r4, #{code}]",
        "mov r9, r5",
        "mov r11, r5",
        "lsls r4, r5, #16",
        "adds r5, r5, r4",
        "mov r8, r5",
        "mov r10, r5",
        "rsbs r1, r1, #0",
        "ldr r0, [sp, #{first_x}]",
        "lsls r6, r6, #21",
        "bcs 40f",
        "lsls r6, r6, #2",
        "bcs 20f",
        "bmi 10f",
        "2:",
        m0!(4),
        "bne 2b",
        "b 4f",
        "10:",
        "2:",
        m0!(2),
        "bne 2b",
        "b 4f",
        "40:",
        "mov r5, r9",
        "movs r4, r5",
        "movs r6, r5",
        "movs r7, r5",
        "b 6f",
        "20:",
        "bmi 30f",
        "2:",
        m0!(3),
        "bne 2b",
        "b 4f",
        "30:",
        "2:",
        m0!(8),
        "bne 2b",
        "4:",
        "mov r1, r9",
        "lsls r1, r1, #16",
        "mov r4, r8",
        "subs r4, r4, r1",
        "mov r5, r9",
        "mov r1, r11",
        "lsls r3, r1, #16",
        "mov r6, r10",
        "subs r6, r6, r3",
        "mov r7, r11",
        "6:",
        "ldr r3, [sp, #{job}]",
        "mov r0, lr",
        "ldr r1, [r0, #{code}]",
        "lsls r0, r1, #21", // GENERAL to the sign
        "bpl 9f",
        "adds r3, #{sums}",
        "stm r3!, {{r4-r7}}",
        "mov r0, lr",
        "b 8f",
        "9:",
        "mov r9, r2",
        "mov r10, r5",
        "push {{r6, r7}}",
        "ldr r0, [r3, #{out}]",
        "lsrs r2, r1, #16",
        "adds r0, r0, r2",
        "ldr r2, [r3, #{stride}]",
        "mov r8, r1",
        "ldr r7, [r3, #{twice}]",
        "lsls r5, r1, #16",  // SINGLE to the sign
        "bpl 50f",
        "subs r1, #1",
        "lsls r7, r1",
        "ldr r5, [r3, #{half}]",
        "adds r7, r7, r5",
        "mov r11, r7",
        "ldr r6, [r3, #{right}]",
        "mov r1, lr",
        "ldr r1, [r1, #{multiplier}]",
        "asrs r1, r6",
        "uxtb r5, r1",
        "asrs r1, r1, #8",
        "uxtb r6, r1",
        "asrs r7, r1, #8",
        m0!(single "adds r0, r0, r2\n"),
        "mov r4, r10",
        m0!(single "adds r0, r0, r2\n"),
        "pop {{r4}}",
        m0!(single "adds r0, r0, r2\n"),
        "pop {{r4}}",
        m0!(single ""),
        "b 60f",
        "50:",
        "subs r1, #1",
        "lsls r7, r1",
        "mov r1, lr",
        "ldr r5, [r1, #{multiplier}]",
        "lsrs r6, r5, #16",
        "uxth r5, r5",
        "movs r3, #1",
        "lsls r3, r3, #14",
        "mov r11, r3",
        "mov r3, r4",
        m0!(store "r3", "adds r0, r0, r2\n"),
        m0!(store "r10", "adds r0, r0, r2\n"),
        "pop {{r3}}",
        m0!(store "r3", "adds r0, r0, r2\n"),
        "pop {{r3}}",
        m0!(store "r3", ""),
        "60:",
        "ldr r3, [sp, #{job}]",
        "ldr r0, [r3, #{end}]",
        "mov r4, lr",
        "adds r4, #12",
        "mov lr, r4",
        "mov r2, r9",
        "ldr r1, [sp, #{row}]",
        "adds r2, r2, r1",
        "cmp r0, r4",
        "beq 8f",
        "b 1b",
        "8:",
        "add sp, #12",
        "pop {{r4-r7}}",
        "mov r8, r4",
        "mov r9, r5",
        "mov r10, r6",
        "mov r11, r7",
        "pop {{r4-r7, pc}}",
    )
}
