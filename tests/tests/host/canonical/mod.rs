//! One graph for a network, however it is written: what passes fold and move computes what it did, and chains become the steps that they should.
//!
//! The oracle is loops in f64 over the graph as an importer gives it (`tests/src/graphs.rs`), before any pass.

mod affine;
mod doors;
mod files;
mod network;
mod parameters;
mod random;
mod shapes;
