//! Operator parameters of the footprints, as attributes of our operators.

use super::dump::{Footprint, Operator};
use crate::build::LARGEST_EXTENT;
use crate::error::{Error, Result};
use crate::graph::{Activation, BinaryOp, Conv2dAttrs, Layout, Padding2d, PoolAttrs, ReduceKind, UnaryKind};

/// An elementwise mode.
pub(super) enum Elemwise {
    Unary(UnaryKind),
    Binary(BinaryOp, Activation),
}

/// `mode` of an Elemwise.
pub(super) fn elemwise(operator: &Operator<'_>) -> Result<Elemwise> {
    let param = &operator.footprint()?.param;
    param.only(&["mode"])?;
    let mode = param.need("mode")?;
    let binary = |kind| Elemwise::Binary(kind, Activation::None);
    Ok(match mode.string()?.as_str() {
        "ADD" => binary(BinaryOp::Add),
        "SUB" => binary(BinaryOp::Sub),
        "MUL" => binary(BinaryOp::Mul),
        "TRUE_DIV" => binary(BinaryOp::Div),
        "MAX" => binary(BinaryOp::Maximum),
        "MIN" => binary(BinaryOp::Minimum),
        "FUSE_ADD_RELU" => Elemwise::Binary(BinaryOp::Add, Activation::Relu),
        "RELU" => Elemwise::Unary(UnaryKind::Relu),
        "EXP" => Elemwise::Unary(UnaryKind::EXP),
        "SIGMOID" => Elemwise::Unary(UnaryKind::LOGISTIC),
        "TANH" => Elemwise::Unary(UnaryKind::TANH),
        "NEGATE" => Elemwise::Unary(UnaryKind::NEG),
        "ABS" => Elemwise::Unary(UnaryKind::ABS),
        "LOG" => Elemwise::Unary(UnaryKind::LOG),
        other => return Err(mode.locate(Error::unsupported(format!("Elemwise mode {other}")))),
    })
}

/// A convolution's attributes; groups are those of weights of five axes.
pub(super) fn convolution(operator: &Operator<'_>, groups: usize) -> Result<Conv2dAttrs> {
    let footprint = operator.footprint()?;
    let param = &footprint.param;
    param.only(&[
        "compute_mode",
        "format",
        "sparse",
        "stride_w",
        "stride_h",
        "pad_w",
        "dilate_w",
        "dilate_h",
        "pad_h",
        "mode",
    ])?;
    is(footprint, "mode", &["CROSS_CORRELATION"])?;
    is(footprint, "format", &["NCHW"])?;
    is(footprint, "sparse", &["DENSE", "GROUP"])?;
    is(footprint, "compute_mode", &["DEFAULT", "FLOAT32"])?;
    let (h, w) = (size(footprint, "pad_h", 0)?, size(footprint, "pad_w", 0)?);
    Ok(Conv2dAttrs {
        layout: Layout::Nchw,
        stride: [size(footprint, "stride_h", 1)?, size(footprint, "stride_w", 1)?],
        dilation: [size(footprint, "dilate_h", 1)?, size(footprint, "dilate_w", 1)?],
        padding: symmetric(h, w),
        groups,
        activation: Activation::None,
    })
}

/// Whether the weights have an axis of groups.
pub(super) fn is_grouped(operator: &Operator<'_>) -> Result<bool> {
    Ok(operator.footprint()?.param.need("sparse")?.string()? == "GROUP")
}

/// Operation of a pooling.
pub(super) enum Pooling {
    Max,
    Average,
}

/// A pooling's mode and attributes.
pub(super) fn pooling(operator: &Operator<'_>) -> Result<(Pooling, PoolAttrs)> {
    let footprint = operator.footprint()?;
    footprint.param.only(&[
        "format", "window_w", "window_h", "stride_w", "stride_h", "pad_w", "pad_h", "mode",
    ])?;
    is(footprint, "format", &["NCHW"])?;
    let mode = footprint.param.need("mode")?;
    let (kind, count_include_pad) = match mode.string()?.as_str() {
        "MAX" => (Pooling::Max, false),
        "AVERAGE" => (Pooling::Average, true),
        "AVERAGE_COUNT_EXCLUDE_PADDING" => (Pooling::Average, false),
        other => return Err(mode.locate(Error::unsupported(format!("pooling mode {other}")))),
    };
    let (h, w) = (size(footprint, "pad_h", 0)?, size(footprint, "pad_w", 0)?);
    let attrs = PoolAttrs {
        layout: Layout::Nchw,
        kernel: [size(footprint, "window_h", 1)?, size(footprint, "window_w", 1)?],
        stride: [size(footprint, "stride_h", 1)?, size(footprint, "stride_w", 1)?],
        padding: symmetric(h, w),
        count_include_pad,
        activation: Activation::None,
    };
    if h >= attrs.kernel[0] || w >= attrs.kernel[1] {
        let window = attrs.kernel;
        return Err(operator.error(format!(
            "padding {h}, {w} of a window of {window:?} makes windows of padding alone"
        )));
    }
    Ok((kind, attrs))
}

/// A reduction and its axis of `rank`; the axis stays, with extent 1.
pub(super) fn reduce(operator: &Operator<'_>, rank: usize) -> Result<(ReduceKind, usize)> {
    let footprint = operator.footprint()?;
    footprint.param.only(&["axis", "data_type", "mode"])?;
    is(footprint, "data_type", &["DEFAULT", "FLOAT_O32xC32"])?;
    let mode = footprint.param.need("mode")?;
    let kind = match mode.string()?.as_str() {
        "SUM" => ReduceKind::Sum,
        "MEAN" => ReduceKind::Mean,
        "MAX" => ReduceKind::Max,
        "MIN" => ReduceKind::Min,
        other => return Err(mode.locate(Error::unsupported(format!("Reduce mode {other}")))),
    };
    let axis = footprint.param.need("axis")?;
    let index = axis.integer()?;
    let rank = i64::try_from(rank).unwrap_or(i64::MAX);
    let positive = if index < 0 { index.saturating_add(rank) } else { index };
    match usize::try_from(positive) {
        Ok(index) if positive < rank => Ok((kind, index)),
        _ => Err(axis.error(format!("axis {index} of an operand of {rank} axes"))),
    }
}

/// transposeA and transposeB of a matrix product.
pub(super) fn transposes(operator: &Operator<'_>) -> Result<(bool, bool)> {
    let footprint = operator.footprint()?;
    footprint
        .param
        .only(&["format", "compute_mode", "transposeB", "transposeA"])?;
    is(footprint, "format", &["DEFAULT"])?;
    is(footprint, "compute_mode", &["DEFAULT", "FLOAT32"])?;
    let flag = |name: &str| footprint.param.need(name)?.boolean();
    Ok((flag("transposeA")?, flag("transposeB")?))
}

fn is(footprint: &Footprint<'_>, name: &str, allowed: &[&str]) -> Result<()> {
    let value = footprint.param.need(name)?;
    let found = value.string()?;
    if allowed.contains(&found.as_str()) {
        Ok(())
    } else {
        Err(value.locate(Error::unsupported(format!("{name} {found}")).expected(allowed.join(" or "))))
    }
}

fn size(footprint: &Footprint<'_>, name: &str, least: usize) -> Result<usize> {
    footprint.param.need(name)?.size(least..=LARGEST_EXTENT)
}

fn symmetric(h: usize, w: usize) -> Padding2d {
    Padding2d {
        top: h,
        bottom: h,
        left: w,
        right: w,
    }
}
