//! Where a model runs: `--on host` or `--on qemu:BOARD`.

use std::str::FromStr;

use crate::board::{self, BOARDS, Board, BoardError};
use crate::{Error, ErrorKind, Result};

/// Where a model runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// This machine, with the portable kernels.
    Host,
    /// An emulated board.
    Board(&'static Board),
}

impl Place {
    /// The name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Place::Host => "host",
            Place::Board(board) => board.name,
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text == "host" {
            return Ok(Place::Host);
        }
        let names = || BOARDS.iter().map(|b| format!("qemu:{}", b.name)).collect::<Vec<_>>();
        let board = text.strip_prefix("qemu:").and_then(Board::find);
        board
            .map(Place::Board)
            .ok_or_else(|| format!("expected host, {}", names().join(", ")))
    }
}

/// A board's error as the tools' own.
pub(crate) fn board_error(error: BoardError) -> Error {
    let kind = match &error {
        BoardError::UnknownBoard { .. } => ErrorKind::Usage,
        BoardError::BlobTooLarge { .. } | BoardError::OutOfMemory { .. } => ErrorKind::DoesNotFit,
        BoardError::Refused { .. } => ErrorKind::Unsupported,
        BoardError::InputSize { .. } => ErrorKind::Input,
        BoardError::File { .. } => ErrorKind::Io,
        _ => ErrorKind::Internal,
    };
    let help = match &error {
        BoardError::ToolMissing { .. } | BoardError::TargetMissing { .. } => {
            Some("`cargo xtask setup` installs everything; `arenite doctor` lists what is there")
        }
        BoardError::BlobTooLarge { .. } | BoardError::OutOfMemory { .. } => {
            Some("choose a board with more memory; `arenite doctor` lists them")
        }
        BoardError::Refused { .. } => Some("pack it with a --target that the board runs"),
        BoardError::Timeout { .. } => Some("give it longer with --timeout SECONDS"),
        _ => None,
    };
    let text = Error::new(kind, error.to_string());
    match help {
        Some(help) => text.help(help),
        None => text,
    }
}

/// Whether `board` can run here.
///
/// # Errors
/// What is missing, with its remedy.
pub(crate) fn ready(board: &Board) -> Result<()> {
    board::ready(board).map_err(board_error)
}
