//! The operators of the trace, a row each: the reader checks their form by it, and the JSON Schema is made of it.

use arenite::ops::binary::SpecialBinaryOp;
use arenite::ops::fft::MAX_FFT;
use arenite::ops::pointwise::Function;

use super::form::Form;
use crate::graph::BinaryOp;

/// The versions that are read.
pub(super) const VERSIONS: std::ops::RangeInclusive<i64> = 1..=3;

/// The form of an operator; its meaning is in `Work::operator`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) op: &'static str,
    /// The version that added it.
    pub(super) since: i64,
    pub(super) operands: Operands,
    pub(super) attrs: &'static [Attr],
}

/// How many operands there are. Behind the least they may be left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Operands {
    pub(super) least: usize,
    pub(super) most: usize,
    /// Places where null may stand.
    pub(super) nullable: &'static [usize],
}

/// An attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Attr {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) absent: Absent,
}

/// Value of an absent attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Absent {
    /// It must be there.
    Refused,
    /// This value, as JSON.
    Is(&'static str),
    /// The value of another attribute.
    As(&'static str),
}

const fn operands(least: usize, most: usize, nullable: &'static [usize]) -> Operands {
    Operands { least, most, nullable }
}

const ONE: Operands = operands(1, 1, &[]);
const TWO: Operands = operands(2, 2, &[]);
/// A value, weights, and a bias that may be absent.
const WITH_BIAS: Operands = operands(2, 3, &[2]);

const fn attr(name: &'static str, form: Form, default: &'static str) -> Attr {
    let absent = Absent::Is(default);
    Attr { name, form, absent }
}

const fn required(name: &'static str, form: Form) -> Attr {
    let absent = Absent::Refused;
    Attr { name, form, absent }
}

const fn row(op: &'static str, since: i64, operands: Operands, attrs: &'static [Attr]) -> Row {
    Row {
        op,
        since,
        operands,
        attrs,
    }
}

const STRIDES: Attr = attr("strides", Form::PAIR, "[1, 1]");
const PADDING: Attr = attr("padding", Form::BORDERS, "[0, 0, 0, 0]");
const DILATION: Attr = attr("dilation", Form::PAIR, "[1, 1]");
const GROUPS: Attr = attr("groups", Form::COUNT, "1");
const LAYOUT: Attr = attr("layout", Form::Word(&["NCHW", "NHWC"]), "\"NCHW\"");
const NCHW: Attr = attr("layout", Form::Word(&["NCHW"]), "\"NCHW\"");
const KERNEL: Attr = required("kernel", Form::PAIR);
const AS_KERNEL: Attr = Attr {
    name: "strides",
    form: Form::PAIR,
    absent: Absent::As("kernel"),
};
const CEILING: Attr = attr("ceil_mode", Form::Flag, "false");
const KEEPDIMS: Attr = attr("keepdims", Form::Flag, "false");
const SIZE: Attr = required("size", Form::PAIR);
const LAST_AXIS: &[Attr] = &[attr("axis", Form::Axis, "-1")];
const REDUCED: &[Attr] = &[required("axes", Form::Axes), KEEPDIMS];

const ROWS: &[Row] = &[
    row("conv2d", 1, WITH_BIAS, &[STRIDES, PADDING, DILATION, GROUPS, LAYOUT]),
    row(
        "conv_transpose2d",
        2,
        WITH_BIAS,
        &[
            STRIDES,
            PADDING,
            attr("output_padding", Form::MORE, "[0, 0]"),
            DILATION,
            GROUPS,
            NCHW,
        ],
    ),
    row("linear", 1, WITH_BIAS, &[]),
    row("matmul", 2, TWO, &[]),
    row("embedding", 2, TWO, &[]),
    row(
        "max_pool2d",
        1,
        ONE,
        &[KERNEL, AS_KERNEL, PADDING, DILATION, CEILING, LAYOUT],
    ),
    row(
        "avg_pool2d",
        1,
        ONE,
        &[
            KERNEL,
            AS_KERNEL,
            PADDING,
            CEILING,
            attr("count_include_pad", Form::Flag, "true"),
            LAYOUT,
        ],
    ),
    row("relu", 1, ONE, &[]),
    row(
        "clamp",
        1,
        ONE,
        &[attr("min", Form::Bound, "null"), attr("max", Form::Bound, "null")],
    ),
    row("leaky_relu", 1, ONE, &[attr("negative_slope", Form::Number, "0.01")]),
    row("prelu", 1, TWO, &[]),
    row("silu", 1, ONE, &[]),
    row("identity", 1, ONE, &[]),
    row("dropout", 1, ONE, &[attr("ratio", Form::Ratio, "0.5")]),
    row(
        "batch_norm",
        1,
        operands(5, 5, &[1, 2]),
        &[attr("eps", Form::Positive, "1e-5"), attr("axis", Form::Axis, "1")],
    ),
    row("softmax", 1, ONE, LAST_AXIS),
    row("log_softmax", 1, ONE, LAST_AXIS),
    row("mean", 1, ONE, REDUCED),
    row("sum", 1, ONE, REDUCED),
    row("max", 1, ONE, REDUCED),
    row("min", 1, ONE, REDUCED),
    row("argmax", 2, ONE, &[required("axis", Form::Axis), KEEPDIMS]),
    row("reshape", 1, ONE, &[required("shape", Form::Shape)]),
    row(
        "flatten",
        1,
        ONE,
        &[attr("start_axis", Form::Axis, "1"), attr("end_axis", Form::Axis, "-1")],
    ),
    row("transpose", 1, ONE, &[required("perm", Form::Order)]),
    row(
        "pad",
        1,
        ONE,
        &[required("padding", Form::EachAxis), attr("value", Form::Number, "0.0")],
    ),
    row(
        "concat",
        1,
        operands(1, usize::MAX, &[]),
        &[required("axis", Form::Axis)],
    ),
    row(
        "slice",
        1,
        ONE,
        &[
            required("axis", Form::Axis),
            attr("start", Form::Index, "0"),
            attr("stop", Form::End, "null"),
            attr("step", Form::COUNT, "1"),
        ],
    ),
    row(
        "resize_nearest",
        2,
        ONE,
        &[SIZE, attr("half_pixel_centers", Form::Flag, "false"), LAYOUT],
    ),
    row(
        "resize_bilinear",
        2,
        ONE,
        &[SIZE, attr("align_corners", Form::Flag, "false"), LAYOUT],
    ),
    row("rfft", 2, ONE, &[required("length", Form::Even(4, MAX_FFT as usize))]),
    row("cast", 3, ONE, &[]),
    row("quantize", 3, ONE, &[]),
    row("dequantize", 3, ONE, &[]),
];

/// Functions of one f32 that version 3 added.
const FUNCTIONS_SINCE_3: [&str; 2] = ["sin", "cos"];

/// Every operator; those of one f32 and of two come from the runtime's rows.
pub(super) fn all() -> impl Iterator<Item = Row> {
    let unary = Function::rows().filter_map(|(_, names)| {
        let op = names.trace?;
        let since = if FUNCTIONS_SINCE_3.contains(&op) { 3 } else { 1 };
        Some(row(op, since, ONE, &[]))
    });
    let binary = BinaryOp::ROWS
        .iter()
        .filter_map(|(_, names)| Some(row(names.trace?, 1, TWO, &[])));
    let special = SpecialBinaryOp::ROWS
        .iter()
        .filter_map(|(_, names)| Some(row(names.trace?, 3, TWO, &[])));
    ROWS.iter().copied().chain(unary).chain(binary).chain(special)
}

/// The names of all operators.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    all().map(|row| row.op)
}

/// The operator of this name.
pub(super) fn find(op: &str) -> Option<Row> {
    all().find(|row| row.op == op)
}

impl Row {
    /// The attribute of this name.
    pub(super) fn attr(&self, name: &str) -> Option<&'static Attr> {
        self.attrs.iter().find(|attr| attr.name == name)
    }
}
