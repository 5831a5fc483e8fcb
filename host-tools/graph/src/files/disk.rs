//! Files of the system.

use std::io;
use std::path::{Path, PathBuf};

pub use std::fs::File;

/// A file's bytes where they can be read in place.
pub(crate) type Map = memmap2::Mmap;

/// A file that nobody else sees, gone with its last handle.
///
/// # Errors
/// I/O errors of the system.
pub fn unnamed() -> io::Result<File> {
    tempfile::tempfile()
}

/// The bytes of a file that is not empty.
///
/// # Errors
/// I/O errors of the system.
pub(crate) fn map(file: &File) -> io::Result<Map> {
    // SAFETY: the map is private to this process's reading; a file that another process changes meanwhile gives wrong results, as reading it twice would.
    unsafe { memmap2::Mmap::map(file) }
}

/// The one path of a file or folder, links followed.
///
/// # Errors
/// I/O errors of the system.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// Whether it is a file.
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}
