//! Standard output and standard error. Neither ever ends the program with a panic.

use std::fmt;
use std::io::{self, Write};
#[cfg(feature = "tools")]
use std::sync::{Mutex, PoisonError};

#[cfg(feature = "tools")]
use indicatif::ProgressBar;

use crate::error::{Error, ErrorKind, Result};

/// Prints on standard output. A reader that has seen enough (`| head`) is no failure.
///
/// # Errors
/// [`ErrorKind::Io`] where it cannot be written, such as on a full disk.
pub fn out(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(refused(&e)),
        _ => Ok(()),
    }
}

/// That standard output takes no more.
pub(super) fn refused(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write to the standard output: {error}"))
}

/// What is drawn at the end of standard error while long work goes on.
#[cfg(feature = "tools")]
static BELOW: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// From now on lines come above `bar`, until there is none.
#[cfg(feature = "tools")]
pub fn above(bar: Option<ProgressBar>) {
    *BELOW.lock().unwrap_or_else(PoisonError::into_inner) = bar;
}

/// A line on standard error. Where that cannot be written there is nobody to tell.
pub fn note(line: impl fmt::Display) {
    let write = || {
        let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
    };
    #[cfg(not(feature = "tools"))]
    write();
    #[cfg(feature = "tools")]
    match &*BELOW.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}
