//! Commands for an Ethos-U: a tensor is the scratch, which inputs and outputs are views into.

use arenite::Step;
use arenite::kernels::ethos_u::commands::{Own, walk};
use arenite::ops::ethos_u::{EthosU, Inputs, Span};

use super::context::{Lower, fit, input, optional};
use super::copies::copy;
use crate::error::{Error, Result};
use crate::graph::{DType, EthosU as Attrs, Node, Tensor, TensorId, TensorKind};
use crate::program::Place;

/// Lowers a command stream. Who computes an input writes it where the commands read it, unless others want it as well: then it is copied there.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, attrs: &Attrs) -> Result<()> {
    let payload = input(node, 0)?;
    let payload_bytes = lower.graph().tensor(payload).bytes();
    let constants = optional(node, 1);
    let constants_bytes = constants.map_or(0, |id| lower.graph().tensor(id).bytes());
    let name = format!("{}/scratch of {}", node.name, lower.graph().tensors.len());
    let scratch = Tensor::activation(name, &[attrs.scratch as usize], DType::U8);
    let scratch = lower.program.graph.add_tensor(scratch);

    let (mut places, mut bytes) = (Vec::new(), heapless::Vec::new());
    for (&offset, &x) in attrs.inputs.iter().zip(node.inputs.iter().skip(2).flatten()) {
        let len = fit(lower.graph().tensor(x).bytes(), "an input's size")?;
        bytes.push(len).map_err(|_| too_many())?;
        places.push(if is_free(lower, x) {
            lower.view(x, scratch, offset);
            Place::Tensor(x, 0)
        } else {
            let tensor = lower.graph().tensor(x);
            let (count, element) = (tensor.elements(), tensor.dtype.bytes());
            let to = offset as usize / element;
            copy(lower, node, "copy", (x, 0), (scratch, to), &[(count, 1, 1)])?;
            complete(lower, scratch);
            Place::Tensor(scratch, offset)
        });
    }
    let mut places = places.into_iter();
    let inputs = Inputs {
        first: places.next(),
        second: places.next(),
        third: places.next(),
        fourth: places.next(),
        fifth: places.next(),
        sixth: places.next(),
        seventh: places.next(),
        eighth: places.next(),
        bytes,
    };
    let mut outputs = heapless::Vec::new();
    for (&offset, &y) in attrs.outputs.iter().zip(&node.outputs) {
        let bytes = fit(lower.graph().tensor(y).bytes(), "an output's size")?;
        let span = Span { offset, bytes };
        outputs.push(span).map_err(|_| too_many())?;
        lower.view(y, scratch, offset);
    }
    let step = EthosU {
        scratch: Place::Tensor(scratch, 0),
        fast: Place::Scratch,
        inputs,
        payload: lower.constant(payload)?,
        payload_bytes: fit(payload_bytes, "the payload's size")?,
        constants: constants.map_or(Ok(0), |id| lower.constant(id))?,
        constants_bytes: fit(constants_bytes, "the constants' size")?,
        scratch_bytes: attrs.scratch,
        fast_bytes: attrs.fast,
        outputs,
    };
    // As load will.
    walk(&lower.bytes(payload)?, &Own::of(&step)).map_err(|refused| {
        Error::input(refused.to_string())
            .expected("commands that touch the constants and the scratch of their operator alone")
            .help("compile the network again with Vela")
    })?;
    lower.push(node, "ethos_u", Step::EthosU(step), 0);
    complete(lower, scratch);
    Ok(())
}

/// Whether the tensor can lie in a scratch that is worthless afterwards: it has its own place, and nobody else reads it.
fn is_free(lower: &Lower<'_>, id: TensorId) -> bool {
    let graph = lower.graph();
    let readers = graph.nodes.iter().flat_map(|node| node.inputs.iter().flatten());
    let alone = readers.filter(|&&read| read == id).count() == 1 && !graph.outputs.contains(&id);
    let own = matches!(graph.tensor(id).kind, TensorKind::Activation | TensorKind::Input);
    // One that others are views of holds more than it says.
    let seen = lower.program.views.values().any(|&(of, _)| of == id);
    lower.program.share && alone && own && !seen && lower.program.root(id) == (id, 0)
}

/// The step that was added last is one of those that make this tensor.
fn complete(lower: &mut Lower<'_>, tensor: TensorId) {
    if let Some(step) = lower.program.steps.last_mut() {
        step.completes = Some(tensor);
    }
}

fn too_many() -> Error {
    Error::internal("more inputs or outputs than a step has")
}
