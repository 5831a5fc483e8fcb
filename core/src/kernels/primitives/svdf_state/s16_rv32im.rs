//! [`super::s16`] on RV32IM: a filter's newest value goes from its sum into the pass over its memory without a place of its own.

use core::mem::offset_of;

use super::s16_args::{Scale, SvdfS16Args};

/// Whether the loops take memories of so many elements.
pub(super) fn takes(_: usize) -> bool {
    true
}

/// # Safety
/// `args` gives outputs and biases for each unit, a newest value for each filter, and `memory` elements of state and weights for each filter.
#[inline(always)]
pub(super) unsafe fn times(args: &SvdfS16Args, scale: &Scale) {
    // SAFETY: this function's contract guarantees the arrays that `args` gives; `eights` runs only for rank 1 and memory 8.
    unsafe {
        if (args.rank, args.memory) == (1, 8) {
            eights(args, scale);
        } else {
            any(args, scale);
        }
    }
}

/// Five instructions for a product, element `$j` of the memory, whose next one is `$next` bytes on: sum t3, state a1, weights a2.
macro_rules! element {
    ($($j:literal $next:literal)*) => {
        concat!($(
            "lh t1, ", $next, "(a1)\n",
            "lh t2, ", $j, "(a2)\n",
            "sh t1, ", $j, "(a1)\n",
            "mul t1, t1, t2\n",
            "add t3, t3, t1\n"
        ),*)
    };
}

/// The same with the newest element, t0.
macro_rules! last {
    ($j:literal) => {
        concat!(
            "lh t2, ",
            $j,
            "(a2)\n",
            "sh t0, ",
            $j,
            "(a1)\n",
            "mul t0, t0, t2\n",
            "add t3, t3, t0\n"
        )
    };
}

/// The newest value of a filter, t0, from its sum. A mantissa that is doubled has 32 bits without a sign.
macro_rules! newest {
    () => {
        concat!(
            "lw t0, (a3)\n",
            "addi a3, a3, 4\n",
            "sll t0, t0, s1\n",
            "mulhsu t1, t0, s0\n",
            "mul t2, t0, s0\n",
            "srai t0, t0, 31\n",
            "and t0, t0, s3\n",
            "srli t2, t2, 31\n",
            "add t1, t1, s2\n",
            "add t0, t0, t2\n",
            "add t0, t0, t1\n",
            "sra t0, t0, s4\n",
            "bge s5, t0, 7f\n",
            "mv t0, s5\n",
            "7: bge t0, s6, 8f\n",
            "mv t0, s6\n",
            "8:\n"
        )
    };
}

/// The output of a sum of any size, rounded twice.
macro_rules! output {
    () => {
        concat!(
            "mulhsu t1, t3, a7\n",
            "mul t2, t3, a7\n",
            "srli t2, t2, 31\n",
            "add t1, t1, t2\n",
            // Ties away from zero: one less where negative.
            "srai t2, t1, 31\n",
            "add t1, t1, t2\n",
            "sra t1, t1, a0\n",
            "addi t1, t1, 1\n",
            "srai t1, t1, 1\n",
            "add t1, t1, t4\n",
            "bge t5, t1, 7f\n",
            "mv t1, t5\n",
            "7: bge t1, t6, 8f\n",
            "mv t1, t6\n",
            "8: sb t1, (a5)\n",
            "addi a5, a5, 1\n"
        )
    };
}

/// Saves registers, loads what stays: state a1, weights a2, sums a3, biases a4, output a5, its end a6. The multiplier into the output a7, its places a0, the
/// zero point t4, its limits t5 and t6; that into the state s0, left s1, half s2, sign s3, right s4, its limits s5 and s6; memory and rank s7 and s8.
macro_rules! enter {
    () => {
        concat!(
            save!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8" "s9" "s10"),
            "lw s0, {scale_mantissa}(a1)\n",
            "lw s1, {left}(a1)\n",
            "lw s4, {right}(a1)\n",
            "lw s2, {half}(a1)\n",
            "lw s3, {sign}(a1)\n",
            "lw a1, {state}(a0)\n",
            "lw a2, {weights}(a0)\n",
            "lw a3, {newest}(a0)\n",
            "lw a4, {bias}(a0)\n",
            "lw a5, {y}(a0)\n",
            "lw a6, {end}(a0)\n",
            "lw a7, {mantissa}(a0)\n",
            "lw t4, {zero}(a0)\n",
            "lw s7, {memory}(a0)\n",
            "lw s8, {rank}(a0)\n",
            "lw a0, {places}(a0)\n",
            "slli s0, s0, 1\n",
            "slli a7, a7, 1\n",
            "li t5, 127\n",
            "li t6, -128\n",
            "lui s5, 8\n",
            "lui s6, 0xffff8\n",
            "addi s5, s5, -1\n"
        )
    };
}

/// Gives registers back, and returns.
macro_rules! leave {
    () => {
        concat!(
            restore!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8" "s9" "s10"),
            "ret\n"
        )
    };
}

/// Of memories of eight elements, a filter for each unit.
///
/// # Safety
/// `args` gives a filter, its weights and its newest value for each output, and a bias; there is one output at least.
#[unsafe(naked)]
unsafe extern "C" fn eights(args: &SvdfS16Args, scale: &Scale) {
    naked!(
        SvdfS16Args { state, weights, newest, bias, y, end, mantissa, places, zero, memory, rank },
        Scale { left, right, half, sign } =>
        ".option push",
        ".option arch, +m",
        enter!(),
        "2:",
        newest!(),
        "lw t3, (a4)",
        "addi a4, a4, 4",
        element!("0" "2" "2" "4" "4" "6" "6" "8" "8" "10" "10" "12" "12" "14"),
        last!("14"),
        "addi a1, a1, 16",
        "addi a2, a2, 16",
        output!(),
        "bne a5, a6, 2b",
        leave!(),
        ".option pop";
        scale_mantissa = const offset_of!(Scale, mantissa),
    )
}

/// Of any memories: what is no four of the elements before the last first, then fours.
///
/// # Safety
/// `args` gives a memory, weights and a newest value for each filter, and a bias for each output; there is one of each at least.
#[unsafe(naked)]
unsafe extern "C" fn any(args: &SvdfS16Args, scale: &Scale) {
    naked!(
        SvdfS16Args { state, weights, newest, bias, y, end, mantissa, places, zero, memory, rank },
        Scale { left, right, half, sign } =>
        ".option push",
        ".option arch, +m",
        enter!(),
        // The bytes before the last element; filters left s9, where the elements of a loop end s10.
        "addi s7, s7, -1",
        "slli s7, s7, 1",
        "1: lw t3, (a4)",
        "addi a4, a4, 4",
        "mv s9, s8",
        "2:",
        newest!(),
        "andi s10, s7, 6",
        "beqz s10, 4f",
        "add s10, s10, a1",
        "3:",
        element!("0" "2"),
        "addi a1, a1, 2",
        "addi a2, a2, 2",
        "bne a1, s10, 3b",
        "4: andi s10, s7, -8",
        "beqz s10, 6f",
        "add s10, s10, a1",
        "5:",
        element!("0" "2" "2" "4" "4" "6" "6" "8"),
        "addi a1, a1, 8",
        "addi a2, a2, 8",
        "bne a1, s10, 5b",
        "6:",
        last!("0"),
        "addi a1, a1, 2",
        "addi a2, a2, 2",
        "addi s9, s9, -1",
        "bnez s9, 2b",
        output!(),
        "bne a5, a6, 1b",
        leave!(),
        ".option pop";
        scale_mantissa = const offset_of!(Scale, mantissa),
    )
}
