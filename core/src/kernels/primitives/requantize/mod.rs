//! From sums to outputs of one scale.

pub(crate) mod bounded;
pub(crate) mod lines;
pub mod steps;
