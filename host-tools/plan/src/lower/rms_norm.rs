//! Root mean square normalisation.

use arenite::Step;
use arenite::ops::rms_norm::RmsNormF32;

use super::context::{Lower, fit, input, output, want_f32};
use crate::error::Result;
use crate::graph::Node;
use crate::program::Place;

/// Lowers the normalisation of f32 along the last axis.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, epsilon: f32) -> Result<()> {
    want_f32(lower.graph(), node)?;
    let (x, gain, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let places = [lower.place(x)?, lower.place(gain)?];
    let tx = lower.graph().tensor(x);
    let channels = tx.shape.last().copied().unwrap_or(1).max(1);
    let step = RmsNormF32 {
        output: Place::Tensor(y, 0),
        input: places[0],
        gain: places[1],
        rows: fit(tx.elements() / channels, "the number of rows")?,
        channels: fit(channels, "the number of channels")?,
        epsilon,
    };
    lower.push(node, "rms_norm", Step::RmsNormF32(step), 0);
    Ok(())
}
