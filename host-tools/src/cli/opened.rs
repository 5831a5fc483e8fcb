//! A model as the command line names it: in one file, or in pieces.

use std::cell::Cell;
use std::path::Path;
use std::time::Instant;

use super::machine::{Machine, ready};
use super::outcome::{How, Outcome, execute, split_outputs};
use super::progress::Shown;
use crate::board::{self, BOARDS, Progress, RunOptions};
use crate::metadata::StepMeta;
use crate::model::saved::Saved;
use crate::model::{ModelFile, derived};
use crate::pieces::PiecesFile;
use crate::{Error, ErrorKind, Result};

/// A model of either kind.
pub(super) enum Opened {
    /// In one file.
    Whole(ModelFile),
    /// In pieces.
    Pieces(PiecesFile),
}

impl Opened {
    /// Opens a file.
    ///
    /// # Errors
    /// As [`ModelFile::open`] and [`PiecesFile::open`].
    pub(super) fn open(path: &Path) -> Result<Self> {
        Ok(match PiecesFile::open(path)? {
            Some(pieces) => Self::Pieces(pieces),
            None => Self::Whole(ModelFile::open(path)?),
        })
    }

    /// Opens a file whose model begins with a saved state.
    ///
    /// # Errors
    /// As [`Opened::open`] and [`with_state`]; [`ErrorKind::Usage`] for a model in pieces.
    pub(super) fn open_with(path: &Path, state: Option<&Path>) -> Result<Self> {
        match (Self::open(path)?, state) {
            (opened, None) => Ok(opened),
            (Self::Whole(file), Some(_)) => Ok(Self::Whole(with_state(file, state)?)),
            (Self::Pieces(_), Some(_)) => {
                Err(Error::new(ErrorKind::Usage, "--state of a model in pieces").expected("a model in one file"))
            }
        }
    }

    /// The model with the inputs, and the one with the outputs.
    pub(super) fn ends(&self) -> [&ModelFile; 2] {
        match self {
            Self::Whole(file) => [file, file],
            Self::Pieces(pieces) => pieces.ends(),
        }
    }

    /// Returns the items that are counted one by one: steps, or pieces.
    ///
    /// # Errors
    /// Errors of reading the metadata.
    pub(super) fn steps(&self) -> Result<Vec<StepMeta>> {
        match self {
            Self::Whole(file) => Ok(file.view()?.metadata()?.steps),
            Self::Pieces(pieces) => pieces.pieces.iter().map(piece_meta).collect(),
        }
    }

    /// As [`execute`].
    ///
    /// # Errors
    /// As [`execute`]; where a model in pieces does not run.
    pub(super) fn execute(&self, machine: Machine, runs: &[Vec<Vec<u8>>], how: How) -> Result<Outcome> {
        let pieces = match self {
            Self::Whole(file) => return execute(file, machine, runs, how),
            Self::Pieces(pieces) => pieces,
        };
        let place = machine.name();
        let shown = Shown::new(&format!("starting on {place}"));
        let told = &mut |now| shown.running(place, runs.len(), now);
        match machine {
            Machine::Host => on_host(pieces, runs, how, told),
            Machine::Board(board) if board.spi_flash().is_some() => on_board(pieces, board, runs, how, told),
            Machine::Board(_) | Machine::Serial(_) => Err(without_flash(place, "--on host or ")),
        }
    }
}

/// The model with a saved state in place of its initial one, where there is one.
///
/// # Errors
/// As [`Saved::read`].
pub(super) fn with_state(file: ModelFile, state: Option<&Path>) -> Result<ModelFile> {
    let Some(state) = state else { return Ok(file) };
    let view = file.view()?;
    let saved = Saved::read(state, &view)?;
    let bytes = derived::with_state(&view, &saved.state)?;
    Ok(ModelFile::made(&bytes, file.path()))
}

/// That there is no flash for pieces; `or` is what a command takes besides boards that have one.
pub(super) fn without_flash(place: &str, or: &str) -> Error {
    let with = BOARDS.iter().filter(|board| board.spi_flash().is_some());
    let boards: Vec<String> = with.map(|board| format!("--on qemu:{}", board.name)).collect();
    Error::new(
        ErrorKind::Unsupported,
        format!("{place} has no flash at a serial bus, which a model in pieces is read from"),
    )
    .expected(format!("{or}{}", boards.join(", ")))
    .help("packed without :stream, it runs from memory")
}

/// A piece as one step: the layer that computes most of it.
pub(super) fn piece_meta(piece: &ModelFile) -> Result<StepMeta> {
    let steps = piece.view()?.metadata()?.steps;
    let macs = steps.iter().map(|step| step.macs).sum();
    let most = steps.iter().rev().max_by_key(|step| step.macs).cloned();
    let Some(most) = most else {
        return Ok(StepMeta {
            name: "no step".into(),
            kind: "none".into(),
            macs: 0,
            completes: None,
            operands: Vec::new(),
        });
    };
    let others = if steps.len() > 1 {
        format!(" and {} steps", steps.len() - 1)
    } else {
        String::new()
    };
    Ok(StepMeta {
        name: format!("{}{others}", most.name),
        macs,
        completes: None,
        ..most
    })
}

fn on_host(pieces: &PiecesFile, runs: &[Vec<Vec<u8>>], how: How, told: &mut dyn FnMut(Progress)) -> Result<Outcome> {
    let count = pieces.sizes.pieces;
    let mut nanoseconds = vec![0; count as usize];
    // Opening it is no piece's time.
    let last = Cell::new(Instant::now());
    let (outputs, _) = pieces.run(runs, &mut || last.set(Instant::now()), &mut |run, piece| {
        if let Some(place) = nanoseconds.get_mut(piece as usize) {
            *place = u64::try_from(last.get().elapsed().as_nanos()).unwrap_or(u64::MAX);
        }
        told(Progress::Running {
            runs: u32::try_from(run).unwrap_or(u32::MAX),
            steps: piece + 1,
            of_steps: count,
        });
        last.set(Instant::now());
    })?;
    Ok(Outcome {
        outputs,
        step_nanoseconds: if how.profile { nanoseconds } else { Vec::new() },
        ..Outcome::default()
    })
}

fn on_board(
    pieces: &PiecesFile,
    board: &'static board::Board,
    runs: &[Vec<Vec<u8>>],
    how: How,
    told: &mut dyn FnMut(Progress),
) -> Result<Outcome> {
    ready(board)?;
    let [_, last] = pieces.ends();
    let options = RunOptions {
        runs: u32::try_from(runs.len()).map_err(|_| Error::input(format!("{} runs", runs.len())))?,
        profile: how.profile,
        timeout: how.timeout,
        ..RunOptions::default()
    };
    let inputs: Vec<u8> = runs.iter().flatten().flatten().copied().collect();
    let report = board::run_streamed(board, pieces.bytes(), &inputs, &options, told)?.run;
    Ok(Outcome {
        outputs: split_outputs(board, &report.outputs, runs.len(), &last.output_sizes()?)?,
        instructions: report.instructions,
        step_instructions: report.steps.last().cloned().unwrap_or_default(),
        ..Outcome::default()
    })
}
