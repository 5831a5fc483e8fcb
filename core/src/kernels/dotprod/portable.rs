//! The products in portable Rust, for hosts: the same layout, the same order of writes, the same bits.

use super::Product;
use crate::kernels::neon::numbers::{requantised, word};

pub(super) unsafe fn rows_by_four(args: *const Product) {
    // SAFETY: the caller's promise.
    unsafe { rows(args, 4) }
}

pub(super) unsafe fn rows_by_one(args: *const Product) {
    // SAFETY: the caller's promise.
    unsafe { rows(args, 1) }
}

unsafe fn rows(args: *const Product, rows: usize) {
    // SAFETY: the caller passes valid arguments; the layout is that of `gemm::pack`.
    unsafe {
        let args = &*args;
        let steps = 4 * args.blocks + 2 * args.half;
        for tile in 0..args.tiles {
            let mut group = args.weights;
            for number in 0..=args.groups {
                let count = if number < args.groups { 16 } else { args.rest };
                if count == 0 {
                    break;
                }
                let width = count.next_multiple_of(4);
                let weights = group.add(4 * width);
                let table = weights.add(4 * width * steps);
                for row in tile * rows..(tile + 1) * rows {
                    let x = args.x.add(row * args.x_stride);
                    let out = args.out.add(row * args.out_stride + 16 * number);
                    let mut values = [0i8; 16];
                    for (channel, value) in values.iter_mut().enumerate().take(count) {
                        let mut sum = word(group, channel);
                        for i in 0..4 * steps {
                            let w = *weights.add(i / 4 * 4 * width + 4 * channel + i % 4) as i8;
                            sum = sum.wrapping_add(i32::from(*x.add(i)) * i32::from(w));
                        }
                        let of = |part: usize| word(table, channel / 4 * 12 + part * 4 + channel % 4);
                        let scaled = requantised(sum, [of(0), of(1), of(2)]);
                        let stored = scaled.wrapping_add(args.zero_point);
                        *value = stored.max(args.low).min(args.high) as i8;
                    }
                    values.as_ptr().copy_to_nonoverlapping(out, count);
                }
                group = table.add(12 * width);
            }
        }
    }
}
