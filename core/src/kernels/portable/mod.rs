//! Portable kernels in safe Rust: the fallback of every other backend. The oracle of all is `kernels::reference`.
//!
//! They follow the formulas of `ops` to the letter. Out-of-range indices end a kernel with `None` and not in a panic; load has
//! excluded them.
#![deny(unsafe_code)]

pub mod activation_grad;
pub mod arg_max;
pub mod attention;
pub mod batch_norm;
pub mod compare;
pub mod conv2d;
pub mod conv2d_s16;
pub mod conv2d_train;
pub mod convert;
pub mod detections;
pub mod elementwise;
pub mod elementwise_s8_s16;
pub mod embedding;
pub mod fft;
pub mod frames;
pub mod gather;
pub mod global_pool;
mod integers;
pub mod l2_norm;
pub mod linear_f32;
pub mod linear_s8;
pub mod linear_train;
pub mod locally_connected;
pub mod locally_connected_train;
pub mod loss;
pub mod low_bit;
pub mod lrn;
pub mod lrn_grad;
pub mod lstm;
pub mod matmul;
pub mod pool2d;
pub mod pool2d_train;
pub mod position;
pub mod reduce;
pub mod resize;
pub mod rms_norm;
pub mod rotary;
#[cfg(feature = "rolling")]
mod rows;
pub mod select;
pub mod signal;
pub mod softmax;
pub mod special_s8_s16;
pub mod strided_copy;
pub mod svdf;
pub mod write_line;

use crate::cells::{Dst, Element, Src};
pub(crate) use crate::ops::pointwise::clamp;
use crate::ops::window::Window2d;

/// The taps of a window that lie inside the input, along one axis: the first tap's index, how many, and the input index of the first.
pub(crate) fn taps(out: usize, window: &Window2d, axis: usize) -> Option<(usize, usize, usize)> {
    let extent = usize::from(*window.input.get(axis)?);
    let kernel = usize::from(*window.kernel.get(axis)?);
    let stride = usize::from(*window.stride.get(axis)?);
    let dilation = usize::from(*window.dilation.get(axis)?).max(1);
    let padding = usize::from(*window.padding.get(axis)?);
    let start = out * stride;
    let first = padding.saturating_sub(start).div_ceil(dilation).min(kernel);
    let end = match (extent + padding).checked_sub(start) {
        None | Some(0) => first,
        Some(room) => room.div_ceil(dilation).min(kernel).max(first),
    };
    Some((first, end - first, (start + first * dilation).saturating_sub(padding)))
}

/// Clamps all elements.
pub(super) fn within([low, high]: [f32; 2], output: Dst<'_, f32>) {
    let all = output.cells().iter();
    if high < f32::INFINITY {
        all.for_each(|y| y.set(clamp(y.get(), [low, high])));
    } else if low > f32::NEG_INFINITY {
        all.for_each(|y| y.set(if y.get() < low { low } else { y.get() }));
    }
}

/// Dot product with eight accumulators, so that the compiler can use vectors; a fixed order of additions, the same on every target.
pub(crate) fn dot(x: Src<'_, f32>, w: &[f32]) -> f32 {
    let mut sums = [0.0f32; 8];
    let (blocks, rest) = w.as_chunks::<8>();
    for (i, block) in blocks.iter().enumerate() {
        if let Some(x) = x.slice(i * 8, 8) {
            for ((sum, x), w) in sums.iter_mut().zip(x.iter()).zip(block) {
                *sum += x * w;
            }
        }
    }
    let tail = x
        .iter()
        .skip(blocks.len() * 8)
        .zip(rest)
        .map(|(x, w)| x * w)
        .sum::<f32>();
    sums.iter().sum::<f32>() + tail
}

/// The innermost `len` elements of row `row`.
pub(crate) fn row<T: Element>(x: Src<'_, T>, row: usize, len: usize) -> Option<Src<'_, T>> {
    x.slice(row.checked_mul(len)?, len)
}
