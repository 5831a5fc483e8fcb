//! Samples that wait in a temporary file, so that memory does not grow with their number.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::sync::{Arc, Mutex};

use super::value::Value;
use crate::error::{Error, Result};

/// Values in a temporary file, which is gone with the last of them.
pub(super) struct Spool {
    file: BufWriter<File>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Spool {
    pub(super) fn new() -> Result<Self> {
        let file = tempfile::tempfile().map_err(|e| Self::io(&e))?;
        Ok(Self {
            file: BufWriter::new(file),
            ends: Vec::new(),
        })
    }

    fn io(error: &std::io::Error) -> Error {
        Error::io(&std::env::temp_dir(), "keep the samples in a temporary file", error)
    }

    pub(super) fn add(&mut self, value: &[u8]) -> Result<()> {
        self.file.write_all(value).map_err(|e| Self::io(&e))?;
        self.ends.push(self.ends.last().copied().unwrap_or(0) + value.len());
        Ok(())
    }

    pub(super) fn values(self) -> Result<Vec<Value>> {
        let file = self.file.into_inner().map_err(|e| Self::io(e.error()))?;
        let file = Arc::new(Mutex::new(file));
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let values = starts.zip(&self.ends).map(|(from, &to)| Value::Spooled {
            file: Arc::clone(&file),
            from: from as u64,
            len: to - from,
        });
        Ok(values.collect())
    }
}
