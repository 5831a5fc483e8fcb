//! The files that firmware and host share through semihosting.

use core::sync::atomic::{AtomicI32, Ordering};

use arenite_protocol::{
    DUMP_FILE, DumpEntry, INPUT_FILE, OUTPUT_FILE, RECORD_MAX, REQUEST_FILE, REQUEST_MAX, Record, Request,
};
use semihosting::fd::BorrowedFd;
use semihosting::fs::File;
use semihosting::io::{Read, Write};
use semihosting::sys::arm_compat::{OpenMode, sys_open, sys_write_orig};

/// The open record file, shared with the panic and fault handlers, which have no other way to reach it.
static RECORDS: AtomicI32 = AtomicI32::new(-1);

/// The exchange with the host: a request in, inputs in, records and outputs out.
pub struct Exchange {
    input: Option<File>,
    output: Option<File>,
    dump: Option<File>,
    places: Option<File>,
}

/// A file of the exchange could not serve what was wanted of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, defmt::Format)]
pub struct ExchangeError {
    /// The file.
    pub file: &'static str,
    /// Bytes wanted.
    pub wanted: usize,
    /// Bytes that came or went before it failed.
    pub got: usize,
}

impl Exchange {
    /// Opens the record file; the others are opened at first use. `None` where the host gives no files.
    pub(crate) fn open() -> Option<Self> {
        let records = sys_open(c"record", OpenMode::WRONLY_TRUNC_BINARY).ok()?;
        RECORDS.store(records.into_raw_fd(), Ordering::Relaxed);
        Some(Self {
            input: None,
            output: None,
            dump: None,
            places: None,
        })
    }

    /// Appends a record.
    pub fn record(&mut self, record: &Record<'_>) {
        last_record(record);
    }

    /// Reads and decodes the request.
    pub fn request(&mut self) -> Result<Request, ExchangeError> {
        let failed = ExchangeError {
            file: REQUEST_FILE,
            wanted: REQUEST_MAX,
            got: 0,
        };
        let mut file = File::open(c"request").map_err(|_| failed)?;
        let mut bytes = [0; REQUEST_MAX];
        let got = read_full(&mut file, &mut bytes);
        postcard::from_bytes(bytes.get(..got).unwrap_or_default()).map_err(|_| ExchangeError { got, ..failed })
    }

    /// Length of the file of inputs; 0 where there is none.
    pub fn input_length(&mut self) -> u64 {
        File::open(c"input")
            .and_then(|file| file.metadata())
            .map_or(0, |metadata| metadata.len())
    }

    /// The next place in the list of places to dump; `None` behind the last.
    pub fn next_place(&mut self) -> Option<DumpEntry> {
        let file = match &mut self.places {
            Some(file) => file,
            slot => slot.insert(File::open(c"places").ok()?),
        };
        let mut bytes = [0; DumpEntry::BYTES];
        (read_full(file, &mut bytes) == bytes.len()).then(|| DumpEntry::from_bytes(bytes))
    }

    /// Fills `bytes` with the next bytes of the inputs.
    pub fn read_input(&mut self, bytes: &mut [u8]) -> Result<(), ExchangeError> {
        let wanted = bytes.len();
        let failed = |got| ExchangeError {
            file: INPUT_FILE,
            wanted,
            got,
        };
        let file = match &mut self.input {
            Some(file) => file,
            slot => slot.insert(File::open(c"input").map_err(|_| failed(0))?),
        };
        match read_full(file, bytes) {
            got if got == wanted => Ok(()),
            got => Err(failed(got)),
        }
    }

    /// Appends to the outputs.
    pub fn write_output(&mut self, bytes: &[u8]) -> Result<(), ExchangeError> {
        append(&mut self.output, c"output", OUTPUT_FILE, bytes)
    }

    /// Appends to the dump of steps.
    pub fn write_dump(&mut self, bytes: &[u8]) -> Result<(), ExchangeError> {
        append(&mut self.dump, c"dump", DUMP_FILE, bytes)
    }
}

/// Appends a record without an [`Exchange`] at hand: for handlers that do not return.
pub(crate) fn last_record(record: &Record<'_>) {
    let handle = RECORDS.load(Ordering::Relaxed);
    if handle < 0 {
        return;
    }
    let mut bytes = [0; RECORD_MAX];
    // Texts are cut to TEXT_MAX, so a record always fits; a host that stops reading is noticed there.
    if let Ok(encoded) = postcard::to_slice(record, &mut bytes) {
        // SAFETY: the file is opened once, before this is set, and never closed.
        let mut file = unsafe { BorrowedFd::borrow_raw(handle) };
        let _ = write_raw(&mut file, encoded);
    }
}

fn write_raw(file: &mut BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), ()> {
    while !bytes.is_empty() {
        match sys_write_orig(*file, bytes) {
            Ok(0) => return Ok(()),
            Ok(left) if left < bytes.len() => bytes = bytes.get(bytes.len() - left..).unwrap_or_default(),
            _ => return Err(()),
        }
    }
    Ok(())
}

/// Bytes read before the end of the file or an error.
fn read_full(file: &mut File, bytes: &mut [u8]) -> usize {
    let mut got = 0;
    while let Some(rest) = bytes.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) | Err(_) => break,
            Ok(more) => got += more,
        }
    }
    got
}

fn append(
    slot: &mut Option<File>,
    path: &core::ffi::CStr,
    name: &'static str,
    bytes: &[u8],
) -> Result<(), ExchangeError> {
    let failed = ExchangeError {
        file: name,
        wanted: bytes.len(),
        got: 0,
    };
    let file = match slot {
        Some(file) => file,
        slot => slot.insert(File::create(path).map_err(|_| failed)?),
    };
    file.write_all(bytes).map_err(|_| failed)
}
