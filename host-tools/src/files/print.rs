//! Standard output and standard error. Neither ever ends the program with a panic.

use std::fmt;
use std::io::{self, Write};

use super::Output;
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

/// Where a command's report goes: standard output is either its own or an output file's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Print {
    /// To standard output.
    Out,
    /// To standard error, because the file itself goes to standard output.
    Beside,
}

impl Print {
    /// What is left for the report beside these outputs.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] where a report for scripts (`wanted`: JSON, a dump) wants standard output as well.
    pub fn beside<'a>(outputs: impl IntoIterator<Item = &'a Output>, wanted: bool) -> Result<Self> {
        match outputs.into_iter().any(Output::is_stdout) {
            true if wanted => Err(Error::new(
                ErrorKind::Usage,
                "the output `-` and what else is asked for both want the standard output",
            )
            .expected("a file for one of them")),
            true => Ok(Self::Beside),
            false => Ok(Self::Out),
        }
    }

    /// Prints a report for people.
    ///
    /// # Errors
    /// As [`out`].
    pub fn text(self, text: &str) -> Result<()> {
        match self {
            Self::Out => out(text),
            Self::Beside => {
                // Where standard error takes nothing there is nobody to tell.
                let _ = io::stderr().lock().write_all(text.as_bytes());
                Ok(())
            }
        }
    }
}

/// That standard output takes no more.
pub(super) fn refused(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write to the standard output: {error}"))
}

/// A line on standard error. Where that cannot be written there is nobody to tell.
pub fn note(line: impl fmt::Display) {
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}
