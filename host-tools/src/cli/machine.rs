//! Where a model runs: `--on host`, `--on qemu:BOARD` or `--on serial:PORT`.

use std::str::FromStr;

use arenite::Step;

use crate::board::{self, BOARDS, Board, SerialPort};
use crate::files::print;
use crate::model::ModelView;
use crate::spelling::meant;
use crate::{Error, ErrorKind, Result};

/// Where a model runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    /// This machine, with the portable kernels.
    Host,
    /// An emulated board.
    Board(&'static Board),
    /// A board at a serial port.
    Serial(&'static Port),
}

/// A serial port as it was named.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Port {
    /// `serial:PORT`.
    name: String,
    /// The port.
    pub(crate) port: SerialPort,
}

impl Machine {
    /// The name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Machine::Host => "host",
            Machine::Board(board) => board.name,
            Machine::Serial(port) => &port.name,
        }
    }

    /// That a command does not go over a serial port.
    pub(crate) fn not_over_serial(self, why: &str) -> Error {
        Error::new(ErrorKind::Usage, format!("--on {}: {why}", self.name()))
            .expected("qemu:BOARD")
            .help("`arenite run --on serial:PORT --profile` runs a model there, step by step")
    }
}

impl FromStr for Machine {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text == "host" {
            return Ok(Machine::Host);
        }
        if let Some(port) = text.strip_prefix("serial:") {
            let port = port.parse()?;
            // Few and small, as often as there are options.
            return Ok(Machine::Serial(Box::leak(Box::new(Port {
                name: text.to_string(),
                port,
            }))));
        }
        let names = || BOARDS.iter().map(|b| format!("qemu:{}", b.name)).collect::<Vec<_>>();
        let board = text.strip_prefix("qemu:").and_then(Board::find);
        board.map(Machine::Board).ok_or_else(|| {
            let names = names();
            let near = meant(text, names.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("; {near}"));
            format!("expected host, serial:PORT, {}{near}", names.join(", "))
        })
    }
}

/// Whether `board` can run here.
///
/// # Errors
/// Missing programs, with their remedies.
pub(crate) fn ready(board: &Board) -> Result<()> {
    board::ready(board).map_err(Error::from)
}

/// Says on stderr where the board's emulator is known to compute a kernel of the file wrongly.
///
/// # Errors
/// Those of a damaged file.
pub(crate) fn warn(board: &Board, view: &ModelView<'_>) -> Result<()> {
    let steps = view.steps()?;
    if let Some(reason) = board::doubted(board, steps.iter().map(Step::kernel)) {
        print::note(format_args!(
            "warning: {}: {reason}: outputs on this board are wrong, counts of instructions hold",
            board.name
        ));
    }
    Ok(())
}
