//! The loops in Rust.

#![cfg(not(kernel_isa = "rv32im"))]

use super::args::{SingleLoopArgs, in_order};
use crate::kernels::packed::channel_record::Record;
use crate::kernels::packed::requantize;

/// Weights as two words for each input, four channels at a time, until there are no outputs left.
///
/// # Safety
/// 1. Two words for each input and every four outputs, the last ones filled up with zeros; the inputs before `end` are readable.
/// 2. A record of the short form and room for each output from `y` to `y_end`.
#[cfg(not(kernel_isa = "strict_align"))]
#[inline(never)]
pub(in crate::kernels::packed) unsafe fn halves(args: &mut SingleLoopArgs) {
    // SAFETY: two words are there at each input's place (point 1).
    let pair = |words: *const i32, _| unsafe { *words.cast() };
    // SAFETY: this function has the contract of the other.
    unsafe { each::<2>(args, pair) }
}

/// Weights as the bytes of a word for each input.
///
/// # Safety
/// As for [`halves`], with one word.
#[inline(never)]
pub(in crate::kernels::packed) unsafe fn bytes(args: &mut SingleLoopArgs) {
    let pair = |words: *const i32, turned: bool| {
        let turn = if turned { 0x8080_8080 } else { 0 };
        // SAFETY: a word is there at each input's place (point 1).
        let word = unsafe { *words.cast::<u32>() } ^ turn;
        [word, word >> 8].map(|bytes| (bytes & 0x00ff_00ff).wrapping_sub(0x0080_0080) as i32)
    };
    // SAFETY: this function has the contract of the other.
    unsafe { each::<1>(args, pair) }
}

/// With `W` words for an input, from which `pair` makes two.
///
/// # Safety
/// As for [`halves`].
#[inline(always)]
unsafe fn each<const W: usize>(args: &mut SingleLoopArgs, pair: impl Fn(*const i32, bool) -> [i32; 2]) {
    let SingleLoopArgs {
        mut words,
        end,
        minus_inputs,
        last,
        start,
        mut records,
        mut y,
        y_end,
        twice,
    } = *args;
    while y != y_end {
        // SAFETY: an output is left, and so is its record (point 2).
        let turned = W == 1 && in_order(unsafe { (*records)[2] });
        let (mut totals, mut highs, mut at) = ([start; 2], [0_i32; 2], minus_inputs);
        while at != 0 {
            let mut sums = [1 << 15; 2];
            loop {
                // SAFETY: `at` is one of the inputs before `end` (point 1).
                let x = i32::from(unsafe { *end.offset(at) });
                for (sum, word) in sums.iter_mut().zip(pair(words, turned)) {
                    *sum = word.wrapping_mul(x).wrapping_add(*sum);
                }
                words = words.wrapping_add(W);
                at += 1;
                if at as usize & last == 0 {
                    break;
                }
            }
            for ((total, high), sum) in totals.iter_mut().zip(&mut highs).zip(sums) {
                *total = total.wrapping_add(sum);
                *high += sum >> 16;
            }
        }
        let low = |total: i32, high: i32| total.wrapping_sub(high << 16);
        let ([a, c], [b, d]) = (totals, highs);
        let (a, c) = (low(a, b), low(c, d));
        for sum in if turned { [a, c, b, d] } else { [a, b, c, d] } {
            if y == y_end {
                break;
            }
            // SAFETY: an output is left, and so is its record (point 2).
            unsafe {
                let [bias, multiplier, code]: Record = *records;
                let addend = requantize::addend(twice, code);
                *y = requantize::short(sum.wrapping_add(bias), multiplier, code, addend);
            }
            records = records.wrapping_add(1);
            y = y.wrapping_add(1);
        }
    }
}
