//! Arguments of the loops of [`reduce_f32`](super).

/// Elements that make one output, in rows and columns.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Extents {
    pub(super) rows: usize,
    /// Bytes between rows.
    pub(super) row: usize,
    pub(super) columns: usize,
    /// Bytes between columns.
    pub(super) column: usize,
}
