//! Locally connected layers.

use arenite::ops::locally_connected::{LocallyConnectedF32, LocallyConnectedS8};
use arenite::ops::locally_connected_train::{
    LocallyConnectedGainGradF32, LocallyConnectedInputGradF32, LocallyConnectedWeightSgdF32, TrainedLocallyConnectedF32,
};
use arenite::{DType, Step};

use super::context::{Lower, fit, input, optional, output, want_f32};
use super::numbers::{clamp_s8, multipliers, per_tensor, zero_point_s8};
use crate::error::{Error, Result};
use crate::graph::{Activation, Node, TensorId, TensorKind};
use crate::program::Place;

/// Lowers a locally connected layer.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, activation: Activation) -> Result<()> {
    let (x, w, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    if lower.graph().tensor(x).dtype == DType::I8 {
        return lower_s8(lower, node, activation);
    }
    want_f32(lower.graph(), node)?;
    let mut parameters = (1..4).filter_map(|index| optional(node, index));
    if parameters.any(|id| matches!(lower.graph().tensor(id).kind, TensorKind::State(_))) {
        return trained(lower, node, activation);
    }
    let (batch, input_shape, channels, kernel, macs) = shapes(lower, x, w)?;
    let biases = lower.graph().tensor(y).elements() / usize::from(batch.max(1));
    let gain = match optional(node, 3) {
        Some(gain) => lower.values(gain)?[0],
        None => 1.0,
    };
    let weights = lower.constant(w)?;
    let bias = lower.bias_f32(optional(node, 2), biases)?;
    let at = lower.place(x)?;
    let op = LocallyConnectedF32 {
        output: Place::Tensor(y, 0),
        input: at,
        weights,
        bias,
        batch,
        input_shape,
        channels,
        kernel,
        gain,
        clamp: activation.bounds(),
    };
    lower.push(node, "locally_connected2d", Step::LocallyConnectedF32(op), macs);
    Ok(())
}

/// Images, input shape, output channels and kernel of a layer; and its multiply-accumulates.
type Shapes = (u16, [u16; 3], u16, [u16; 2], u64);

/// The shapes of a layer whose input and weights these are.
fn shapes(lower: &Lower<'_>, x: TensorId, w: TensorId) -> Result<Shapes> {
    let graph = lower.graph();
    let (&[n, c, h, width], &[out, _, kh, kw, oh, ow]) = (&graph.tensor(x).shape[..], &graph.tensor(w).shape[..])
    else {
        return Err(Error::internal("shapes were checked to have four and six axes"));
    };
    let input = [
        fit(c, "the number of input channels")?,
        fit(h, "the height")?,
        fit(width, "the width")?,
    ];
    let kernel = [fit(kh, "the kernel")?, fit(kw, "the kernel")?];
    let macs = (n * out * oh * ow * c * kh * kw) as u64;
    Ok((
        fit(n, "the batch")?,
        input,
        fit(out, "the number of output channels")?,
        kernel,
        macs,
    ))
}

/// Where an operand lies that may be missing.
fn place(lower: &mut Lower<'_>, node: &Node, index: usize) -> Result<Option<Place>> {
    optional(node, index).map(|id| lower.place(id)).transpose()
}

/// A layer of which parameters are trained.
fn trained(lower: &mut Lower<'_>, node: &Node, activation: Activation) -> Result<()> {
    let (x, w) = (input(node, 0)?, input(node, 1)?);
    let (batch, input_shape, channels, kernel, macs) = shapes(lower, x, w)?;
    let step = TrainedLocallyConnectedF32 {
        output: Place::Tensor(output(node)?, 0),
        input: lower.place(x)?,
        weights: lower.place(w)?,
        bias: place(lower, node, 2)?,
        gain: place(lower, node, 3)?,
        batch,
        input_shape,
        channels,
        kernel,
        clamp: activation.bounds(),
    };
    lower.push(
        node,
        "locally_connected2d",
        Step::TrainedLocallyConnectedF32(step),
        macs,
    );
    Ok(())
}

/// Lowers the gradient of a layer's input.
pub(super) fn input_grad(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let (dy, w, dx) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let (batch, input_shape, channels, kernel, macs) = shapes(lower, dx, w)?;
    let step = LocallyConnectedInputGradF32 {
        output: Place::Tensor(dx, 0),
        gradient: lower.place(dy)?,
        weights: lower.place(w)?,
        gain: place(lower, node, 2)?,
        batch,
        input_shape,
        channels,
        kernel,
    };
    let step = Step::LocallyConnectedInputGradF32(step);
    lower.push(node, "locally_connected2d_input_grad", step, macs);
    Ok(())
}

/// Lowers gradient descent on a layer's weights.
pub(super) fn weight_sgd(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let [w, dy, x, rate] = [input(node, 0)?, input(node, 1)?, input(node, 2)?, input(node, 3)?];
    let (batch, input_shape, channels, kernel, macs) = shapes(lower, x, w)?;
    let step = LocallyConnectedWeightSgdF32 {
        weights: lower.place(w)?,
        gradient: lower.place(dy)?,
        input: lower.place(x)?,
        rate: lower.place(rate)?,
        gain: place(lower, node, 4)?,
        batch,
        input_shape,
        channels,
        kernel,
    };
    let step = Step::LocallyConnectedWeightSgdF32(step);
    lower.push(node, "locally_connected2d_weight_sgd", step, macs);
    Ok(())
}

/// Lowers the gradient of a layer's gain, for which the layer's sums are computed again.
pub(super) fn gain_grad(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let [dy, x, w] = [input(node, 0)?, input(node, 1)?, input(node, 2)?];
    let (batch, input_shape, channels, kernel, macs) = shapes(lower, x, w)?;
    let step = LocallyConnectedGainGradF32 {
        output: Place::Tensor(output(node)?, 0),
        gradient: lower.place(dy)?,
        input: lower.place(x)?,
        weights: lower.place(w)?,
        batch,
        input_shape,
        channels,
        kernel,
    };
    let step = Step::LocallyConnectedGainGradF32(step);
    lower.push(node, "locally_connected2d_gain_grad", step, macs);
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
    let (batch, input_shape, channels, kernel, macs) = shapes(lower, x, w)?;
    let (of_x, of_y) = (per_tensor(graph.tensor(x))?, per_tensor(graph.tensor(y))?);
    let multipliers = multipliers(weights, channels.into(), of_x.0.into(), of_y.0.into())?;
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
        batch,
        input_shape,
        channels,
        kernel,
        input_zero_point: zero_point_s8(of_x.1)?,
        output_zero_point: zero_point_s8(of_y.1)?,
        clamp: clamp_s8(activation, of_y)?,
    };
    lower.push(node, "locally_connected2d", Step::LocallyConnectedS8(op), macs);
    Ok(())
}
