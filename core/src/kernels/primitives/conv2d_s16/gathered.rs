//! int16 windows on cores without vectors that multiply words in a cycle: a window's inputs are gathered once, as a channel's weights lie, for all channels.

use core::mem::MaybeUninit;

use super::WindowLines;
use crate::kernels::primitives::dot_s16::loops::{GatheredWindowArgs, PAIRED, window};
use crate::kernels::primitives::strided_copy;

/// Elements of the largest window, which are on the stack; those of larger ones have long lines, which need no gathering.
pub(crate) const MOST: usize = 128;

/// Writes `pixels` output pixels of `channels`, whose window has `filter` elements, at most [`MOST`], of which `lines` of the input lie from element `first`
/// on; the others are padding. `steps`: from a pixel to the next in the input and in the output.
///
/// # Safety
/// 1. For each of `pixels` pixels from `x` on, the elements of `lines` are readable, and an output of each channel is writable.
/// 2. The weights, records and biases that `channels` points to are readable for `channels.count` channels.
/// 3. `first` and `lines` lie within `filter` elements, at most [`MOST`].
#[inline(never)]
pub(crate) unsafe fn run(
    x: *const i16,
    lines: &WindowLines,
    first: usize,
    pixels: usize,
    steps: [usize; 2],
    channels: GatheredWindowArgs,
) {
    let mut memory = [const { MaybeUninit::<[u32; 2]>::uninit() }; MOST / 4];
    let gathered = memory.as_mut_ptr().cast::<i16>();
    let (filter, [rows, columns]) = (channels.filter, lines.count);
    let whole = rows.wrapping_mul(columns).wrapping_mul(lines.len) == filter;
    let mut args = GatheredWindowArgs {
        x: gathered,
        bytes: (filter & !3).wrapping_mul(2),
        rest: filter & 3,
        ..channels
    };
    let mut x = x;
    for _ in 0..pixels {
        // SAFETY: `gathered` has room for `filter <= MOST` elements, among which all of the lines lie (point 3). Inputs, channels and outputs are valid (points
        // 1 and 2).
        unsafe {
            if !whole {
                gathered.write_bytes(0, filter);
            }
            let (mut from, mut to) = (x, gathered.wrapping_add(first));
            for _ in 0..rows {
                let (mut line, mut place) = (from, to);
                for _ in 0..columns {
                    strided_copy::line(place, line, lines.len);
                    line = line.wrapping_add(lines.steps[1]);
                    place = place.wrapping_add(lines.weights_steps[1]);
                }
                from = from.wrapping_add(lines.steps[0]);
                to = to.wrapping_add(lines.weights_steps[0]);
            }
            if PAIRED {
                for four in memory.iter_mut().take(filter >> 2) {
                    let [a, b] = four.assume_init();
                    four.write([a & 0xFFFF | b << 16, b & 0xFFFF_0000 | a >> 16]);
                }
            }
            window(&args);
        }
        x = x.wrapping_add(steps[0]);
        args.y = args.y.wrapping_add(steps[1]);
    }
}
