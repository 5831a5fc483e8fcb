//! [`products`] for ARMv7-M: 14 registers, MLA, loads that step on.
//!
//! In the loop: r0 tiles, r1 weights, r2 channels that are left, r3-r10 sums, r11 and r12 the inputs of both tiles, lr a weight.

#![cfg(kernel_isa = "armv7m")]

use super::transform::{LANES, TILES};

frame!(
    /// The frame: a point's tiles, channels, where the sums go, their end.
    Frame { point, channels, next_sums, end }
);
consecutive!(Frame: point, channels, next_sums, end);

macro_rules! m3 {
    (lane $first:literal $second:literal) => {
        concat!(
            "ldrsh lr, [r1], #2\n",
            "mla ",
            $first,
            ", r11, lr, ",
            $first,
            "\n",
            "mla ",
            $second,
            ", r12, lr, ",
            $second,
            "\n"
        )
    };
    (channel) => {
        concat!(
            "ldrsh r12, [r0, #{second_tile}]\n",
            "ldrsh r11, [r0], #64\n",
            m3!(lane "r3" "r4"),
            m3!(lane "r5" "r6"),
            m3!(lane "r7" "r8"),
            m3!(lane "r9" "r10")
        )
    };
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
    naked!(
        Frame { point, next_sums } =>
        ".cpu cortex-m3",
        "push {{r4-r11, lr}}",
        "add r12, r3, #128",
        "push {{r0, r2, r3, r12}}",
        "1:",
        "ldrd r0, r2, [sp, #{point}]", // channels
        "add r3, r0, #4",
        "str r3, [sp, #{point}]",
        "mov r3, #0",
        "mov r4, r3",
        "mov r5, r3",
        "mov r6, r3",
        "mov r7, r3",
        "mov r8, r3",
        "mov r9, r3",
        "mov r10, r3",
        "2:",
        m3!(channel),
        m3!(channel),
        m3!(channel),
        m3!(channel),
        "subs r2, #4",
        "bne 2b",
        "ldrd r11, r12, [sp, #{next_sums}]", // end
        "stm r11!, {{r3-r10}}",
        "str r11, [sp, #{next_sums}]",
        "cmp r11, r12",
        "bne 1b",
        "add sp, #16",
        "pop {{r4-r11, pc}}";
        second_tile = const 2,
    )
}
