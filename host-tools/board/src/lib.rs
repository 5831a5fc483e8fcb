//! Boards and chips: the tables, the build of their firmware, runs in qemu, and what steps take at the worst. It takes model files and knows nothing of how
//! they are made.

// Items that only the programs use.
#![cfg_attr(not(feature = "tools"), allow(dead_code))]
// A full or closed stream must not end the program: everything is printed through `files::print`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod board;
pub mod chips;
pub mod worst;

#[cfg(feature = "tools")]
use arenite_graph::files;
use arenite_graph::{error, model, report, spelling};
