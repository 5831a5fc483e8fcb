//! Sizes of operands.

use crate::ops::fault::Fault;

/// The product of extents, `None` beyond 32 bits.
pub(crate) fn size(extents: &[u32]) -> Option<u32> {
    extents
        .iter()
        .try_fold(1u32, |product, &extent| product.checked_mul(extent))
}

/// [`size`], as load's error.
pub(crate) fn checked_size(extents: &[u32]) -> Result<u32, Fault> {
    size(extents).filter(|&bytes| bytes > 0).ok_or(Fault::Shape)
}
