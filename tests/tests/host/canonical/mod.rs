//! One graph for a network, however it is written: what passes fold and move computes what it did, and chains become the steps that they should.
//!
//! The oracle is loops in f64 over the graph as an importer gives it (`tests/src/graphs.rs`), before any pass.

mod affine;
mod doors;
mod files;
mod network;
#[path = "../importer_limits/onnx_file.rs"]
#[expect(dead_code, reason = "shared with another test")]
mod onnx_file;
mod parameters;
mod random;
mod shapes;
