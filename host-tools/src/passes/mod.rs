//! Passes: each rewrites a graph and leaves it consistent.

pub mod prune;
pub mod recognise_softmax;
