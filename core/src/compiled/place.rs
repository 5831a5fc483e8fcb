//! Where inputs and outputs of a compiled model lie.

use crate::arena::Slot;
use crate::tensor::DType;

/// Place of an input or output.
#[derive(Debug, Clone, Copy)]
pub struct PortPlace {
    pub(super) slot: Slot,
    pub(super) bytes: u32,
    pub(super) dtype: DType,
}

impl PortPlace {
    /// Of so many bytes.
    pub const fn new(slot: Slot, bytes: u32, dtype: DType) -> Self {
        Self { slot, bytes, dtype }
    }

    /// Its bytes in the memory that it lies in.
    #[inline(always)]
    pub(super) fn of_mut<'m>(&self, memory: &'m mut [u8]) -> &'m mut [u8] {
        memory
            .get_mut(self.slot.offset as usize..)
            .and_then(|memory| memory.get_mut(..self.bytes as usize))
            .unwrap_or_default()
    }
}
