//! A sample's input, in memory or on disk.

use std::borrow::Cow;
use std::io::{Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::files::File;

/// A sample's input.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// In memory.
    Owned(Vec<u8>),
    /// In a temporary file: so many bytes from here on.
    Spooled {
        file: Arc<Mutex<File>>,
        from: u64,
        len: usize,
    },
}

impl Value {
    /// Its bytes.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Io`].
    pub(crate) fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        match self {
            Self::Owned(bytes) => Ok(Cow::Borrowed(bytes)),
            Self::Spooled { file, from, len } => {
                let mut bytes = vec![0; *len];
                let mut file = file
                    .lock()
                    .map_err(|_| Error::internal("a thread that read samples is gone"))?;
                let read = file
                    .seek(SeekFrom::Start(*from))
                    .and_then(|_| file.read_exact(&mut bytes));
                read.map_err(|e| Error::io(&std::env::temp_dir(), "read the samples from a temporary file", &e))?;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}
