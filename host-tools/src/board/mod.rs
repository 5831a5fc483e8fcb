//! Boards: the table, the build of their firmware, and runs in qemu.
//!
//! [`run()`] takes a board, a blob and inputs and returns outputs and exact instruction counts; the same numbers at every
//! run, whatever the host is doing. Everything that can go wrong on the way is a [`BoardError`].

mod bench;
mod bound;
mod cycles;
mod doctor;
mod error;
mod exchange;
mod firmware;
mod flash;
mod footprint;
mod progress;
mod qemu;
mod run;
mod serial;
mod table;
mod toolchain;
mod trace;
mod worst;

pub use crate::model::Blob;
pub use arenite_protocol as protocol;
pub use bench::{Bench, BenchOptions, BenchStep, bench};
pub use bound::bound;
pub use cycles::Estimate;
pub use doctor::{Finding, doctor, ready};
pub use error::BoardError;
pub use firmware::{Firmware, Profile};
pub use flash::{FLASHES, Flash};
pub use footprint::{Footprint, footprint, panics};
pub use progress::Progress;
pub use qemu::LogLine;
pub use qemu::{QEMU_FOLDER, find_program};
pub use run::{
    Attacked, Comparison, Counted, Dump, GUARDED_BYTES, RunOptions, RunReport, count, execute, kernels, mutations, run,
    run_with_progress, selfcheck, trace_program,
};
pub use serial::{Link, SerialBoard, SerialOptions, SerialPort, SerialReport, connect};
pub use table::{AddressRange, BOARDS, Board, Core, Timer};
pub use trace::{Block, Executed, ExecutionTrace, FlashReads, Interval};
pub use worst::{most_instructions, tell as tell_worst};
