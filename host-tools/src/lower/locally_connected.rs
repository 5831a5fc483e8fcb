//! Locally connected layers.

use arenite::Step;
use arenite::ops::locally_connected::LocallyConnectedF32;

use super::context::{Lower, fit, input, optional, output, want_f32};
use super::numbers::clamp;
use crate::error::{Error, Result};
use crate::graph::{Activation, Node};
use crate::program::Place;

/// Lowers a locally connected layer.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, activation: Activation) -> Result<()> {
    want_f32(lower.graph(), node)?;
    let (x, w, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let graph = lower.graph();
    let (&[n, c, h, width], &[out, _, kh, kw, oh, ow]) = (&graph.tensor(x).shape[..], &graph.tensor(w).shape[..])
    else {
        return Err(Error::internal("shapes were checked to have four and six axes"));
    };
    let gain = match optional(node, 3) {
        Some(gain) => lower.values(gain)?[0],
        None => 1.0,
    };
    let weights = lower.constant(w)?;
    let bias = lower.bias_f32(optional(node, 2), out * oh * ow)?;
    let at = lower.place(x)?;
    let op = LocallyConnectedF32 {
        output: Place::Tensor(y, 0),
        input: at,
        weights,
        bias,
        batch: fit(n, "the batch")?,
        input_shape: [
            fit(c, "the number of input channels")?,
            fit(h, "the height")?,
            fit(width, "the width")?,
        ],
        channels: fit(out, "the number of output channels")?,
        kernel: [fit(kh, "the kernel")?, fit(kw, "the kernel")?],
        gain,
        clamp: clamp(activation),
    };
    let macs = (n * out * oh * ow * c * kh * kw) as u64;
    lower.push(node, "locally_connected2d", Step::LocallyConnectedF32(op), macs);
    Ok(())
}
