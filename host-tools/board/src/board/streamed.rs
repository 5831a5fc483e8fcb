//! Models in pieces on a board with a flash at a serial bus: the file is the flash's content, and the firmware reads it from there.

use std::fs;

use arenite_protocol::{Command, INPUT_FILE, Infer, OUTPUT_FILE};

use super::error::BoardError;
use super::exchange::Exchange;
use super::firmware::Firmware;
use super::progress::Progress;
use super::qemu::LogLine;
use super::run::{RunOptions, RunReport, Told};
use super::table::Board;

/// The flash's content, in the folder of the run.
const FLASH_FILE: &str = "flash";

/// Where the model lies in the flash: behind what a boot loader has there.
const START: u32 = 0x1_0000;

/// Report of a board, and the traffic over its bus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamReport {
    /// As of a model in memory; its steps are the pieces, and include what it takes to read them.
    pub run: RunReport,
    /// Bytes over the bus until the model was open.
    pub opening_bytes: u64,
    /// Bytes over the bus in each run.
    pub run_bytes: Vec<u64>,
}

/// Runs a model in pieces on a board with a flash at a serial bus; `inputs` as of [`super::run()`].
///
/// # Errors
/// As [`super::run()`]; [`BoardError::BlobTooLarge`] for a file that the flash has no room for, and for a board without one.
pub fn run_streamed(
    board: &'static Board,
    file: &[u8],
    inputs: &[u8],
    options: &RunOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<StreamReport, BoardError> {
    let size = board.spi_flash().map_or(0, |flash| flash.size);
    let available = size.saturating_sub(START.into());
    let needed = file.len() as u64;
    if needed > available {
        return Err(BoardError::BlobTooLarge {
            board: board.name,
            place: "flash at its serial bus",
            needed,
            available,
        });
    }
    let firmware = Firmware::build_streamed(board, progress)?;
    let exchange = Exchange::new()?;
    exchange.write(INPUT_FILE, inputs)?;
    let mut content = vec![0xff; START as usize];
    content.extend_from_slice(file);
    content.resize(size as usize, 0xff);
    exchange.write(FLASH_FILE, &content)?;
    drop(content);
    let infer = Infer {
        blob_address: START.into(),
        blob_length: needed,
        runs: options.runs,
        reset_each: false,
        profile: options.profile,
        dump_steps: false,
        guard_blob: false,
    };
    let mut arguments = vec!["-drive".to_owned(), format!("file={FLASH_FILE},if=mtd,format=raw")];
    arguments.extend(options.qemu_arguments.iter().cloned());
    let (mut told, command) = (Told::new(options.profile), Command::Infer(infer));
    let logs = exchange.carry_out(&firmware, command, &arguments, options.timeout, progress, |record| {
        told.note(record);
    })?;
    let mut report = StreamReport {
        run: told.report,
        ..StreamReport::default()
    };
    for line in &logs {
        if let Some(bytes) = moved(line, "opened: ") {
            report.opening_bytes = bytes;
        }
        report.run_bytes.extend(moved(line, "a run: "));
    }
    report.run.logs = logs;
    report.run.outputs = exchange.read(OUTPUT_FILE)?;
    // It is as large as the chip.
    let _ = fs::remove_file(exchange.path(FLASH_FILE));
    Ok(report)
}

/// Returns the bytes over the bus that a line of the program reports.
fn moved(line: &LogLine, during: &str) -> Option<u64> {
    let rest = line.text.strip_prefix(during)?;
    rest.strip_suffix(" bytes over the bus")?.parse().ok()
}
