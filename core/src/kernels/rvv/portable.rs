//! The loops in portable Rust, for hosts: the same layouts, the same bits.
//!
//! # Safety of all loops
//! `args` points to arguments whose pointers are valid for what their fields describe (`args.rs`), with constants in the layout of `packed`.

use super::args::{AddS8LinearArgs, ConvArgs};
use crate::quant::{high_mul, rounding_shift_right};

pub(super) unsafe fn convolution(args: *const ConvArgs) {
    // SAFETY: `each_pixel` has the contract of this function, and gets the same arguments.
    unsafe { each_pixel::<false>(&*args) }
}

pub(super) unsafe fn sum(args: *const AddS8LinearArgs) {
    // SAFETY: `args` points to valid arguments with `count` elements in both operands and in the output.
    unsafe {
        let args = &*args;
        for i in 0..args.count {
            let of = |x: i8, high: i32, low: i32| {
                let x = i32::from(x);
                high.wrapping_mul(x).wrapping_add(low.wrapping_mul(x) >> 8)
            };
            let ([high_a, high_b], [low_a, low_b]) = (args.high, args.low);
            let sum = of(*args.a.add(i), high_a, low_a).wrapping_add(of(*args.b.add(i), high_b, low_b));
            let stored = sum.wrapping_add(args.offset) >> 20;
            *args.out.add(i) = stored.clamp(-128, 127) as i8;
        }
    }
}

pub(super) unsafe fn depthwise(args: *const ConvArgs) {
    // SAFETY: `each_pixel` has the contract of this function, and gets the same arguments.
    unsafe { each_pixel::<true>(&*args) }
}

/// Channels whose sums are computed before any of them is written, so that outputs may lie over what the pixel has been computed from.
const PART: usize = 32;

unsafe fn each_pixel<const DEPTHWISE: bool>(args: &ConvArgs) {
    // SAFETY: `args` is valid, with constants in the layout of `packed`: taps, channels and outputs below its numbers are valid (head of the file).
    unsafe {
        for pixel in 0..args.pixels {
            let out = args.out.add(pixel * args.channels);
            let mut first = 0;
            while first < args.channels {
                let count = (args.channels - first).min(PART);
                let mut sums = [0i32; PART];
                for (channel, sum) in (first..).zip(sums.iter_mut()).take(count) {
                    *sum = *args.table.add(channel);
                }
                let mut weights = args.weights.add(first).cast::<i8>();
                for tap in 0..args.taps {
                    let entry = *args.entries.add(tap);
                    let moved = if entry == args.outside { 0 } else { pixel * args.step };
                    let x = entry.add(moved);
                    for element in 0..args.elements {
                        for (channel, sum) in sums.iter_mut().enumerate().take(count) {
                            let at = if DEPTHWISE { first + channel } else { element };
                            let product = i32::from(*x.add(at)) * i32::from(*weights.add(channel));
                            *sum = sum.wrapping_add(product);
                        }
                        weights = weights.wrapping_add(args.channels);
                    }
                }
                for (channel, &sum) in (first..).zip(sums.iter()).take(count) {
                    let word = |line: usize| *args.table.add(line * args.channels + channel);
                    let scaled = high_mul(sum.wrapping_shl(word(1) as u32), word(2));
                    let stored = rounding_shift_right(scaled, word(3) as u32).wrapping_add(args.zero_point);
                    *out.add(channel) = stored.max(args.low).min(args.high) as i8;
                }
                first += count;
            }
        }
    }
}
