//! Where a model runs: `--on host` or `--on qemu:BOARD`.

use std::str::FromStr;

use crate::board::{self, BOARDS, Board};
use crate::spelling::meant;
use crate::{Error, Result};

/// Where a model runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    /// This machine, with the portable kernels.
    Host,
    /// An emulated board.
    Board(&'static Board),
}

impl Machine {
    /// The name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Machine::Host => "host",
            Machine::Board(board) => board.name,
        }
    }
}

impl FromStr for Machine {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text == "host" {
            return Ok(Machine::Host);
        }
        let names = || BOARDS.iter().map(|b| format!("qemu:{}", b.name)).collect::<Vec<_>>();
        let board = text.strip_prefix("qemu:").and_then(Board::find);
        board.map(Machine::Board).ok_or_else(|| {
            let names = names();
            let near = meant(text, names.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("; {near}"));
            format!("expected host, {}{near}", names.join(", "))
        })
    }
}

/// Whether `board` can run here.
///
/// # Errors
/// What is missing, with its remedy.
pub(crate) fn ready(board: &Board) -> Result<()> {
    board::ready(board).map_err(Error::from)
}
