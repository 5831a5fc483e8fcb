//! The block of cells that gates are computed for.

/// Cells at a time.
pub(crate) const BLOCK: usize = 32;
