//! Loops of `gates` for ARMv7-M and ARMv8-M without vectors, one cell at a time.

use crate::kernels::primitives::requantize::bounded::{Either, Rescale};
use crate::ops::lstm::LstmInt;
use crate::quant::SIGMOID;
use crate::tensor::DType;

/// The gates of int8 activations, from both sums.
///
/// # Safety
/// `bias.len()` sums at each of `sums` and as many elements at `gate`; `bias` is not empty.
#[inline(always)]
pub(in crate::kernels) unsafe fn gate_s8(sums: [*const i32; 2], bias: &[i32], scales: &[Either; 2], gate: *mut i16) {
    let term = |sums, scale| Term::new(sums, bias.as_ptr(), scale, gate, bias.len());
    let ([of_input, of_hidden], [first, second]) = (sums, scales);
    // SAFETY: each term is of `bias.len()` sums, biases and gates, which this function's contract guarantees and which are not none.
    unsafe {
        first_s8(&term(of_input, first));
        second_s8(&term(of_hidden, second));
    }
}

/// Sums that become halves.
///
/// # Safety
/// `count` sums at `sums` and `count` elements at `to`; `count` is not 0.
#[inline(always)]
pub(in crate::kernels) unsafe fn halves(sums: *const i32, scale: &Either, to: *mut i16, count: usize) {
    // SAFETY: the term is of `count` sums and outputs, which this function's contract guarantees; `plain_s8` does not read the biases.
    unsafe { plain_s8(&Term::new(sums, core::ptr::null(), scale, to, count)) }
}

/// New states, and outputs of the activations that the operator has.
///
/// # Safety
/// 1. `count` states at `states` and `count` outputs of the operator's type at `y`.
/// 2. `count` is not 0 and at most the block of the gates at `gates`, four times [`GATE`] bytes.
#[inline(always)]
pub(in crate::kernels) unsafe fn cells(
    op: &LstmInt,
    products: &[Rescale; 3],
    gates: *const i16,
    states: *mut i16,
    y: *mut u8,
    count: usize,
) {
    let [keep, add, show] = products.each_ref().map(|product| {
        let (mantissa, addend, right) = product.parts();
        [mantissa, addend, right as i32]
    });
    let (multiplier, shift) = op.tanh.parts();
    let args = Cells {
        gates,
        states,
        y,
        table: SIGMOID.as_ptr(),
        end: states.wrapping_add(count),
        keep,
        add,
        clip: op.clip.into(),
        tanh: [multiplier, op.tanh.round(), shift.into()],
        show,
        zero: op.zero[1],
    };
    // SAFETY: `args` gives `count` states and outputs, and as many gates of each kind (points 1 and 2); the loop taken is that of the outputs' type.
    unsafe {
        match op.dtype {
            DType::I16 => cells_s16(&args),
            _ => cells_s8(&args),
        }
    }
}

/// One of the two terms of a block's gates. The loops read the fields by offset_of!.
#[repr(C)]
struct Term {
    sums: *const i32,
    /// Not read where there are none.
    bias: *const i32,
    gate: *mut i16,
    /// Past the last one; there is one at least.
    end: *mut i16,
    mantissa: i32,
    /// One more than the multiplier says: the number is doubled.
    left: u32,
    right: u32,
    /// Half of what it shifts to one, and -1; or both 0 where it does not shift.
    half: i32,
    sign: i32,
}
consecutive!(Term: sums, bias, gate, end, mantissa, left, right, half, sign);

impl Term {
    #[inline(always)]
    fn new(sums: *const i32, bias: *const i32, scale: &Either, gate: *mut i16, count: usize) -> Self {
        let (mantissa, left, right) = scale.parts();
        Self {
            sums,
            bias,
            gate,
            end: gate.wrapping_add(count),
            mantissa,
            left: left.wrapping_add(1),
            right,
            half: 1_i32.wrapping_shl(right) >> 1,
            sign: i32::from(right > 0).wrapping_neg(),
        }
    }
}

/// The high word of a register's product with a mantissa, rounded, and an addend: one instruction with the DSP extension.
#[cfg(kernel_isa = "dsp")]
macro_rules! high {
    ($to:literal, $x:literal, $mantissa:literal, $addend:literal, $low:literal) => {
        concat!("smmlar ", $to, ", ", $x, ", ", $mantissa, ", ", $addend, "\n")
    };
}
#[cfg(not(kernel_isa = "dsp"))]
macro_rules! high {
    ($to:literal, $x:literal, $mantissa:literal, $addend:literal, $low:literal) => {
        concat!(
            "smull ",
            $low,
            ", ",
            $to,
            ", ",
            $x,
            ", ",
            $mantissa,
            "\n",
            "add ",
            $to,
            ", ",
            $to,
            ", ",
            $low,
            ", lsr #31\n",
            "add ",
            $to,
            ", ",
            $addend,
            "\n"
        )
    };
}

/// The number in r9, scaled to r10. Left r4, mantissa r5, half r6, sign r7, right r8.
macro_rules! scaled {
    () => {
        concat!(
            "lsl r9, r9, r4\n",
            high!("r10", "r9", "r5", "r6", "r11"),
            "and r11, r7, r9, asr #31\n",
            "add r10, r11\n",
            "asr r10, r10, r8\n",
            "ssat r10, #16, r10\n"
        )
    };
}

/// A gate: the next sum r0, gate r2.
macro_rules! one {
    ($bias:literal, $add:literal) => {
        concat!(
            "ldr r9, [r0], #4\n",
            $bias,
            "\n",
            scaled!(),
            $add,
            "\n",
            "strh r10, [r2], #2\n"
        )
    };
}

macro_rules! term {
    ($name:ident, $bias:literal, $add:literal) => {
        /// # Safety
        /// Sums, biases if the term has any, and gates are valid from the pointers of `args` to its end; there is one at least.
        #[unsafe(naked)]
        unsafe extern "C" fn $name(args: &Term) {
            naked!(Term { left, half } =>
                ".cpu cortex-m33",
                "push {{r4-r11, lr}}",
                "ldrd r7, r8, [r0, #{half}]", // sign
                "ldrd r9, r10, [r0, #{left}]", // right
                "ldm r0, {{r0-r3, r5}}",
                "mov r4, r9",
                "mov r6, r7",
                "mov r7, r8",
                "mov r8, r10",
                // An odd one first.
                "sub r9, r3, r2",
                "lsls r9, r9, #30",
                "bmi 3f",
                "2:",
                one!($bias, $add),
                "3:",
                one!($bias, $add),
                "cmp r2, r3",
                "bne 2b",
                "pop {{r4-r11, pc}}",
            )
        }
    };
}

// With biases, to the gates; without, in addition to what is there; and without both.
term!(first_s8, "ldr r10, [r1], #4\n add r9, r10", "");
term!(second_s8, "", "ldrsh r9, [r2]\n add r10, r9\n ssat r10, #16, r10");

term!(plain_s8, "", "");

/// Gates, states and outputs of a block. The loop reads the fields by offset_of!.
#[repr(C)]
struct Cells {
    /// Four times 32: input, forget, cell, output.
    gates: *const i16,
    states: *mut i16,
    y: *mut u8,
    /// Of the sigmoid.
    table: *const u16,
    /// Past the last state; there is one at least.
    end: *mut i16,
    /// Mantissa, addend, shift to the right of f * c, and of i * g.
    keep: [i32; 3],
    add: [i32; 3],
    /// Largest magnitude of a state; none where 0.
    clip: i32,
    /// Scaling of a state to the table's scale: a factor, an addend, a shift to the right.
    tanh: [i32; 3],
    show: [i32; 3],
    /// Zero point of the output.
    zero: i32,
}
consecutive!(Cells: gates, states, y, table, end);

/// Bytes from a gate's numbers to the next one's.
const GATE: usize = 2 * super::block::BLOCK;

/// The table's value of the magnitude in r5 to r5: fraction bits, and how what is below them is taken. Also in use: r6, r7.
macro_rules! interpolated {
    ($bits:literal, $fraction:literal) => {
        concat!(
            "lsr r6, r5, #",
            $bits,
            "\n",
            "add r6, r3, r6, lsl #1\n",
            "ldrh r7, [r6]\n",
            "ldrh r6, [r6, #{next}]\n",
            $fraction,
            "\n",
            "subs r6, r6, r7\n",
            "muls r5, r6, r5\n",
            "add r5, r5, r7, lsl #",
            $bits,
            "\n"
        )
    };
}

/// The logistic function of the gate in r8, to r5. Of a negative number it is one less that of its magnitude: 2^25 - 1 - r, whose bits beyond the result's
/// are not looked at.
macro_rules! logistic {
    () => {
        concat!(
            "add r8, r8, r8, lsl #1\n",
            "eor r5, r8, r8, asr #31\n",
            "sub r5, r5, r8, asr #31\n",
            interpolated!("9", "ubfx r5, r5, #0, #9"),
            "eor r5, r5, r8, asr #31\n",
            "add r5, r5, #512\n",
            "ubfx r5, r5, #10, #15\n"
        )
    };
}

/// The hyperbolic tangent of r8, on the table's scale, to r5. Of magnitudes beyond the table the last value is taken, which is there twice. It is
/// r - 2^23 or, of a negative number, the complement of that; modulo 2^24 both ways of adding 2^23 are one.
macro_rules! tanh {
    () => {
        concat!(
            "eor r5, r8, r8, asr #31\n",
            "sub r5, r5, r8, asr #31\n",
            "usat r5, #16, r5\n",
            interpolated!("8", "uxtb r5, r5"),
            "eor r5, r5, r8, asr #31\n",
            "add r5, r5, #0x800080\n",
            "sbfx r5, r5, #8, #16\n"
        )
    };
}

/// The product of r5 and r9, scaled by a field of the arguments, of which `$right` is the last word, to r5. Also in use: r8, r11, r12.
macro_rules! product {
    ($field:literal, $right:literal) => {
        concat!(
            "mul r5, r9, r5\n",
            "ldrd r11, r12, [lr, #{",
            $field,
            "}]\n",
            "ldr r9, [lr, #{",
            $right,
            "}]\n",
            "lsls r5, r5, #1\n",
            high!("r6", "r5", "r11", "r12", "r8"),
            "add r6, r6, r5, asr #31\n",
            "asr r5, r6, r9\n"
        )
    };
}

macro_rules! cells {
    ($name:ident, $output:literal) => {
        /// # Safety
        /// States from `states` to `end` and as many outputs are writable; four times 32 gates and the whole table are readable.
        #[unsafe(naked)]
        unsafe extern "C" fn $name(args: &Cells) {
            naked!(Cells { keep, add, clip, tanh, show, zero } =>
                ".cpu cortex-m33",
                "push {{r4-r11, lr}}",
                "mov lr, r0",
                "ldm r0, {{r0-r4}}",
                "2: ldrsh r8, [r0, #{forget}]",
                logistic!(),
                "ldrsh r9, [r1]",
                product!("keep", "keep_right"),
                "ssat r10, #16, r5",
                "ldrsh r8, [r0]",
                logistic!(),
                "mov r9, r5",
                "ldrsh r8, [r0, #{cell}]",
                "add r8, r8, r8, lsl #1",
                tanh!(),
                product!("add", "add_right"),
                "ssat r5, #16, r5",
                "add r10, r5",
                "ssat r10, #16, r10",
                "ldr r5, [lr, #{clip}]",
                "cbz r5, 3f",
                "cmp r10, r5",
                "it gt",
                "movgt r10, r5",
                "rsbs r5, r5, #0",
                "cmp r10, r5",
                "it lt",
                "movlt r10, r5",
                "3: strh r10, [r1], #2",
                "ldrd r11, r12, [lr, #{tanh}]",
                "ldr r9, [lr, #{tanh_right}]",
                "mla r8, r10, r11, r12",
                "asr r8, r8, r9",
                tanh!(),
                "mov r9, r5",
                "ldrsh r8, [r0, #{output}]",
                "adds r0, #2",
                logistic!(),
                product!("show", "show_right"),
                "ldr r9, [lr, #{zero}]",
                "add r5, r9",
                $output,
                "cmp r1, r4",
                "bne 2b",
                "pop {{r4-r11, pc}}";
                keep_right = const core::mem::offset_of!(Cells, keep) + 8,
                add_right = const core::mem::offset_of!(Cells, add) + 8,
                tanh_right = const core::mem::offset_of!(Cells, tanh) + 8,
                show_right = const core::mem::offset_of!(Cells, show) + 8,
                forget = const GATE, cell = const 2 * GATE, output = const 3 * GATE,
                // Of the table.
                next = const 2,
            )
        }
    };
}

cells!(cells_s8, "ssat r5, #8, r5\n strb r5, [r2], #1");
cells!(cells_s16, "ssat r5, #16, r5\n strh r5, [r2], #2");
