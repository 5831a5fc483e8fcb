//! [`dwconv_3x3_plane`] for ARMv7-M: 15 loads, 27 MLA and 9 loads of weights for three outputs.
//!
//! r0-r2 three rows of the plane, r3 weights, r4 output, r5 its stride, r6 twice the groups left, r7-r9 sums, r10 a tap, r11, r12 and lr three weights. The
//! compiler, which spills here, takes twice the instructions.

#![cfg(kernel_isa = "armv7m")]

use super::super::args::Dwconv3x3PlaneArgs;

consecutive!(Dwconv3x3PlaneArgs: bias, multiplier, addend, code, plane, pitch, weights, out, stride, end, groups, back, back_out, step, step_out);

frame!(
    /// The frame: where windows stop, what requantises, and the address of `plane` in the arguments.
    Frame { stop, bias, multiplier, addend, code, place }
);
consecutive!(Frame: multiplier, addend, code);

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

macro_rules! m3 {
    (weights $w:literal) => { concat!(
        "ldrsb r11, [r3, #", $w, "]\n", "ldrsb r12, [r3, #", $w, "+1]\n", "ldrsb lr, [r3, #", $w, "+2]\n") };
    (tap $p:literal $at:literal) => { concat!("ldrsb r10, [", $p, ", #", $at, "]\n") };
    (row 1 $p:literal $w:literal $a0:literal $a1:literal) => { concat!(
        m3!(weights $w),
        "ldrsb r10, [", $p, "], #3\n", "mla r7, r10, r11, ", $a0, "\n",
        m3!(tap $p "-2"), "mla r7, r10, r12, r7\n", "mla r8, r10, r11, ", $a1, "\n",
        m3!(tap $p "-1"), "mla r7, r10, lr, r7\n", "mla r8, r10, r12, r8\n", "mla r9, r10, r11, r9\n",
        "ldrsb r10, [", $p, "]\n", "mla r8, r10, lr, r8\n", "mla r9, r10, r12, r9\n",
        m3!(tap $p "1"), "mla r9, r10, lr, r9\n")
    };
    (row 2 $p:literal $w:literal $a0:literal $a1:literal) => { concat!(
        m3!(weights $w),
        "ldrsb r10, [", $p, "], #6\n", "mla r7, r10, r11, ", $a0, "\n",
        m3!(tap $p "-5"), "mla r7, r10, r12, r7\n",
        m3!(tap $p "-4"), "mla r7, r10, lr, r7\n", "mla r8, r10, r11, ", $a1, "\n",
        m3!(tap $p "-3"), "mla r8, r10, r12, r8\n",
        m3!(tap $p "-2"), "mla r8, r10, lr, r8\n", "mla r9, r10, r11, r9\n",
        m3!(tap $p "-1"), "mla r9, r10, r12, r9\n",
        "ldrsb r10, [", $p, "]\n", "mla r9, r10, lr, r9\n")
    };
    // One window's row, and on by a window.
    (alone 1 $p:literal $w:literal) => { concat!("ldrsb r10, [", $p, "], #1\n", m3!(alone $p $w "0" "1")) };
    (alone 2 $p:literal $w:literal) => { concat!("ldrsb r10, [", $p, "], #2\n", m3!(alone $p $w "-1" "0")) };
    (alone $p:literal $w:literal $a:literal $b:literal) => { concat!(
        m3!(weights $w), "mla r7, r10, r11, r7\n",
        m3!(tap $p $a), "mla r7, r10, r12, r7\n",
        m3!(tap $p $b), "mla r7, r10, lr, r7\n")
    };
    (store $acc:literal, $at:literal) => { concat!(
        "lsl ", $acc, ", #1\n",
        "smull r10, ", $acc, ", ", $acc, ", r11\n",
        "add ", $acc, ", ", $acc, ", r10, lsr #31\n",
        "add r10, ", $acc, ", r12\n",
        "add r10, r10, ", $acc, ", asr #31\n",
        "asr r10, lr\n",
        "ssat r10, #8, r10\n",
        "strb r10, ", $at, "\n")
    };
    (single $acc:literal, $at:literal) => { concat!(
        "smull r10, ", $acc, ", ", $acc, ", r11\n",
        "add ", $acc, ", r12\n",
        "asr ", $acc, ", lr\n",
        "ssat ", $acc, ", #8, ", $acc, "\n",
        "strb ", $acc, ", ", $at, "\n")
    };
    (stores short) => { concat!(
        "ldr lr, [sp, #{code}]\n",
        m3!(store "r7", "[r4]"),
        m3!(store "r8", "[r4, r5]"),
        m3!(store "r9", "[r4, r5, lsl #1]"))
    };
    (stores single) => { concat!(
        "ldrb lr, [sp, #{second_byte_of_code}]\n", // to the left
        "lsl r7, lr\n", "lsl r8, lr\n", "lsl r9, lr\n",
        "ldr lr, [sp, #{code}]\n",
        m3!(single "r7", "[r4]"),
        m3!(single "r8", "[r4, r5]"),
        m3!(single "r9", "[r4, r5, lsl #1]"))
    };
    (stores one short) => { concat!("ldr lr, [sp, #{code}]\n", m3!(store "r7", "[r4]")) };
    (stores one single) => { concat!(
        "ldrb lr, [sp, #{second_byte_of_code}]\n",
        "lsl r7, lr\n",
        "ldr lr, [sp, #{code}]\n",
        m3!(single "r7", "[r4]"))
    };
    (plane $s:tt $form:tt) => { concat!(
        "push {{r4-r11, lr}}\n",
        "ldm r0!, {{r1-r4}}\n",
        "push {{r0}}\n",
        "push {{r1-r4}}\n",
        "mov r6, r0\n",
        "ldm r6, {{r0, r1, r3, r4, r5}}\n", // p, pitch, w, y, stride
        "ldr r6, [r6, #{end}-{plane}]\n", "push {{r6}}\n", "ldr r6, [sp, #{place}]\n",
        "ldr r6, [r6, #{groups}-{plane}]\n",
        "add r2, r0, r1, lsl #1\n",
        "add r1, r0\n",
        "1:\n",
        "ldr r9, [sp, #{bias}]\n",
        m3!(row $s "r0" "0" "r9" "r9"),
        m3!(row $s "r1" "3" "r7" "r8"),
        m3!(row $s "r2" "6" "r7" "r8"),
        "ldrd r11, r12, [sp, #{multiplier}]\n", // addend
        m3!(stores $form),
        "add r4, r4, r5, lsl #1\n",
        "add r4, r5\n",
        "subs r6, #2\n",
        "bgt 1b\n",
        "ldr r12, [sp, #{place}]\n",
        "bne 2f\n",
        "ldrd r10, r11, [r12, #{back}-{plane}]\n", // back_out
        "cmp r10, #0\n",
        "beq 3f\n",
        "sub r0, r10\n", "sub r1, r10\n", "sub r2, r10\n", "sub r4, r11\n",
        "b 1b\n",
        "3:\n",
        "ldr r7, [sp, #{bias}]\n",
        m3!(alone $s "r0" "0"),
        m3!(alone $s "r1" "3"),
        m3!(alone $s "r2" "6"),
        "ldrd r11, r12, [sp, #{multiplier}]\n", // addend
        m3!(stores one $form),
        "add r4, r5\n",
        "ldr r12, [sp, #{place}]\n",
        "2:\n",
        "ldrd r10, r11, [r12, #{step}-{plane}]\n", // step_out
        "add r0, r10\n", "add r1, r10\n", "add r2, r10\n", "add r4, r11\n",
        "ldr r10, [sp, #{stop}]\n",
        "ldr r6, [r12, #{groups}-{plane}]\n",
        "cmp r0, r10\n",
        "bne 1b\n",
        "add sp, #24\n",
        "pop {{r4-r11, pc}}\n")
    };
}

#[unsafe(naked)]
unsafe extern "C" fn stride_1(plane: &Dwconv3x3PlaneArgs) {
    naked!(
        Dwconv3x3PlaneArgs { plane, end, groups, back, step },
        Frame { stop, bias, multiplier, code, place } =>
        ".cpu cortex-m3", m3!(plane 1 short)
    )
}

#[unsafe(naked)]
unsafe extern "C" fn stride_2(plane: &Dwconv3x3PlaneArgs) {
    naked!(
        Dwconv3x3PlaneArgs { plane, end, groups, back, step },
        Frame { stop, bias, multiplier, code, place } =>
        ".cpu cortex-m3", m3!(plane 2 short)
    )
}

#[unsafe(naked)]
unsafe extern "C" fn single_stride_1(plane: &Dwconv3x3PlaneArgs) {
    naked!(
        Dwconv3x3PlaneArgs { plane, end, groups, back, step },
        Frame { stop, bias, multiplier, code, place } =>
        ".cpu cortex-m3", m3!(plane 1 single);
        second_byte_of_code = const core::mem::offset_of!(Frame, code) + 1
    )
}

#[unsafe(naked)]
unsafe extern "C" fn single_stride_2(plane: &Dwconv3x3PlaneArgs) {
    naked!(
        Dwconv3x3PlaneArgs { plane, end, groups, back, step },
        Frame { stop, bias, multiplier, code, place } =>
        ".cpu cortex-m3", m3!(plane 2 single);
        second_byte_of_code = const core::mem::offset_of!(Frame, code) + 1
    )
}
