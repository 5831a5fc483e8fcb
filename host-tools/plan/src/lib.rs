//! From a graph to a model file: passes over the graph, kernels for its operators, an order and places for its steps, and the file's bytes.
//!
//! ```text
//! graph -> passes -> channels -> lower -> memory -> emit
//! ```

// Items that only the programs use.
#![cfg_attr(not(feature = "tools"), allow(dead_code))]
// A full or closed stream must not end the program: everything is printed through `files::print`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod channels;
pub mod describe;
pub mod emit;
pub mod gradient;
pub mod lower;
pub mod memory;
pub mod passes;

use arenite_graph::{
    Error, Result, accelerator, error, files, graph, half, metadata, model, program, report, stage, weights,
};
