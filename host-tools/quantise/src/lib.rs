//! Float networks as integer ones: samples that calibrate them, ranges, weights and the rewritten graph; float operators between conversions (ONNX's QDQ) as
//! operators on int8; preprocessing in front of a network's input.

// Items that only the programs use.
#![cfg_attr(not(feature = "tools"), allow(dead_code))]
// A full or closed stream must not end the program: everything is printed through `files::print`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod array;
pub mod compare;
pub mod pairs;
pub mod portable;
pub mod preprocess;
pub mod quantize;
pub mod samples;

use arenite_graph::{
    Error, Result, error, files, graph, half, metadata, model, program, report, spelling, stage, weights,
};
use arenite_plan::{emit, lower, memory, passes};
