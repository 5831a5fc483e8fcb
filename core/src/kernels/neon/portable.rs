//! The loops in portable Rust, for hosts: the same layouts, the same order of writes, the same bits of integers.
//!
//! # Safety of all loops
//! As the head of `neon/args.rs` says.

use super::args::{Copy, Depthwise, Product, Windows};
use super::gemm_s8_portable::rows;
use super::numbers::{requantised, word};
pub(in crate::kernels) use super::portable_f32::*;

pub(in crate::kernels) unsafe fn fill(dst: *mut i8, value: i32, bytes: usize) {
    // SAFETY: `bytes` bytes are writable at `dst`, by the loop's contract (`args.rs`).
    unsafe { dst.write_bytes(value as u8, bytes) }
}

pub(in crate::kernels) unsafe fn copy(args: *const Copy) {
    // SAFETY: `args` describes `count` segments of `bytes` bytes, readable at `src` and writable at `dst` (`args.rs`).
    unsafe {
        let args = &*args;
        for segment in 0..args.count {
            let (src, dst) = (
                args.src.add(segment * args.src_step),
                args.dst.add(segment * args.dst_step),
            );
            src.copy_to_nonoverlapping(dst, args.bytes);
        }
    }
}

pub(in crate::kernels) unsafe fn windows(args: *const Windows) {
    // SAFETY: `args` describes windows that are readable, and copies that are writable, to a multiple of 16 bytes for each row (`args.rs`).
    unsafe {
        let args = &*args;
        let bytes = args.run.next_multiple_of(16);
        for window in 0..args.count {
            for row in 0..args.rows {
                let src = args.src.add(window * args.step + row * args.row);
                let dst = args.dst.add(window * args.stride + row * args.run);
                src.copy_to_nonoverlapping(dst, bytes);
            }
        }
    }
}

pub(in crate::kernels) unsafe fn depthwise(args: *const Depthwise) {
    // SAFETY: `args` is valid, with weights in the layout of `dwconv_s8::pack`: taps, channels and outputs below its numbers are valid (head of the file).
    unsafe {
        let args = &*args;
        for pixel in 0..args.pixels {
            let mut weights = args.weights;
            let out = args.out.add(pixel * args.channels);
            for block in 0..args.blocks + args.halves {
                let (first, count) = match block.checked_sub(args.blocks) {
                    None => (16 * block, 16),
                    Some(0) => (args.first_half, 8),
                    Some(_) => (args.channels - 8, 8),
                };
                let taps = weights.add(4 * count);
                let table = taps.add(args.taps * count);
                let mut values = [0i8; 16];
                for (channel, value) in values.iter_mut().enumerate().take(count) {
                    let mut sum = word(weights, channel);
                    for pair in 0..args.taps.div_ceil(2) {
                        // As in 16 bits: a file may have weights that no packer writes.
                        let mut products = 0i16;
                        for tap in 2 * pair..(2 * pair + 2).min(args.taps) {
                            let x = *(*args.entries.add(tap)).add(pixel * args.step + first + channel);
                            let w = *taps.add(tap * count + channel) as i8;
                            products = products.wrapping_add(i16::from(x) * i16::from(w));
                        }
                        sum = sum.wrapping_add(products.into());
                    }
                    let of = |part: usize| word(table, channel / 4 * 12 + part * 4 + channel % 4);
                    let scaled = requantised(sum, [of(0), of(1), of(2)]);
                    let stored = scaled.wrapping_add(args.zero_point);
                    *value = stored.max(args.low).min(args.high) as i8;
                }
                values.as_ptr().copy_to_nonoverlapping(out.add(first), count);
                weights = table.add(12 * count);
            }
        }
    }
}

pub(in crate::kernels) unsafe fn two_rows(args: *const Product) {
    // SAFETY: `rows` has the contract of this function, and gets the same arguments.
    unsafe { rows::<true, 4>(args, 2) }
}

pub(in crate::kernels) unsafe fn one_row(args: *const Product) {
    // SAFETY: `rows` has the contract of this function, and gets the same arguments.
    unsafe { rows::<true, 4>(args, 1) }
}
