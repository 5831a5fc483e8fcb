//! [`dwconv_single_output`] for RV32IM: seven instructions a tap.
//!
//! a0 the job, a1 taps and a2 weights of the channel, a3 its record, a4 output, a5 from tap to tap, a6 the sum, a7 the code, t0 a tap's place, then the
//! multiplier, t1 a weight's place, then the addend, t2 the end of a row's weights, t3 rows, t4 and t5 free.

#![cfg(kernel_isa = "rv32im")]

use super::super::args::DwconvSingleOutputArgs;
use super::super::channel_record::Words;

/// Channels from the job's on, until one that is neither of the short nor of the single form, or their end: there the job is afterwards.
///
/// # Safety
/// Every tap of every window is readable, and every output writable; `weights` has a row for each channel; there is a channel at least.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn dwconv_single_output(job: &mut DwconvSingleOutputArgs) {
    naked!(
        DwconvSingleOutputArgs { x, weights, records, out, end, right, down, columns, rows, row_bytes, twice, half, left },
        Words { bias, multiplier, code } =>
        ".option push",
        ".option arch, +m",
        "lw a1, {x}(a0)",
        "lw a2, {weights}(a0)",
        "lw a3, {records}(a0)",
        "lw a4, {out}(a0)",
        "lw a5, {right}(a0)",
        "1:",
        "lw a7, {code}(a3)",
        "slli t4, a7, 20", // CONSTANT, GENERAL
        "srli t4, t4, 30",
        "bnez t4, 9f",
        "lw a6, {bias}(a3)",
        "mv t0, a1",
        "mv t1, a2",
        "lw t3, {rows}(a0)",
        "2:",
        "lw t2, {columns}(a0)",
        "add t2, t2, t1",
        "4:",
        "lb t4, 0(t0)",
        "lb t5, 0(t1)",
        "add t0, t0, a5",
        "addi t1, t1, 1",
        "mul t4, t4, t5",
        "add a6, a6, t4",
        "bne t1, t2, 4b",
        "lw t4, {down}(a0)",
        "add t0, t0, t4",
        "addi t3, t3, -1",
        "bnez t3, 2b",
        "lw t0, {multiplier}(a3)",
        "lw t1, {twice}(a0)",
        "addi t4, a7, -1",
        "sll t1, t1, t4",
        "slli t4, a7, 16", // SINGLE
        "bltz t4, 7f",
        "slli a6, a6, 1",
        "mulh t4, a6, t0",
        "mul t5, a6, t0",
        "srli t5, t5, 31",
        "add t4, t4, t5",
        "srai t5, t4, 31",
        "add t4, t4, t5",
        "6:",
        "add t4, t4, t1",
        "sra t4, t4, a7",
        "li t5, -128",
        "bge t4, t5, 5f",
        "mv t4, t5",
        "5:",
        "li t5, 127",
        "bge t5, t4, 5f",
        "mv t4, t5",
        "5:",
        "sb t4, 0(a4)",
        "addi a4, a4, 1",
        "addi a1, a1, 1",
        "lw t5, {row_bytes}(a0)",
        "add a2, a2, t5",
        "addi a3, a3, 12",
        "lw t5, {end}(a0)",
        "bne a3, t5, 1b",
        "9:",
        "sw a1, {x}(a0)",
        "sw a2, {weights}(a0)",
        "sw a3, {records}(a0)",
        "sw a4, {out}(a0)",
        "ret",
        "7:",
        "lw t5, {half}(a0)",
        "add t1, t1, t5",
        "lw t5, {left}(a0)",
        "sll a6, a6, t5",
        "mulh t4, a6, t0",
        "j 6b",
        ".option pop",
    )
}
