//! The operators a graph can hold, with their attributes and operand order.
//!
//! Semantics are those of the operator of the same name in `core/src/ops`; where an operator exists only on the host
//! (folded or fused before lowering) this file says what it means.

use arenite::ops::binary::{BinaryOp, SpecialBinaryOp};
use arenite::ops::compare::Comparison;
use arenite::ops::detections::Suppression;
use arenite::ops::pointwise::{Function, UnaryOp};
use arenite::ops::special_int::SpecialIntOp;

use super::attrs::{Activation, Conv2dAttrs, PoolAttrs};
use super::signal::Signal;
use super::train::Train;

/// Attributes of [`Op::Detections`]; those of `core/src/ops/detections.rs`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Detector {
    /// Classes.
    pub labels: usize,
    /// The most boxes.
    pub most: usize,
    /// Which boxes are compared.
    pub suppression: Suppression,
    /// The least score.
    pub threshold: f32,
    /// The largest intersection over union of two boxes.
    pub overlap: f32,
    /// Divisors of the encodings: y, x, height, width.
    pub scale: [f32; 4],
}

/// Attributes of [`Op::EthosU`]: what a compiler has laid out in the scratch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EthosU {
    /// Bytes of the scratch, which inputs and outputs lie in.
    pub scratch: u32,
    /// Bytes of the fast scratch; 0 where there is none.
    pub fast: u32,
    /// Where in the scratch each input is.
    pub inputs: Vec<u32>,
    /// Where in the scratch each output is.
    pub outputs: Vec<u32>,
}

/// Elementwise operators of one operand: the functions of the runtime's rows, and those with parameters or a meaning of their own in passes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "named by their operation")]
pub enum UnaryKind {
    Relu,
    Relu6,
    ReluN1To1,
    Clamp {
        min: f32,
        max: f32,
    },
    LeakyRelu {
        alpha: f32,
    },
    /// `x if x > 0 else exp(x) - 1`; of int8 only.
    Elu,
    /// A row of `core/src/ops/pointwise.rs`.
    Function(Function),
}

impl UnaryKind {
    /// `|x|`.
    pub const ABS: Self = Self::Function(Function::Basic(UnaryOp::Abs));
    /// `e^x`.
    pub const EXP: Self = Self::Function(Function::Basic(UnaryOp::Exp));
    /// `x * min(max(x + 3, 0), 6) / 6`.
    pub const HARD_SWISH: Self = Self::Function(Function::Basic(UnaryOp::HardSwish));
    /// `the natural logarithm`.
    pub const LOG: Self = Self::Function(Function::Basic(UnaryOp::Log));
    /// `1 / (1 + e^-x)`.
    pub const LOGISTIC: Self = Self::Function(Function::Basic(UnaryOp::Logistic));
    /// `-x`.
    pub const NEG: Self = Self::Function(Function::Basic(UnaryOp::Neg));
    /// `1 / sqrt(x)`.
    pub const RSQRT: Self = Self::Function(Function::Basic(UnaryOp::Rsqrt));
    /// `x * x`.
    pub const SQUARE: Self = Self::Function(Function::Basic(UnaryOp::Square));
    /// `tanh(x)`.
    pub const TANH: Self = Self::Function(Function::Basic(UnaryOp::Tanh));

    /// Its kind in summaries.
    pub fn name(self) -> &'static str {
        match self {
            Self::Relu => "relu",
            Self::Relu6 => "relu6",
            Self::ReluN1To1 => "relu_n1_to_1",
            Self::Clamp { .. } => "clamp",
            Self::LeakyRelu { .. } => "leaky_relu",
            Self::Elu => "elu",
            Self::Function(function) => function.names().map_or("function", |names| names.name),
        }
    }
}

/// Reductions over axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named by their operation")]
pub enum ReduceKind {
    Mean,
    Sum,
    Max,
    Min,
}

/// Operation of a node. `in 0`, `in 1` … are [`super::Node::inputs`].
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// in 0: activations; in 1: weights OHWI `[out, kh, kw, in / groups]`; in 2: optional bias `[out]`;
    /// in 3 (only after fusion): optional residual of the output's shape, added before the activation.
    Conv2d(Conv2dAttrs),
    /// in 0: activations NCHW; in 1: weights `[out, in, kh, kw, oh, ow]`, a kernel for each output position; valid windows,
    /// stride 1. After fusion with [`Op::Affine`], in 2: bias `[1, out, oh, ow]`; in 3: gain `[1]`, applied to the sum before the bias.
    LocallyConnected2d {
        /// Fused clamp.
        activation: Activation,
    },
    /// in 0: `[.., in]`; in 1: weights `[out, in]`; in 2: optional bias `[out]`. Leading axes are rows.
    Linear {
        /// Fused clamp.
        activation: Activation,
    },
    /// in 0 `[.., m, k]` x in 1 `[.., k, n]`; the flags swap the last two axes of an operand first.
    MatMul {
        /// Transpose in 0.
        transpose_a: bool,
        /// Transpose in 1.
        transpose_b: bool,
    },
    /// in 0: activations. Padding never wins.
    MaxPool2d(PoolAttrs),
    /// in 0: activations. Padding is excluded from the divisor unless `count_include_pad`.
    AvgPool2d(PoolAttrs),
    /// in 0, in 1: operands.
    Binary {
        /// The operation.
        kind: BinaryOp,
        /// Fused clamp.
        activation: Activation,
    },
    /// in 0: int8 operand. The result of each stored value, from a network that states its scales.
    Lookup {
        /// The function's name in summaries.
        name: &'static str,
        /// The stored result of each stored value, by its bits.
        table: Box<[u8; 256]>,
    },
    /// in 0, in 1: f32 operands.
    SpecialBinary {
        /// The operation.
        kind: SpecialBinaryOp,
    },
    /// in 0, in 1: integer operands of one type.
    SpecialInt {
        /// The operation.
        kind: SpecialIntOp,
        /// Fused clamp.
        activation: Activation,
    },
    /// in 0, in 1: operands of one type. The output is bool.
    Compare {
        /// The question.
        kind: Comparison,
    },
    /// in 0: bool, of the output's shape; in 1: what is taken where it holds; in 2: where it does not.
    Choose,
    /// in 0: x; in 1: int32 indices of slices along `axis`, whose axes take its place.
    Gather {
        /// The axis.
        axis: usize,
    },
    /// in 0: x, repeated along axes where its extent is 1 or that it lacks; the shape is the output's.
    Broadcast,
    /// in 0: operand.
    Unary(UnaryKind),
    /// in 0: x; in 1: scalar gain `[1]`; in 2: bias, broadcast. y = gain * x + bias.
    Affine,
    /// in 0: x; in 1..5: gamma, beta, mean, variance `[channels]`. `axis` is the channels' axis.
    BatchNorm {
        /// The channels' axis of x.
        axis: usize,
        /// Added to the variance.
        epsilon: f32,
        /// Share that the moving statistics keep in a training step.
        momentum: f32,
        /// Whether gain or shift are trained: it stays an operator, and its statistics are the batch's in a training step.
        trained: bool,
    },
    /// in 0: x. y = x / (bias + alpha * sum of x^2 over 2 * radius + 1 channels)^beta (Krizhevsky et al. 2012; alpha is not divided
    /// by the window).
    Lrn {
        /// The channels' axis.
        axis: usize,
        /// Channels on each side.
        radius: usize,
        /// Constant term.
        bias: f32,
        /// Factor of the sum of squares.
        alpha: f32,
        /// Exponent.
        beta: f32,
    },
    /// in 0: x. Along `axis`.
    Softmax {
        /// The axis that sums to one.
        axis: usize,
        /// Factor of the argument.
        beta: f32,
    },
    /// in 0: x. Along `axis`.
    LogSoftmax {
        /// The axis.
        axis: usize,
    },
    /// in 0: x.
    Reduce {
        /// The reduction.
        kind: ReduceKind,
        /// Axes reduced, ascending.
        axes: Vec<usize>,
        /// Keep reduced axes with extent 1.
        keep_dims: bool,
    },
    /// in 0: x. Index of the largest element along `axis`, the first on a tie. i32 output.
    ArgMax {
        /// The axis.
        axis: usize,
    },
    /// in 0: x. Same elements in the same order, the shape is the output's. Also squeeze, expand, flatten.
    Reshape,
    /// in 0: x. Axis `i` of the output is axis `perm[i]` of the input.
    Transpose {
        /// The permutation.
        perm: Vec<usize>,
    },
    /// in 0: x. Constant padding.
    Pad {
        /// (before, after) for each axis.
        pads: Vec<(usize, usize)>,
        /// The value, in real terms for f32, in stored terms for quantised tensors.
        value: f32,
    },
    /// in 0..n: operands, equal but along `axis`.
    Concat {
        /// The axis.
        axis: usize,
        /// Fused clamp.
        activation: Activation,
    },
    /// in 0: x. Element `i` along axis `a` is element `begin[a] + i * stride[a]`; extents are the output's.
    Slice {
        /// First index of each axis.
        begin: Vec<usize>,
        /// Step of each axis; may be negative.
        stride: Vec<isize>,
    },
    /// in 0: x NHWC.
    ResizeNearest {
        /// TensorFlow's `align_corners`.
        align_corners: bool,
        /// TensorFlow's `half_pixel_centers`.
        half_pixel_centers: bool,
    },
    /// in 0: x NHWC.
    ResizeBilinear {
        /// TensorFlow's `align_corners`.
        align_corners: bool,
        /// TensorFlow's `half_pixel_centers`.
        half_pixel_centers: bool,
    },
    /// in 0: f32 or quantised x; the output's dtype and quantisation say what to make of it. Also requantise.
    Quantize,
    /// in 0: quantised x; f32 output.
    Dequantize,
    /// in 0: x. Plain conversion of the stored number.
    Cast,
    /// in 0: input `[batch, features]`; in 1: feature weights; in 2: time weights; in 3: optional bias; in 4: state (read and
    /// written). TensorFlow Lite's SVDF.
    Svdf {
        /// Rank.
        rank: usize,
        /// Fused clamp.
        activation: Activation,
    },
    /// TensorFlow Lite's UNIDIRECTIONAL_SEQUENCE_LSTM; operand order is that of its schema (24 inputs).
    UnidirectionalLstm {
        /// `[time, batch, in]` rather than `[batch, time, in]`.
        time_major: bool,
        /// Clip of the cell state; 0 is none.
        cell_clip: f32,
    },
    /// in 0: int8 x. x / sqrt(sum of x^2) along the last axis; of other types a chain of operators.
    L2Norm,
    /// A signal operator of TensorFlow Lite Micro.
    Signal(Signal),
    /// An operator of training.
    Train(Train),
    /// in 0: encodings `[.., anchors, width]`; in 1: scores `[.., anchors, background + labels]`; in 2: anchors `[anchors, 4]`; f32. Out 0: corners; out 1:
    /// classes; out 2: scores; out 3: how many.
    Detections(Detector),
    /// Commands for an Ethos-U. in 0: the payload; in 1: its constants, where it has any; in 2 and on: its inputs.
    EthosU(EthosU),
    /// in 0: queries `[heads, width]`; in 1, in 2: keys and values, `[heads of these, capacity, width]`, states; in 3: int32 position `[1]`. Attention of
    /// each query head over the first `position + 1` lines.
    Attention {
        /// Factor of the scores.
        scale: f32,
    },
    /// in 0: int32 indices; in 1: table `[rows, width]`. Row of each index; an index outside the table ends a run.
    Embedding,
    /// in 0: x; in 1: gain `[channels]`. x / sqrt(mean of x^2 + epsilon) * gain, along the last axis.
    RmsNorm {
        /// Added to the mean.
        epsilon: f32,
    },
    /// in 0: x `[rows, width]`; in 1, in 2: cosines and sines `[positions, width / 2]`; in 3: int32 position `[1]`. Pairs of elements turned by the
    /// angles of the position.
    Rotary {
        /// Whether neighbours are pairs, or else elements half a row apart.
        interleaved: bool,
    },
    /// in 0: int32 position `[1]`; in 1: int32 lines `[1]`, a state that is written. The position, where it is the next line of a cache or one before;
    /// any other ends a run.
    Position {
        /// Lines of the cache.
        capacity: usize,
    },
    /// in 0: state `[outer, capacity, inner]` (written); in 1: line `[outer, inner]`; in 2: int32 position `[1]`. No outputs. A position outside the
    /// capacity ends a run.
    WriteLine,
    /// in 0: state. The output aliases nothing: it is the state's value at this point of the order.
    ReadState,
    /// in 0: state (written); in 1: the new value. No outputs.
    AssignState,
    /// Identity at inference: dropout and the like.
    Identity,
    /// A node outside inference, kept with its edges until the prune pass; its role is not `Forward`.
    Opaque,
}
