//! Concatenations.

use super::context::{Lower, fit, input, output};
use super::copies::{copy, is_one_run, strides};
use crate::error::{Error, Result};
use crate::graph::{Activation, Node};

/// A concatenation: each operand is placed inside the result where that is one run of bytes and the operand is free, and copied there
/// otherwise.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, axis: usize, activation: Activation) -> Result<()> {
    let y = output(node)?;
    if activation != Activation::None {
        return Err(
            Error::unsupported("a concatenation with a fused activation").help("apply the activation before it")
        );
    }
    let to = strides(lower.graph().tensor(y));
    let mut at = 0;
    for index in 0..node.inputs.len() {
        let x = input(node, index)?;
        let tensor = lower.graph().tensor(x);
        let (from, shape) = (strides(tensor), tensor.shape.clone());
        if tensor.quant != lower.graph().tensor(y).quant {
            return Err(Error::unsupported(format!(
                "a concatenation that rescales `{}`",
                tensor.name
            )));
        }
        let axes: Vec<_> = (0..shape.len()).map(|i| (shape[i], to[i], from[i] as isize)).collect();
        let offset = at * to[axis];
        let bytes = fit(offset * lower.graph().tensor(x).dtype.bytes(), "the offset")?;
        if !is_one_run(&axes) || !lower.place_inside(x, y, bytes) {
            copy(lower, node, "concat", (x, 0), (y, offset), &axes)?;
        }
        at += shape[axis];
    }
    Ok(())
}
