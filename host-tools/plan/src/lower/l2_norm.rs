//! Rows divided by their length.

use arenite::ops::l2_norm::{L2NormS8, MOST_CHANNELS};
use arenite::{DType, Step};

use super::context::{Lower, fit, input, output};
use super::numbers::per_tensor;
use crate::error::{Error, Result};
use crate::graph::Node;
use crate::program::Place;

/// Lowers the division along the last axis of int8.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let (tx, ty) = (lower.graph().tensor(x), lower.graph().tensor(y));
    if [tx.dtype, ty.dtype] != [DType::I8; 2] {
        return Err(Error::internal("a normalisation of no int8"));
    }
    let (qx, qy) = (per_tensor(tx)?, per_tensor(ty)?);
    if qy != (1.0 / 128.0, 0) {
        return Err(
            Error::unsupported(format!("a result of scale {} and zero point {}", qy.0, qy.1))
                .expected("scale 1/128 and zero point 0, as in TensorFlow Lite Micro")
                .help("convert the model again, or insert QUANTIZE behind the operator"),
        );
    }
    let channels = tx.shape.last().copied().unwrap_or(1).max(1);
    if channels > MOST_CHANNELS as usize {
        return Err(Error::unsupported(format!("rows of {channels} numbers"))
            .expected(format!("at most {MOST_CHANNELS}, whose squares have 31 bits")));
    }
    let step = L2NormS8 {
        output: Place::Tensor(y, 0),
        rows: fit(tx.elements() / channels, "the number of rows")?,
        channels: fit(channels, "the number of channels")?,
        zero: qx.1,
        input: lower.place(x)?,
    };
    lower.push(node, "l2_norm", Step::L2NormS8(step), 0);
    Ok(())
}
