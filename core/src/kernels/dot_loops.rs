//! The inner loops of [`dot`](super::dot) on the cores that have some of their own.

use core::arch::naked_asm;

/// An element of the input, from r0, with that of each row, from r1 to r4, all at index r7: zero point r12, which has its sign changed, sums r8 to r11.
#[cfg(cortex_m = "baseline")]
macro_rules! element {
    () => {
        concat!(
            "ldrsb r6, [r0, r7]\n",
            "add r6, r12\n",
            "ldrsb r5, [r1, r7]\n",
            "muls r5, r6, r5\n",
            "add r8, r5\n",
            "ldrsb r5, [r2, r7]\n",
            "muls r5, r6, r5\n",
            "add r9, r5\n",
            "ldrsb r5, [r3, r7]\n",
            "muls r5, r6, r5\n",
            "add r10, r5\n",
            "ldrsb r5, [r4, r7]\n",
            "muls r5, r6, r5\n",
            "add r11, r5\n",
            "adds r7, #1\n"
        )
    };
}

/// Four products in sixteen instructions: the sums are in registers that only add. `len` is not 0.
#[cfg(cortex_m = "baseline")]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn dots(x: *const i8, rows: *const *const i8, len: usize, sums: *mut i32, zero: i32) {
    naked_asm!(
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "push {{r3-r7}}",
        "ldr r4, [sp, #40]",
        "rsbs r4, r4, #0",
        "mov r12, r4",
        "movs r4, #0",
        "mov r8, r4",
        "mov r9, r4",
        "mov r10, r4",
        "mov r11, r4",
        // Everything from its end on, with an index from -len to 0.
        "rsbs r7, r2, #0",
        "adds r0, r0, r2",
        "mov r6, r2",
        "ldm r1!, {{r2-r5}}",
        "adds r1, r2, r6",
        "adds r2, r3, r6",
        "adds r3, r4, r6",
        "adds r4, r5, r6",
        "2:",
        element!(),
        "bne 2b",
        "pop {{r3}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "stm r3!, {{r4-r7}}",
        "pop {{r4-r7}}",
        "mov r8, r4",
        "mov r9, r5",
        "mov r10, r6",
        "mov r11, r7",
        "pop {{r4-r7, pc}}",
    )
}

/// [`dots`] of many rows one behind the other, four at a time: `fours` of them, not 0. `len` is not 0. Sixteen products in 61 instructions.
#[cfg(cortex_m = "baseline")]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn rows(
    x: *const i8,
    weights: *const i8,
    len: usize,
    sums: *mut i32,
    zero: i32,
    fours: usize,
) {
    naked_asm!(
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "push {{r4-r7}}",
        "ldr r4, [sp, #36]",
        "rsbs r4, r4, #0",
        "mov r12, r4",
        // The sums, their end, and the index at which fours begin.
        "ldr r4, [sp, #40]",
        "lsls r4, r4, #4",
        "adds r4, r4, r3",
        "lsrs r5, r2, #2",
        "lsls r5, r5, #2",
        "rsbs r5, r5, #0",
        "push {{r3-r5}}",
        // Everything from its end on, with an index from -len to 0.
        "adds r0, r0, r2",
        "rsbs r7, r2, #0",
        "mov lr, r7",
        "mov r4, r1",
        // The end of the last row is where the next one begins.
        "1: mov r7, lr",
        "subs r1, r4, r7",
        "subs r2, r1, r7",
        "subs r3, r2, r7",
        "subs r4, r3, r7",
        "movs r5, #0",
        "mov r8, r5",
        "mov r9, r5",
        "mov r10, r5",
        "mov r11, r5",
        "ldr r6, [sp, #8]",
        "cmp r7, r6",
        "beq 4f",
        // What is no four first.
        "2:",
        element!(),
        "ldr r5, [sp, #8]",
        "cmp r7, r5",
        "bne 2b",
        "cmp r7, #0",
        "beq 5f",
        "4:",
        element!(),
        element!(),
        element!(),
        element!(),
        "bne 4b",
        "5: ldr r7, [sp]",
        "mov r1, r8",
        "mov r2, r9",
        "mov r3, r10",
        "mov r6, r11",
        "stm r7!, {{r1-r3, r6}}",
        "str r7, [sp]",
        "ldr r6, [sp, #4]",
        "cmp r7, r6",
        "beq 6f",
        "b 1b",
        "6: add sp, #12",
        "pop {{r4-r7}}",
        "mov r8, r4",
        "mov r9, r5",
        "mov r10, r6",
        "mov r11, r7",
        "pop {{r4-r7, pc}}",
    )
}

/// An element of the input, from r0, with that of each row, from r1 to r4: zero point r12, sums r5 to r8.
#[cfg(all(
    cortex_m = "mainline",
    not(any(all(cortex_m = "dsp", feature = "dsp"), all(cortex_m = "mve", feature = "mve")))
))]
macro_rules! element {
    () => {
        concat!(
            "ldrsb r9, [r0], #1\n",
            "ldrsb r10, [r1], #1\n",
            "ldrsb r11, [r2], #1\n",
            "sub r9, r9, r12\n",
            "mla r5, r9, r10, r5\n",
            "mla r6, r9, r11, r6\n",
            "ldrsb r10, [r3], #1\n",
            "ldrsb r11, [r4], #1\n",
            "mla r7, r9, r10, r7\n",
            "mla r8, r9, r11, r8\n"
        )
    };
}

/// Sixteen products in 42 instructions, on ARMv7-M. `len` is a multiple of four and not 0.
#[cfg(all(
    cortex_m = "mainline",
    not(any(all(cortex_m = "dsp", feature = "dsp"), all(cortex_m = "mve", feature = "mve")))
))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn dots(x: *const i8, rows: *const *const i8, len: usize, sums: *mut i32, zero: i32) {
    naked_asm!(
        ".cpu cortex-m3",
        "ldr r12, [sp]",
        "push {{r3-r11, lr}}",
        "add lr, r0, r2",
        "ldm r1, {{r1-r4}}",
        "movs r5, #0",
        "movs r6, #0",
        "movs r7, #0",
        "mov r8, #0",
        "2:",
        element!(),
        element!(),
        element!(),
        element!(),
        "cmp r0, lr",
        "bne 2b",
        "pop {{r3}}",
        "stm r3, {{r5-r8}}",
        "pop {{r4-r11, pc}}",
    )
}

/// [`dots`] of many rows one behind the other, four at a time: `fours` of them, not 0. `len` is not 0. Four products in ten instructions.
#[cfg(all(
    cortex_m = "mainline",
    not(any(all(cortex_m = "dsp", feature = "dsp"), all(cortex_m = "mve", feature = "mve")))
))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn rows(
    x: *const i8,
    weights: *const i8,
    len: usize,
    sums: *mut i32,
    zero: i32,
    fours: usize,
) {
    naked_asm!(
        ".cpu cortex-m3",
        "push {{r4-r11, lr}}",
        // The input, the length, the sums, their end.
        "ldrd r12, r4, [sp, #36]",
        "add r5, r3, r4, lsl #4",
        "mov r4, r3",
        "mov r3, r2",
        "mov r2, r0",
        "push {{r2-r5}}",
        "1: ldrd r0, r9, [sp]",
        "add r2, r1, r9",
        "add r3, r2, r9",
        "add r4, r3, r9",
        "movs r5, #0",
        "movs r6, #0",
        "movs r7, #0",
        "mov r8, #0",
        // What is no four first.
        "ands lr, r9, #3",
        "beq 3f",
        "add lr, r0",
        "2:",
        element!(),
        "cmp r0, lr",
        "bne 2b",
        "3: ldrd r9, r10, [sp]",
        "add lr, r9, r10",
        "cmp r0, lr",
        "beq 5f",
        "4:",
        element!(),
        element!(),
        element!(),
        element!(),
        "cmp r0, lr",
        "bne 4b",
        "5: ldrd r9, r10, [sp, #8]",
        "stm r9!, {{r5-r8}}",
        "str r9, [sp, #8]",
        // The end of the last row is where the next one begins.
        "mov r1, r4",
        "cmp r9, r10",
        "bne 1b",
        "add sp, #16",
        "pop {{r4-r11, pc}}",
    )
}

/// The same on RV32IM: eight rows at a time, 32 products in 114 instructions, and four that are left, sixteen in 62.
#[cfg(target_arch = "riscv32")]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn rows(
    x: *const i8,
    weights: *const i8,
    len: usize,
    sums: *mut i32,
    zero: i32,
    fours: usize,
) {
    /// An element of the input, s1, with those of four rows.
    macro_rules! four {
        ($at:literal $($row:literal $sum:literal)*) => {
            concat!($(
                "lb s2, ", $at, "(", $row, ")\n",
                "mul s2, s2, s1\n",
                "add ", $sum, ", ", $sum, ", s2\n",
            )*)
        };
    }
    macro_rules! input {
        ($at:literal) => {
            concat!("lb s1, ", $at, "(t0)\n", "sub s1, s1, a4\n")
        };
    }
    macro_rules! element {
        ($($at:literal)*) => {
            concat!($(input!($at), four!($at "a1" "t4" "t1" "t5" "t2" "t6" "t3" "s0")),*)
        };
    }
    macro_rules! both {
        ($($at:literal)*) => {
            concat!($(
                input!($at),
                four!($at "a1" "t4" "t1" "t5" "t2" "t6" "t3" "s0"),
                four!($at "s8" "s4" "s9" "s5" "s10" "s6" "s11" "s7")
            ),*)
        };
    }
    macro_rules! on {
        ($by:literal $($row:literal)*) => {
            concat!($("addi ", $row, ", ", $row, ", ", $by, "\n"),*)
        };
    }
    macro_rules! clear {
        ($($sum:literal)*) => { concat!($("li ", $sum, ", 0\n"),*) };
    }
    naked_asm!(
        ".option push",
        ".option arch, +m",
        "addi sp, sp, -48",
        "sw s0, 0(sp)",
        "sw s1, 4(sp)",
        "sw s2, 8(sp)",
        "sw s4, 12(sp)",
        "sw s5, 16(sp)",
        "sw s6, 20(sp)",
        "sw s7, 24(sp)",
        "sw s8, 28(sp)",
        "sw s9, 32(sp)",
        "sw s10, 36(sp)",
        "sw s11, 40(sp)",
        // The end of the input's elements that are no four, and of all of them.
        "andi a6, a2, 3",
        "add a6, a6, a0",
        "add a7, a0, a2",
        "1: mv t0, a0",
        "add t1, a1, a2",
        "add t2, t1, a2",
        "add t3, t2, a2",
        clear!("t4" "t5" "t6" "s0"),
        "addi a5, a5, -2",
        "bltz a5, 6f",
        "add s8, t3, a2",
        "add s9, s8, a2",
        "add s10, s9, a2",
        "add s11, s10, a2",
        clear!("s4" "s5" "s6" "s7"),
        "beq t0, a6, 3f",
        "2:",
        both!("0"),
        on!("1" "t0" "a1" "t1" "t2" "t3" "s8" "s9" "s10" "s11"),
        "bne t0, a6, 2b",
        "3: beq t0, a7, 5f",
        "4:",
        both!("0" "1" "2" "3"),
        on!("4" "t0" "a1" "t1" "t2" "t3" "s8" "s9" "s10" "s11"),
        "bne t0, a7, 4b",
        "5: sw t4, 0(a3)",
        "sw t5, 4(a3)",
        "sw t6, 8(a3)",
        "sw s0, 12(a3)",
        "sw s4, 16(a3)",
        "sw s5, 20(a3)",
        "sw s6, 24(a3)",
        "sw s7, 28(a3)",
        "addi a3, a3, 32",
        // The end of the last row is where the next one begins.
        "mv a1, s11",
        "bnez a5, 1b",
        "j 9f",
        // Four rows are left.
        "6: beq t0, a6, 7f",
        "2:",
        element!("0"),
        on!("1" "t0" "a1" "t1" "t2" "t3"),
        "bne t0, a6, 2b",
        "7: beq t0, a7, 8f",
        "4:",
        element!("0" "1" "2" "3"),
        on!("4" "t0" "a1" "t1" "t2" "t3"),
        "bne t0, a7, 4b",
        "8: sw t4, 0(a3)",
        "sw t5, 4(a3)",
        "sw t6, 8(a3)",
        "sw s0, 12(a3)",
        "9: lw s0, 0(sp)",
        "lw s1, 4(sp)",
        "lw s2, 8(sp)",
        "lw s4, 12(sp)",
        "lw s5, 16(sp)",
        "lw s6, 20(sp)",
        "lw s7, 24(sp)",
        "lw s8, 28(sp)",
        "lw s9, 32(sp)",
        "lw s10, 36(sp)",
        "lw s11, 40(sp)",
        "addi sp, sp, 48",
        "ret",
        ".option pop",
    )
}

/// Sixteen products in 26 instructions: every register is in use. `len` is a multiple of four and not 0.
#[cfg(all(cortex_m = "dsp", feature = "dsp", not(all(cortex_m = "mve", feature = "mve"))))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn dots(x: *const i8, rows: *const *const i8, len: usize, sums: *mut i32, zero: i32) {
    naked_asm!(
        ".cpu cortex-m33",
        "ldr r12, [sp]",
        "push {{r4-r11, lr}}",
        "add r2, r0, r2",
        "push {{r2, r3}}",
        "rsb r12, r12, #0",
        "pkhbt r12, r12, r12, lsl #16",
        "ldm r1, {{r1-r4}}",
        "mov r5, #0",
        "mov r6, #0",
        "mov r7, #0",
        "mov r8, #0",
        "2: ldr r10, [r0], #4",
        "sxtab16 r9, r12, r10",
        "sxtab16 r10, r12, r10, ror #8",
        "ldr r11, [r1], #4",
        "sxtb16 lr, r11",
        "smlad r5, r9, lr, r5",
        "sxtb16 r11, r11, ror #8",
        "smlad r5, r10, r11, r5",
        "ldr r11, [r2], #4",
        "sxtb16 lr, r11",
        "smlad r6, r9, lr, r6",
        "sxtb16 r11, r11, ror #8",
        "smlad r6, r10, r11, r6",
        "ldr r11, [r3], #4",
        "sxtb16 lr, r11",
        "smlad r7, r9, lr, r7",
        "sxtb16 r11, r11, ror #8",
        "smlad r7, r10, r11, r7",
        "ldr r11, [r4], #4",
        "sxtb16 lr, r11",
        "smlad r8, r9, lr, r8",
        "sxtb16 r11, r11, ror #8",
        "smlad r8, r10, r11, r8",
        "ldr r11, [sp]",
        "cmp r0, r11",
        "bne 2b",
        "pop {{r2, r3}}",
        "stm r3, {{r5-r8}}",
        "pop {{r4-r11, pc}}",
    )
}

/// Eight elements of four rows in ten instructions, in halves that have room for the zero point. `len` is not 0.
#[cfg(all(cortex_m = "mve", feature = "mve"))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn dots(x: *const i8, rows: *const *const i8, len: usize, sums: *mut i32, zero: i32) {
    naked_asm!(
        ".cpu cortex-m55",
        // Loads that widen take their address from r0 to r7, and sums have even registers.
        "ldr r12, [sp]",
        "push {{r4-r11, lr}}",
        "vdup.16 q3, r12",
        "ldrd r4, r5, [r1]",
        "ldr r7, [r1, #8]",
        "ldr r1, [r1, #12]",
        "mov r6, #0",
        "mov r8, #0",
        "mov r10, #0",
        "mov r12, #0",
        "dlstp.16 lr, r2",
        "2: vldrb.s16 q0, [r0], #8",
        "vldrb.s16 q1, [r4], #8",
        "vsub.i16 q0, q0, q3",
        "vmladava.s16 r6, q0, q1",
        "vldrb.s16 q2, [r5], #8",
        "vmladava.s16 r8, q0, q2",
        "vldrb.s16 q1, [r7], #8",
        "vmladava.s16 r10, q0, q1",
        "vldrb.s16 q2, [r1], #8",
        "vmladava.s16 r12, q0, q2",
        "letp lr, 2b",
        "strd r6, r8, [r3]",
        "strd r10, r12, [r3, #8]",
        "pop {{r4-r11, pc}}",
    )
}

/// [`dots`] of many rows one behind the other, four at a time: `fours` of them, not 0. `len` is a multiple of four and not 0. Sixteen products in 24
/// instructions.
#[cfg(all(cortex_m = "dsp", feature = "dsp", not(all(cortex_m = "mve", feature = "mve"))))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn rows(
    x: *const i8,
    weights: *const i8,
    len: usize,
    sums: *mut i32,
    zero: i32,
    fours: usize,
) {
    /// A word of the input with that of each row: the input r0, the first row r1, rows apart r2 and three times that r3; sums r5 to r8.
    macro_rules! four {
        () => {
            concat!(
                "ldr r10, [r0], #4\n",
                "ldr r11, [r1, r2]\n",
                "sxtab16 r9, r12, r10\n",
                "sxtab16 r10, r12, r10, ror #8\n",
                "sxtb16 lr, r11\n",
                "smlad r6, r9, lr, r6\n",
                "sxtb16 r11, r11, ror #8\n",
                "smlad r6, r10, r11, r6\n",
                "ldr r11, [r1, r2, lsl #1]\n",
                "sxtb16 lr, r11\n",
                "smlad r7, r9, lr, r7\n",
                "sxtb16 r11, r11, ror #8\n",
                "smlad r7, r10, r11, r7\n",
                "ldr r11, [r1, r3]\n",
                "sxtb16 lr, r11\n",
                "smlad r8, r9, lr, r8\n",
                "sxtb16 r11, r11, ror #8\n",
                "smlad r8, r10, r11, r8\n",
                "ldr r11, [r1], #4\n",
                "sxtb16 lr, r11\n",
                "smlad r5, r9, lr, r5\n",
                "sxtb16 r11, r11, ror #8\n",
                "smlad r5, r10, r11, r5\n"
            )
        };
    }
    naked_asm!(
        ".cpu cortex-m33",
        "push {{r4-r11, lr}}",
        "sub sp, #12",
        // The input, the sums, their end; the input's end r4.
        "ldrd r12, r4, [sp, #48]",
        "add r4, r3, r4, lsl #4",
        "str r4, [sp, #8]",
        "strd r0, r3, [sp]",
        "add r4, r0, r2",
        "add r3, r2, r2, lsl #1",
        "rsb r12, r12, #0",
        "pkhbt r12, r12, r12, lsl #16",
        "1: mov r5, #0",
        "mov r6, #0",
        "mov r7, #0",
        "mov r8, #0",
        "lsls r11, r2, #29",
        "bpl 2f",
        // An odd word first.
        four!(),
        "cmp r0, r4",
        "beq 3f",
        "2:",
        four!(),
        four!(),
        "cmp r0, r4",
        "bne 2b",
        "3: ldrd r0, r11, [sp]",
        "ldr lr, [sp, #8]",
        "stm r11!, {{r5-r8}}",
        "str r11, [sp, #4]",
        // The first of the next four rows.
        "add r1, r3",
        "cmp r11, lr",
        "bne 1b",
        "add sp, #12",
        "pop {{r4-r11, pc}}",
    )
}

/// Adds the products of `count` lines of halves one behind the other, none of them empty, to their sums. `len` is a multiple of four.
#[cfg(all(cortex_m = "dsp", feature = "dsp", not(all(cortex_m = "mve", feature = "mve"))))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn lines_s16(x: *const i16, w: *const i16, len: usize, sums: *mut i32, count: usize) {
    naked_asm!(
        ".cpu cortex-m33",
        "push {{r4-r7, lr}}",
        "ldr r4, [sp, #20]",
        "1: ldr r12, [r3]",
        "mov r5, r2",
        "2: ldr r6, [r0], #4",
        "ldr r7, [r1], #4",
        "smlad r12, r6, r7, r12",
        "ldr r6, [r0], #4",
        "ldr r7, [r1], #4",
        "smlad r12, r6, r7, r12",
        "subs r5, #4",
        "bne 2b",
        "str r12, [r3], #4",
        "subs r4, #1",
        "bne 1b",
        "pop {{r4-r7, pc}}",
    )
}

/// [`dots`] of many rows one behind the other, four at a time: `fours` of them, not 0. `len` is not 0.
#[cfg(all(cortex_m = "mve", feature = "mve"))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn rows(
    x: *const i8,
    weights: *const i8,
    len: usize,
    sums: *mut i32,
    zero: i32,
    fours: usize,
) {
    naked_asm!(
        ".cpu cortex-m55",
        "push {{r4-r11, lr}}",
        "sub sp, #4",
        "ldrd r12, r9, [sp, #40]",
        "vdup.16 q3, r12",
        "mov r11, r3",
        "mov r3, r0",
        "1: mov r0, r3",
        "adds r4, r1, r2",
        "adds r5, r4, r2",
        "adds r7, r5, r2",
        // Where the next rows begin: vectors go on beyond a row's end.
        "adds r6, r7, r2",
        "str r6, [sp]",
        "mov r6, #0",
        "mov r8, #0",
        "mov r10, #0",
        "mov r12, #0",
        "dlstp.16 lr, r2",
        "2: vldrb.s16 q0, [r0], #8",
        "vldrb.s16 q1, [r1], #8",
        "vsub.i16 q0, q0, q3",
        "vmladava.s16 r6, q0, q1",
        "vldrb.s16 q2, [r4], #8",
        "vmladava.s16 r8, q0, q2",
        "vldrb.s16 q1, [r5], #8",
        "vmladava.s16 r10, q0, q1",
        "vldrb.s16 q2, [r7], #8",
        "vmladava.s16 r12, q0, q2",
        "letp lr, 2b",
        "strd r6, r8, [r11], #8",
        "strd r10, r12, [r11], #8",
        "ldr r1, [sp]",
        "subs r9, #1",
        "bne 1b",
        "add sp, #4",
        "pop {{r4-r11, pc}}",
    )
}

/// Adds the products of `count` lines one behind the other to their sums; neither number is 0.
#[cfg(all(cortex_m = "mve", feature = "mve"))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn lines_s8(
    x: *const i8,
    w: *const i8,
    len: usize,
    sums: *mut i32,
    count: usize,
    zero: i32,
) {
    naked_asm!(
        ".cpu cortex-m55",
        "push {{r4-r6, lr}}",
        "ldrd r4, r5, [sp, #16]",
        "vdup.16 q3, r5",
        // Back from the last vector's end to the line's.
        "add r5, r2, #7",
        "bic r5, r5, #7",
        "sub r5, r2, r5",
        "1: ldr r12, [r3]",
        "dlstp.16 lr, r2",
        "2: vldrb.s16 q0, [r0], #8",
        "vldrb.s16 q1, [r1], #8",
        "vsub.i16 q0, q0, q3",
        "vmladava.s16 r12, q0, q1",
        "letp lr, 2b",
        "add r0, r5",
        "add r1, r5",
        "str r12, [r3], #4",
        "subs r4, #1",
        "bne 1b",
        "pop {{r4-r6, pc}}",
    )
}

/// The same of halves.
#[cfg(all(cortex_m = "mve", feature = "mve"))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn lines_s16(x: *const i16, w: *const i16, len: usize, sums: *mut i32, count: usize) {
    naked_asm!(
        ".cpu cortex-m55",
        "push {{r4-r6, lr}}",
        "ldr r4, [sp, #16]",
        "add r5, r2, #7",
        "bic r5, r5, #7",
        "sub r5, r2, r5",
        "lsls r5, r5, #1",
        "1: ldr r12, [r3]",
        "dlstp.16 lr, r2",
        "2: vldrh.u16 q0, [r0], #16",
        "vldrh.u16 q1, [r1], #16",
        "vmladava.s16 r12, q0, q1",
        "letp lr, 2b",
        "add r0, r5",
        "add r1, r5",
        "str r12, [r3], #4",
        "subs r4, #1",
        "bne 1b",
        "pop {{r4-r6, pc}}",
    )
}
