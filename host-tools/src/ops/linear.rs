//! Linear layers.

use arenite::ops::linear::LinearF32;
use arenite::{Slot, Step};

use super::conv2d::bias_f32;
use super::{clamp, fit, input, output, want_f32};
use crate::error::Result;
use crate::graph::{Activation, Node};
use crate::program::{Lower, Place};

/// Lowers a linear layer of f32 activations.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, activation: Activation) -> Result<()> {
    want_f32(lower.graph(), node)?;
    let (x, w, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let (outputs, inputs) = (lower.graph().tensor(w).shape[0], lower.graph().tensor(w).shape[1]);
    let rows = lower.graph().tensor(x).elements() / inputs.max(1);
    let op = LinearF32 {
        output: Slot::default(),
        input: Slot::default(),
        weights: Slot::default(),
        bias: Slot::default(),
        rows: fit(rows, "the number of rows")?,
        inputs: fit(inputs, "the number of inputs")?,
        outputs: fit(outputs, "the number of outputs")?,
        clamp: clamp(activation),
    };
    let bias = match node.inputs.get(2).copied().flatten() {
        Some(bias) => lower.place(bias)?,
        None => Place::Constant(bias_f32(lower, None, outputs)?),
    };
    let places = vec![Place::Tensor(y, 0), lower.place(x)?, lower.place(w)?, bias];
    lower.push(
        node,
        "linear",
        Step::LinearF32(op),
        places,
        (rows * inputs * outputs) as u64,
    );
    Ok(())
}
