//! [`products`] for ARMv6-M: eight registers that multiply, six more that add.
//!
//! In the loop: r0 tiles, r1 weights, r2 two weights, r3 a product, r4 and r5 the inputs of both tiles, r6 to r12 and lr sums. On the stack: the point's
//! tiles, their bytes, where the sums go, their end, and the end of the point's tiles.

#![cfg(kernel_isa = "armv6m")]

use super::transform::{LANES, TILES};

macro_rules! m0 {
    // Two channels of one word: the first by SXTH, the second by what the shift leaves.
    (lanes $a:literal $b:literal $c:literal $d:literal) => { concat!(
        "ldm r1!, {{r2}}\n",
        "sxth r3, r2\n", "muls r3, r4, r3\n", "add ", $a, ", r3\n",
        "sxth r3, r2\n", "muls r3, r5, r3\n", "add ", $b, ", r3\n",
        "asrs r2, r2, #16\n",
        "mov r3, r2\n", "muls r3, r4, r3\n", "add ", $c, ", r3\n",
        "muls r2, r5, r2\n", "add ", $d, ", r2\n")
    };
    (channel $at:literal) => { concat!(
        "ldr r5, [r0, #", $at, "]\n",
        "sxth r4, r5\n", "asrs r5, r5, #16\n",
        m0!(lanes "r6" "r7" "r8" "r9"), m0!(lanes "r10" "r11" "r12" "lr"))
    };
}

frame! {
    /// The stack frame, in the order of the file's head.
    Frame { point, bytes, to, to_end, end }
}

/// A row of the transform: the sums of both tiles times four channels over all inputs, for each of its four points, modulo 2^32.
///
/// # Safety
/// `tiles` is a row of `[channels, 16, 2]`, `weights` has `[4, channels, 4]`; there is a multiple of four channels.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn products(
    tiles: *const i16,
    weights: *const i16,
    channels: usize,
    sums: &mut [i32; 4 * LANES * TILES],
) {
    naked!(Frame { point, bytes, to, to_end, end } =>
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "push {{r4-r7}}",
        "sub sp, #20",
        "lsls r2, r2, #6",
        "str r2, [sp, #{bytes}]",
        "str r3, [sp, #{to}]",
        "adds r3, #128",
        "str r3, [sp, #{to_end}]",
        "1:",
        "ldr r2, [sp, #{bytes}]",
        "adds r2, r2, r0",
        "str r2, [sp, #{end}]",
        "adds r2, r0, #4",
        "str r2, [sp, #{point}]",
        "movs r6, #0",
        "movs r7, #0",
        "mov r8, r6",
        "mov r9, r6",
        "mov r10, r6",
        "mov r11, r6",
        "mov r12, r6",
        "mov lr, r6",
        "2:",
        m0!(channel 0),
        m0!(channel 64),
        "adds r0, #128",
        m0!(channel 0),
        m0!(channel 64),
        "adds r0, #128",
        "ldr r3, [sp, #{end}]",
        "cmp r0, r3",
        "bne 2b",
        "ldr r3, [sp, #{to}]",
        "stm r3!, {{r6, r7}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "stm r3!, {{r4-r7}}",
        "mov r6, r12",
        "mov r7, lr",
        "stm r3!, {{r6, r7}}",
        "str r3, [sp, #{to}]",
        "ldr r0, [sp, #{point}]",
        "ldr r4, [sp, #{to_end}]",
        "cmp r3, r4",
        "beq 3f",
        "b 1b",
        "3:",
        "add sp, #20",
        "pop {{r4-r7}}",
        "mov r8, r4",
        "mov r9, r5",
        "mov r10, r6",
        "mov r11, r7",
        "pop {{r4-r7, pc}}",
    )
}
