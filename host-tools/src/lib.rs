//! Host tools of Arenite: a traced network in, one blob for the runtime out.
//!
//! ```text
//! import -> graph -> passes -> lower -> memory -> emit  =>  blob -> session -> ops -> kernels
//! ```

// What only the programs use.
#![cfg_attr(not(feature = "tools"), allow(dead_code))]
// A full or closed stream must not end the program: everything is printed through `files::print`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod accelerator;
mod array;
pub mod board;
pub mod build;
pub mod bundle;
pub mod channels;
#[cfg(feature = "tools")]
pub mod chips;
#[cfg(feature = "tools")]
pub mod cli;
pub mod compare;
pub mod emit;
pub mod error;
pub mod files;
pub mod graph;
pub mod import;
mod joined;
pub mod lower;
pub mod memory;
pub mod metadata;
pub mod migrate;
pub mod model;
pub mod pack;
pub mod page;
pub mod pairs;
pub mod passes;
pub mod pieces;
mod portable;
pub mod preprocess;
pub mod program;
pub mod quantize;
pub mod report;
pub mod samples;
pub mod self_test;
pub mod sign;
mod spelling;
pub mod stage;
pub mod weights;
pub mod worst;

pub use error::{Error, ErrorKind, Result};
