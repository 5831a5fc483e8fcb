//! Tests that build programs, packages and documents' projects as users do, each in a folder of its own.
//!
//! A module is a file of tests: `cargo test -p arenite-tests --test programs c::` runs one.

mod c;
mod compiled;
mod embedded;
mod footprint;
mod include;
mod installed;
mod matrix;
mod new;
mod panics;
mod patches;
mod places;
mod playground;
mod python;
mod serial;
mod signed_boards;
mod slots_killed;
mod tasks;
