//! [`products`] for RV32IM.
//!
//! In the loop: a0 tiles, a6 their end, a1 weights, a4 and a5 the inputs of both tiles, s0 a weight, s1 and s2 products, t0-t6 and a7 sums. Beside it: a2
//! bytes of the tiles, a3 where the sums go, s3 their end, s4 the point's tiles.

#![cfg(kernel_isa = "rv32im")]

use super::transform::{LANES, POINTS, TILES};

macro_rules! rv {
    (lane $c:literal $at:literal $first:literal $second:literal) => { concat!(
        "lh s0, {lanes}*", $c, "+", $at, "(a1)\n",
        "mul s1, a4, s0\n", "mul s2, a5, s0\n",
        "add ", $first, ", ", $first, ", s1\n",
        "add ", $second, ", ", $second, ", s2\n")
    };
    (channel $c:literal) => { concat!(
        "lh a4, {points}*", $c, "(a0)\n", "lh a5, {points}*", $c, "+{second_tile}(a0)\n",
        rv!(lane $c 0 "t0" "t1"), rv!(lane $c 2 "t2" "t3"), rv!(lane $c 4 "t4" "t5"), rv!(lane $c 6 "t6" "a7"))
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
        ".option push",
        ".option arch, +m",
        save!("s0" "s1" "s2" "s3" "s4"),
        "slli a2, a2, 6",
        "addi s3, a3, 128",
        "mv s4, a0",
        "1:",
        "mv a0, s4",
        "add a6, a0, a2",
        "addi s4, s4, 4",
        "li t0, 0",
        "li t1, 0",
        "li t2, 0",
        "li t3, 0",
        "li t4, 0",
        "li t5, 0",
        "li t6, 0",
        "li a7, 0",
        "2:",
        rv!(channel 0),
        rv!(channel 1),
        rv!(channel 2),
        rv!(channel 3),
        "addi a0, a0, 256",
        "addi a1, a1, 32",
        "bne a0, a6, 2b",
        words!("sw" "a3": "t0" "t1" "t2" "t3" "t4" "t5" "t6" "a7"),
        "addi a3, a3, 32",
        "bne a3, s3, 1b",
        restore!("s0" "s1" "s2" "s3" "s4"),
        "ret",
        ".option pop";
        // Bytes of a channel's weights and of its tiles' points, and from a tile's to the other's.
        lanes = const size_of::<[i16; LANES]>(),
        points = const size_of::<[[i16; TILES]; POINTS]>(),
        second_tile = const size_of::<i16>(),
    )
}
