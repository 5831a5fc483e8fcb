//! What the host tools of Arenite have in common: graphs, weights, programs and model files, how files are read and how a failure is told.

// What only the programs use.
#![cfg_attr(not(feature = "tools"), allow(dead_code))]
// A full or closed stream must not end the program: everything is printed through `files::print`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod accelerator;
pub mod error;
pub mod files;
pub mod graph;
pub mod metadata;
pub mod model;
pub mod program;
pub mod report;
pub mod spelling;
pub mod stage;
pub mod weights;

pub use error::{Error, ErrorKind, Result};
