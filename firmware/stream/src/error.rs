//! How a stream fails.

use core::error::Error;
use core::fmt;

use arenite::{LoadError, RunError, SessionError};

/// Why a stream is not opened, or does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamError<E> {
    /// The source: the flash, or the way to it. A run may be begun anew.
    Source(E),
    /// The bytes there do not begin as a model in pieces does, which `pack --region NAME=SIZE:stream` writes.
    NotAStream,
    /// Its directory is damaged.
    Directory,
    /// The buffer is too small.
    BufferTooSmall {
        /// Bytes of the largest piece, and of those that stay.
        needed: u32,
        /// Bytes of the buffer.
        given: u32,
    },
    /// A piece is damaged, or is none that this build runs.
    Piece {
        /// Its number.
        piece: u32,
        /// Why it does not load.
        error: LoadError,
    },
    /// The arena.
    Session(SessionError),
    /// An input that was not set, a port that there is not, a size that is not its own.
    Run(RunError),
}

impl<E: fmt::Display> fmt::Display for StreamError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(error) => error.fmt(f),
            Self::NotAStream => f.write_str("no model in pieces: pack it with --region NAME=SIZE:stream"),
            Self::Directory => f.write_str("the directory of the pieces is damaged"),
            Self::BufferTooSmall { needed, given } => {
                write!(f, "the pieces want a buffer of {needed} bytes, this one has {given}")
            }
            Self::Piece { piece, error } => write!(f, "piece {piece}: {error}"),
            Self::Session(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
        }
    }
}

impl<E: Error> Error for StreamError<E> {}
