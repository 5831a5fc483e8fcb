//! Common parts of Arenite's host tools: graphs, weights, programs and model files, reading of files and reporting of errors.

// Items that only the programs use.
#![cfg_attr(not(feature = "tools"), allow(dead_code))]
// A full or closed stream must not end the program: everything is printed through `files::print`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod accelerator;
pub mod error;
pub mod files;
pub mod graph;
pub mod half;
pub mod metadata;
pub mod model;
pub mod program;
pub mod report;
pub mod spelling;
pub mod stage;
pub mod weights;

pub use error::{Error, ErrorKind, Result};
