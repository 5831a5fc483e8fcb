//! Locally connected layers.

use arenite::ops::locally_connected::{LocallyConnectedF32, LocallyConnectedS8};
use arenite::{DType, Step};

use super::context::{Lower, fit, input, optional, output, want_f32};
use super::numbers::{clamp_s8, multipliers, per_tensor, zero_point_s8};
use crate::error::{Error, Result};
use crate::graph::{Activation, Node};
use crate::program::Place;

/// Lowers a locally connected layer.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, activation: Activation) -> Result<()> {
    let (x, w, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    if lower.graph().tensor(x).dtype == DType::I8 {
        return lower_s8(lower, node, activation);
    }
    want_f32(lower.graph(), node)?;
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
        clamp: activation.bounds(),
    };
    let macs = (n * out * oh * ow * c * kh * kw) as u64;
    lower.push(node, "locally_connected2d", Step::LocallyConnectedF32(op), macs);
    Ok(())
}

/// The same of int8, whose gain is in its weights.
fn lower_s8(lower: &mut Lower<'_>, node: &Node, activation: Activation) -> Result<()> {
    let (x, w, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let graph = lower.graph();
    let (weights, bias) = (graph.tensor(w), optional(node, 2).map(|id| graph.tensor(id)));
    let types = (weights.dtype, graph.tensor(y).dtype, bias.map(|bias| bias.dtype));
    if types != (DType::I8, DType::I8, Some(DType::I32)) || optional(node, 3).is_some() {
        return Err(Error::unsupported("an int8 locally connected layer of these operands")
            .expected("int8 weights, an int32 bias and an int8 result"));
    }
    let (&[n, c, h, width], &[out, _, kh, kw, _, _]) = (&graph.tensor(x).shape[..], &weights.shape[..]) else {
        return Err(Error::internal("shapes were checked to have four and six axes"));
    };
    let (of_x, of_y) = (per_tensor(graph.tensor(x))?, per_tensor(graph.tensor(y))?);
    let multipliers = multipliers(weights, out, of_x.0.into(), of_y.0.into())?;
    let macs = (graph.tensor(y).elements() * c * kh * kw) as u64;
    let records: Vec<i32> = multipliers
        .iter()
        .flat_map(|multiplier| [multiplier.mantissa, multiplier.shift.into()])
        .collect();
    let op = LocallyConnectedS8 {
        output: Place::Tensor(y, 0),
        input: lower.place(x)?,
        weights: lower.constant(w)?,
        bias: lower.constant(input(node, 2)?)?,
        multipliers: lower.program.weights.add_i32(&records)?,
        batch: fit(n, "the batch")?,
        input_shape: [
            fit(c, "the number of input channels")?,
            fit(h, "the height")?,
            fit(width, "the width")?,
        ],
        channels: fit(out, "the number of output channels")?,
        kernel: [fit(kh, "the kernel")?, fit(kw, "the kernel")?],
        input_zero_point: zero_point_s8(of_x.1)?,
        output_zero_point: zero_point_s8(of_y.1)?,
        clamp: clamp_s8(activation, of_y)?,
    };
    lower.push(node, "locally_connected2d", Step::LocallyConnectedS8(op), macs);
    Ok(())
}
