//! Paths that stand for streams.

use std::path::{Path, PathBuf};

/// The path that stands for standard input.
pub const STDIN: &str = "-";

/// Returns the name of an input in messages: standard input has a name that says so.
pub fn shown(path: &Path) -> PathBuf {
    if path.as_os_str() == STDIN {
        PathBuf::from("stdin")
    } else {
        path.to_path_buf()
    }
}
