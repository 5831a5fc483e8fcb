//! Resizings: the tables of rows and columns, as TensorFlow Lite computes them.

use arenite::ops::resize::{Interpolation, Resize};
use arenite::{DType, Step};

use super::context::{Lower, fit, input, output};
use crate::error::{Error, Result};
use crate::graph::Node;
use crate::program::Place;

/// Lowers a resizing of NHWC images; `corners` and `centers` are TensorFlow's `align_corners` and `half_pixel_centers`.
pub(super) fn lower(
    lower: &mut Lower<'_>,
    node: &Node,
    interpolation: Interpolation,
    corners: bool,
    centers: bool,
) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let (tx, ty) = (lower.graph().tensor(x), lower.graph().tensor(y));
    let (&[batch, h, w, channels], &[_, oh, ow, _]) = (tx.shape.as_slice(), ty.shape.as_slice()) else {
        return Err(Error::input(format!("an operand of shape {:?}", tx.shape)).expected("four axes"));
    };
    let dtype = tx.dtype;
    if !matches!(dtype, DType::F32 | DType::I8) || ty.dtype != dtype {
        return Err(Error::unsupported(format!("resizing {}", dtype.name())).expected("f32 or int8"));
    }
    let line = |from: usize, to: usize| -> Vec<i32> {
        (0..to)
            .flat_map(|at| match (interpolation, dtype) {
                (Interpolation::Nearest, _) => {
                    let i = nearest(at, from, to, corners, centers);
                    [i, i, 0]
                }
                (Interpolation::Bilinear, DType::F32) => bilinear(at, from, to, corners, centers),
                (Interpolation::Bilinear, _) => bilinear_int(at, from, to, corners, centers),
            })
            .collect()
    };
    let table = [line(h, oh), line(w, ow)].concat();
    let step = Resize {
        output: Place::Tensor(y, 0),
        input: lower.place(x)?,
        dtype,
        interpolation,
        batch: fit(batch, "the batch")?,
        from: [fit(h, "the height")?, fit(w, "the width")?],
        to: [fit(oh, "the height")?, fit(ow, "the width")?],
        channels: fit(channels, "the number of channels")?,
        table: lower.program.weights.add_i32(&table)?,
    };
    let name = match interpolation {
        Interpolation::Nearest => "resize_nearest",
        Interpolation::Bilinear => "resize_bilinear",
    };
    lower.push(node, name, Step::Resize(step), 0);
    Ok(())
}

/// Index of the nearest neighbour, in f32.
fn nearest(at: usize, from: usize, to: usize, corners: bool, centers: bool) -> i32 {
    let scale = if corners && to > 1 {
        (from - 1) as f32 / (to - 1) as f32
    } else {
        from as f32 / to as f32
    };
    let place = (at as f32 + if centers { 0.5 } else { 0.0 }) * scale;
    let index = if corners { place.round() } else { place.floor() };
    (index as i32).clamp(0, from as i32 - 1)
}

/// Two neighbours and the weight of the second as the bits of an f32.
fn bilinear(at: usize, from: usize, to: usize, corners: bool, centers: bool) -> [i32; 3] {
    let scale = if corners && to > 1 {
        (from - 1) as f32 / (to - 1) as f32
    } else {
        from as f32 / to as f32
    };
    let place = if centers {
        (at as f32 + 0.5) * scale - 0.5
    } else {
        at as f32 * scale
    };
    let low = (place.floor() as i32).max(0);
    let high = (place.ceil() as i32).min(from as i32 - 1);
    [low, high, (place - low as f32).to_bits() as i32]
}

/// Two neighbours and the weight of the second in 1/1024.
fn bilinear_int(at: usize, from: usize, to: usize, corners: bool, centers: bool) -> [i32; 3] {
    let (at, from, to) = (at as i32, from as i32, to as i32);
    let scale = if corners && to > 1 {
        (1024 * (from - 1) + (to - 1) / 2) / (to - 1)
    } else {
        (1024 * from + to / 2) / to
    };
    let place = if centers {
        at * scale + scale / 2 - 512
    } else {
        at * scale
    };
    let low = (place / 1024).max(0);
    let high = ((place + 1023) / 1024).min(from - 1);
    [low, high, place - 1024 * low]
}
