//! Host tools of Arenite: a traced network in, one blob for the runtime out.
//!
//! It packs; graphs, importers, the plan of memory, quantisation and boards are crates of their own, whose modules stand here by the same names.
//!
//! ```text
//! import -> graph -> passes -> lower -> memory -> emit  =>  blob -> session -> ops -> kernels
//! ```

// Items that only the programs use.
#![cfg_attr(not(feature = "tools"), allow(dead_code))]
// A full or closed stream must not end the program: everything is printed through `files::print`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod build;
pub mod bundle;
#[cfg(feature = "tools")]
pub mod cli;
mod joined;
pub mod migrate;
pub mod pack;
pub mod page;
#[cfg(feature = "tools")]
pub mod perfetto;
pub mod pieces;
pub mod self_test;
pub mod sign;

pub use arenite_board::{board, chips, worst};
pub use arenite_graph::{
    Error, ErrorKind, Result, accelerator, error, files, graph, metadata, model, program, report, stage, weights,
};
pub use arenite_import as import;
pub use arenite_plan::{channels, emit, gradient, lower, memory, passes};
pub use arenite_quantise::{compare, pairs, preprocess, quantize, samples};

use arenite_graph::spelling;
use arenite_plan::describe;
#[cfg(feature = "tools")]
use arenite_quantise::array;
use arenite_quantise::portable;
