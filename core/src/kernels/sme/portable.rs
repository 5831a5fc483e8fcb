//! The loop in portable Rust, for hosts: the same layout, the same bits.

use super::args::Convolution;
use crate::kernels::neon::numbers::requantised;

/// Channels whose sums are computed before any of them is written: as many as the shortest tiles have, so that outputs may lie over what the pixel has been
/// computed from.
const PART: usize = 12;

/// # Safety
/// Of the windows, what lies inside the input is valid for reads; `out` is valid for writes of all pixels; constants have the layout of `packed`.
pub(super) unsafe fn convolution(args: *const Convolution) {
    // SAFETY: `args` points to valid arguments, and `pixel` and `first` are below their numbers: inputs, constants and outputs of `part` are valid (fn docs).
    unsafe {
        let args = &*args;
        let (mut start, mut row, mut column) = (args.window, args.top, 0);
        for pixel in 0..args.pixels {
            let mut first = 0;
            while first < args.channels {
                let count = (args.channels - first).min(PART);
                part(args, start, row, column, first, pixel, count);
                first += count;
            }
            start = start.wrapping_add(args.step);
            column += 1;
            if column == args.columns {
                column = 0;
                row += args.stride as isize;
                start = start.wrapping_offset(args.next_row);
                if row == args.bottom {
                    row = args.top;
                    start = start.wrapping_offset(args.next_image);
                }
            }
        }
    }
}

/// # Safety
/// As for [`convolution`].
unsafe fn part(
    args: &Convolution,
    start: *const i8,
    row: isize,
    column: usize,
    first: usize,
    pixel: usize,
    count: usize,
) {
    let mut sums = [0i32; PART];
    let left = (column * args.step) as isize - args.left as isize;
    let each_row = args.run.div_ceil(4);
    for k_row in 0..args.rows {
        let inside = (0..args.height as isize).contains(&(row + k_row as isize));
        for at in 0..args.run {
            let x = if inside && (0..args.pitch as isize).contains(&(left + at as isize)) {
                // SAFETY: `inside` and the columns were compared: the element lies in a row of the input, which is valid (docs of `convolution`).
                unsafe { *start.wrapping_add(k_row * args.pitch + at) }
            } else {
                args.outside as i8
            };
            let line = ((k_row * each_row + at / 4) * args.channels + first) * 4 + at % 4;
            for (channel, sum) in sums.iter_mut().enumerate().take(count) {
                // SAFETY: `at < args.run` and `first + channel < args.channels`: a weight of the layout of `packed`, which the contract guarantees.
                let weight = unsafe { *args.weights.add(line + 4 * channel) } as i8;
                *sum = sum.wrapping_add(i32::from(x) * i32::from(weight));
            }
        }
    }
    for (channel, &sum) in (first..).zip(sums.iter()).take(count) {
        // SAFETY: `channel < args.channels`: a word of each line of the table, and an output of the pixel, which this function's contract guarantees.
        unsafe {
            let of = |line: usize| *args.table.add(line * args.channels + channel);
            let scaled = requantised(sum.wrapping_add(of(0)), [of(1), of(2), of(3)]);
            let stored = scaled.wrapping_add(args.zero_point);
            *args.out.add(pixel * args.channels + channel) = stored.max(args.low).min(args.high) as i8;
        }
    }
}
