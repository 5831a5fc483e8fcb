//! Operators of training, and convolutions whose weights are trained.

use arenite::ops::activation_grad::{Activated, ActivationGradF32};
use arenite::ops::batch_norm::{BatchNormF32, BatchNormGradF32, BatchStatisticsF32};
use arenite::ops::conv2d_train::{Conv2dInputGradF32, Conv2dWeightSgdF32, TrainedConv2dF32};
use arenite::ops::linear_train::{BiasSgdF32, LinearInputGradF32, LinearWeightSgdF32};
use arenite::ops::loss::{SoftmaxCrossEntropyF32, SquaredErrorF32};
use arenite::ops::lrn_grad::LrnGradF32;
use arenite::ops::pool2d_train::{AvgPoolGradF32, MaxPoolGradF32, MaxPoolPositionsF32};
use arenite::ops::window::Window2d;
use arenite::{DType, Step};

use super::context::{Lower, fit, input, optional};
use super::locally_connected;
use super::windows::window;
use crate::error::{Error, Result};
use crate::graph::train::{Train, classes};
use crate::graph::{Conv2dAttrs, Node, PoolAttrs, Tensor, TensorId, TensorKind};
use crate::program::Place;

/// Lowers an operator of training.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, op: &Train) -> Result<()> {
    match op {
        Train::MaxPoolPositions(attrs) => max_pool_positions(lower, node, attrs),
        Train::MaxPoolGrad(attrs) => max_pool_grad(lower, node, attrs),
        Train::AvgPoolGrad(attrs) => avg_pool_grad(lower, node, attrs),
        Train::ActivationGrad(activation) => activation_grad(lower, node, *activation),
        Train::LrnGrad { radius, values } => lrn_grad(lower, node, *radius, *values),
        Train::BatchStatistics { momentum } => batch_statistics(lower, node, *momentum),
        Train::BatchNormGrad { epsilon } => batch_norm_grad(lower, node, *epsilon),
        Train::Conv2dInputGrad(attrs) => conv2d_input_grad(lower, node, attrs),
        Train::Conv2dWeightSgd(attrs) => conv2d_weight_sgd(lower, node, attrs),
        Train::LinearInputGrad => linear_input_grad(lower, node),
        Train::LinearWeightSgd => linear_weight_sgd(lower, node),
        Train::LocallyConnectedInputGrad => locally_connected::input_grad(lower, node),
        Train::LocallyConnectedWeightSgd => locally_connected::weight_sgd(lower, node),
        Train::LocallyConnectedGainGrad => locally_connected::gain_grad(lower, node),
        Train::BiasSgd => bias_sgd(lower, node),
        Train::SoftmaxCrossEntropy => softmax_cross_entropy(lower, node),
        Train::SquaredError { factor } => squared_error(lower, node, *factor),
    }
}

/// Whether the weights or the bias of a layer are trained: they lie in the state.
pub(super) fn is_trained(lower: &Lower<'_>, node: &Node) -> bool {
    let parameters = [1, 2].into_iter().filter_map(|index| optional(node, index));
    let mut kinds = parameters.map(|id| &lower.graph().tensor(id).kind);
    kinds.any(|kind| matches!(kind, TensorKind::State(_)))
}

/// Lowers a convolution of f32 whose weights or bias are trained.
pub(super) fn conv2d(
    lower: &mut Lower<'_>,
    node: &Node,
    (attrs, window): (&Conv2dAttrs, Window2d),
    kind: &'static str,
    macs: u64,
) -> Result<()> {
    if optional(node, 3).is_some() {
        return Err(Error::internal("a sum was fused into a convolution that is trained"));
    }
    let step = TrainedConv2dF32 {
        output: result(node, 0)?,
        input: lower.place(input(node, 0)?)?,
        weights: lower.place(input(node, 1)?)?,
        bias: optional(node, 2).map(|bias| lower.place(bias)).transpose()?,
        window,
        groups: groups(attrs)?,
        clamp: attrs.activation.bounds(),
    };
    lower.push(node, kind, Step::TrainedConv2dF32(step), macs);
    Ok(())
}

/// Lowers a batch norm whose gain or shift is trained. Its channels are innermost.
pub(super) fn batch_norm(lower: &mut Lower<'_>, node: &Node, axis: usize, epsilon: f32) -> Result<()> {
    let x = input(node, 0)?;
    if axis + 1 != lower.graph().tensor(x).shape.len() {
        return Err(Error::internal("channels of a batch norm that is trained are not last"));
    }
    let (rows, channels) = of_channels(lower, x)?;
    let step = BatchNormF32 {
        output: result(node, 0)?,
        input: lower.place(x)?,
        gain: lower.place(input(node, 1)?)?,
        shift: lower.place(input(node, 2)?)?,
        mean: lower.place(input(node, 3)?)?,
        variance: lower.place(input(node, 4)?)?,
        scratch: Place::Scratch,
        rows,
        channels,
        epsilon,
    };
    lower.push(node, "batch_norm", Step::BatchNormF32(step), 0);
    Ok(())
}

fn batch_statistics(lower: &mut Lower<'_>, node: &Node, momentum: f32) -> Result<()> {
    let x = input(node, 0)?;
    let (rows, channels) = of_channels(lower, x)?;
    let step = BatchStatisticsF32 {
        mean: result(node, 0)?,
        variance: result(node, 1)?,
        moving_mean: lower.place(input(node, 1)?)?,
        moving_variance: lower.place(input(node, 2)?)?,
        input: lower.place(x)?,
        rows,
        channels,
        momentum,
    };
    lower.push(node, "batch_statistics", Step::BatchStatisticsF32(step), 0);
    Ok(())
}

fn batch_norm_grad(lower: &mut Lower<'_>, node: &Node, epsilon: f32) -> Result<()> {
    let (dy, x) = (input(node, 0)?, input(node, 1)?);
    let (rows, channels) = of_channels(lower, x)?;
    let step = BatchNormGradF32 {
        output: result(node, 0)?,
        gain_gradient: result(node, 1)?,
        shift_gradient: result(node, 2)?,
        gradient: lower.place(dy)?,
        input: lower.place(x)?,
        gain: lower.place(input(node, 2)?)?,
        mean: lower.place(input(node, 3)?)?,
        variance: lower.place(input(node, 4)?)?,
        scratch: Place::Scratch,
        rows,
        channels,
        epsilon,
    };
    lower.push(node, "batch_norm_grad", Step::BatchNormGradF32(step), 0);
    Ok(())
}

/// Rows and innermost channels of a tensor.
fn of_channels(lower: &Lower<'_>, x: TensorId) -> Result<(u32, u32)> {
    let tensor = lower.graph().tensor(x);
    let channels = tensor.shape.last().copied().unwrap_or(1);
    Ok((rows(tensor, channels)?, fit(channels, "the number of channels")?))
}

fn max_pool_positions(lower: &mut Lower<'_>, node: &Node, attrs: &PoolAttrs) -> Result<()> {
    let (x, y) = (input(node, 0)?, written(node, 0)?);
    let step = MaxPoolPositionsF32 {
        output: result(node, 0)?,
        positions: result(node, 1)?,
        input: lower.place(x)?,
        window: pool_window(lower, x, y, attrs)?,
        clamp: attrs.activation.bounds(),
    };
    lower.push(node, "max_pool2d", Step::MaxPoolPositionsF32(step), 0);
    Ok(())
}

fn max_pool_grad(lower: &mut Lower<'_>, node: &Node, attrs: &PoolAttrs) -> Result<()> {
    let (dy, dx) = (input(node, 0)?, written(node, 0)?);
    let step = MaxPoolGradF32 {
        output: result(node, 0)?,
        gradient: lower.place(dy)?,
        positions: lower.place(input(node, 1)?)?,
        window: pool_window(lower, dx, dy, attrs)?,
    };
    lower.push(node, "max_pool2d_grad", Step::MaxPoolGradF32(step), 0);
    Ok(())
}

fn avg_pool_grad(lower: &mut Lower<'_>, node: &Node, attrs: &PoolAttrs) -> Result<()> {
    let (dy, dx) = (input(node, 0)?, written(node, 0)?);
    let step = AvgPoolGradF32 {
        output: result(node, 0)?,
        gradient: lower.place(dy)?,
        window: pool_window(lower, dx, dy, attrs)?,
        count_include_pad: attrs.count_include_pad,
    };
    lower.push(node, "avg_pool2d_grad", Step::AvgPoolGradF32(step), 0);
    Ok(())
}

fn activation_grad(lower: &mut Lower<'_>, node: &Node, activation: Activated) -> Result<()> {
    let (dy, y) = (input(node, 0)?, input(node, 1)?);
    let step = ActivationGradF32 {
        output: result(node, 0)?,
        gradient: lower.place(dy)?,
        result: lower.place(y)?,
        count: elements(lower, y)?,
        activation,
    };
    let kind = match activation {
        Activated::Clamp { .. } => "clamp_grad",
        Activated::Tanh => "tanh_grad",
        Activated::Logistic => "logistic_grad",
    };
    lower.push(node, kind, Step::ActivationGradF32(step), 0);
    Ok(())
}

fn lrn_grad(lower: &mut Lower<'_>, node: &Node, radius: usize, [bias, alpha, beta]: [f32; 3]) -> Result<()> {
    let (dy, x) = (input(node, 0)?, input(node, 1)?);
    let channels = lower.graph().tensor(x).shape.last().copied().unwrap_or(1);
    let step = LrnGradF32 {
        output: result(node, 0)?,
        gradient: lower.place(dy)?,
        input: lower.place(x)?,
        scratch: Place::Scratch,
        pixels: rows(lower.graph().tensor(x), channels)?,
        channels: fit(channels, "the number of channels")?,
        radius: fit(radius, "the radius")?,
        bias,
        alpha,
        beta,
    };
    lower.push(node, "lrn_grad", Step::LrnGradF32(step), 0);
    Ok(())
}

fn conv2d_input_grad(lower: &mut Lower<'_>, node: &Node, attrs: &Conv2dAttrs) -> Result<()> {
    let (dy, w, dx) = (input(node, 0)?, input(node, 1)?, written(node, 0)?);
    let (window, macs) = conv_window(lower, (dx, dy, w), attrs)?;
    let step = Conv2dInputGradF32 {
        output: result(node, 0)?,
        gradient: lower.place(dy)?,
        weights: lower.place(w)?,
        window,
        groups: groups(attrs)?,
    };
    lower.push(node, "conv2d_input_grad", Step::Conv2dInputGradF32(step), macs);
    Ok(())
}

fn conv2d_weight_sgd(lower: &mut Lower<'_>, node: &Node, attrs: &Conv2dAttrs) -> Result<()> {
    let [w, dy, x, rate] = [input(node, 0)?, input(node, 1)?, input(node, 2)?, input(node, 3)?];
    let (window, macs) = conv_window(lower, (x, dy, w), attrs)?;
    let step = Conv2dWeightSgdF32 {
        weights: lower.place(w)?,
        gradient: lower.place(dy)?,
        input: lower.place(x)?,
        rate: lower.place(rate)?,
        window,
        groups: groups(attrs)?,
    };
    lower.push(node, "conv2d_weight_sgd", Step::Conv2dWeightSgdF32(step), macs);
    Ok(())
}

fn linear_input_grad(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let (dy, w) = (input(node, 0)?, input(node, 1)?);
    let ([rows, inputs, outputs], macs) = matrices(lower, dy, w)?;
    let step = LinearInputGradF32 {
        output: result(node, 0)?,
        gradient: lower.place(dy)?,
        weights: lower.place(w)?,
        rows,
        inputs,
        outputs,
    };
    lower.push(node, "linear_input_grad", Step::LinearInputGradF32(step), macs);
    Ok(())
}

fn linear_weight_sgd(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let [w, dy, x, rate] = [input(node, 0)?, input(node, 1)?, input(node, 2)?, input(node, 3)?];
    let ([rows, inputs, outputs], macs) = matrices(lower, dy, w)?;
    let step = LinearWeightSgdF32 {
        weights: lower.place(w)?,
        gradient: lower.place(dy)?,
        input: lower.place(x)?,
        rate: lower.place(rate)?,
        rows,
        inputs,
        outputs,
    };
    lower.push(node, "linear_weight_sgd", Step::LinearWeightSgdF32(step), macs);
    Ok(())
}

fn bias_sgd(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let [bias, dy, rate] = [input(node, 0)?, input(node, 1)?, input(node, 2)?];
    let channels = lower.graph().tensor(bias).elements();
    let step = BiasSgdF32 {
        bias: lower.place(bias)?,
        gradient: lower.place(dy)?,
        rate: lower.place(rate)?,
        rows: rows(lower.graph().tensor(dy), channels)?,
        channels: fit(channels, "the number of channels")?,
    };
    lower.push(node, "bias_sgd", Step::BiasSgdF32(step), 0);
    Ok(())
}

fn softmax_cross_entropy(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let [logits, labels, rate] = [input(node, 0)?, input(node, 1)?, input(node, 2)?];
    let graph = lower.graph();
    if graph.tensor(labels).dtype != DType::I32 {
        return Err(Error::internal("labels that are no int32"));
    }
    let classes = classes(&graph.tensor(logits).shape);
    let step = SoftmaxCrossEntropyF32 {
        output: result(node, 0)?,
        loss: result(node, 1)?,
        ignored: result(node, 2)?,
        rows: rows(graph.tensor(logits), classes)?,
        classes: fit(classes, "the number of classes")?,
        logits: lower.place(logits)?,
        labels: lower.place(labels)?,
        rate: lower.place(rate)?,
    };
    lower.push(node, "softmax_cross_entropy", Step::SoftmaxCrossEntropyF32(step), 0);
    Ok(())
}

fn squared_error(lower: &mut Lower<'_>, node: &Node, factor: f32) -> Result<()> {
    let (x, rate) = (input(node, 0)?, input(node, 2)?);
    let step = SquaredErrorF32 {
        output: result(node, 0)?,
        loss: result(node, 1)?,
        input: lower.place(x)?,
        target: optional(node, 1).map(|target| lower.place(target)).transpose()?,
        rate: lower.place(rate)?,
        count: elements(lower, x)?,
        factor,
    };
    lower.push(node, "squared_error", Step::SquaredErrorF32(step), 0);
    Ok(())
}

/// Result `index` of a node.
fn written(node: &Node, index: usize) -> Result<TensorId> {
    let missing = || Error::internal(format!("result {index} is missing"));
    node.outputs.get(index).copied().ok_or_else(missing)
}

fn result(node: &Node, index: usize) -> Result<Place> {
    Ok(Place::Tensor(written(node, index)?, 0))
}

fn groups(attrs: &Conv2dAttrs) -> Result<u16> {
    fit(attrs.groups, "the number of groups")
}

fn elements(lower: &Lower<'_>, id: TensorId) -> Result<u32> {
    fit(lower.graph().tensor(id).elements(), "the number of elements")
}

/// Rows of a tensor whose innermost axis, or several of them, have so many elements.
fn rows(tensor: &Tensor, columns: usize) -> Result<u32> {
    fit(tensor.elements() / columns.max(1), "the number of rows")
}

fn pool_window(lower: &Lower<'_>, x: TensorId, y: TensorId, attrs: &PoolAttrs) -> Result<Window2d> {
    let graph = lower.graph();
    window(
        graph.tensor(x),
        graph.tensor(y),
        attrs.layout,
        attrs.kernel,
        attrs.stride,
        [1, 1],
        attrs.padding,
    )
}

/// The window of a convolution from `x` to `y`, and its multiply-accumulates, which its gradients have as well.
fn conv_window(
    lower: &Lower<'_>,
    (x, y, w): (TensorId, TensorId, TensorId),
    attrs: &Conv2dAttrs,
) -> Result<(Window2d, u64)> {
    let graph = lower.graph();
    let [x, y, w] = [x, y, w].map(|id| graph.tensor(id));
    let kernel = match w.shape[..] {
        [_, rows, columns, _] => [rows, columns],
        _ => return Err(Error::internal("weights of a convolution that have not four axes")),
    };
    let (stride, dilation, padding) = (attrs.stride, attrs.dilation, attrs.padding);
    let macs = y.elements() as u64 * w.shape[1..].iter().product::<usize>() as u64;
    Ok((window(x, y, attrs.layout, kernel, stride, dilation, padding)?, macs))
}

/// Rows, inputs and outputs of a linear layer, and its multiply-accumulates.
fn matrices(lower: &Lower<'_>, dy: TensorId, w: TensorId) -> Result<([u32; 3], u64)> {
    let graph = lower.graph();
    let [outputs, inputs] = match graph.tensor(w).shape[..] {
        [outputs, inputs] => [outputs, inputs],
        _ => return Err(Error::internal("weights of a linear layer that have not two axes")),
    };
    let rows = graph.tensor(dy).elements() / outputs.max(1);
    let sizes = [
        fit(rows, "the number of rows")?,
        fit(inputs, "the number of inputs")?,
        fit(outputs, "the number of outputs")?,
    ];
    Ok((sizes, (rows * inputs * outputs) as u64))
}
