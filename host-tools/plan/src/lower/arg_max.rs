//! Index of the largest element.

use arenite::ops::arg_max::ArgMax;
use arenite::{DType, Step};

use super::context::{Lower, fit, input, output};
use crate::error::{Error, Result};
use crate::graph::Node;
use crate::program::Place;

/// Lowers the index of the largest element along `axis`.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, axis: usize) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let at = lower.place(x)?;
    let tx = lower.graph().tensor(x);
    if !matches!(tx.dtype, DType::F32 | DType::I8) {
        return Err(Error::unsupported(format!("the largest of {}", tx.dtype.name())).expected("f32 or int8"));
    }
    let extent = |axes: &[usize]| fit(axes.iter().product(), "an extent");
    let step = ArgMax {
        output: Place::Tensor(y, 0),
        input: at,
        dtype: tx.dtype,
        shape: [
            extent(&tx.shape[..axis])?,
            extent(&tx.shape[axis..=axis])?,
            extent(&tx.shape[axis + 1..])?,
        ],
    };
    lower.push(node, "arg_max", Step::ArgMax(step), 0);
    Ok(())
}
