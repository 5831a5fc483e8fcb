//! What the page shows of a model file: its steps with their operands, as plain data.

use arenite::{Access, Slot};

use crate::Result;
use crate::metadata::{Metadata, NO_TENSOR};
use crate::model::ModelView;

/// A step as the page needs it.
#[derive(Debug, Clone, Default)]
pub(super) struct PageStep {
    pub(super) name: String,
    pub(super) op: String,
    pub(super) kernel: &'static str,
    pub(super) macs: u64,
    /// What it completes: name, element type, shape.
    pub(super) tensor: Option<String>,
    pub(super) operands: Vec<PageOperand>,
}

/// An operand in the arena, the state or the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageOperand {
    pub(super) place: Slot,
    pub(super) bytes: u32,
    pub(super) access: Access,
    /// The number of the tensor that owns the memory; none for scratch and constants.
    pub(super) owner: Option<usize>,
}

impl PageStep {
    /// Bytes that it reads from the weights.
    pub(super) fn weights(&self) -> u64 {
        let constants = self
            .operands
            .iter()
            .filter(|operand| operand.place.region == Slot::WEIGHTS);
        constants.map(|operand| u64::from(operand.bytes)).sum()
    }
}

/// The steps of a file with what its metadata says of them.
///
/// # Errors
/// As [`ModelView::steps`].
pub(super) fn steps(view: &ModelView<'_>, metadata: &Metadata) -> Result<Vec<PageStep>> {
    let steps = view.steps()?.into_iter().zip(&metadata.steps).enumerate();
    let steps = steps.map(|(index, (step, meta))| {
        let mut operands = Vec::with_capacity(meta.operands.len());
        step.operands(&mut |operand| {
            let owner = meta
                .operands
                .get(operands.len())
                .copied()
                .filter(|&owner| owner != NO_TENSOR);
            operands.push(PageOperand {
                place: operand.place,
                bytes: operand.bytes,
                access: operand.access,
                owner: owner.map(|owner| owner as usize),
            });
        });
        let tensor = meta.completes.as_ref().map(|tensor| {
            let shape: Vec<String> = tensor.shape.iter().map(u32::to_string).collect();
            let name = tensor.names.first().map_or("", String::as_str);
            format!("{name}: {} [{}]", tensor.dtype.name(), shape.join(" × "))
        });
        PageStep {
            name: meta.name.clone(),
            op: meta.kind.clone(),
            kernel: step.kernel().name(),
            macs: metadata.computed_macs(index),
            tensor,
            operands,
        }
    });
    Ok(steps.collect())
}
