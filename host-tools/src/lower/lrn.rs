//! Local response normalisation.

use arenite::Step;
use arenite::ops::lrn::LrnF32;

use super::context::{Lower, fit, input, output, want_f32};
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
    want_f32(lower.graph(), node)?;
    let (x, y) = (input(node, 0)?, output(node)?);
    let shape = &lower.graph().tensor(x).shape;
    if axis + 1 != shape.len() {
        return Err(
            Error::unsupported(format!("normalisation along axis {axis} of {shape:?}")).expected("the last axis"),
        );
    }
    let channels = shape[axis];
    let at = lower.place(x)?;
    let op = LrnF32 {
        output: Place::Tensor(y, 0),
        input: at,
        pixels: fit(
            lower.graph().tensor(x).elements() / channels.max(1),
            "the number of pixels",
        )?,
        channels: fit(channels, "the number of channels")?,
        radius: fit(radius, "the radius")?,
        bias,
        alpha,
        beta,
    };
    lower.push(node, "lrn", Step::LrnF32(op), 0);
    Ok(())
}
