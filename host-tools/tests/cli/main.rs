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
mod diagnostics;
mod doctor;
#[cfg(unix)]
mod emulators;
#[cfg(unix)]
mod endings;
mod graphs;
mod inputs;
mod messages;
mod names;
mod noise;
mod onnx;
mod options;
mod outputs;
mod pages;
mod perfetto;
#[cfg(unix)]
mod pieces;
mod progress;
mod readers;
mod search;
mod signing;
mod sites;
#[cfg(unix)]
mod streams;
mod texts;
mod training;
mod transcript;
mod winograd;
