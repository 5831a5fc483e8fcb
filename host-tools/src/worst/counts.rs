//! What features of a step's loops are made of.

/// Counts that features are products of.
pub(super) type Counts = Vec<(&'static str, f64)>;

/// Blocks, the last one begun too.
pub(super) fn block(of: f64, by: f64) -> f64 {
    (of / by).ceil()
}
