//! `pack` and `arenite` as programs: exit status, what goes to which stream, what is left on disk.

mod archives;
mod chips;
mod codes;
mod commands;
mod common;
mod comparisons;
mod contract;
mod dead_channels;
#[cfg(unix)]
mod endings;
mod inputs;
mod messages;
mod outputs;
mod pages;
#[cfg(unix)]
mod progress;
mod readers;
mod signing;
#[cfg(unix)]
mod streams;
mod texts;
mod transcript;
mod winograd;
