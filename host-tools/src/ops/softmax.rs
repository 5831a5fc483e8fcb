//! Softmax and its logarithm.

use arenite::ops::softmax::SoftmaxF32;
use arenite::{Slot, Step};

use super::{fit, input, output, want_f32};
use crate::error::{Error, Result};
use crate::graph::Node;
use crate::program::{Lower, Place};

/// Lowers a softmax along an axis that is innermost, up to axes of extent 1.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, axis: usize, beta: f32, log: bool) -> Result<()> {
    want_f32(lower.graph(), node)?;
    let (x, y) = (input(node, 0)?, output(node)?);
    let shape = &lower.graph().tensor(x).shape;
    if shape[axis + 1..].iter().any(|&extent| extent != 1) {
        return Err(Error::unsupported(format!("softmax along axis {axis} of {shape:?}"))
            .expected("the last axis")
            .help("transpose before and after it"));
    }
    let classes = shape[axis];
    let op = SoftmaxF32 {
        output: Slot::default(),
        input: Slot::default(),
        rows: fit(
            lower.graph().tensor(x).elements() / classes.max(1),
            "the number of rows",
        )?,
        classes: fit(classes, "the number of classes")?,
        beta,
        log,
    };
    let places = vec![Place::Tensor(y, 0), lower.place(x)?];
    lower.push(
        node,
        if log { "log_softmax" } else { "softmax" },
        Step::SoftmaxF32(op),
        places,
        0,
    );
    Ok(())
}
