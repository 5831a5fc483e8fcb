//! Loops of [`dot`](crate::kernels::primitives::dot_s8) for RV32IM.

#![cfg(kernel_isa = "rv32im")]

/// Sums of many rows one behind the other: `fours` of four, not 0. `len` is not 0. Eight rows at a time, 32 products in 114 instructions, and four that are
/// left, sixteen in 62.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn rows(
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
    naked!(
        ".option push",
        ".option arch, +m",
        save!("s0" "s1" "s2" "s4" "s5" "s6" "s7" "s8" "s9" "s10" "s11"),
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
        "5:",
        words!("sw" "a3": "t4" "t5" "t6" "s0" "s4" "s5" "s6" "s7"),
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
        "8:",
        words!("sw" "a3": "t4" "t5" "t6" "s0"),
        "9:",
        restore!("s0" "s1" "s2" "s4" "s5" "s6" "s7" "s8" "s9" "s10" "s11"),
        "ret",
        ".option pop",
    )
}
