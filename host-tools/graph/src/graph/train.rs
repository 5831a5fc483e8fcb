//! Operators that only training has: gradients, losses, and steps of gradient descent.

pub use arenite::ops::activation_grad::Activated;

use super::attrs::{Conv2dAttrs, PoolAttrs};

/// Share that a batch norm's moving statistics keep in a step where the network does not say, as PyTorch and ONNX have it.
pub const MOMENTUM: f32 = 0.9;

/// The same of Keras.
pub const KERAS_MOMENTUM: f32 = 0.99;

/// An operator of training. Semantics are those of the operator of the same name in `core/src/ops`. A gradient is one of the loss, before a fused activation.
#[derive(Debug, Clone, PartialEq)]
pub enum Train {
    /// in 0: activations. out 0: the maximum; out 1: the tap that it is from, uint8 of the same shape.
    MaxPoolPositions(PoolAttrs),
    /// in 0: gradient of a pooling's output; in 1: positions. out 0: gradient of its input.
    MaxPoolGrad(PoolAttrs),
    /// in 0: gradient of a pooling's output. out 0: gradient of its input.
    AvgPoolGrad(PoolAttrs),
    /// in 0: gradient of an activation's result; in 1: the result. out 0: gradient of its operand.
    ActivationGrad(Activated),
    /// in 0: gradient of a local response normalisation's output, channels innermost; in 1: its input. out 0: gradient of its input.
    LrnGrad {
        /// Channels on each side.
        radius: usize,
        /// Constant term, factor of the sum of squares, exponent.
        values: [f32; 3],
    },
    /// in 0: activations, channels innermost; in 1, 2: moving mean and variance `[channels]`, updated. out 0, 1: mean and variance of the batch.
    BatchStatistics {
        /// Share that the moving ones keep.
        momentum: f32,
    },
    /// in 0: gradient of a batch norm's output, channels innermost; in 1: its input; in 2: gain; in 3, 4: mean and variance of the batch. out 0: gradient of
    /// its input; out 1, 2: gradients of gain and shift `[channels]`.
    BatchNormGrad {
        /// Added to the variance.
        epsilon: f32,
    },
    /// in 0: gradient of a convolution's output; in 1: weights OHWI. out 0: gradient of its input.
    Conv2dInputGrad(Conv2dAttrs),
    /// in 0: weights OHWI, updated; in 1: gradient of the convolution's output; in 2: its input; in 3: learning rate `[1]`. No outputs.
    Conv2dWeightSgd(Conv2dAttrs),
    /// in 0: gradient of a linear layer's output; in 1: weights `[out, in]`. out 0: gradient of its input.
    LinearInputGrad,
    /// in 0: weights `[out, in]`, updated; in 1: gradient of the layer's output; in 2: its input; in 3: learning rate `[1]`. No outputs.
    LinearWeightSgd,
    /// in 0: gradient of a locally connected layer's output, NCHW; in 1: weights `[out, in, kh, kw, oh, ow]`; in 2: optional gain `[1]`. out 0: gradient of
    /// its input.
    LocallyConnectedInputGrad,
    /// in 0: weights `[out, in, kh, kw, oh, ow]`, updated; in 1: gradient of the layer's output; in 2: its input; in 3: learning rate `[1]`;
    /// in 4: optional gain `[1]`. No outputs.
    LocallyConnectedWeightSgd,
    /// in 0: gradient of a locally connected layer's output; in 1: its input; in 2: weights. out 0: gradient of the gain `[1]`.
    LocallyConnectedGainGrad,
    /// in 0: bias `[channels]`, updated; in 1: gradient of the layer's output, channels innermost; in 2: learning rate `[1]`. No outputs.
    BiasSgd,
    /// in 0: logits `[.., classes]`, and perhaps axes of one element behind the classes ([`classes`]);
    /// in 1: labels, int32, one for each row; in 2: learning rate `[1]`. out 0: gradient of the logits; out 1: loss `[1]`;
    /// out 2: how many labels are no class, int32 `[1]`.
    SoftmaxCrossEntropy,
    /// in 0: x; in 1: target of its shape, or none; in 2: learning rate `[1]`. out 0: gradient of x; out 1: loss `[1]`.
    SquaredError {
        /// Factor of the sum of squares.
        factor: f32,
    },
}

/// Classes of logits: the extent of the last axis, but for axes of one element behind it.
pub fn classes(shape: &[usize]) -> usize {
    let mut shape = shape;
    while let [rest @ .., 1] = shape
        && rest.len() >= 2
    {
        shape = rest;
    }
    shape.last().copied().unwrap_or(1)
}
