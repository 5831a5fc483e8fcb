//! The operators: one row each, with the types that are supported and the translation.

use arenite::ops::compare::Comparison;
use arenite::ops::pointwise::{Function, Tflite};

use super::importer::Translator;
use super::signal;
use crate::graph::{BinaryOp, DType, Op, ReduceKind, UnaryKind};

use DType::{Bool, F32, I8, I16, I32, I64, U8};

/// A supported operator.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Its name in the schema.
    pub(super) kind: &'static str,
    /// The newest version whose meaning is known.
    pub(super) version: i32,
    /// Types of the first operand that holds activations.
    pub(super) types: &'static [DType],
    pub(super) translate: Translate,
}

/// How an operator is translated.
#[derive(Clone, Copy)]
pub(super) enum Translate {
    Unary(UnaryKind),
    Binary(BinaryOp),
    Reduce(ReduceKind),
    By(Translator),
}

use Translate::{Binary, By, Reduce, Unary};

const REAL: &[DType] = &[F32];
const F_I8: &[DType] = &[F32, I8];
const F_I8_I16: &[DType] = &[F32, I8, I16];
/// Of which equality is asked, and of which order.
const COMPARED: &[DType] = &[F32, I8, I32, Bool];
const ORDERED: &[DType] = &[F32, I8, I32];
const NUMBERS: &[DType] = &[F32, I8, I16, I32];
const ANY: &[DType] = &[F32, I8, U8, I16, I32, I64, Bool];

const ROWS: &[Row] = &[
    row("CONV_2D", 8, F_I8_I16, By(|i, v| i.conv2d(v, false))),
    row("DEPTHWISE_CONV_2D", 7, F_I8_I16, By(|i, v| i.conv2d(v, true))),
    row("FULLY_CONNECTED", 14, F_I8_I16, By(|i, v| i.fully_connected(v))),
    row("TRANSPOSE_CONV", 5, F_I8_I16, By(|i, v| i.transpose_conv(v))),
    row("AVERAGE_POOL_2D", 3, F_I8_I16, By(|i, v| i.pool(v, false))),
    row("MAX_POOL_2D", 3, F_I8_I16, By(|i, v| i.pool(v, true))),
    row("RELU", 3, F_I8_I16, Unary(UnaryKind::Relu)),
    row("RELU6", 3, F_I8_I16, Unary(UnaryKind::Relu6)),
    row("LEAKY_RELU", 2, F_I8_I16, By(|i, v| i.leaky_relu(v))),
    row("ELU", 1, F_I8, By(|i, v| i.elu(v))),
    row("L2_NORMALIZATION", 2, F_I8, By(|i, v| i.l2_normalization(v))),
    row("SOFTMAX", 3, F_I8_I16, By(|i, v| i.softmax(v))),
    row("LOG_SOFTMAX", 2, F_I8, By(|i, v| i.log_softmax(v))),
    row("MEAN", 3, F_I8_I16, Reduce(ReduceKind::Mean)),
    row("SUM", 2, F_I8_I16, Reduce(ReduceKind::Sum)),
    row("REDUCE_MAX", 3, F_I8, Reduce(ReduceKind::Max)),
    row("REDUCE_MIN", 3, F_I8, Reduce(ReduceKind::Min)),
    row("ARG_MAX", 3, F_I8, By(|i, v| i.arg_max(v))),
    row("ARG_MIN", 3, F_I8, By(|i, v| i.arg_min(v))),
    row("RESHAPE", 1, ANY, By(|i, v| i.reshape(v))),
    row("SQUEEZE", 2, ANY, By(|i, v| i.reshape(v))),
    row("EXPAND_DIMS", 1, ANY, By(|i, v| i.reshape(v))),
    row("TRANSPOSE", 6, ANY, By(|i, v| i.transpose(v))),
    row("PAD", 4, F_I8_I16, By(|i, v| i.pad(v))),
    row("PADV2", 4, F_I8_I16, By(|i, v| i.pad(v))),
    row("MIRROR_PAD", 3, ANY, By(|i, v| i.mirror_pad(v))),
    row("SPACE_TO_DEPTH", 2, ANY, By(|i, v| i.space_to_depth(v))),
    row("DEPTH_TO_SPACE", 2, ANY, By(|i, v| i.depth_to_space(v))),
    row("SPACE_TO_BATCH_ND", 4, F_I8_I16, By(|i, v| i.space_to_batch(v))),
    row("BATCH_TO_SPACE_ND", 4, ANY, By(|i, v| i.batch_to_space(v))),
    row("REVERSE_V2", 3, ANY, By(|i, v| i.reverse(v))),
    row("GATHER", 7, ANY, By(|i, v| i.gather(v))),
    row("GATHER_ND", 5, ANY, By(|i, v| i.gather_nd(v))),
    row("EMBEDDING_LOOKUP", 4, &[I32], By(|i, v| i.embedding_lookup(v))),
    row("TILE", 3, ANY, By(|i, v| i.tile(v))),
    row("BROADCAST_TO", 3, ANY, By(|i, v| i.broadcast_to(v))),
    row("FILL", 4, &[], By(|i, v| i.fill(v))),
    row("ZEROS_LIKE", 1, ANY, By(|i, v| i.zeros_like(v))),
    row("DYNAMIC_UPDATE_SLICE", 4, ANY, By(|i, v| i.dynamic_update_slice(v))),
    row("BATCH_MATMUL", 5, F_I8_I16, By(|i, v| i.batch_matmul(v))),
    row("ADD_N", 1, &[F32, I8, I32], By(|i, v| i.add_n(v))),
    row("CUMSUM", 1, &[F32, I8, I32], By(|i, v| i.cumsum(v))),
    row("L2_POOL_2D", 1, REAL, By(|i, v| i.l2_pool(v))),
    row("EQUAL", 4, COMPARED, By(|i, v| i.compare(v, Comparison::Equal, false))),
    row(
        "NOT_EQUAL",
        4,
        COMPARED,
        By(|i, v| i.compare(v, Comparison::NotEqual, false)),
    ),
    row("LESS", 4, ORDERED, By(|i, v| i.compare(v, Comparison::Less, false))),
    row(
        "LESS_EQUAL",
        3,
        ORDERED,
        By(|i, v| i.compare(v, Comparison::LessOrEqual, false)),
    ),
    row("GREATER", 3, ORDERED, By(|i, v| i.compare(v, Comparison::Less, true))),
    row(
        "GREATER_EQUAL",
        3,
        ORDERED,
        By(|i, v| i.compare(v, Comparison::LessOrEqual, true)),
    ),
    row(
        "LOGICAL_AND",
        1,
        &[Bool],
        By(|i, v| i.compare(v, Comparison::And, false)),
    ),
    row("LOGICAL_OR", 1, &[Bool], By(|i, v| i.compare(v, Comparison::Or, false))),
    row("REDUCE_ALL", 1, &[Bool], By(|i, v| i.reduce_truth(v, ReduceKind::Min))),
    row("REDUCE_ANY", 1, &[Bool], By(|i, v| i.reduce_truth(v, ReduceKind::Max))),
    row("LOGICAL_NOT", 1, &[Bool], By(|i, v| i.logical_not(v))),
    row("SELECT", 4, &[Bool], By(|i, v| i.select(v, true))),
    row("SELECT_V2", 2, &[Bool], By(|i, v| i.select(v, false))),
    row("FLOOR_DIV", 4, NUMBERS, By(|i, v| i.rounded_down(v, false))),
    row("FLOOR_MOD", 3, NUMBERS, By(|i, v| i.rounded_down(v, true))),
    row("POW", 1, REAL, By(|i, v| i.pow(v))),
    row("GELU", 2, REAL, By(|i, v| i.gelu(v))),
    row("RELU_N1_TO_1", 2, REAL, Unary(UnaryKind::ReluN1To1)),
    row("RELU_0_TO_1", 1, REAL, Unary(UnaryKind::Clamp { min: 0.0, max: 1.0 })),
    row("CONCATENATION", 4, ANY, By(|i, v| i.concatenation(v))),
    row("PACK", 4, ANY, By(|i, v| i.pack(v))),
    row("UNPACK", 4, ANY, By(|i, v| i.unpack(v))),
    row("SPLIT", 4, ANY, By(|i, v| i.split(v))),
    row("SPLIT_V", 2, ANY, By(|i, v| i.split_v(v))),
    row("SLICE", 6, ANY, By(|i, v| i.slice(v))),
    row("STRIDED_SLICE", 8, ANY, By(|i, v| i.strided_slice(v))),
    row("RESIZE_NEAREST_NEIGHBOR", 4, F_I8, By(|i, v| i.resize(v, false))),
    row("RESIZE_BILINEAR", 4, F_I8, By(|i, v| i.resize(v, true))),
    row(
        "QUANTIZE",
        3,
        &[F32, I8, U8, I16, I32],
        By(|i, v| i.convert(v, Op::Quantize)),
    ),
    row("DEQUANTIZE", 6, &[I8, U8, I16], By(|i, v| i.convert(v, Op::Dequantize))),
    row("CAST", 6, &[F32, I8, I16, I32, Bool], By(|i, v| i.convert(v, Op::Cast))),
    row("SVDF", 4, F_I8, By(|i, v| i.svdf(v))),
    row("UNIDIRECTIONAL_SEQUENCE_LSTM", 4, F_I8_I16, By(|i, v| i.lstm(v))),
    row("CUSTOM `CIRCULAR_BUFFER`", 1, &[I8], By(|i, v| i.circular_buffer(v))),
    row(
        "CUSTOM `TFLite_Detection_PostProcess`",
        1,
        F_I8,
        By(|i, v| i.detections(v)),
    ),
    row("CUSTOM `ethos-u`", 1, &[], By(|i, v| i.ethos_u(v))),
    row("VAR_HANDLE", 1, &[], By(|i, v| i.var_handle(v))),
    row("READ_VARIABLE", 1, &[], By(|i, v| i.read_variable(v))),
    row("ASSIGN_VARIABLE", 1, &[], By(|i, v| i.assign_variable(v))),
    row("CALL_ONCE", 1, &[], By(|i, v| i.call_once(v))),
    row("IF", 1, &[Bool], By(|i, v| i.choose_branch(v))),
    row("WHILE", 1, &[], By(|i, v| i.unroll(v))),
];

/// The rows of this file, those of the signal operators and of the pointwise functions.
pub(super) fn rows() -> impl Iterator<Item = Row> {
    let functions = Function::rows().filter_map(|(function, names)| {
        let Tflite { name, version, types } = names.tflite?;
        Some(row(name, version, types, Unary(UnaryKind::Function(function))))
    });
    let binary = BinaryOp::ROWS.iter().filter_map(|(op, names)| {
        let Tflite { name, version, types } = names.tflite?;
        Some(row(name, version, types, Binary(*op)))
    });
    let signals = signal::ROWS
        .iter()
        .map(|&(kind, types, translate)| row(kind, 1, types, By(translate)));
    ROWS.iter().copied().chain(signals).chain(functions).chain(binary)
}

const fn row(kind: &'static str, version: i32, types: &'static [DType], translate: Translate) -> Row {
    Row {
        kind,
        version,
        types,
        translate,
    }
}

/// Operators that packing alone computes.
const COMPUTED: [&str; 4] = ["BROADCAST_ARGS", "DENSIFY", "RANK", "SHAPE"];

/// Whether an operator of this name is read at all.
pub(super) fn is_known(kind: &str) -> bool {
    COMPUTED.contains(&kind) || rows().any(|row| row.kind == kind)
}

pub(super) fn remedy(kind: &str) -> &'static str {
    match kind {
        "LSTM" | "BIDIRECTIONAL_SEQUENCE_LSTM" | "RNN" | "UNIDIRECTIONAL_SEQUENCE_RNN" => {
            "use UNIDIRECTIONAL_SEQUENCE_LSTM, or unroll the network"
        }
        _ if kind.starts_with("CUSTOM `FlexTensorList") => {
            "a list of TensorFlow's own, of a recurrent layer: convert the model with a fixed batch (a concrete function of tf.TensorSpec([1, …])), with \
             `converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]` and without `converter._experimental_lower_tensor_list_ops = False`"
        }
        _ if kind.starts_with("CUSTOM `Flex") => {
            "an operator of TensorFlow itself: convert the model with `converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]`, without \
             SELECT_TF_OPS; what the converter then names has to be built from other operators"
        }
        _ if kind.starts_with("CUSTOM") => "build the network from builtin operators (see docs/operators.md)",
        _ => "build the network from supported operators (see docs/operators.md)",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_operator_is_documented_with_its_version() {
        let text = include_str!("../../../../docs/operators.md");
        for row in super::rows() {
            let line = format!("| {} | {} | ", row.kind, row.version);
            assert!(text.contains(&line), "docs/operators.md lacks `{line}`");
        }
    }
}
