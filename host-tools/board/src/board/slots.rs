//! A model in two slots of the flash at a board's serial bus: the flash is a file that outlives qemu, and qemu may be killed at any time.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use arenite_protocol::{Command, INPUT_FILE, Record, Slots};

use super::error::BoardError;
use super::exchange::Exchange;
use super::firmware::Firmware;
use super::table::Board;

/// Bytes of a slot.
const SLOT_BYTES: u32 = 32 << 10;
/// Where the first one begins: behind what a boot loader has in the flash.
const START: u32 = 0x1_0000;
/// Of the journal, two sectors.
const JOURNAL_BYTES: u32 = 8 << 10;

/// How long a start or an update may take; it takes a second.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How often the records are looked at where qemu is to be killed.
const LOOK: Duration = Duration::from_micros(50);

/// When qemu is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The program has recorded so much.
    pub records: usize,
    /// So long after that.
    pub after: Duration,
}

/// A model that the program used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelInUse {
    /// Its slot.
    pub slot: u8,
    /// Whether it was on trial.
    pub trial: bool,
    /// The counter that it was signed with.
    pub counter: u64,
    /// Runs of its self-test, which it passed.
    pub tests: u32,
}

/// A program's report on its slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotsReport {
    /// Models that it used, one after the other; one that was on trial is there once more when it was confirmed.
    pub used: Vec<ModelInUse>,
    /// Bytes of an update that it had taken.
    pub taken: Option<u32>,
    /// Whether the update was complete and passed its self-test.
    pub written: bool,
    /// Records in all.
    pub records: usize,
    /// Whether qemu was killed; it may have ended before that.
    pub killed: bool,
}

/// Makes the file of a flash as it leaves the factory: a model in the first slot, the other one and the journal erased.
///
/// # Errors
/// [`BoardError::BlobTooLarge`] for a model that the slot has no room for, and for a board without such a flash; [`BoardError::File`].
pub fn factory_flash(board: &Board, path: &Path, model: &[u8]) -> Result<(), BoardError> {
    let size = board.spi_flash().map_or(0, |flash| flash.size);
    let (needed, available) = (model.len() as u64, size.min(SLOT_BYTES.into()));
    if needed > available {
        return Err(BoardError::BlobTooLarge {
            board: board.name,
            place: "slot in the flash at its serial bus",
            needed,
            available,
        });
    }
    let mut content = model.to_vec();
    content.resize((2 * SLOT_BYTES + JOURNAL_BYTES) as usize, 0xff);
    let write = || {
        let mut file = File::create(path)?;
        file.set_len(size)?;
        file.seek(SeekFrom::Start(START.into()))?;
        file.write_all(&content)
    };
    write().map_err(|source| BoardError::File {
        path: path.to_owned(),
        source,
    })
}

/// Starts a board whose flash is the file `flash`, and has it write an update where one is given; kills it at `cut`.
///
/// # Errors
/// As [`super::run()`]; [`BoardError::Refused`] where no model can be used, or the update is not taken.
pub fn run_slots(
    board: &'static Board,
    flash: &Path,
    update: Option<&[u8]>,
    cut: Option<Cut>,
) -> Result<SlotsReport, BoardError> {
    let firmware = Firmware::build_slots(board)?;
    let exchange = Exchange::new()?;
    let update = update.unwrap_or_default();
    exchange.write(INPUT_FILE, update)?;
    let flash = flash.canonicalize().map_err(|source| BoardError::File {
        path: flash.to_owned(),
        source,
    })?;
    let arguments = [
        "-drive".to_owned(),
        // A comma ends an option's value, two are one within it.
        format!(
            "file={},if=mtd,format=raw",
            flash.display().to_string().replace(',', ",,")
        ),
        // Writes of the chip get into the file in the order in which they were made, as they get into a chip.
        "-object".to_owned(),
        "main-loop,id=main-loop,thread-pool-max=1".to_owned(),
    ];
    let command = Command::Slots(Slots {
        start: START,
        bytes: SLOT_BYTES,
        update: u32::try_from(update.len()).unwrap_or(u32::MAX),
    });
    let mut report = SlotsReport::default();
    let note = |record: &Record<'_>| {
        report.records += 1;
        match *record {
            Record::InUse {
                slot,
                trial,
                counter,
                tests,
            } => report.used.push(ModelInUse {
                slot,
                trial,
                counter,
                tests,
            }),
            Record::Writing { bytes } => report.taken = Some(bytes),
            Record::Written { .. } => report.written = true,
            _ => {}
        }
    };
    let Some(cut) = cut else {
        exchange.carry_out(&firmware, command, &arguments, TIMEOUT, &mut |_| (), note)?;
        return Ok(report);
    };
    let mut reached = None;
    let stop = |records| {
        if reached.is_none() && records >= cut.records {
            reached = Some(Instant::now());
        }
        reached.is_some_and(|at| at.elapsed() >= cut.after)
    };
    let killed = exchange.carry_out_until(&firmware, command, &arguments, (TIMEOUT, LOOK), stop, note)?;
    report.killed = killed;
    Ok(report)
}
