//! Transposes.

use super::context::{Lower, input, output};
use super::copies::{copy, strides};
use crate::error::Result;
use crate::graph::Node;

/// A transpose: output axis `i` is input axis `perm[i]`.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, perm: &[usize]) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let (from, to) = (strides(lower.graph().tensor(x)), strides(lower.graph().tensor(y)));
    let shape = lower.graph().tensor(y).shape.clone();
    let axes: Vec<_> = perm
        .iter()
        .enumerate()
        .map(|(i, &axis)| (shape[i], to[i], from[axis] as isize))
        .collect();
    copy(lower, node, "transpose", (x, 0), (y, 0), &axes)
}
