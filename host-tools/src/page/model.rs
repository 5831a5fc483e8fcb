//! A model file's steps with their operands, as plain data.

use arenite::ops::window::Window2d;
use arenite::{Access, Slot};

use crate::Result;
use crate::metadata::{Metadata, NO_TENSOR, TensorMeta};
use crate::model::ModelView;

/// A step as the page needs it.
#[derive(Debug, Clone, Default)]
pub(super) struct PageStep {
    pub(super) name: String,
    pub(super) op: String,
    pub(super) kernel: &'static str,
    pub(super) macs: u64,
    /// An estimate that depends on no core: `Step::cost` of the runtime.
    pub(super) cost: u64,
    /// The tensor that it completes.
    pub(super) completes: Option<TensorMeta>,
    /// Where it slides a window.
    pub(super) window: Option<Window2d>,
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
    /// Places and bytes of what it reads from the weights.
    pub(super) fn constants(&self) -> impl Iterator<Item = (u32, u32)> {
        let constants = self
            .operands
            .iter()
            .filter(|operand| operand.place.region == Slot::WEIGHTS);
        constants.map(|operand| (operand.place.offset, operand.bytes))
    }
}

/// The steps of a file with what its metadata says of them.
///
/// # Errors
/// As [`ModelView::steps`].
pub(super) fn steps(view: &ModelView<'_>, metadata: &Metadata) -> Result<Vec<PageStep>> {
    let steps = view.steps()?.into_iter().zip(&metadata.steps).enumerate();
    let steps = steps.map(|(index, (mut step, meta))| {
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
        PageStep {
            name: meta.name.clone(),
            op: meta.kind.clone(),
            kernel: step.kernel().name(),
            macs: metadata.computed_macs(index),
            cost: step.cost().total(),
            completes: meta.completes.clone(),
            window: step.window_mut().copied(),
            operands,
        }
    });
    Ok(steps.collect())
}
