//! The folder that firmware and host share for one run: what goes in, what is recorded, how a failure is read from it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arenite_protocol::{Command, PROTOCOL_VERSION, RECORD_FILE, REQUEST_FILE, Record, Request};

use super::error::BoardError;
use super::firmware::Firmware;
use super::progress::Progress;
use super::qemu::{self, Ended, LogLine};
use super::table::Board;
use crate::files::Scratch;
use crate::model::Blob;

/// The folder that firmware and host share for one run.
pub(super) struct Exchange {
    folder: Scratch,
}

impl Exchange {
    pub(super) fn new() -> Result<Self, BoardError> {
        Scratch::new()
            .map(|folder| Self { folder })
            .map_err(|source| BoardError::File {
                path: std::env::temp_dir(),
                source,
            })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), BoardError> {
        let path = self.path(name);
        fs::write(&path, bytes).map_err(|source| BoardError::File { path, source })
    }

    /// A file that the firmware wrote; empty where it had nothing to write.
    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, BoardError> {
        let path = self.path(name);
        match fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other.map_err(|source| BoardError::File { path, source }),
        }
    }

    /// Chooses the blob's address and returns it with the length and what makes qemu load it there.
    pub(super) fn place_blob(
        &self,
        firmware: &Firmware,
        blob: Blob<'_>,
    ) -> Result<(u64, u64, Vec<String>), BoardError> {
        const NAME: &str = "blob";
        /// Blobs start where flash sectors, cache lines and vectors all do.
        const ALIGN: u64 = 1024;
        let board = firmware.board();
        let length = match blob {
            Blob::Bytes(bytes) => bytes.len() as u64,
            Blob::File(path) => fs::metadata(path)
                .map_err(|source| BoardError::File {
                    path: path.to_owned(),
                    source,
                })?
                .len(),
        };
        let (place, memory) = match board.extra {
            Some(extra) => ("memory", extra),
            None => ("flash", board.flash),
        };
        // A part of the program may lie there too.
        let address = firmware.loaded_end(memory)?.next_multiple_of(ALIGN);
        let available = memory.end().saturating_sub(address);
        if length > available {
            return Err(BoardError::BlobTooLarge {
                board: board.name,
                place,
                needed: length,
                available,
            });
        }
        match blob {
            Blob::Bytes(bytes) => self.write(NAME, bytes)?,
            Blob::File(path) => {
                let link = self.path(NAME);
                let failed = |source| BoardError::File {
                    path: path.to_owned(),
                    source,
                };
                linked(path, &link).map_err(failed)?;
            }
        }
        // qemu refuses to load an empty file; an empty blob is for the firmware to refuse.
        let loader = match length {
            0 => Vec::new(),
            _ => vec![
                "-device".to_owned(),
                format!("loader,file={NAME},addr={address:#x},force-raw=on"),
            ],
        };
        Ok((address, length, loader))
    }

    /// Sends the request, runs the program to its end, hands every record to `note` and turns failures into errors.
    pub(super) fn carry_out(
        &self,
        firmware: &Firmware,
        command: Command,
        arguments: &[String],
        timeout: Duration,
        progress: &mut dyn FnMut(Progress),
        note: impl FnMut(&Record<'_>),
    ) -> Result<Vec<LogLine>, BoardError> {
        self.send(firmware.board(), command)?;
        let mut seen = Seen::default();
        let records = self.path(RECORD_FILE);
        let ended = qemu::run(firmware, self.folder.path(), arguments, timeout, || {
            if let Some(now) = seen.look(&records) {
                progress(now);
            }
        })?;
        self.judge(firmware, &ended, (timeout, false), note)?;
        Ok(ended.logs)
    }

    /// [`Exchange::carry_out`], with qemu killed where `stop`, which is asked at that interval how many records there are, says so. Gives whether it was.
    pub(super) fn carry_out_until(
        &self,
        firmware: &Firmware,
        command: Command,
        arguments: &[String],
        (timeout, interval): (Duration, Duration),
        mut stop: impl FnMut(usize) -> bool,
        note: impl FnMut(&Record<'_>),
    ) -> Result<bool, BoardError> {
        self.send(firmware.board(), command)?;
        let (records, mut killed) = (self.path(RECORD_FILE), false);
        let ended = qemu::run_until(firmware, self.folder.path(), arguments, (timeout, interval), || {
            let (mut count, bytes) = (0, fs::read(&records).unwrap_or_default());
            each_record(&bytes, |_| count += 1);
            killed = stop(count);
            killed
        })?;
        self.judge(firmware, &ended, (timeout, killed), note)?;
        Ok(killed)
    }

    fn send(&self, board: &Board, command: Command) -> Result<(), BoardError> {
        let request = Request {
            version: PROTOCOL_VERSION,
            command,
        };
        let request = postcard::to_stdvec(&request).map_err(|error| BoardError::Protocol {
            board: board.name,
            reason: error.to_string(),
        })?;
        self.write(REQUEST_FILE, &request)
    }

    /// Hands every record to `note` and says how the program failed, if it did: one that was killed did not by that.
    fn judge(
        &self,
        firmware: &Firmware,
        ended: &Ended,
        (timeout, killed): (Duration, bool),
        mut note: impl FnMut(&Record<'_>),
    ) -> Result<(), BoardError> {
        let board = firmware.board();
        let bytes = self.read(RECORD_FILE)?;
        let mut last = None;
        let rest = each_record(&bytes, |record| {
            note(&record);
            last = Some(record);
        });
        let failed = last.as_ref().and_then(|record| failure(firmware, record));
        if killed {
            return failed.map_or(Ok(()), Err);
        }
        let Some(status) = ended.status else {
            let reached = last.map_or("nothing".to_owned(), |record| format!("{record:?}"));
            return Err(BoardError::Timeout {
                board: board.name,
                seconds: timeout.as_secs(),
                reached,
            });
        };
        if let Some(error) = failed {
            return Err(error);
        }
        if !status.success() {
            return Err(BoardError::Qemu {
                board: board.name,
                status: status.to_string(),
                stderr: ended.stderr.clone(),
            });
        }
        if !rest.is_empty() || last.is_none() {
            let reason = format!("{} bytes of its record cannot be decoded", rest.len());
            return Err(BoardError::Protocol {
                board: board.name,
                reason,
            });
        }
        Ok(())
    }
}

/// Decodes what is there of records; gives what is behind the last whole one.
fn each_record<'b>(bytes: &'b [u8], mut note: impl FnMut(Record<'b>)) -> &'b [u8] {
    let mut rest = bytes;
    while let Ok((record, others)) = postcard::take_from_bytes(rest) {
        note(record);
        rest = others;
    }
    rest
}

/// The error that a program's last record stands for, if any.
fn failure(firmware: &Firmware, last: &Record<'_>) -> Option<BoardError> {
    let board = firmware.board().name;
    Some(match *last {
        Record::Boot { .. }
        | Record::Counted { .. }
        | Record::Compared { .. }
        | Record::Mutated { .. }
        | Record::Differs { .. }
        | Record::Unsaved { .. }
        | Record::Guarded { .. }
        | Record::Outside { .. }
        | Record::Loaded { .. }
        | Record::Step { .. }
        | Record::Ran { .. }
        | Record::Finished { .. }
        | Record::InUse { .. }
        | Record::Writing { .. }
        | Record::Generated { .. }
        | Record::Written { .. } => return None,
        Record::Refused { during, name, text } => BoardError::Refused {
            board,
            during,
            name: name.to_owned(),
            text: text.to_owned(),
        },
        Record::OutOfMemory {
            needed,
            available,
            purpose,
        } => BoardError::OutOfMemory {
            board,
            purpose,
            needed,
            available,
        },
        Record::InputSize { runs, each, given } => BoardError::InputSize { runs, each, given },
        Record::BadRequest { version } => BoardError::Protocol {
            board,
            reason: format!(
                "the firmware speaks protocol {version} and these tools {PROTOCOL_VERSION}, or the program is another"
            ),
        },
        Record::Io { file, wanted, got } => BoardError::Protocol {
            board,
            reason: format!("exchange file `{file}`: {wanted} bytes wanted, {got} served"),
        },
        Record::Corrupted { what } => BoardError::Corrupted { board, what },
        Record::Fault {
            pc,
            lr,
            sp,
            cause,
            address,
        } => BoardError::Fault {
            board,
            pc,
            function: firmware.function_at(pc),
            lr,
            sp,
            cause,
            address,
        },
        Record::Panicked { file, line, text } => BoardError::Panicked {
            board,
            file: file.to_owned(),
            line,
            text: text.to_owned(),
        },
    })
}

/// Reads a record file while it grows.
#[derive(Default)]
struct Seen {
    decoded: usize,
    runs: u32,
    steps: u32,
    of_steps: u32,
    /// Whether steps are told one by one.
    stepwise: bool,
    skipped: u32,
}

impl Seen {
    /// How far the program is, if that changed since the last look.
    fn look(&mut self, path: &Path) -> Option<Progress> {
        /// Looks between two reads of the file: a look comes every few milliseconds, a person does not.
        const EVERY: u32 = 50;
        self.skipped += 1;
        if self.skipped < EVERY {
            return None;
        }
        self.skipped = 0;
        let bytes = read_from(path, self.decoded)?;
        let rest = each_record(&bytes, |record| match record {
            Record::Loaded { steps, .. } => self.of_steps = steps,
            Record::Step { index, .. } => (self.steps, self.stepwise) = (index + 1, true),
            Record::Ran { .. } => (self.runs, self.steps) = (self.runs + 1, 0),
            _ => (),
        });
        let decoded = bytes.len() - rest.len();
        self.decoded += decoded;
        (decoded > 0).then_some(Progress::Running {
            runs: self.runs,
            steps: self.steps,
            of_steps: if self.stepwise { self.of_steps } else { 0 },
        })
    }
}

fn read_from(path: &Path, offset: usize) -> Option<Vec<u8>> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = fs::File::open(path).ok()?;
    file.seek(SeekFrom::Start(offset as u64)).ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Puts a file where qemu looks for it: a link, or a copy on systems where not everybody may make links.
fn linked(from: &Path, to: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::symlink(from.canonicalize()?, to);
    #[cfg(not(unix))]
    return std::fs::copy(from, to).map(drop);
}
