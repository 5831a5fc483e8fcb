//! Boards: the table, the build of their firmware, and runs in qemu.
//!
//! [`run()`] takes a board, a blob and inputs and returns outputs and exact instruction counts; the same numbers at every
//! run, whatever the host is doing. Everything that can go wrong on the way is a [`BoardError`].

#[cfg(feature = "tools")]
mod bench;
mod bound;
#[cfg(feature = "tools")]
mod cycles;
#[cfg(feature = "tools")]
mod doctor;
#[cfg(feature = "tools")]
mod error;
#[cfg(feature = "tools")]
mod exchange;
#[cfg(feature = "tools")]
mod firmware;
#[cfg(feature = "tools")]
mod flash;
#[cfg(feature = "tools")]
mod footprint;
#[cfg(feature = "tools")]
mod generate;
#[cfg(feature = "tools")]
mod guards;
#[cfg(feature = "tools")]
pub mod install;
#[cfg(feature = "tools")]
mod kit;
mod parts;
#[cfg(feature = "tools")]
mod plugin;
#[cfg(feature = "tools")]
mod progress;
#[cfg(feature = "tools")]
mod qemu;
#[cfg(feature = "tools")]
mod run;
#[cfg(feature = "tools")]
mod serial;
#[cfg(feature = "tools")]
mod slots;
#[cfg(feature = "tools")]
mod smallest;
#[cfg(feature = "tools")]
mod sources;
#[cfg(feature = "tools")]
mod streamed;
mod table;
#[cfg(test)]
mod tests;
#[cfg(feature = "tools")]
mod toolchain;
#[cfg(feature = "tools")]
mod trace;
#[cfg(feature = "tools")]
mod unpack;
#[cfg(feature = "tools")]
mod workshop;
mod worst;

pub use crate::model::Blob;
#[cfg(feature = "tools")]
pub use arenite_protocol as protocol;
pub use bound::bound;
#[cfg(feature = "tools")]
pub use slots::{Cut, ModelInUse, SlotsReport, factory_flash, run_slots};
pub use table::{AddressRange, BOARDS, Board, Core, SpiFlash, Timer};
pub use worst::{most_instructions, tell as tell_worst};
#[cfg(feature = "tools")]
pub use {
    bench::{Bench, BenchOptions, BenchStep, bench},
    cycles::Estimate,
    doctor::{Finding, Remedies, doctor, doubted, miscomputes, ready, remedies, take_qemus},
    error::BoardError,
    firmware::{Firmware, Profile},
    flash::{FLASHES, Flash},
    footprint::{
        CompiledFootprint, Footprint, compiled_footprint, compiled_footprint_of_two, error_footprint, footprint,
        loaded_footprint, panics, start_bytes,
    },
    generate::{GenerateOptions, GenerateReport, generate},
    guards::{GuardReport, Guarding, Outside, guards, touch},
    kit::{Attacked, CaseFailure, Comparison, kernels, kernels_watched, mutations},
    plugin::{PLUGIN, plugin},
    progress::Progress,
    qemu::{LogLine, find_program},
    run::{
        Counted, Dump, GUARDED_BYTES, RunOptions, RunReport, count, execute, run, run_with_progress, selfcheck,
        trace_program,
    },
    serial::{Link, SerialBoard, SerialOptions, SerialPort, SerialReport, connect},
    sources::{archive as packed_sources, digest as sources_digest, runtime as runtime_sources},
    streamed::{StreamReport, run_streamed},
    toolchain::compiler,
    trace::{Block, CoreCount, Executed, ExecutionTrace, FlashReads, Interval},
    workshop::{PREBUILT_FOLDER, PREBUILT_LIST, Prebuilt, QEMU_FOLDER, checkout},
};
