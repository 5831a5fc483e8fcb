//! [`dwconv_3x3_plane`] for ARMv6-M: 27 times load, multiply, add, and 9 loads of weights for three outputs.
//!
//! The plane's bytes are unsigned (`FLIP`), since only those load from a register and a constant; the sums start 128 times the weights' sum lower.
//!
//! r0 a row of the plane or the output, r1 a tap, r2 a weight, r3, r7 free, r4-r6 sums, r8-r10 three rows of the plane, r11 2^14 or, in the single form, the
//! mantissa's upper bits, r12 addend, lr output. The frame lies on the stack. The compiler takes 1.5 times the instructions.

#![cfg(kernel_isa = "armv6m")]

use super::super::args::{Dwconv3x3PlaneArgs, FLIP};
use crate::kernels::packed::requantize;

/// Arguments that the loop copies onto the stack. `#[repr(C)]`; the assembly reads fields by `offset_of!`.
#[repr(C)]
struct Frame {
    weights: [i32; 9],
    bias: i32,
    /// First factor of an accumulator: the low half of the mantissa, or eight bits of it in the single form.
    low: i32,
    /// The other half, or the next eight bits.
    middle: i32,
    code: i32,
    stride: usize,
    /// Twice the groups that are left.
    groups_left: usize,
    end: *const i8,
    groups: usize,
    /// Value of r11.
    high: i32,
    back: usize,
    back_out: usize,
    step: usize,
    plane: *const i8,
    pitch: usize,
    out: *mut i8,
    addend: i32,
    step_out: usize,
}

// The copy takes 26 words.
const _: () = assert!(FLIP == 0x80 && size_of::<Frame>() == 104);

/// All outputs of the channel; windows are `stride` columns apart, 1 or 2.
///
/// # Safety
/// The plane holds every window, and `out` takes every output; `weights` has nine bytes.
#[inline(always)]
pub(in super::super) unsafe fn dwconv_3x3_plane(plane: &Dwconv3x3PlaneArgs, stride: usize) {
    // SAFETY: `i < 9`, the channel's weights (fn docs).
    let weights: [i32; 9] = core::array::from_fn(|i| i32::from(unsafe { *plane.weights.add(i) }));
    let [low, middle, high] = match plane.code >> 8 {
        0 => [plane.multiplier & 0xffff, plane.multiplier >> 16, 1 << 14],
        left => requantize::bytes(plane.multiplier, left as u32 - 1),
    };
    let frame = Frame {
        weights,
        bias: plane.bias.wrapping_sub(weights.iter().sum::<i32>() << 7),
        low,
        middle,
        code: plane.code,
        stride: plane.stride,
        groups_left: 0,
        end: plane.end,
        groups: plane.groups,
        high,
        back: plane.back,
        back_out: plane.back_out,
        step: plane.step,
        plane: plane.plane,
        pitch: plane.pitch,
        out: plane.out,
        addend: plane.addend,
        step_out: plane.step_out,
    };
    match (stride, plane.code >> 8) {
        // SAFETY: plane, weights and outputs are valid (fn docs); stride 1, short form.
        (1, 0) => unsafe { stride_1(&frame) },
        // SAFETY: plane, weights and outputs are valid (fn docs); stride 2, short form.
        (_, 0) => unsafe { stride_2(&frame) },
        // SAFETY: plane, weights and outputs are valid (fn docs); stride 1, single form.
        (1, _) => unsafe { single_stride_1(&frame) },
        // SAFETY: plane, weights and outputs are valid (fn docs); stride 2, single form.
        _ => unsafe { single_stride_2(&frame) },
    }
}

macro_rules! m0 {
    (mac $acc:literal $at:literal) => {
        concat!("ldrb r1, [r0, #", $at, "]\n", "muls r1, r2, r1\n", "adds ", $acc, ", ", $acc, ", r1\n")
    };
    (tap $w:literal $a:literal $b:literal $c:literal) => {
        concat!("ldr r2, [sp, #{weights}+", $w, "]\n", m0!(mac "r4" $a), m0!(mac "r5" $b), m0!(mac "r6" $c))
    };
    (row 1 $row:literal $w0:literal $w1:literal $w2:literal) => {
        concat!("mov r0, ", $row, "\n", m0!(tap $w0 0 1 2), m0!(tap $w1 1 2 3), m0!(tap $w2 2 3 4))
    };
    (row 2 $row:literal $w0:literal $w1:literal $w2:literal) => {
        concat!("mov r0, ", $row, "\n", m0!(tap $w0 0 2 4), m0!(tap $w1 1 3 5), m0!(tap $w2 2 4 6))
    };
    (alone $row:literal $w0:literal $w1:literal $w2:literal) => {
        concat!("mov r0, ", $row, "\n",
            "ldr r2, [sp, #{weights}+", $w0, "]\n", m0!(mac "r4" 0),
            "ldr r2, [sp, #{weights}+", $w1, "]\n", m0!(mac "r4" 1),
            "ldr r2, [sp, #{weights}+", $w2, "]\n", m0!(mac "r4" 2))
    };
    (reach 1) => { "movs r1, #3\n" };
    (reach 2) => { "movs r1, #6\n" };
    // As `requantize::high_mul_by_halves` goes: r2 low and r7 high half of the multiplier.
    (stores short) => {
        concat!("ldr r2, [sp, #{low}]\n", "ldr r7, [sp, #{middle}]\n", m0!(store "r4"), m0!(store "r5"), m0!(store "r6"))
    };
    // As `requantize::product_by_bytes` goes: r2, r7 and r11 the bytes.
    (stores single) => {
        concat!("ldr r2, [sp, #{low}]\n", "ldr r7, [sp, #{middle}]\n", m0!(single "r4"), m0!(single "r5"), m0!(single "r6"))
    };
    (stores one short) => {
        concat!("ldr r2, [sp, #{low}]\n", "ldr r7, [sp, #{middle}]\n", m0!(store "r4"))
    };
    (stores one single) => {
        concat!("ldr r2, [sp, #{low}]\n", "ldr r7, [sp, #{middle}]\n", m0!(single "r4"))
    };
    (single $acc:literal) => {
        concat!(
            "mov r1, ", $acc, "\n",
            "muls r1, r2, r1\n",
            "asrs r1, r1, #8\n",
            "mov r3, ", $acc, "\n",
            "muls r3, r7, r3\n",
            "adds r1, r1, r3\n",
            "asrs r1, r1, #8\n",
            "mov r3, r11\n",
            "muls ", $acc, ", r3, ", $acc, "\n",
            "adds r1, r1, ", $acc, "\n",
            m0!(limit)
        )
    };
    (store $acc:literal) => {
        concat!(
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
            "add r1, r11\n",
            "asrs r1, r1, #15\n",
            "muls ", $acc, ", r7, ", $acc, "\n",
            "lsls ", $acc, ", ", $acc, ", #1\n",
            "adds r1, r1, ", $acc, "\n",
            "asrs r3, r1, #31\n",
            "adds r1, r1, r3\n",
            m0!(limit)
        )
    };
    (limit) => {
        concat!(
            "add r1, r12\n",
            "ldr r3, [sp, #{code}]\n",
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
            "ldr r3, [sp, #{stride}]\n",
            "adds r0, r0, r3\n"
        )
    };
    (back $row:literal) => {
        concat!("mov r0, ", $row, "\n", "subs r0, r0, r1\n", "mov ", $row, ", r0\n")
    };
    (plane $s:tt $form:tt) => {
        concat!(
            "push {{r4-r7, lr}}\n",
            "mov r4, r8\n",
            "mov r5, r9\n",
            "mov r6, r10\n",
            "mov r7, r11\n",
            "push {{r4-r7}}\n",
            "sub sp, #104\n",
            "mov r1, sp\n",
            "ldm r0!, {{r2-r7}}\n",
            "stm r1!, {{r2-r7}}\n",
            "ldm r0!, {{r2-r7}}\n",
            "stm r1!, {{r2-r7}}\n",
            "ldm r0!, {{r2-r7}}\n",
            "stm r1!, {{r2-r7}}\n",
            "ldm r0!, {{r2-r7}}\n",
            "stm r1!, {{r2-r7}}\n",
            "ldm r0!, {{r2, r3}}\n",
            "stm r1!, {{r2, r3}}\n",
            "ldr r0, [sp, #{plane}]\n",
            "ldr r1, [sp, #{pitch}]\n",
            "mov r8, r0\n",
            "adds r0, r0, r1\n",
            "mov r9, r0\n",
            "adds r0, r0, r1\n",
            "mov r10, r0\n",
            "ldr r0, [sp, #{out}]\n",
            "mov lr, r0\n",
            "ldr r0, [sp, #{addend}]\n",
            "mov r12, r0\n",
            "ldr r0, [sp, #{high}]\n",
            "mov r11, r0\n",
            "1:\n",
            "ldr r0, [sp, #{groups}]\n",
            "str r0, [sp, #{groups_left}]\n",
            "2:\n",
            "ldr r4, [sp, #{bias}]\n",
            "mov r5, r4\n",
            "mov r6, r4\n",
            m0!(row $s "r8" 0 4 8),
            m0!(row $s "r9" 12 16 20),
            m0!(row $s "r10" 24 28 32),
            m0!(reach $s),
            "add r8, r1\n",
            "add r9, r1\n",
            "add r10, r1\n",
            "mov r0, lr\n",
            m0!(stores $form),
            "mov lr, r0\n",
            "ldr r0, [sp, #{groups_left}]\n",
            "subs r0, #2\n",
            "str r0, [sp, #{groups_left}]\n",
            "ble 3f\n",
            "b 2b\n",
            "3:\n",
            "bne 4f\n",
            "ldr r1, [sp, #{back}]\n",
            "cmp r1, #0\n",
            "beq 6f\n",
            m0!(back "r8"),
            m0!(back "r9"),
            m0!(back "r10"),
            "ldr r1, [sp, #{back_out}]\n",
            m0!(back "lr"),
            "b 2b\n",
            "6:\n",
            "ldr r4, [sp, #{bias}]\n",
            m0!(alone "r8" 0 4 8),
            m0!(alone "r9" 12 16 20),
            m0!(alone "r10" 24 28 32),
            "movs r1, #", $s, "\n",
            "add r8, r1\n",
            "add r9, r1\n",
            "add r10, r1\n",
            "mov r0, lr\n",
            m0!(stores one $form),
            "mov lr, r0\n",
            "4:\n",
            "ldr r1, [sp, #{step}]\n",
            "add r8, r1\n",
            "add r9, r1\n",
            "add r10, r1\n",
            "ldr r1, [sp, #{step_out}]\n",
            "add lr, r1\n",
            "ldr r0, [sp, #{end}]\n",
            "cmp r8, r0\n",
            "beq 5f\n",
            "b 1b\n",
            "5:\n",
            "add sp, #104\n",
            "pop {{r4-r7}}\n",
            "mov r8, r4\n",
            "mov r9, r5\n",
            "mov r10, r6\n",
            "mov r11, r7\n",
            "pop {{r4-r7, pc}}\n"
        )
    };
}

macro_rules! planes {
    ($($name:ident $stride:tt $form:tt)*) => { $(
        #[unsafe(naked)]
        unsafe extern "C" fn $name(frame: &Frame) {
            naked!(
                Frame {
                    weights, bias, low, middle, code, stride, groups_left, end, groups, high, back, back_out, step, plane, pitch, out, addend,
                    step_out,
                } =>
                ".cpu cortex-m0",
                m0!(plane $stride $form)
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
