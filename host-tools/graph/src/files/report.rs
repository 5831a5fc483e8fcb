//! Where a command's report goes beside its outputs.

use std::io::{self, Write};

use super::output::Output;
use super::print::out;
use crate::error::{Error, ErrorKind, Result};

/// Where a command's report goes: standard output is either its own or an output file's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Print {
    /// To standard output.
    Out,
    /// To standard error, because the file itself goes to standard output.
    Beside,
}

impl Print {
    /// Returns the stream that these outputs leave for the report.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] where a report for scripts (`wanted`: JSON, a dump) wants standard output as well.
    pub fn beside<'a>(outputs: impl IntoIterator<Item = &'a Output>, wanted: bool) -> Result<Self> {
        if !outputs.into_iter().any(Output::is_stdout) {
            return Ok(Self::Out);
        }
        if wanted {
            return Err(Error::new(
                ErrorKind::Usage,
                "the output `-` and what else is asked for both want the standard output",
            )
            .expected("a file for one of them"));
        }
        Ok(Self::Beside)
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
