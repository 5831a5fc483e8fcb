//! The operators: a row each, with the versions of the operator that are known and the translation. `docs/onnx.md` is made of these rows.

use super::importer::{Importer, View};
use super::recurrent::Cell;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, ReduceKind, UnaryKind};
use arenite::ops::binary::SpecialBinaryOp;
use arenite::ops::pointwise::{Function, SpecialOp, UnaryOp};

/// The oldest and the newest operator set that are read.
pub(super) const OPSETS: [i64; 2] = [7, 28];

/// A supported operator.
pub(super) struct Row {
    /// Its name.
    pub(super) op: &'static str,
    /// Versions of the operator, by the operator set that brought them, that are read: in operator sets from 7 on.
    pub(super) versions: &'static [i64],
    /// Limits of the operator, for the table.
    pub(super) limits: &'static str,
    pub(super) translate: Translate,
}

/// How an operator is translated.
#[derive(Clone, Copy)]
pub(super) enum Translate {
    Unary(UnaryKind),
    Binary(BinaryOp),
    /// Of any number of operands, one after another; the mean divides by their number.
    Several(BinaryOp),
    /// A comparison, its operands in this order or the other, its result as it is or the opposite.
    Compare(SpecialBinaryOp, bool, bool),
    Reduce(ReduceKind),
    Cell(Cell),
    /// The nodes of one of its branches.
    Branch,
    By(for<'a> fn(&mut Importer<'_, 'a>, View<'_, 'a>) -> Result<()>),
}

use Translate::{Binary, By, Compare, Reduce, Several, Unary};

const fn basic(op: UnaryOp) -> Translate {
    Unary(UnaryKind::Function(Function::Basic(op)))
}

const fn special(op: SpecialOp) -> Translate {
    Unary(UnaryKind::Function(Function::Special(op)))
}

const fn row(op: &'static str, versions: &'static [i64], translate: Translate) -> Row {
    limited(op, versions, "", translate)
}

const fn limited(op: &'static str, versions: &'static [i64], limits: &'static str, translate: Translate) -> Row {
    Row {
        op,
        versions,
        limits,
        translate,
    }
}

/// An operator of another domain, whose rows have one version.
pub(super) const fn of_domain(
    op: &'static str,
    limits: &'static str,
    by: for<'a> fn(&mut Importer<'_, 'a>, View<'_, 'a>) -> Result<()>,
) -> Row {
    limited(op, &[1], limits, Translate::By(by))
}

const SHAPED: &[i64] = &[1, 13, 19, 21, 23, 24, 25];
const SCATTERED: &str = "constant indices; reductions of constants";
const REDUCED: &[i64] = &[1, 11, 13, 18];

pub(super) const ROWS: &[Row] = &[
    row("Abs", &[6, 13], basic(UnaryOp::Abs)),
    row("Add", &[7, 13, 14], Binary(BinaryOp::Add)),
    row("And", &[7], By(|i, v| i.logical(v))),
    limited(
        "ArgMax",
        &[1, 11, 12, 13],
        "the result is int32",
        By(|i, v| i.arg_max(v, false)),
    ),
    limited(
        "ArgMin",
        &[1, 11, 12, 13],
        "the result is int32",
        By(|i, v| i.arg_max(v, true)),
    ),
    limited("Atan", &[7, 22], "of constants", By(|i, v| i.atan(v))),
    limited(
        "Attention",
        &[23, 24, 25],
        "without nonpad_kv_seqlen",
        By(|i, v| i.attention(v)),
    ),
    row("AveragePool", &[7, 10, 11, 19, 22], By(|i, v| i.pool(v, false))),
    limited(
        "BatchNormalization",
        &[7, 9, 14, 15],
        "inference",
        By(|i, v| i.batch_norm(v)),
    ),
    limited(
        "Cast",
        &[6, 9, 13, 19, 21, 23, 24, 25, 28],
        "computed int64 becomes int32",
        By(|i, v| i.cast_node(v)),
    ),
    limited(
        "CastLike",
        &[15, 19, 21, 23, 24, 25],
        "computed int64 becomes int32",
        By(|i, v| i.cast_like(v)),
    ),
    row("Ceil", &[6, 13], special(SpecialOp::Ceil)),
    row("Celu", &[12, 28], By(|i, v| i.celu(v))),
    row("Clip", &[6, 11, 12, 13], By(|i, v| i.clip(v))),
    row("Concat", &[4, 11, 13], By(|i, v| i.concat_node(v))),
    row(
        "Constant",
        &[1, 9, 11, 12, 13, 19, 21, 23, 24, 25],
        By(|i, v| i.constant_node(v)),
    ),
    row(
        "ConstantOfShape",
        &[9, 20, 21, 23, 24, 25],
        By(|i, v| i.constant_of_shape(v)),
    ),
    row("Conv", &[1, 11, 22], By(|i, v| i.conv(v))),
    row("ConvInteger", &[10], By(|i, v| i.conv_integer(v))),
    row("ConvTranspose", &[1, 11, 22], By(|i, v| i.conv_transpose(v))),
    row("Cos", &[7, 22], special(SpecialOp::Cos)),
    row("CumSum", &[11, 14], By(|i, v| i.cum_sum(v))),
    limited(
        "DFT",
        &[17, 20],
        "a constant length; no inverse of half of the bins",
        By(|i, v| i.dft(v)),
    ),
    row("DepthToSpace", &[1, 11, 13, 28], By(|i, v| i.depth_to_space(v))),
    row(
        "DequantizeLinear",
        &[10, 13, 19, 21, 23, 24, 25, 28],
        By(|i, v| i.dequantize_linear(v)),
    ),
    row("Div", &[7, 13, 14], Binary(BinaryOp::Div)),
    limited("Dropout", &[7, 10, 12, 13, 22], "inference", By(|i, v| i.dropout(v))),
    row("DynamicQuantizeLinear", &[11], By(|i, v| i.dynamic_quantize(v))),
    limited(
        "Einsum",
        &[12, 28],
        "a product of two operands, or a sum of one",
        By(|i, v| i.einsum(v)),
    ),
    row("Elu", &[6, 22], By(|i, v| i.elu_node(v))),
    row("Equal", &[7, 11, 13, 19], Compare(SpecialBinaryOp::Equal, true, true)),
    row("Erf", &[9, 13], special(SpecialOp::Erf)),
    row("Exp", &[6, 13], basic(UnaryOp::Exp)),
    row("Expand", &[8, 13], By(|i, v| i.expand_node(v))),
    row("Flatten", &[1, 9, 11, 13, 21, 23, 24, 25], By(|i, v| i.flatten(v))),
    row("Floor", &[6, 13], special(SpecialOp::Floor)),
    limited(
        "GRU",
        &[7, 14, 22],
        "sequences of the full length",
        Translate::Cell(Cell::Gru),
    ),
    limited(
        "Gather",
        &[1, 11, 13],
        "constant indices, or rows of a matrix",
        By(|i, v| i.gather(v)),
    ),
    limited(
        "GatherElements",
        &[11, 13],
        "constant indices",
        By(|i, v| i.gather_elements(v)),
    ),
    limited("GatherND", &[11, 12, 13], "constant indices", By(|i, v| i.gather_nd(v))),
    row("Gelu", &[20], By(|i, v| i.gelu(v))),
    row("Gemm", &[7, 9, 11, 13], By(|i, v| i.gemm(v))),
    row(
        "GlobalAveragePool",
        &[1, 22],
        By(|i, v| i.global_pool(v, ReduceKind::Mean)),
    ),
    row("GlobalMaxPool", &[1, 22], By(|i, v| i.global_pool(v, ReduceKind::Max))),
    row("Greater", &[7, 9, 13], Compare(SpecialBinaryOp::Less, false, true)),
    row(
        "GreaterOrEqual",
        &[12, 16],
        Compare(SpecialBinaryOp::LessOrEqual, false, true),
    ),
    row("GroupNormalization", &[18, 21], By(|i, v| i.group_norm(v))),
    row("HardSigmoid", &[6, 22], By(|i, v| i.hard_sigmoid(v))),
    row("HardSwish", &[14, 22], basic(UnaryOp::HardSwish)),
    row("Hardmax", &[1, 11, 13], By(|i, v| i.hardmax(v))),
    row(
        "Identity",
        &[1, 13, 14, 16, 19, 21, 23, 24, 25],
        By(|i, v| i.identity(v)),
    ),
    limited(
        "If",
        &[1, 11, 13, 16, 19, 21, 23, 24, 25],
        "a condition that constants or shapes decide",
        Translate::Branch,
    ),
    row("InstanceNormalization", &[6, 22], By(|i, v| i.instance_norm(v))),
    row("IsInf", &[10, 20], By(|i, v| i.is_inf(v))),
    row("IsNaN", &[9, 13, 20], By(|i, v| i.is_nan(v))),
    limited("LRN", &[1, 13], "windows of odd size, four axes", By(|i, v| i.lrn(v))),
    limited(
        "LSTM",
        &[7, 14, 22],
        "sequences of the full length",
        Translate::Cell(Cell::Lstm),
    ),
    row("LayerNormalization", &[17], By(|i, v| i.layer_norm(v))),
    row("LeakyRelu", &[6, 16], By(|i, v| i.leaky_relu(v))),
    row("Less", &[7, 9, 13], Compare(SpecialBinaryOp::Less, true, true)),
    row(
        "LessOrEqual",
        &[12, 16],
        Compare(SpecialBinaryOp::LessOrEqual, true, true),
    ),
    row("Log", &[6, 13], basic(UnaryOp::Log)),
    row("LogSoftmax", &[1, 11, 13], By(|i, v| i.softmax(v, true))),
    row("LpNormalization", &[1, 22], By(|i, v| i.lp_norm(v))),
    row("MatMul", &[1, 9, 13], By(|i, v| i.mat_mul(v))),
    row("MatMulInteger", &[10], By(|i, v| i.mat_mul_integer(v))),
    row("Max", &[6, 8, 12, 13], Several(BinaryOp::Maximum)),
    limited(
        "MaxPool",
        &[1, 8, 10, 11, 12, 22],
        "without indices",
        By(|i, v| i.pool(v, true)),
    ),
    row("Mean", &[6, 8, 13], By(|i, v| i.mean(v))),
    row(
        "MeanVarianceNormalization",
        &[9, 13],
        By(|i, v| i.mean_variance_norm(v)),
    ),
    row("Min", &[6, 8, 12, 13], Several(BinaryOp::Minimum)),
    row("Mish", &[18, 22], By(|i, v| i.mish(v))),
    row("Mod", &[10, 13], By(|i, v| i.modulo(v))),
    row("Mul", &[7, 13, 14], Binary(BinaryOp::Mul)),
    row("Neg", &[6, 13], basic(UnaryOp::Neg)),
    row("Not", &[1], By(|i, v| i.not(v))),
    limited("OneHot", &[9, 11, 28], "a constant depth", By(|i, v| i.one_hot(v))),
    row("Or", &[7], By(|i, v| i.logical(v))),
    row("PRelu", &[7, 9, 16], Binary(BinaryOp::Prelu)),
    limited(
        "Pad",
        &[2, 11, 13, 18, 19, 21, 23, 24, 25],
        "constant paddings",
        By(|i, v| i.pad_node(v)),
    ),
    row("Pow", &[7, 12, 13, 15], By(|i, v| i.pow(v))),
    row("QLinearConv", &[10], By(|i, v| i.qlinear_conv(v))),
    row("QLinearMatMul", &[10, 21], By(|i, v| i.qlinear_mat_mul(v))),
    row(
        "QuantizeLinear",
        &[10, 13, 19, 21, 23, 24, 25, 28],
        By(|i, v| i.quantize_linear(v)),
    ),
    limited("RMSNormalization", &[23], "", By(|i, v| i.rms_norm(v))),
    limited(
        "RNN",
        &[7, 14, 22],
        "sequences of the full length",
        Translate::Cell(Cell::Rnn),
    ),
    limited("Range", &[11, 27], "of constants", By(|i, v| i.range(v))),
    row("Reciprocal", &[6, 13], By(|i, v| i.reciprocal(v))),
    row("ReduceL1", REDUCED, By(|i, v| i.reduce_node(v))),
    row("ReduceL2", REDUCED, By(|i, v| i.reduce_node(v))),
    row("ReduceLogSum", &[1, 11, 13, 18, 28], By(|i, v| i.reduce_node(v))),
    row("ReduceLogSumExp", &[1, 11, 13, 18, 28], By(|i, v| i.reduce_node(v))),
    row("ReduceMax", &[1, 11, 12, 13, 18, 20], Reduce(ReduceKind::Max)),
    row("ReduceMean", REDUCED, Reduce(ReduceKind::Mean)),
    row("ReduceMin", &[1, 11, 12, 13, 18, 20], Reduce(ReduceKind::Min)),
    limited(
        "ReduceProd",
        REDUCED,
        "of at most 256 factors",
        By(|i, v| i.reduce_node(v)),
    ),
    row("ReduceSum", &[1, 11, 13], Reduce(ReduceKind::Sum)),
    row("ReduceSumSquare", REDUCED, By(|i, v| i.reduce_node(v))),
    row("Relu", &[6, 13, 14], Unary(UnaryKind::Relu)),
    row(
        "Reshape",
        &[5, 13, 14, 19, 21, 23, 24, 25],
        By(|i, v| i.reshape_node(v)),
    ),
    limited(
        "Resize",
        &[10, 11, 13, 18, 19],
        "without antialiasing and cropping",
        By(|i, v| i.resize(v)),
    ),
    row("RotaryEmbedding", &[23], By(|i, v| i.rotary_embedding(v))),
    row("Round", &[11, 22], special(SpecialOp::Round)),
    limited("Scatter", &[9, 11], SCATTERED, By(|i, v| i.scatter_elements(v))),
    limited(
        "ScatterElements",
        &[11, 13, 16, 18],
        SCATTERED,
        By(|i, v| i.scatter_elements(v)),
    ),
    limited("ScatterND", &[11, 13, 16, 18], SCATTERED, By(|i, v| i.scatter_nd(v))),
    row("Selu", &[6, 22], By(|i, v| i.selu(v))),
    row("Shape", &[1, 13, 15, 19, 21, 23, 24, 25], By(|i, v| i.shape_node(v))),
    row("Sigmoid", &[6, 13], basic(UnaryOp::Logistic)),
    row("Sign", &[9, 13], special(SpecialOp::Sign)),
    row("Sin", &[7, 22], special(SpecialOp::Sin)),
    row("Size", SHAPED, By(|i, v| i.size(v))),
    row("Slice", &[1, 10, 11, 13], By(|i, v| i.slice_node(v))),
    row("Softmax", &[1, 11, 13], By(|i, v| i.softmax(v, false))),
    row("Softplus", &[1, 22], special(SpecialOp::Softplus)),
    row("Softsign", &[1, 22], special(SpecialOp::Softsign)),
    row("SpaceToDepth", &[1, 13, 28], By(|i, v| i.space_to_depth(v))),
    row("Split", &[2, 11, 13, 18], By(|i, v| i.split(v))),
    row("Sqrt", &[6, 13], basic(UnaryOp::Sqrt)),
    row("Squeeze", &[1, 11, 13, 21, 23, 24, 25], By(|i, v| i.squeeze(v))),
    limited(
        "STFT",
        &[17],
        "constant steps, lengths and windows",
        By(|i, v| i.stft(v)),
    ),
    row("Sub", &[7, 13, 14], Binary(BinaryOp::Sub)),
    row("Sum", &[6, 8, 13], Several(BinaryOp::Add)),
    row("Swish", &[24], By(|i, v| i.swish(v))),
    row("Tanh", &[6, 13], basic(UnaryOp::Tanh)),
    row("ThresholdedRelu", &[10, 22], By(|i, v| i.thresholded_relu(v))),
    row("Tile", &[6, 13], By(|i, v| i.tile(v))),
    limited(
        "TopK",
        &[1, 10, 11, 24],
        "of constants, or k = 1",
        By(|i, v| i.top_k(v)),
    ),
    row("Transpose", &[1, 13, 21, 23, 24, 25], By(|i, v| i.transpose_node(v))),
    row("Trilu", &[14], By(|i, v| i.trilu(v))),
    row("Unsqueeze", &[1, 11, 13, 21, 23, 24, 25], By(|i, v| i.unsqueeze(v))),
    row("Upsample", &[7, 9, 10], By(|i, v| i.resize(v))),
    row("Where", &[9, 16], By(|i, v| i.where_node(v))),
    row("Xor", &[7], By(|i, v| i.logical(v))),
];

/// Returns the advice for an operator that has no row.
pub(super) fn remedy(op: &str) -> &'static str {
    match op {
        "Loop" | "Scan" | "SequenceMap" => {
            "control flow has no place in a static plan: export the network unrolled, or with torch.export"
        }
        "NonZero" | "Compress" | "Unique" | "NonMaxSuppression" => {
            "dynamic shape: end the network before this operator, and compute it in the application"
        }
        "SoftmaxCrossEntropyLoss" | "NegativeLogLikelihoodLoss" => "training mode: export the network for inference",
        "RandomNormal" | "RandomUniform" | "RandomNormalLike" | "RandomUniformLike" | "Multinomial" | "Bernoulli" => {
            "make the random numbers an input of the network"
        }
        _ => "build the network from supported operators (see docs/onnx.md), or compute this one in the application",
    }
}

impl<'a> Importer<'_, 'a> {
    /// Translates one node.
    pub(super) fn translate(&mut self, view: View<'_, 'a>, row: &Row) -> Result<()> {
        let result = match row.translate {
            By(translate) => return translate(self, view),
            Translate::Cell(cell) => return self.recurrent(view, cell),
            Translate::Branch => return Err(Error::internal("a branch is inlined where nodes are")),
            Unary(kind) => {
                let x = self.operand(view, 0)?;
                self.unary(kind, &x)?
            }
            Binary(op) => {
                let (a, b) = (self.operand(view, 0)?, self.operand(view, 1)?);
                self.binary(op, &a, &b)?
            }
            Several(op) => {
                let mut sum = self.operand(view, 0)?;
                for position in 1..view.node.inputs.len() {
                    let next = self.operand(view, position)?;
                    sum = self.binary(op, &sum, &next)?;
                }
                sum
            }
            Compare(op, in_order, as_is) => {
                let (a, b) = (self.operand(view, 0)?, self.operand(view, 1)?);
                let truth = if in_order {
                    self.compare(op, &a, &b)?
                } else {
                    self.compare(op, &b, &a)?
                };
                if as_is { truth } else { self.negated(&truth)? }
            }
            Reduce(kind) => {
                let x = self.operand(view, 0)?;
                let Some((axes, keep)) = self.reduced_axes(view, &x)? else {
                    return self.bind(view, 0, x);
                };
                self.reduce(kind, &x, &axes, keep)?
            }
        };
        self.bind(view, 0, result)
    }
}
