//! Inputs and outputs: as users see them, and as load and sessions do.

use serde::{Deserialize, Serialize};

use crate::arena::Slot;
use crate::fields::Fields;
use crate::tensor::DType;

/// The most axes that an input or output has.
pub const MAX_RANK: usize = 8;

/// An input or output of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Port<'a> {
    /// The tensor's name in the trace.
    pub name: &'a str,
    /// Place of the tensor before (input) or after (output) a run.
    pub slot: Slot,
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: heapless::Vec<u32, MAX_RANK>,
    /// `real = scale * (stored - zero_point)`; 0 where it is not quantised.
    pub scale: f32,
    /// See `scale`.
    pub zero_point: i32,
}

impl Port<'_> {
    /// Bytes of all elements; `None` beyond 32 bits.
    pub fn bytes(&self) -> Option<u32> {
        let element = self.dtype.bytes() as u32;
        self.shape
            .iter()
            .try_fold(element, |bytes, &extent| bytes.checked_mul(extent))
    }
}

/// The part of a [`Port`] that load and sessions need, in much less code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PortPlace {
    pub(crate) slot: Slot,
    /// Of all elements.
    pub(crate) bytes: u32,
    pub(crate) dtype: DType,
}

impl PortPlace {
    /// Reads the fields of [`Port`].
    #[inline(never)]
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        fields.skip_str();
        let slot = fields.value()?;
        let dtype: DType = fields.value()?;
        let bytes = fields.product(MAX_RANK as u32, dtype.bytes() as u32);
        let _: (f32, i32) = fields.value()?;
        if fields.intact() {
            Some(Self {
                slot,
                bytes: bytes?,
                dtype,
            })
        } else {
            None
        }
    }
}
