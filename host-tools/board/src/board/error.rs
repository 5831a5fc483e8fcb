//! Why a board did not do what it was asked.

use std::io;
use std::path::PathBuf;

use arenite_protocol::{During, Guarded, Purpose};

use crate::error::{Error, ErrorKind, reason};

/// Why building for a board or running on it failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BoardError {
    /// A program that is needed is not installed.
    #[error("`{tool}` is not installed; {how}")]
    ToolMissing {
        /// The program.
        tool: String,
        /// How to get it.
        how: String,
    },
    /// The Rust toolchain lacks a target.
    #[error("the Rust toolchain has no target `{triple}`; `rustup target add {triple}` installs it")]
    TargetMissing {
        /// The target.
        triple: String,
    },
    /// There are no sources of the firmware: not in the checkout that was named, nor in these tools.
    #[error("no firmware sources in {}; name a checkout in ARENITE_ROOT", .path.display())]
    NoSources {
        /// Where they were looked for.
        path: PathBuf,
    },
    /// The folder where firmware is built and kept cannot be used.
    #[error("cannot keep firmware in {}: {}", .path.display(), reason(source))]
    Cache {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A build lacks packages that only the network has.
    #[error("building `{program}` needs packages from the network:\n{output}")]
    NoNetwork {
        /// The program.
        program: String,
        /// Cargo's output.
        output: String,
    },
    /// The firmware does not compile or link.
    #[error("building `{program}` for {board} failed:\n{output}")]
    Build {
        /// The board.
        board: &'static str,
        /// The program.
        program: String,
        /// The compiler's output.
        output: String,
    },
    /// A file operation on the host failed.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is no ELF file of the expected kind.
    #[error("{}: {reason}", .path.display())]
    Elf {
        /// The file.
        path: PathBuf,
        /// Reason for which the file is refused.
        reason: String,
    },
    /// The blob is longer than the place that the board has for it.
    #[error("{board}: the blob needs {needed} bytes of {place}, {available} are free")]
    BlobTooLarge {
        /// The board.
        board: &'static str,
        /// `flash` or `memory`.
        place: &'static str,
        /// The blob's length.
        needed: u64,
        /// Bytes left for it.
        available: u64,
    },
    /// The board has too little memory for an arena or a state.
    #[error("{board}: the {} needs {needed} bytes of memory, {available} are free", purpose_name(*.purpose))]
    OutOfMemory {
        /// The board.
        board: &'static str,
        /// Purpose of the memory.
        purpose: Purpose,
        /// Bytes needed.
        needed: u64,
        /// The largest piece left.
        available: u64,
    },
    /// The inputs are not as many bytes as the runs need.
    #[error("{runs} runs of {each} input bytes need {} bytes, {given} were given", .each * u64::from(*.runs))]
    InputSize {
        /// Runs asked for.
        runs: u32,
        /// Bytes of one set of inputs.
        each: u64,
        /// Bytes given.
        given: u64,
    },
    /// The runtime on the board refused.
    #[error("{board} refused to {}: {name}: {text}", during_name(*.during))]
    Refused {
        /// The board.
        board: &'static str,
        /// Which call refused.
        during: During,
        /// The error's name in the runtime.
        name: String,
        /// Its sentence.
        text: String,
    },
    /// Nothing ended the program in time.
    #[error("{board}: not done after {seconds} s; it got as far as {reached}")]
    Timeout {
        /// The board.
        board: &'static str,
        /// The limit.
        seconds: u64,
        /// The last thing that it reported.
        reached: String,
    },
    /// The processor took a fault.
    #[error(
        "{board}: processor fault at pc {pc:#x}{}, lr {lr:#x}, sp {sp:#x}, cause {cause:#x}, address {address:#x}",
        .function.as_ref().map(|name| format!(" (in {name})")).unwrap_or_default()
    )]
    Fault {
        /// The board.
        board: &'static str,
        /// Program counter.
        pc: u64,
        /// The function that holds it, where the symbols say.
        function: Option<String>,
        /// Return address.
        lr: u64,
        /// Stack pointer.
        sp: u64,
        /// The core's cause register.
        cause: u64,
        /// The address that faulted, where known.
        address: u64,
    },
    /// Rust code on the board panicked.
    #[error("{board}: panicked at {file}:{line}: {text}")]
    Panicked {
        /// The board.
        board: &'static str,
        /// Source file.
        file: String,
        /// Line.
        line: u32,
        /// Message.
        text: String,
    },
    /// Memory that must not change did.
    #[error("{board}: {} changed during the run", guarded_name(*.what))]
    Corrupted {
        /// The board.
        board: &'static str,
        /// Which memory.
        what: Guarded,
    },
    /// Firmware and tools do not speak the same protocol, or the record is damaged.
    #[error("{board}: {reason}")]
    Protocol {
        /// The board.
        board: &'static str,
        /// The mismatch.
        reason: String,
    },
    /// A serial port does not open, or was lost.
    #[error("cannot use the serial port {port}: {}", reason(source))]
    Port {
        /// The port.
        port: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Nobody answers at a serial port.
    #[error("{port}: no answer in {seconds} s")]
    Silent {
        /// The port.
        port: String,
        /// The limit.
        seconds: u64,
    },
    /// Messages over a serial port do not answer the request.
    #[error("{port}: {reason}")]
    Line {
        /// The port.
        port: String,
        /// The mismatch.
        reason: String,
    },
    /// The board at a serial port has too little memory.
    #[error("{port}: model, arena and state need {needed} bytes of memory, {available} are free")]
    NoRoom {
        /// The port.
        port: String,
        /// Bytes needed.
        needed: u32,
        /// Bytes that are there.
        available: u32,
    },
    /// The runtime or the flash of the board at a serial port refused.
    #[error("{port}: the board refused: {text}")]
    Declined {
        /// The port.
        port: String,
        /// Its sentence.
        text: String,
    },
    /// qemu itself failed.
    #[error("{board}: qemu ended with {status}: {stderr}")]
    Qemu {
        /// The board.
        board: &'static str,
        /// Its exit status.
        status: String,
        /// Standard error of qemu.
        stderr: String,
    },
}

fn purpose_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Arena => "arena",
        Purpose::State => "state",
    }
}

fn during_name(during: During) -> &'static str {
    match during {
        During::Load => "load the blob",
        During::Session => "make a session",
        During::Run => "run",
        During::Update => "update",
    }
}

fn guarded_name(what: Guarded) -> &'static str {
    match what {
        Guarded::Arena => "memory beside the arena",
        Guarded::State => "memory beside the state",
        Guarded::Stack => "the stack's guard",
        Guarded::Flash => "code or constants in flash",
        Guarded::Blob => "the blob",
    }
}

impl From<BoardError> for Error {
    fn from(error: BoardError) -> Self {
        let kind = match &error {
            BoardError::BlobTooLarge { .. } | BoardError::OutOfMemory { .. } | BoardError::NoRoom { .. } => {
                ErrorKind::DoesNotFit
            }
            BoardError::Refused { .. } | BoardError::Declined { .. } => ErrorKind::Unsupported,
            BoardError::InputSize { .. } => ErrorKind::Input,
            BoardError::Cache { .. } | BoardError::NoNetwork { .. } => ErrorKind::Io,
            BoardError::File { .. } | BoardError::Port { .. } | BoardError::Silent { .. } | BoardError::Line { .. } => {
                ErrorKind::Io
            }
            _ => ErrorKind::Internal,
        };
        let help = match &error {
            BoardError::ToolMissing { .. } | BoardError::TargetMissing { .. } => {
                Some("`arenite doctor --fix` installs what is missing; `arenite doctor` lists what is there")
            }
            BoardError::Cache { .. } => Some(
                "make the folder writable, or name another in ARENITE_CACHE; a checkout builds in its target/boards",
            ),
            BoardError::NoNetwork { .. } => Some(
                "connect for the first build of a board. Later ones need no network: cargo keeps packages in CARGO_HOME, and arenite what it built",
            ),
            BoardError::BlobTooLarge { .. } | BoardError::OutOfMemory { .. } => {
                Some("choose a board with more memory; `arenite doctor` lists them")
            }
            BoardError::Refused { name, .. } if name == "Cores" => {
                Some("choose a board of as many cores, or pack it with fewer --cores")
            }
            BoardError::Refused { name, .. } if name == "Accelerator" => {
                Some("choose a board that has the accelerator, or pack it without --accelerator")
            }
            BoardError::Refused { .. } => Some("pack it with a --target that the board runs"),
            BoardError::Silent { .. } => Some(
                "is it the board's port at the speed of its program, and does that call arenite_serial::serve? docs/firmware.md has an example",
            ),
            BoardError::Port { .. } => Some(
                "is the board plugged in, and may you use the port? `ls /dev/tty*` lists ports, PORT:BAUD sets the speed",
            ),
            BoardError::Timeout { .. } => Some("give it longer with --timeout SECONDS"),
            _ => None,
        };
        let text = Error::new(kind, error.to_string());
        match help {
            Some(help) => text.help(help),
            None => text,
        }
    }
}
