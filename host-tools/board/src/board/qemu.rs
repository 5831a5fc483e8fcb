//! One qemu process: started in a folder of its own, ended in time, its log frames decoded.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::error::BoardError;
use super::firmware::Firmware;
use super::install::{Manager, remedy};
use super::table::Board;
use super::workshop::beside_the_path;
use crate::files::signals;

/// Where the frames of defmt go, inside the folder of the run.
const LOG_FILE: &str = "log";
const STDERR_FILE: &str = "stderr";
/// How often the process is looked at.
const POLL: Duration = Duration::from_millis(2);

/// A line that the firmware logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// `trace` to `error`; empty for a line without level.
    pub level: String,
    /// The formatted message.
    pub text: String,
}

/// Outcome of a qemu process.
pub(super) struct Ended {
    /// `None` when it was stopped, as at the time limit.
    pub(super) status: Option<ExitStatus>,
    pub(super) stderr: String,
    pub(super) logs: Vec<LogLine>,
}

/// Runs `firmware` in `folder` until it ends or `timeout` passes, calling `look` now and then.
pub(super) fn run(
    firmware: &Firmware,
    folder: &Path,
    arguments: &[String],
    timeout: Duration,
    mut look: impl FnMut(),
) -> Result<Ended, BoardError> {
    run_until(firmware, folder, arguments, (timeout, POLL), || {
        look();
        false
    })
}

/// [`run`], killed as well where `stop`, which is asked at that interval, says so.
pub(super) fn run_until(
    firmware: &Firmware,
    folder: &Path,
    arguments: &[String],
    (timeout, interval): (Duration, Duration),
    mut stop: impl FnMut() -> bool,
) -> Result<Ended, BoardError> {
    let (child, held) = signals::Child::of_new(|| start(firmware, folder, arguments))?;
    let mut child = Running(child, held);
    let begun = Instant::now();
    let status = loop {
        let failed = |source| BoardError::File {
            path: firmware.board().qemu.into(),
            source,
        };
        match child.0.try_wait().map_err(failed)? {
            Some(status) => break Some(status),
            None if begun.elapsed() >= timeout => break None,
            None => std::thread::sleep(interval),
        }
        if stop() {
            break None;
        }
    };
    drop(child);
    let stderr = fs::read(folder.join(STDERR_FILE)).unwrap_or_default();
    let frames = fs::read(folder.join(LOG_FILE)).unwrap_or_default();
    Ok(Ended {
        status,
        stderr: String::from_utf8_lossy(&stderr).trim().to_owned(),
        logs: decode(firmware, &frames),
    })
}

/// A process that does not outlive its handle, nor a signal that ends this process.
#[expect(dead_code, reason = "what is held is released when it is dropped")]
struct Running(Child, signals::Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only for a process that has ended, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(firmware: &Firmware, folder: &Path, arguments: &[String]) -> Result<Child, BoardError> {
    let board = firmware.board();
    let file = |name: &str| {
        let path = folder.join(name);
        File::create(&path).map_err(|source| BoardError::File { path, source })
    };
    let mut qemu = Command::new(find_program(board.qemu).ok_or_else(|| missing(board))?);
    qemu.args(board.machine)
        .args(["-display", "none", "-serial", "null", "-monitor", "none"])
        .args(["-icount", &format!("shift={},sleep=off", board.icount_shift)])
        .args(["-semihosting-config", "enable=on,target=native"])
        .args(arguments)
        .arg("-kernel")
        .arg(firmware.path())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(file(LOG_FILE)?)
        .stderr(file(STDERR_FILE)?);
    qemu.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => missing(board),
        _ => BoardError::File {
            path: board.qemu.into(),
            source: error,
        },
    })
}

/// Where a program is: on the path, or unpacked in the checkout's [`super::QEMU_FOLDER`] or the cache.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&path)
        .chain(beside_the_path())
        .map(|folder| folder.join(&file))
        .find(|path| path.is_file())
}

/// That a board's qemu is not installed, and how to get it.
pub(super) fn missing(board: &Board) -> BoardError {
    BoardError::ToolMissing {
        tool: board.qemu.to_owned(),
        how: remedy(Manager::here(), board.qemu),
    }
}

/// Decodes frames with the strings that the ELF file holds; a damaged frame becomes a line that says so.
fn decode(firmware: &Firmware, frames: &[u8]) -> Vec<LogLine> {
    let note = |text: String| LogLine {
        level: "error".to_owned(),
        text,
    };
    let table = match defmt_decoder::Table::parse(firmware.elf()) {
        Ok(Some(table)) => table,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![note(format!("log table: {error}"))],
    };
    let mut decoder = table.new_stream_decoder();
    decoder.received(frames);
    let mut lines = Vec::new();
    loop {
        match decoder.decode() {
            Ok(frame) => lines.push(LogLine {
                level: frame.level().map(|level| level.as_str().to_owned()).unwrap_or_default(),
                text: frame.display_message().to_string(),
            }),
            Err(defmt_decoder::DecodeError::UnexpectedEof) => return lines,
            Err(defmt_decoder::DecodeError::Malformed) => {
                lines.push(note("a damaged log frame".to_owned()));
                if !table.encoding().can_recover() {
                    return lines;
                }
            }
        }
    }
}
