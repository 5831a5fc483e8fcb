//! [`super::times`] for RV32IM: a byte at a time, which moves on by one while it is multiplied.

#![cfg(kernel_isa = "rv32im")]

use super::args::SvdfS8Args;

/// Memories of any length.
pub(super) fn takes(_: usize) -> bool {
    true
}

/// Elements of a memory but for the newest.
pub(super) fn less_one(memory: usize) -> usize {
    memory.wrapping_sub(1)
}

/// Five instructions for a product, element `$j` of the memory: sum t0, state a1, weights a2.
macro_rules! element {
    ($j:literal) => {
        concat!(
            "lb t1, 1+",
            $j,
            "(a1)\n",
            "lb t2, ",
            $j,
            "(a2)\n",
            "sb t1, ",
            $j,
            "(a1)\n",
            "mul t1, t1, t2\n",
            "add t0, t0, t1\n"
        )
    };
}

/// The same with the newest element, from a3, as element `$j`.
macro_rules! newest {
    ($j:literal) => {
        concat!(
            "lb t1, (a3)\n",
            "lb t2, ",
            $j,
            "(a2)\n",
            "sb t1, ",
            $j,
            "(a1)\n",
            "addi a3, a3, 1\n",
            "mul t1, t1, t2\n",
            "add t0, t0, t1\n"
        )
    };
}

/// The output of a sum: mantissa a6, addend a7, right shift t3, output a4; 127 in t5, -128 in t6.
macro_rules! output {
    () => {
        concat!(
            "slli t0, t0, 1\n",
            "mul t1, t0, a6\n",
            "mulh t2, t0, a6\n",
            "srai t0, t0, 31\n",
            "srli t1, t1, 31\n",
            "add t2, t2, a7\n",
            "add t0, t0, t1\n",
            "add t0, t0, t2\n",
            "sra t0, t0, t3\n",
            "bge t5, t0, 7f\n",
            "mv t0, t5\n",
            "7: bge t0, t6, 8f\n",
            "mv t0, t6\n",
            "8: sb t0, (a4)\n",
            "addi a4, a4, 1\n"
        )
    };
}

/// Loads what stays.
macro_rules! enter {
    () => {
        concat!(
            "lw a1, {state}(a0)\n",
            "lw a2, {weights}(a0)\n",
            "lw a3, {newest}(a0)\n",
            "lw a4, {y}(a0)\n",
            "lw a5, {bias}(a0)\n",
            "lw a6, {mantissa}(a0)\n",
            "lw a7, {addend}(a0)\n",
            "lw t3, {right}(a0)\n",
            "lw t4, {end}(a0)\n",
            "li t5, 127\n",
            "li t6, -128\n"
        )
    };
}

/// Of memories of eight elements, a filter for each unit.
///
/// # Safety
/// `args` gives a filter, its weights and its newest value for each output, and a bias; there is one output at least.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn eights(args: &SvdfS8Args) {
    naked!(
        SvdfS8Args { state, weights, newest, y, bias, mantissa, addend, right, end } =>
        ".option push",
        ".option arch, +m",
        enter!(),
        "2: lw t0, (a5)",
        "addi a5, a5, 4",
        element!("0"),
        element!("1"),
        element!("2"),
        element!("3"),
        element!("4"),
        element!("5"),
        element!("6"),
        newest!("7"),
        "addi a1, a1, 8",
        "addi a2, a2, 8",
        output!(),
        "bne a4, t4, 2b",
        "ret",
        ".option pop",
    )
}

/// Of any memories.
///
/// # Safety
/// `args` gives a memory, weights and a newest value for each filter, and a bias for each output; there is one of each at least.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn any(args: &SvdfS8Args) {
    naked!(
        SvdfS8Args { state, weights, newest, y, bias, mantissa, addend, right, end, less_one, rank } =>
        ".option push",
        ".option arch, +m",
        save!("s0" "s1" "s2" "s3"),
        // Elements less one s0, rank s1, filters left s2, the memory's last element or the last but one s3.
        enter!(),
        "lw s0, {less_one}(a0)",
        "lw s1, {rank}(a0)",
        "1: lw t0, (a5)",
        "addi a5, a5, 4",
        "mv s2, s1",
        "2: andi s3, s0, -2",
        "add s3, s3, a1",
        "beq s3, a1, 4f",
        "3:",
        element!("0"),
        element!("1"),
        "addi a1, a1, 2",
        "addi a2, a2, 2",
        "bne a1, s3, 3b",
        "4: andi s3, s0, 1",
        "beqz s3, 5f",
        element!("0"),
        "addi a1, a1, 1",
        "addi a2, a2, 1",
        "5:",
        newest!("0"),
        "addi a1, a1, 1",
        "addi a2, a2, 1",
        "addi s2, s2, -1",
        "bnez s2, 2b",
        output!(),
        "bne a4, t4, 1b",
        restore!("s0" "s1" "s2" "s3"),
        "ret",
        ".option pop",
    )
}
