//! [`unpack`] for ARMv7-M: seven instructions for a byte of each place.
//!
//! r0-r3 places, r4-r7 words, r8 and lr bytes, r9 bytes that are left of a line, r10 lines, r11 from line to line, r12 where the words go.

#![cfg(kernel_isa = "armv7m")]

macro_rules! m3 {
    (at $offset:literal) => {
        concat!(", #", $offset, "]")
    };
    // The bytes at an offset into two words; `lr` is the fourth place's.
    (take $x:literal $y:literal $at:expr) => {
        concat!(
            "ldrsb ",
            $x,
            ", [r0",
            $at,
            "\n",
            "ldrsb r8, [r1",
            $at,
            "\n",
            "ldrsb ",
            $y,
            ", [r2",
            $at,
            "\n",
            "ldrsb lr, [r3",
            $at,
            "\n",
            "add ",
            $x,
            ", ",
            $x,
            ", r8, lsl #16\n",
            "add ",
            $y,
            ", ",
            $y,
            ", lr, lsl #16\n"
        )
    };
}

/// The bytes at each of four places, in lines of `run`; see [`super::unpack`].
///
/// # Safety
/// As for it.
#[allow(clippy::too_many_arguments)]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn unpack(
    a: *const i8,
    b: *const i8,
    c: *const i8,
    d: *const i8,
    run: usize,
    words: *mut i32,
    lines: usize,
    skip: usize,
) -> *mut i32 {
    naked!(
        ".cpu cortex-m3",
        "push {{r4-r11, lr}}",
        "ldr r12, [sp, #{words}]",
        "ldrd r10, r11, [sp, #{lines}]", // skip
        "1:",
        "ldr r9, [sp, #{run}]",
        "subs r9, #4",
        "blt 3f",
        "2:",
        m3!(take "r4" "r5" "], #4"),
        m3!(take "r6" "r7" m3!(at "-3")),
        "stm r12!, {{r4-r7}}",
        m3!(take "r4" "r5" m3!(at "-2")),
        m3!(take "r6" "r7" m3!(at "-1")),
        "stm r12!, {{r4-r7}}",
        "subs r9, #4",
        "bge 2b",
        "3:",
        "adds r9, #4",
        "beq 5f",
        "4:",
        m3!(take "r4" "r5" "], #1"),
        "strd r4, r5, [r12], #8",
        "subs r9, #1",
        "bne 4b",
        "5:",
        "add r0, r11",
        "add r1, r11",
        "add r2, r11",
        "add r3, r11",
        "subs r10, #1",
        "bne 1b",
        "mov r0, r12",
        "pop {{r4-r11, pc}}";
        // Behind nine registers.
        run = const 9 * 4,
        words = const 10 * 4,
        lines = const 11 * 4,
    )
}
