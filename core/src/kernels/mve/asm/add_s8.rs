//! Sums of tensors, pooling.

use super::super::args::{Add, AddS8LinearArgs, Mean, Pool};

consecutive!(Add: scale, b_offset, b_mantissa, b_shift, a_offset, mantissa, shift, zero_point, low, high);
consecutive!(AddS8LinearArgs: a, b, out, count, factors);
const _: () =
    assert!(core::mem::offset_of!(AddS8LinearArgs, offset) == core::mem::offset_of!(AddS8LinearArgs, factors) + 8);
consecutive!(Pool: src, step, columns, skip, rows, lanes, dst);
consecutive!(Mean: src, step, columns, skip, channels, rows, dst, reciprocal, half, low, high);

/// Defines the loop of a sum: four elements in 16 (fast) instructions.
///
/// The reference shifts both operands left by 20 and scales each. The operand with the larger scale has the factor 1/2, so that it is
/// only shifted by 19; `vmlas` takes the zero point away and shifts in one.
macro_rules! add {
    ($(#[$doc:meta])* $name:ident, $shift:expr, $clamp:expr) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name(
            a: *const i8,
            b: *const i8,
            out: *mut i8,
            count: usize,
            args: *const Add,
        ) {
            naked!(Add { low } => concat!(
                ".cpu cortex-m55\n push {{r4-r11, lr}}\n vpush {{d8-d15}}\n",
                "ldr r12, [sp, #{args}]\n mov lr, r3\n",
                "ldrd r4, r5, [r12, #{low}]\n vdup.16 q6, r4\n vdup.16 q7, r5\n",
                // r4: 2^20; r5: offset, r6: mantissa, r7: shift of b; r8: offset of a; r9: mantissa, r10: shift of the sum; r11: zero point.
                "ldm r12, {{r4-r11}}\n vdup.32 q2, r4\n vdup.32 q4, r10\n mov r12, #0x80000\n lsr r3, r7, #31\n",
                "dlstp.32 lr, lr\n",
                "2: vldrb.s32 q0, [r1], #4\n vmlas.s32 q0, q2, r5\n vqrdmulh.s32 q0, q0, r6\n",
                // Ties away from zero: one less where negative, if there is a shift (r3).
                "vshr.s32 q3, q0, #31\n vldrb.s32 q1, [r0], #4\n vmla.s32 q0, q3, r3\n vrshl.s32 q0, r7\n",
                "vmla.s32 q0, q1, r12\n vadd.i32 q0, q0, r8\n vqrdmulh.s32 q0, q0, r9\n",
                $shift,
                "vqmovnb.s32 q0, q0\n vqadd.s16 q0, q0, r11\n",
                $clamp,
                "vstrb.32 q0, [r2], #4\n letp lr, 2b\n",
                "vpop {{d8-d15}}\n pop {{r4-r11, pc}}\n",
            // Behind nine registers and eight double ones.
            ); args = const 9 * 4 + 8 * 8)
        }
    };
}

add! {
    /// See [`crate::kernels::mve::add_s8`] for when `fast` holds.
    add_fast, "vrshl.s32 q0, r10\n", "vqmovnb.s16 q0, q0\n"
}
add! {
    /// Any zero point and limits.
    add_general,
    "vand q3, q0, q4\n vshr.s32 q3, q3, #31\n vadd.i32 q0, q0, q3\n vrshl.s32 q0, r10\n",
    "vmax.s16 q0, q0, q6\n vmin.s16 q0, q0, q7\n"
}

/// A sum in its linear form: 16 elements in 30 instructions, four that are left in 10.
///
/// Widened from bytes, elements stand 23 bits further to the left. Narrowing takes away 20 bits: 16 to a half, which loses nothing, then 4.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn linear_sum(args: *const AddS8LinearArgs) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r7, lr}}",
        "vpush {{d8-d15}}",
        // r1, r2 operands, r3 output, r4 elements, r6 factor of b, r7 offset; q7 factor of a.
        "ldm r0, {{r1-r7}}",
        "vdup.32 q7, r5",
        "lsr r0, r4, #4",
        "wls lr, r0, 3f",
        "2: vldrb.u8 q0, [r1], #16",
        "vldrb.u8 q1, [r2], #16",
        "vshllt.s8 q2, q0, #8",
        "vshllb.s8 q0, q0, #8",
        "vshllt.s8 q3, q1, #8",
        "vshllb.s8 q1, q1, #8",
        // Bytes 0 and 2 of every word.
        "vshllb.s16 q4, q0, #15",
        "vshllt.s16 q0, q0, #15",
        "vqdmlash.s32 q4, q7, r7",
        "vshllb.s16 q5, q1, #15",
        "vqdmlash.s32 q0, q7, r7",
        "vshllt.s16 q1, q1, #15",
        "vqdmlah.s32 q4, q5, r6",
        "vqdmlah.s32 q0, q1, r6",
        "vshrnb.i32 q6, q4, #16",
        "vshrnt.i32 q6, q0, #16",
        // Bytes 1 and 3.
        "vshllb.s16 q4, q2, #15",
        "vshllt.s16 q2, q2, #15",
        "vqdmlash.s32 q4, q7, r7",
        "vshllb.s16 q5, q3, #15",
        "vqdmlash.s32 q2, q7, r7",
        "vshllt.s16 q3, q3, #15",
        "vqdmlah.s32 q4, q5, r6",
        "vqdmlah.s32 q2, q3, r6",
        "vshrnb.i32 q0, q4, #16",
        "vshrnt.i32 q0, q2, #16",
        "vqshrnb.s16 q6, q6, #4",
        "vqshrnt.s16 q6, q0, #4",
        "vstrb.8 q6, [r3], #16",
        "le lr, 2b",
        "3: and r4, r4, #15",
        "wlstp.32 lr, r4, 5f",
        "4: vldrb.s32 q4, [r1], #4",
        "vldrb.s32 q5, [r2], #4",
        "vshl.i32 q4, q4, #23",
        "vshl.i32 q5, q5, #23",
        "vqdmlash.s32 q4, q7, r7",
        "vqdmlah.s32 q4, q5, r6",
        "vshrnb.i32 q6, q4, #16",
        "vqshrnb.s16 q6, q6, #4",
        "vstrb.32 q6, [r3], #4",
        "letp lr, 4b",
        "5: vpop {{d8-d15}}",
        "pop {{r4-r7, pc}}",
    )
}

/// Sums of up to eight channels over a window: 5 instructions a pixel. i16 holds 256 elements.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn sum(args: *const Pool) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r7, lr}}",
        // r1 source, r2 step, r3 columns, r4 skip, r5 rows, r6 lanes, r7 destination.
        "ldm r0, {{r1-r7}}",
        "vctp.16 r6",
        "vmov.i32 q0, #0",
        "2: dls lr, r3",
        "3: vpst",
        "vldrbt.s16 q1, [r1]",
        "add r1, r2",
        "vadd.i16 q0, q0, q1",
        "le lr, 3b",
        "add r1, r4",
        "subs r5, #1",
        "bne 2b",
        "vstrh.16 q0, [r7]",
        "pop {{r4-r7, pc}}",
    )
}

/// Means of all channels over a window: 5 instructions a pixel and 29 for eight channels.
///
/// A sum has 16 bits, the pixels 8: the product with the reciprocal, cut to its high word, is the quotient exactly.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn mean(args: *const Mean) {
    naked!(Mean { low, reciprocal } =>
        ".cpu cortex-m55",
        "push {{r4-r11, lr}}",
        "vpush {{d8-d13}}",
        "ldrd r1, r2, [r0, #{low}]", // high
        "vdup.16 q5, r1",
        "vdup.16 q6, r2",
        "ldrd r1, r9, [r0, #{reciprocal}]", // half
        "vdup.32 q4, r1",
        // r1 source, r2 step, r3 columns, r4 skip, r5 channels, r6 rows, r7 destination; r0 and r8 walk.
        "ldm r0, {{r1-r7}}",
        "2: vctp.16 r5",
        "mov r0, r1",
        "mov r8, r6",
        "vmov.i32 q0, #0",
        "3: dls lr, r3",
        "4: vpst",
        "vldrbt.s16 q1, [r0]",
        "add r0, r2",
        "vadd.i16 q0, q0, q1",
        "le lr, 4b",
        "add r0, r4",
        "subs r8, #1",
        "bne 3b",
        // Even and odd channels: magnitude, half more, quotient, sign.
        "vmovlb.s16 q2, q0",
        "vmovlt.s16 q3, q0",
        "vshr.s32 q1, q2, #31",
        "vabs.s32 q2, q2",
        "vadd.i32 q2, q2, r9",
        "vmulh.u32 q2, q2, q4",
        "veor q2, q2, q1",
        "vsub.i32 q2, q2, q1",
        "vshr.s32 q1, q3, #31",
        "vabs.s32 q3, q3",
        "vadd.i32 q3, q3, r9",
        "vmulh.u32 q3, q3, q4",
        "veor q3, q3, q1",
        "vsub.i32 q3, q3, q1",
        "vmovnb.i32 q0, q2",
        "vmovnt.i32 q0, q3",
        "vmax.s16 q0, q0, q5",
        "vmin.s16 q0, q0, q6",
        "vpst",
        "vstrbt.16 q0, [r7], #8",
        "add r1, #8",
        "subs r5, #8",
        "bgt 2b",
        "vpop {{d8-d13}}",
        "pop {{r4-r11, pc}}",
    )
}

/// Maxima of up to 16 channels over a window: 5 instructions a pixel.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn maximum(args: *const Pool, low: i32, high: i32) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r7, lr}}",
        "vdup.8 q0, r1",
        "vdup.8 q2, r2",
        "ldm r0, {{r1-r7}}",
        "vctp.8 r6",
        "2: dls lr, r3",
        "3: vpst",
        "vldrbt.u8 q1, [r1]",
        "add r1, r2",
        "vmax.s8 q0, q0, q1",
        "le lr, 3b",
        "add r1, r4",
        "subs r5, #1",
        "bne 2b",
        "vmin.s8 q0, q0, q2",
        "vpst",
        "vstrbt.8 q0, [r7]",
        "pop {{r4-r7, pc}}",
    )
}
