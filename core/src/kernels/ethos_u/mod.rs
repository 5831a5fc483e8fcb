//! Command streams of Ethos-U55 and U65: builds with the feature `ethos-u`. No kernel computes them: an NPU does, which
//! [`Session::run_ethos_u`](crate::Session::run_ethos_u) hands them to. This module is load's half: [`commands`] follows every command and refuses what
//! touches more than the step's own constants and scratch.

pub mod commands;
mod maps;
mod ranges;
pub mod stream;
mod why;

#[cfg(test)]
mod tests;
