//! Loops of `gates` for Helium, four cells at a time.

use crate::kernels::primitives::requantize::bounded::{Either, Rescale, RescaleS64};
use crate::ops::lstm::LstmInt;
use crate::quant::SIGMOID;
use crate::tensor::DType;

/// The gates of int8 activations, from both sums.
///
/// # Safety
/// `bias.len()` sums at each of `sums` and as many elements at `gate`; `bias` is not empty.
#[inline(always)]
pub(in crate::kernels) unsafe fn gate_s8(sums: [*const i32; 2], bias: &[i32], scales: &[Either; 2], gate: *mut i16) {
    let [of_input, of_hidden] = scales.map(|scale| {
        let (mantissa, left, right) = scale.parts();
        [mantissa, left as i32, (right as i32).wrapping_neg()]
    });
    let args = GateArgs {
        sums,
        bias: bias.as_ptr(),
        gate,
        of_input,
        of_hidden,
        count: bias.len(),
    };
    // SAFETY: `args.count` is `bias.len()`; this function's contract guarantees as many sums and gates.
    unsafe { gate_of(&args) }
}

/// The same of int16.
///
/// # Safety
/// As for [`gate_s8`]; in addition, each bias fits 32 bits.
#[inline(always)]
pub(in crate::kernels) unsafe fn gate_s16(
    sums: [*const i32; 2],
    bias: &[i64],
    scales: &[RescaleS64; 2],
    gate: *mut i16,
) {
    let [of_input, of_hidden] = scales.map(|scale| scale.parts());
    let args = GateArgs {
        sums,
        bias: bias.as_ptr().cast(),
        gate,
        of_input,
        of_hidden,
        count: bias.len(),
    };
    // SAFETY: `args.count` is `bias.len()`; this function's contract guarantees as many sums and gates. Of each bias the low word is read.
    unsafe { gate_s16_of(&args) }
}

/// Sums that become halves.
///
/// # Safety
/// `count` sums at `sums` and `count` elements at `to`; `count` is not 0.
#[inline(always)]
pub(in crate::kernels) unsafe fn halves(sums: *const i32, scale: &Either, to: *mut i16, count: usize) {
    let (mantissa, left, right) = scale.parts();
    // SAFETY: this function's contract guarantees `count` elements, not none, at `sums` and `to`.
    unsafe { halves_of(sums, to, count, mantissa, left, (right as i32).wrapping_neg()) }
}

/// New states, and outputs of the activations that the operator has.
///
/// # Safety
/// 1. `count` states at `states` and `count` outputs of the operator's type at `y`.
/// 2. `count` is not 0 and at most the block of the gates at `gates`, four times [`GATE`] bytes.
#[inline(always)]
pub(in crate::kernels) unsafe fn cells(
    op: &LstmInt,
    _: &[Rescale; 3],
    gates: *const i16,
    states: *mut i16,
    y: *mut u8,
    count: usize,
) {
    let [keep, add, show] = op.products.map(|product| [product.mantissa, product.shift.into()]);
    let (multiplier, shift) = op.tanh.parts();
    let limits = if op.clip > 0 {
        [op.clip, op.clip.wrapping_neg()]
    } else {
        [i16::MAX, i16::MIN]
    };
    let args = Cells {
        gates,
        states,
        y,
        table: SIGMOID.as_ptr(),
        keep,
        add,
        limits: limits.map(i32::from),
        tanh: [multiplier, i32::from(shift).wrapping_neg()],
        show,
        zero: op.zero[1],
        count,
    };
    // SAFETY: `args` gives `count` states and outputs, and as many gates of each kind (points 1 and 2); the loop taken is that of the outputs' type.
    unsafe {
        match op.dtype {
            DType::I16 => cells_s16(&args),
            _ => cells_s8(&args),
        }
    }
}

/// The sums of a gate, which become it. The loops read the fields by offset_of!.
#[repr(C)]
struct GateArgs {
    /// Over the inputs, and over the hidden state.
    sums: [*const i32; 2],
    /// Of 64 bits where the activations are int16.
    bias: *const i32,
    gate: *mut i16,
    /// Mantissa, shift to the left, shift to the right as a number of at most 0; or what [`RescaleS64`] has.
    of_input: [i32; 3],
    of_hidden: [i32; 3],
    /// Not 0.
    count: usize,
}
consecutive!(GateArgs: bias, gate, of_input);
const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(GateArgs, bias) == offset_of!(GateArgs, sums) + 8);
    assert!(offset_of!(GateArgs, of_hidden) == offset_of!(GateArgs, of_input) + 12);
    assert!(offset_of!(GateArgs, count) == offset_of!(GateArgs, of_hidden) + 12);
};

/// Two roundings of a sum, to a half: `bounded.rs` has them as `Either`.
macro_rules! scaled {
    ($q:literal, $t:literal, $mantissa:literal, $left:literal, $right:literal, $mask:literal) => {
        concat!(
            "vshl.s32 ",
            $q,
            ", ",
            $left,
            "\n",
            "vqrdmulh.s32 ",
            $q,
            ", ",
            $q,
            ", ",
            $mantissa,
            "\n",
            // Ties away from zero: one less where negative, if there is a shift.
            "vand ",
            $t,
            ", ",
            $q,
            ", ",
            $mask,
            "\n",
            "vshr.s32 ",
            $t,
            ", ",
            $t,
            ", #31\n",
            "vadd.i32 ",
            $q,
            ", ",
            $q,
            ", ",
            $t,
            "\n",
            "vrshl.s32 ",
            $q,
            ", ",
            $right,
            "\n",
            "vqmovnb.s32 ",
            $q,
            ", ",
            $q,
            "\n"
        )
    };
}

/// One rounding of a product of 64 bits: its low word rounded, and the high one in front of it.
macro_rules! term_s16 {
    ($q:literal, $t:literal, $mantissa:literal, $left:literal, $right:literal) => {
        concat!(
            "vmul.i32 ",
            $t,
            ", ",
            $q,
            ", ",
            $mantissa,
            "\n",
            "vmulh.s32 ",
            $q,
            ", ",
            $q,
            ", ",
            $mantissa,
            "\n",
            "vrshl.u32 ",
            $t,
            ", ",
            $right,
            "\n",
            "vshl.s32 ",
            $q,
            ", ",
            $left,
            "\n",
            "vadd.i32 ",
            $q,
            ", ",
            $q,
            ", ",
            $t,
            "\n",
            "vqmovnb.s32 ",
            $q,
            ", ",
            $q,
            "\n"
        )
    };
}

/// # Safety
/// `count` sums, biases and gates.
#[unsafe(naked)]
unsafe extern "C" fn gate_of(args: &GateArgs) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r11, lr}}",
        "vpush {{d8-d11}}",
        "ldm r0!, {{r1-r4}}",
        "ldm r0, {{r5-r11}}",
        // Sums r1 and r2, biases r3, gates r4.
        "vdup.32 q4, r7",
        "vdup.32 q5, r10",
        "dlstp.32 lr, r11",
        "2: vldrw.u32 q0, [r1], #16",
        "vldrw.u32 q1, [r3], #16",
        "vadd.i32 q0, q0, q1",
        "vldrw.u32 q1, [r2], #16",
        scaled!("q0", "q2", "r5", "r6", "r7", "q4"),
        scaled!("q1", "q3", "r8", "r9", "r10", "q5"),
        "vqadd.s16 q0, q0, q1",
        "vstrh.32 q0, [r4], #8",
        "letp lr, 2b",
        "vpop {{d8-d11}}",
        "pop {{r4-r11, pc}}",
    )
}

/// # Safety
/// `count` sums, biases and gates. The low words of biases are all of them.
#[unsafe(naked)]
unsafe extern "C" fn gate_s16_of(args: &GateArgs) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r11, lr}}",
        "vpush {{d8-d13}}",
        "ldm r0!, {{r1-r4}}",
        "ldm r0, {{r5-r11}}",
        "vdup.32 q4, r5",
        "vdup.32 q5, r8",
        // Every other word, in bytes from the first one.
        "movs r0, #0",
        "vidup.u32 q6, r0, #8",
        "dlstp.32 lr, r11",
        "2: vldrw.u32 q0, [r1], #16",
        "vldrw.u32 q1, [r3, q6]",
        "adds r3, #32",
        "vadd.i32 q0, q0, q1",
        "vldrw.u32 q1, [r2], #16",
        term_s16!("q0", "q2", "q4", "r6", "r7"),
        term_s16!("q1", "q3", "q5", "r9", "r10"),
        "vqadd.s16 q0, q0, q1",
        "vstrh.32 q0, [r4], #8",
        "letp lr, 2b",
        "vpop {{d8-d13}}",
        "pop {{r4-r11, pc}}",
    )
}

/// # Safety
/// `count` of both, which is not 0.
#[unsafe(naked)]
unsafe extern "C" fn halves_of(sums: *const i32, to: *mut i16, count: usize, mantissa: i32, left: u32, right: i32) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r5, r7, lr}}",
        "ldrd r4, r5, [sp, #{left}]", // right
        "vdup.32 q2, r5",
        "dlstp.32 lr, r2",
        "2: vldrw.u32 q0, [r0], #16",
        scaled!("q0", "q1", "r3", "r4", "r5", "q2"),
        "vstrh.32 q0, [r1], #8",
        "letp lr, 2b",
        "pop {{r4-r5, r7, pc}}";
        // Behind four registers.
        left = const 4 * 4,
    )
}

/// Gates, states and outputs of a block. The loop reads the fields by offset_of!.
#[repr(C)]
struct Cells {
    /// Four times 32.
    gates: *const i16,
    states: *mut i16,
    y: *mut u8,
    /// Of the sigmoid.
    table: *const u16,
    /// Mantissas, and shifts to the right as numbers below 0.
    keep: [i32; 2],
    add: [i32; 2],
    /// Of the state: the largest, the least.
    limits: [i32; 2],
    /// Brings the state to the table's scale; the shift is at most 0.
    tanh: [i32; 2],
    show: [i32; 2],
    /// Zero point of the output.
    zero: i32,
    /// Not 0.
    count: usize,
}
consecutive!(Cells: gates, states, y, table);

/// Bytes from a gate's numbers to the next one's: input, forget, cell, output.
const GATE: usize = 2 * super::block::BLOCK;

/// Interpolated table value at the magnitude of `q0`, a number on the table's scale, to `q1`. `$bits`: fraction bits; `$left`: 32 less `$bits`. Magnitudes from
/// the end of the table in `r5` on are replaced by the place in `r6`. Table r3, its second element r4. Clobbers q2, q3, q5.
macro_rules! interpolated {
    ($bits:literal, $left:literal) => {
        concat!(
            "vabs.s32 q1, q0\n",
            "vpt.u32 cs, q1, r5\n",
            "vdupt.32 q1, r6\n",
            "vshr.u32 q2, q1, #",
            $bits,
            "\n",
            "vldrh.u32 q3, [r3, q2, uxtw #1]\n",
            "vldrh.u32 q5, [r4, q2, uxtw #1]\n",
            "vsub.i32 q5, q5, q3\n",
            "vshl.i32 q1, q1, #",
            $left,
            "\n",
            "vshr.u32 q1, q1, #",
            $left,
            "\n",
            "vmul.i32 q1, q1, q5\n",
            "vshl.i32 q3, q3, #",
            $bits,
            "\n",
            "vadd.i32 q1, q1, q3\n"
        )
    };
}

/// The logistic function of this gate, to `q1`; r8 is 3, q4 has 25 bits set.
macro_rules! logistic {
    ($gate:literal) => {
        concat!(
            "vldrh.s32 q0, [r0, #{",
            $gate,
            "}]\n",
            "vmul.i32 q0, q0, r8\n",
            "mov r5, #0x1fe00\n",
            "mov r6, #0x1fc00\n",
            interpolated!("9", "23"),
            "vpt.s32 lt, q0, zr\n",
            "veort q1, q1, q4\n",
            "vrshr.u32 q1, q1, #10\n"
        )
    };
}

/// The hyperbolic tangent of `q0`, to `q1`.
macro_rules! tanh {
    () => {
        concat!(
            "mov r5, #0xff00\n",
            "mov r6, r5\n",
            interpolated!("8", "24"),
            "mov r5, #0x800000\n",
            "vsub.i32 q1, q1, r5\n",
            "vpt.s32 lt, q0, zr\n",
            "vmvnt q1, q1\n",
            "vrshr.s32 q1, q1, #8\n"
        )
    };
}

/// `q1` times `with`, scaled by the mantissa and the shift in this field of the arguments.
macro_rules! product {
    ($to:literal, $with:literal, $field:literal) => {
        concat!(
            "ldrd r9, r10, [r7, #{",
            $field,
            "}]\n",
            "vmul.i32 ",
            $to,
            ", q1, ",
            $with,
            "\n",
            "vqrdmulh.s32 ",
            $to,
            ", ",
            $to,
            ", r9\n",
            "vshr.s32 q2, ",
            $to,
            ", #31\n",
            "vadd.i32 ",
            $to,
            ", ",
            $to,
            ", q2\n",
            "vrshl.s32 ",
            $to,
            ", r10\n"
        )
    };
}

macro_rules! cells {
    ($name:ident, $output:expr) => {
        /// # Safety
        /// `count` states and outputs, four times 32 gates, and the whole table.
        #[unsafe(naked)]
        unsafe extern "C" fn $name(args: &Cells) {
            naked!(Cells { keep, add, limits, tanh, show, zero, count } =>
                ".cpu cortex-m55",
                "push {{r4-r11, lr}}",
                "vpush {{d8-d15}}",
                "mov r7, r0",
                "ldm r0, {{r0-r3}}",
                "adds r4, r3, #2",
                "mov r8, #3",
                "mvn r9, #0xfe000000",
                "vdup.32 q4, r9",
                "ldr r9, [r7, #{count}]",
                "dlstp.32 lr, r9",
                "2:",
                logistic!("forget"),
                "vldrh.s32 q0, [r1]",
                product!("q6", "q0", "keep"),
                "vqmovnb.s32 q6, q6",
                logistic!("input"),
                "vmov q7, q1",
                "vldrh.s32 q0, [r0, #{cell}]",
                "vmul.i32 q0, q0, r8",
                tanh!(),
                product!("q7", "q7", "add"),
                "vqmovnb.s32 q7, q7",
                "vqadd.s16 q6, q6, q7",
                "ldrd r9, r10, [r7, #{limits}]",
                "vdup.16 q2, r9",
                "vmin.s16 q6, q6, q2",
                "vdup.16 q2, r10",
                "vmax.s16 q6, q6, q2",
                "vmovlb.s16 q6, q6",
                "vstrh.32 q6, [r1], #8",
                logistic!("output"),
                "adds r0, #8",
                "vmov q7, q1",
                "ldrd r9, r10, [r7, #{tanh}]",
                "vmul.i32 q0, q6, r9",
                "vrshl.s32 q0, r10",
                tanh!(),
                product!("q7", "q7", "show"),
                "ldr r9, [r7, #{zero}]",
                "vadd.i32 q7, q7, r9",
                "vqmovnb.s32 q7, q7",
                $output,
                "letp lr, 2b",
                "vpop {{d8-d15}}",
                "pop {{r4-r11, pc}}";
                input = const 0, forget = const GATE, cell = const 2 * GATE, output = const 3 * GATE,
            )
        }
    };
}

cells!(cells_s8, "vqmovnb.s16 q7, q7\n vstrb.32 q7, [r2], #4");
cells!(cells_s16, "vstrh.32 q7, [r2], #8");
