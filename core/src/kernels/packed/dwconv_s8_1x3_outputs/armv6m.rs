//! [`dwconv_1x3`] for ARMv6-M: 15 instructions a tap of three windows, in pairs.
//!
//! r0 taps, r1 a tap, r2 a weight, r3 from window to window, r7 twice that, r4-r6 sums, r8 weights, r9 from tap to tap, r10 the end of a row's weights, r11 the
//! job, r12 output, lr free. The compiler has no registers for them.

#![cfg(kernel_isa = "armv6m")]

use core::mem::offset_of;

use super::super::args::Dwconv1x3Args;
use crate::kernels::packed::requantize;

/// Arguments of the loop: [`Dwconv1x3Args`], and behind it parts of the multiplier. `#[repr(C)]`; the assembly reads fields by `offset_of!`.
#[repr(C)]
struct Frame<'a> {
    job: &'a mut Dwconv1x3Args,
    /// First factor of an accumulator: the low half of the mantissa, or eight bits of it in the single form.
    low: i32,
    /// The other half, or the next eight bits.
    middle: i32,
    /// 2^14, or the mantissa's upper bits in the single form.
    high: i32,
}

/// All groups of the lines.
///
/// # Safety
/// Every tap of every window is readable, and every output writable; `weights` has a byte for each tap.
#[inline(always)]
pub(in super::super) unsafe fn dwconv_1x3(job: &mut Dwconv1x3Args) {
    let left = job.code >> 8;
    let [low, middle, high] = match left {
        0 => [job.multiplier & 0xffff, job.multiplier >> 16, 1 << 14],
        left => requantize::bytes(job.multiplier, left as u32 - 1),
    };
    let frame = Frame { job, low, middle, high };
    match left {
        // SAFETY: `frame.job` is the caller's: its taps, weights and outputs are valid (fn docs). The code is of the short form.
        0 => unsafe { short(&frame) },
        // SAFETY: `frame.job` is the caller's: its taps, weights and outputs are valid (fn docs). The code is of the single form.
        _ => unsafe { single(&frame) },
    }
}

consecutive!(Frame<'_>: job, low, middle, high);
const _: () = assert!(offset_of!(Frame<'_>, job) == 0);

frame! {
    /// Words on the stack; one more is not used.
    Parts { low_part, middle_part, high_part }
}

macro_rules! m0 {
    // r1 has the place of the weight.
    (tap) => { concat!(
        "mov r2, r8\n", "ldrsb r2, [r2, r1]\n",
        "movs r1, #0\n", m0!(macs))
    };
    (macs) => { concat!(
        "ldrsb r1, [r0, r1]\n", "muls r1, r2, r1\n", "adds r4, r4, r1\n",
        "ldrsb r1, [r0, r3]\n", "muls r1, r2, r1\n", "adds r5, r5, r1\n",
        "ldrsb r1, [r0, r7]\n", "muls r1, r2, r1\n", "adds r6, r6, r1\n",
        "add r0, r9\n")
    };
    // As `requantize::high_mul_by_halves` goes: r2 low and r7 high half of the multiplier; r0 the job.
    (store short $acc:literal) => { concat!(
        "sxth r3, ", $acc, "\n",
        "subs ", $acc, ", ", $acc, ", r3\n",
        "asrs ", $acc, ", ", $acc, ", #16\n",
        "mov r1, r3\n",
        "muls r1, r2, r1\n",
        "asrs r1, r1, #16\n",
        "muls r3, r7, r3\n",
        "adds r1, r1, r3\n",
        "mov r3, ", $acc, "\n",
        "muls r3, r2, r3\n",
        "adds r1, r1, r3\n",
        "add r1, lr\n",
        "asrs r1, r1, #15\n",
        "muls ", $acc, ", r7, ", $acc, "\n",
        "lsls ", $acc, ", ", $acc, ", #1\n",
        "adds r1, r1, ", $acc, "\n",
        "asrs r3, r1, #31\n",
        "adds r1, r1, r3\n",
        m0!(limit))
    };
    // As `requantize::product_by_bytes` goes: r2, r7 and lr the bytes.
    (store single $acc:literal) => { concat!(
        "mov r1, ", $acc, "\n",
        "muls r1, r2, r1\n",
        "asrs r1, r1, #8\n",
        "mov r3, ", $acc, "\n",
        "muls r3, r7, r3\n",
        "adds r1, r1, r3\n",
        "asrs r1, r1, #8\n",
        "mov r3, lr\n",
        "muls ", $acc, ", r3, ", $acc, "\n",
        "adds r1, r1, ", $acc, "\n",
        m0!(limit))
    };
    (limit) => { concat!(
        "ldr r3, [r0, #{addend}]\n", "adds r1, r1, r3\n",
        "ldr r3, [r0, #{code}]\n", "asrs r1, r3\n",
        "sxtb r3, r1\n",
        "cmp r3, r1\n",
        "beq 7f\n",
        "asrs r3, r1, #31\n",
        "mvns r3, r3\n",
        "movs r1, #128\n",
        "eors r3, r1\n",
        "7:\n",
        "mov r1, r12\n",
        "strb r3, [r1]\n",
        "ldr r3, [r0, #{stride}]\n", "add r12, r3\n")
    };
    (lines $form:tt) => { concat!(
        "push {{r4-r7, lr}}\n",
        "mov r4, r8\n", "mov r5, r9\n", "mov r6, r10\n", "mov r7, r11\n",
        "push {{r4-r7}}\n",
        "ldm r0!, {{r1, r2, r3, r4}}\n",
        "sub sp, #16\n",
        "str r2, [sp, #{low_part}]\n", "str r3, [sp, #{middle_part}]\n", "str r4, [sp, #{high_part}]\n",
        "mov r11, r1\n",
        "ldr r0, [r1, #{out}]\n", "mov r12, r0\n", // output
        "ldr r0, [r1, #{right}]\n", "mov r9, r0\n",
        "ldr r0, [r1, #{x}]\n", // taps
        "1:\n",
        "mov r1, r11\n",
        "ldr r2, [r1, #{groups}]\n", "str r2, [r1, #{left}]\n",
        "2:\n",
        "mov r1, r11\n",
        "ldr r4, [r1, #{bias}]\n", "mov r5, r4\n", "mov r6, r4\n",
        "ldr r3, [r1, #{next}]\n", "lsls r7, r3, #1\n",
        "ldr r2, [r1, #{weights}]\n", "mov r8, r2\n",
        "3:\n",
        "mov r1, r11\n",
        "ldr r2, [r1, #{leaps}]\n",
        "cmp r2, #0\n", "beq 5f\n",
        "add r2, r8\n", "mov r10, r2\n",
        "4:\n",
        "mov r2, r8\n", "movs r1, #0\n", "ldrsb r2, [r2, r1]\n",
        m0!(macs),
        "movs r1, #1\n",
        m0!(tap),
        "movs r1, #2\n", "add r8, r1\n",
        "cmp r8, r10\n", "bne 4b\n",
        "5:\n",
        "mov r1, r11\n",
        "ldr r2, [r1, #{rest}]\n",
        "cmp r2, #0\n", "beq 6f\n",
        "movs r1, #0\n",
        m0!(tap),
        "movs r1, #1\n", "add r8, r1\n",
        "6:\n",
        "mov r1, r11\n",
        "ldr r2, [r1, #{down}]\n", "adds r0, r0, r2\n",
        "ldr r2, [r1, #{weights_end}]\n",
        "cmp r8, r2\n", "bne 3b\n",
        "ldr r2, [r1, #{group}]\n", "adds r0, r0, r2\n",
        "mov r8, r0\n",
        "mov r0, r1\n",
        "ldr r2, [sp, #{high_part}]\n", "mov lr, r2\n",
        "ldr r2, [sp, #{low_part}]\n", "ldr r7, [sp, #{middle_part}]\n",
        m0!(store $form "r4"), m0!(store $form "r5"), m0!(store $form "r6"),
        "mov r1, r0\n",
        "mov r0, r8\n",
        "ldr r2, [r1, #{left}]\n",
        "subs r2, #2\n",
        "str r2, [r1, #{left}]\n",
        "ble 8f\n",
        "b 2b\n",
        "8:\n",
        "bne 9f\n",
        "ldr r2, [r1, #{back}]\n", "subs r0, r0, r2\n",
        "ldr r2, [r1, #{back_out}]\n", "mov r3, r12\n", "subs r3, r3, r2\n", "mov r12, r3\n",
        "b 2b\n",
        "9:\n",
        "ldr r2, [r1, #{step}]\n", "adds r0, r0, r2\n",
        "ldr r2, [r1, #{lines}]\n",
        "subs r2, #1\n",
        "str r2, [r1, #{lines}]\n",
        "beq 10f\n",
        "b 1b\n",
        "10:\n",
        "add sp, #16\n",
        "pop {{r4-r7}}\n",
        "mov r8, r4\n", "mov r9, r5\n", "mov r10, r6\n", "mov r11, r7\n",
        "pop {{r4-r7, pc}}\n")
    };
}

macro_rules! outputs_1x3 {
    ($($name:ident)*) => { $(
        #[unsafe(naked)]
        unsafe extern "C" fn $name(frame: &Frame<'_>) {
            naked!(
                Dwconv1x3Args {
                    bias, addend, code, x, out, stride, right, next, weights, leaps, rest, down, weights_end, group, groups, back, back_out, step,
                    lines, left,
                },
                Parts { low_part, middle_part, high_part } =>
                ".cpu cortex-m0",
                m0!(lines $name)
            )
        }
    )* };
}

outputs_1x3!(short single);
