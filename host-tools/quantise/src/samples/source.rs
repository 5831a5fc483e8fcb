//! A file of samples, opened: an archive of arrays, or an array.

use std::io::{Read as _, Seek as _};
use std::path::Path;

use arenite::Port;

use crate::array::Array;
use crate::error::{Error, Result};
use crate::files::zip::{self, Zip};
use crate::files::{File, Input};

/// Bytes that tell an archive from an array.
const MAGIC: u64 = 8;

/// Callback that sees every array before it is taken, with the number of its first sample, and may reshape or refuse it.
pub(crate) type Each<'e> = dyn Fn(Array, &Port<'_>, usize) -> Result<Array> + 'e;

/// A file of samples.
pub(super) enum Source {
    Archive(Zip),
    Array(File),
}

/// Opens a file, once: it may be a pipe.
///
/// # Errors
/// [`crate::error::ErrorKind::Io`], [`crate::error::ErrorKind::Input`] for a damaged archive.
pub(super) fn open(path: &Path) -> Result<Source> {
    let io = |e: std::io::Error| Error::io(path, "read the samples", &e);
    let input = Input::open(path, "read the samples")?;
    let mut file = input.file().try_clone().map_err(io)?;
    let mut start = Vec::new();
    file.by_ref().take(MAGIC).read_to_end(&mut start).map_err(io)?;
    file.rewind().map_err(io)?;
    if !start.starts_with(zip::MAGIC) {
        return Ok(Source::Array(file));
    }
    let archive = Zip::open(file).map_err(|e| Error::input(format!("it is no .npz archive: {e}")))?;
    Ok(Source::Archive(archive))
}

/// The runs, of which there must be one.
pub(super) fn some<T>(runs: Vec<T>) -> Result<Vec<T>> {
    if runs.is_empty() {
        return Err(Error::input("it holds no sample").expected("at least one"));
    }
    Ok(runs)
}
