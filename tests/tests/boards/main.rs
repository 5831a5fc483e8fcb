//! Tests that run firmware on emulated boards.
//!
//! A module is a file of tests: `cargo test -p arenite-tests --test boards accelerators::` runs one.

mod accelerators;
mod arena_boards;
mod board_errors;
mod boards;
mod camera;
mod choices;
mod cores;
mod cost_axes;
mod cost_boards;
mod cycles;
mod digits;
mod full_size;
mod fused;
mod infer;
mod int8_boards;
mod kernels;
mod language;
mod learner;
mod most;
mod operands;
mod results;
mod self_test_boards;
mod smollm;
mod training;
mod worst;
