//! The sums of four channels' products, whose weights lie two in a word, or are made so from bytes: the inner loops of [`super::linear_s8`].
//!
//! A block is 2, 4, 8, 16 or 32 inputs long; blocks of three, which older files have, run in Rust.

use super::accumulate::accumulate;
use super::channel_record;
use super::channel_record::{BLOCK, BLOCK8};

// The cores with loops of their own; hosts, and other cores, run the portable one.
mod armv6m;
mod armv7m;
mod portable;
mod rv32im;

#[cfg(kernel_isa = "armv6m")]
use armv6m as loops;
#[cfg(kernel_isa = "armv7m")]
use armv7m as loops;
#[cfg(not(kernel_isa = "gpr32"))]
use portable as loops;
#[cfg(kernel_isa = "rv32im")]
use rv32im as loops;

#[cfg(kernel_isa = "armv6m")]
pub(super) use loops::m0;
#[cfg(kernel_isa = "rv32im")]
pub(super) use loops::rv;

/// First bit, in a dense layer's code, of how often its block of 8 is doubled; other layers have the channel's number there.
pub(super) const DOUBLED_AT: u32 = 16;

/// The number of a code's loop, which is the bit of [`divisors`] that allows it: blocks of 4, 2, 3, 8, 16, 32.
#[inline(always)]
pub(super) const fn number(code: i32) -> u32 {
    ((code & BLOCK) >> 8) as u32 + (code as u32 >> DOUBLED_AT)
}

/// Whether a packer writes this block: it doubles those of eight alone, once or twice.
#[inline(always)]
pub(super) const fn is_packed(code: i32) -> bool {
    matches!((code & BLOCK, code as u32 >> DOUBLED_AT), (_, 0) | (BLOCK8, 1 | 2))
}

/// The loops whose blocks divide so many inputs, padded: a bit for each number.
pub(super) fn divisors(inputs: usize) -> u32 {
    let wide = [16, 32].map(|block| u32::from(inputs.is_multiple_of(block)));
    channel_record::divisors(inputs) | wide[0] << 4 | wide[1] << 5
}

/// The sums, in the order of the channels, modulo 2^32.
///
/// # Safety
/// 1. Two words at `words` and a byte at `x` for each of `inputs`, a multiple of 4.
/// 2. `number` is one of the [`divisors`] of `inputs`.
#[inline(always)]
pub(super) unsafe fn sums(words: *const i32, x: *const i8, inputs: usize, number: u32, sums: &mut [i32; 4]) {
    // SAFETY: each arm is the block of `number`, which divides `inputs` (point 2); words and bytes are those of point 1.
    unsafe {
        match number {
            0 => loops::by_4(words, x, inputs, sums),
            1 => loops::by_2(words, x, inputs, sums),
            2 => by_3(words, x, inputs, sums),
            3 => loops::by_8(words, x, inputs, sums),
            4 => loops::by_16(words, x, inputs, sums),
            _ => loops::by_32(words, x, inputs, sums),
        }
    }
}

/// The sums of weights that are bytes. Where they go by blocks, each is 128 more than the weight: the even bytes of a word are the halves of one of [`sums`]'s
/// words, the odd ones of the other. Without, as what takes the place of blocks of two goes, they lie in order, and those of two channels are left out where
/// there are no more than two.
///
/// # Safety
/// As for [`sums`], with one word for each input; `number` is neither 2 nor 5.
#[inline(always)]
pub(super) unsafe fn narrow(words: *const i32, x: *const i8, inputs: usize, how: (u32, usize), sums: &mut [i32; 4]) {
    // SAFETY: each arm is the block of `number`, which divides `inputs`; this function's contract guarantees a word and a byte for each input.
    unsafe {
        match how {
            (0, _) => loops::narrow_by_4(words, x, inputs, sums),
            (1, 3..) => loops::plain(words, x, inputs, sums),
            (1, _) => loops::plain_two(words, x, inputs, sums),
            (3, _) => loops::narrow_by_8(words, x, inputs, sums),
            _ => loops::narrow_by_16(words, x, inputs, sums),
        }
    }
}

/// # Safety
/// As for [`sums`], with `number` 2: three divides `inputs`.
#[cold]
#[inline(never)]
unsafe fn by_3(words: *const i32, x: *const i8, inputs: usize, sums: &mut [i32; 4]) {
    // SAFETY: three divides `inputs`; this function's contract guarantees two words and a byte for each.
    *sums = unsafe { accumulate::<3>(words, x, inputs, 0) };
}
