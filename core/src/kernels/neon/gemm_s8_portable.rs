//! Products of rows and packed weights (`gemm`) in portable Rust.

use super::args::Product;
use super::numbers::{requantised, word};

/// The outputs of tiles of so many rows, of weights of so many elements side by side. `NARROW`: sums of two products, of elements four apart, in 16 bits, as
/// the loops without dot products have them.
///
/// # Safety
/// As for [`super::gemm_s8::Matrix::multiply`].
pub(in crate::kernels) unsafe fn rows<const NARROW: bool, const DEPTH: usize>(args: *const Product, rows: usize) {
    // SAFETY: `args` points to valid arguments with weights in the layout of `gemm_s8::pack`: rows, groups and outputs below its numbers are valid (fn docs).
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
                        let product = |i: usize| {
                            let w = *weights.add((i / DEPTH * width + channel) * DEPTH + i % DEPTH) as i8;
                            i32::from(*x.add(i)) * i32::from(w)
                        };
                        for i in (0..4 * steps).filter(|i| i & 4 == 0) {
                            // A file may have weights that no packer writes, whose products do not fit.
                            let both = product(i) + product(i + 4);
                            sum = sum.wrapping_add(if NARROW { i32::from(both as i16) } else { both });
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
