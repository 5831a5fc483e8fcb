//! Local response normalisation.

use arenite::ops::lrn::{LrnF32, LrnS8};
use arenite::quant::LrnI8;
use arenite::{DType, Step};

use super::context::{Lower, fit, input, output, want_f32};
use super::numbers::{per_tensor, zero_point_s8};
use crate::error::{Error, Result};
use crate::graph::Node;
use crate::program::Place;

/// Lowers a local response normalisation over the innermost axis.
pub(super) fn lower(
    lower: &mut Lower<'_>,
    node: &Node,
    axis: usize,
    radius: usize,
    [bias, alpha, beta]: [f32; 3],
) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let tensor = lower.graph().tensor(x);
    let (shape, dtype) = (&tensor.shape, tensor.dtype);
    if axis + 1 != shape.len() {
        return Err(
            Error::unsupported(format!("normalisation along axis {axis} of {shape:?}")).expected("the last axis"),
        );
    }
    let channels: u32 = fit(shape[axis], "the number of channels")?;
    let pixels = fit(tensor.elements() / shape[axis].max(1), "the number of pixels")?;
    let radius: u16 = fit(radius, "the radius")?;
    if dtype == DType::I8 && lower.graph().tensor(y).dtype == DType::I8 {
        return lower_s8(lower, node, (pixels, channels, radius), [bias, alpha, beta]);
    }
    want_f32(lower.graph(), node)?;
    let op = LrnF32 {
        output: Place::Tensor(y, 0),
        input: lower.place(x)?,
        pixels,
        channels,
        radius,
        bias,
        alpha,
        beta,
    };
    lower.push(node, "lrn", Step::LrnF32(op), 0);
    Ok(())
}

/// The same of int8.
fn lower_s8(
    lower: &mut Lower<'_>,
    node: &Node,
    (pixels, channels, radius): (u32, u32, u16),
    [bias, alpha, beta]: [f32; 3],
) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let [of_x, of_y] = [x, y].map(|id| per_tensor(lower.graph().tensor(id)));
    let (of_x, of_y) = (of_x?, of_y?);
    let scales = [of_x.0, of_y.0];
    let near = (2 * u32::from(radius) + 1).min(channels);
    let lrn = LrnI8::new([bias, alpha, beta], scales, near).ok_or_else(|| {
        Error::unsupported(format!(
            "an int8 normalisation with bias {bias}, alpha {alpha}, beta {beta} of values in steps of {}",
            scales[0]
        ))
        .expected("a bias that is not 2,048 times smaller than what one step's square adds to it, a beta of 0 to 4")
        .help(format!("--keep-f32 '{}' leaves it in f32", node.name))
    })?;
    let mut table = vec![0; lrn.words() as usize];
    lrn.write([bias, beta], scales, &mut table)
        .ok_or_else(|| Error::input(format!("the scales give the factor {}", scales[0] / scales[1])))?;
    let op = LrnS8 {
        output: Place::Tensor(y, 0),
        input: lower.place(x)?,
        table: lower.program.weights.add_i32(&table)?,
        pixels,
        channels,
        radius,
        lrn,
        input_zero_point: zero_point_s8(of_x.1)?,
        output_zero_point: zero_point_s8(of_y.1)?,
    };
    lower.push(node, "lrn", Step::LrnS8(op), 0);
    Ok(())
}
