//! The laboratory: what the models of the benchmarks cost on every board, tracked in `tests/results`, and the documents' tables of it.
//!
//! [`results`] measures and compares, [`counts`] shows what a model cost before and costs today, [`peer`] counts another runtime beside ours, [`tables`]
//! writes all of it into the documents; [`require`] says what tests may not lack, [`tiers`] when they last passed. The commands (`cargo xtask`) are the
//! package's program.

pub mod blob;
pub mod cliffs;
pub mod counts;
pub mod most;
pub mod peer;
pub mod quantise;
pub mod require;
pub mod results;
pub mod stacks;
pub mod tables;
pub mod tiers;
