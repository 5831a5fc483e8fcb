//! [`dwconv_3x3_plane`] in Rust.

#![cfg(not(kernel_isa = "gpr32"))]

use super::super::args::Dwconv3x3PlaneArgs;
use crate::kernels::packed::requantize;

/// All outputs of the channel; windows are `stride` columns apart, 1 or 2.
///
/// # Safety
/// The plane holds every window, and `out` takes every output; `weights` has nine bytes.
#[inline(always)]
pub(in super::super) unsafe fn dwconv_3x3_plane(plane: &Dwconv3x3PlaneArgs, stride: usize) {
    match stride {
        // SAFETY: plane, weights and outputs are valid (fn docs); windows are one column apart.
        1 => unsafe { rows::<1>(plane) },
        // SAFETY: plane, weights and outputs are valid (fn docs); windows are two columns apart.
        _ => unsafe { rows::<2>(plane) },
    }
}

/// # Safety
/// As for [`dwconv_3x3_plane`].
unsafe fn rows<const STRIDE: usize>(plane: &Dwconv3x3PlaneArgs) {
    let (mut taps, mut out) = (plane.plane, plane.out);
    let finish = |sum| match plane.code >> 8 {
        0 => requantize::short(sum, plane.multiplier, plane.code, plane.addend),
        left => requantize::single(sum, plane.multiplier, left as u32 - 1, plane.code, plane.addend),
    };
    // SAFETY: `i < 9`, the channel's weights (fn docs).
    let weights: [i32; 9] = core::array::from_fn(|i| i32::from(unsafe { *plane.weights.add(i) }));
    while taps != plane.end {
        for group in 0..=plane.groups / 2 {
            let last = 2 * group == plane.groups;
            if last {
                (taps, out) = (taps.wrapping_sub(plane.back), out.wrapping_sub(plane.back_out));
            }
            // One that is left over.
            let count = if last && plane.back == 0 { 1 } else { 3 };
            let mut sums = [plane.bias; 3];
            for (row, weights) in weights.as_chunks::<3>().0.iter().enumerate() {
                for column in 0..(count - 1) * STRIDE + 3 {
                    // SAFETY: `row < 3`, and `column` is one of the columns under the `count` windows at `taps`, which the plane holds (fn docs).
                    let tap = i32::from(unsafe { *taps.add(row * plane.pitch + column) });
                    for (o, sum) in sums.iter_mut().enumerate() {
                        if let Some(w) = column.checked_sub(o * STRIDE).and_then(|at| weights.get(at)) {
                            *sum = sum.wrapping_add(tap * w);
                        }
                    }
                }
            }
            for sum in sums.into_iter().take(count) {
                // SAFETY: `out` is at the output of one of the `count` windows (fn docs).
                unsafe { *out = finish(sum) };
                out = out.wrapping_add(plane.stride);
            }
            taps = taps.wrapping_add(count * STRIDE);
        }
        taps = taps.wrapping_add(plane.step);
        out = out.wrapping_add(plane.step_out);
    }
}
