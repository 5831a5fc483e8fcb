//! The loops of f32 in portable Rust. Sums are rounded after every product as well, where the assembly fuses both: what hosts compute must not depend on the
//! host, for calibration makes files of it, so those of AArch64 run these too.
//!
//! # Safety of all loops
//! As the head of `neon/args.rs` says.

use super::args::{DepthwiseF32, ProductF32};
use crate::ops::pointwise::clamp;

pub(in crate::kernels) unsafe fn four_rows_f32(args: *const ProductF32) {
    // SAFETY: `rows_f32` has the contract of this function, and gets the same arguments.
    unsafe { rows_f32(args, 4) }
}

pub(in crate::kernels) unsafe fn one_row_f32(args: *const ProductF32) {
    // SAFETY: `rows_f32` has the contract of this function, and gets the same arguments.
    unsafe { rows_f32(args, 1) }
}

unsafe fn rows_f32(args: *const ProductF32, rows: usize) {
    // SAFETY: `args` is valid, with weights in the layout of `conv2d_f32::pack`: rows, groups and outputs below its numbers are valid (head of the file).
    unsafe {
        let args = &*args;
        let k = 4 * args.quads + args.odd;
        for tile in 0..args.tiles {
            for group in 0..=args.groups {
                let count = if group < args.groups { 16 } else { args.rest };
                let width = count.next_multiple_of(4);
                let weights = args.weights.add(group * 16 * k);
                let bias = match group < args.groups {
                    true if args.bias.is_null() => args.bias,
                    true => args.bias.add(16 * group),
                    false => args.last_bias,
                };
                let mut values = [[0f32; 16]; 4];
                let at = |row: usize| (tile * rows + row) * args.out_stride / 4 + 16 * group;
                for (row, values) in values.iter_mut().enumerate().take(rows) {
                    let x = args.x.byte_add((tile * rows + row) * args.x_stride);
                    for (channel, value) in values.iter_mut().enumerate().take(count) {
                        let mut sum = if bias.is_null() { 0.0 } else { *bias.add(channel) };
                        for i in 0..k {
                            sum += *x.add(i) * *weights.add(i * width + channel);
                        }
                        if !args.residual.is_null() {
                            sum += *args.residual.add(at(row) + channel);
                        }
                        *value = clamp(sum, args.limits);
                    }
                }
                for (row, values) in values.iter().enumerate().take(rows) {
                    values.as_ptr().copy_to_nonoverlapping(args.out.add(at(row)), count);
                }
            }
        }
    }
}

pub(in crate::kernels) unsafe fn depthwise_f32(args: *const DepthwiseF32) {
    // SAFETY: `args` is valid, with weights in the layout of `dwconv_f32::pack`: taps, channels and outputs below its numbers are valid (head of the file).
    unsafe {
        let args = &*args;
        let channels = args.bytes / 4;
        for pixel in 0..args.pixels {
            for block in 0..args.blocks + args.quads {
                let (first, count) = match block.checked_sub(args.blocks) {
                    None => (16 * block, 16),
                    Some(quad) => ((16 * args.blocks + 4 * quad).min(channels - 4), 4),
                };
                let mut values = [0f32; 16];
                for (channel, value) in (first..).zip(values.iter_mut()).take(count) {
                    let mut sum = if args.bias.is_null() {
                        0.0
                    } else {
                        *args.bias.add(channel)
                    };
                    for tap in 0..args.taps {
                        let x = (*args.entries.add(tap)).add(pixel * args.step).cast::<f32>();
                        sum += *x.add(channel) * *args.weights.add(tap * channels + channel);
                    }
                    if !args.residual.is_null() {
                        sum += *args.residual.add(pixel * channels + channel);
                    }
                    *value = clamp(sum, args.limits);
                }
                let out = args.out.add(pixel * channels + first);
                values.as_ptr().copy_to_nonoverlapping(out, count);
            }
        }
    }
}
