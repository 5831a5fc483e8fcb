//! Running a model, wherever: the same question and the same answer for the host and for boards.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use arenite::Model;
use serde::Serialize;

use super::beside::Beside;
use super::machine::{Machine, ready, warn};
use super::progress::Shown;
use crate::board::{self, Progress, RunOptions, SerialOptions, SerialPort};
use crate::metadata::StepMeta;
use crate::model::{self, ModelFile};
use crate::{Error, Result};

/// How to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    /// Whether each run starts with fresh state.
    pub reset_each: bool,
    /// Whether each step is counted.
    pub profile: bool,
    /// The wall time that a board gets.
    pub timeout: Duration,
}

/// Results of the runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// By run and output, raw little-endian bytes.
    pub outputs: Vec<Vec<Vec<u8>>>,
    /// Instructions of each run; empty on the host, which does not count.
    pub instructions: Vec<u64>,
    /// When profiling on a board: instructions of each step of the last run.
    pub step_instructions: Vec<u64>,
    /// Of each run over a serial port: what the board counts.
    pub counts: Vec<u64>,
    /// When profiling over a serial port: the same of each step of the last run.
    pub step_counts: Vec<u64>,
    /// When profiling on the host: nanoseconds of each step of the last run.
    pub step_nanoseconds: Vec<u64>,
}

/// A step's figures, as JSON states them.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct StepFigures {
    pub(crate) index: usize,
    pub(crate) name: String,
    pub(crate) op: String,
    /// Instructions of one run; null on the host, which does not count them.
    pub(crate) instructions: Option<u64>,
    /// Wall time on the host; differs from run to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nanoseconds: Option<u64>,
    /// Count of a board at a serial port: cycles, for the most part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<u64>,
    pub(crate) macs: u64,
    /// The fewest instructions that the kernel's loop could take; null where no model of the loop exists.
    pub(crate) bound: Option<u64>,
    /// An estimate of its cycles, where it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cycles: Option<u64>,
}

impl Outcome {
    /// The steps with their figures.
    pub(crate) fn steps(&self, metas: &[StepMeta]) -> Vec<StepFigures> {
        let figures = metas.iter().enumerate().map(|(index, meta)| StepFigures {
            index,
            name: meta.name.clone(),
            op: meta.kind.clone(),
            instructions: self.step_instructions.get(index).copied(),
            nanoseconds: self.step_nanoseconds.get(index).copied(),
            count: self.step_counts.get(index).copied(),
            macs: meta.macs,
            bound: None,
            cycles: None,
        });
        figures.collect()
    }
}

/// Runs the model once for each element of `runs`, each the inputs in order, and shows on standard error how far that is.
///
/// # Errors
/// Errors of loading and of the board, a wrong size of inputs.
pub(crate) fn execute(file: &ModelFile, machine: Machine, runs: &[Vec<Vec<u8>>], how: How) -> Result<Outcome> {
    let place = machine.name();
    let shown = Shown::new(&format!("starting on {place}"));
    let told = &mut |now| shown.running(place, runs.len(), now);
    match machine {
        Machine::Host => on_host(&file.load()?, runs, how, told),
        Machine::Board(board) => on_board(file, board, runs, how, told),
        Machine::Serial(port) => over_serial(file, &port.port, runs, how, told),
    }
}

fn on_host(model: &Model<'_>, runs: &[Vec<Vec<u8>>], how: How, told: &mut dyn FnMut(Progress)) -> Result<Outcome> {
    let steps = model.header().step_count;
    if let Some(declared) = model.accelerator().filter(|_| !how.profile) {
        let outputs = model::run_each(model, runs, how.reset_each, &mut |run, session| {
            session.allow_fused();
            session.run_accelerated(&mut Beside::new(declared))?;
            told(Progress::Running {
                runs: u32::try_from(run).unwrap_or(u32::MAX),
                steps,
                of_steps: steps,
            });
            Ok(())
        })?;
        return Ok(Outcome {
            outputs,
            ..Outcome::default()
        });
    }
    // A run that needs nothing of the one before may be anywhere.
    if runs.len() > 1 && !how.profile && (how.reset_each || model.state_bytes() == 0) {
        return side_by_side(model, runs, how, told);
    }
    let mut nanoseconds = vec![0; steps as usize];
    let mut last = Instant::now();
    let outputs = model::run_each(model, runs, how.reset_each, &mut |run, session| {
        session.allow_fused();
        for step in 0.. {
            let progress = session.step()?;
            let now = Instant::now();
            if let Some(place) = nanoseconds.get_mut(step as usize) {
                *place = u64::try_from((now - last).as_nanos()).unwrap_or(u64::MAX);
            }
            told(Progress::Running {
                runs: u32::try_from(run).unwrap_or(u32::MAX),
                steps: step + 1,
                of_steps: steps,
            });
            last = Instant::now();
            if progress == arenite::Progress::Done {
                break;
            }
        }
        Ok(())
    })?;
    let step_nanoseconds = if how.profile { nanoseconds } else { Vec::new() };
    Ok(Outcome {
        outputs,
        step_nanoseconds,
        ..Outcome::default()
    })
}

/// Runs on all cores, neighbouring ones on each.
fn side_by_side(model: &Model<'_>, runs: &[Vec<Vec<u8>>], how: How, told: &mut dyn FnMut(Progress)) -> Result<Outcome> {
    let steps = model.header().step_count;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let parts: Vec<Result<Vec<_>>> = std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let start = |part| {
            let sender = sender.clone();
            scope.spawn(move || {
                model::run_each(model, part, how.reset_each, &mut |_, session| {
                    session.allow_fused();
                    session.run()?;
                    // Nobody hears of it where the command is about to end.
                    let _ = sender.send(());
                    Ok(())
                })
            })
        };
        let threads: Vec<_> = runs.chunks(runs.len().div_ceil(cores)).map(start).collect();
        drop(sender);
        for (run, ()) in receiver.iter().enumerate() {
            told(Progress::Running {
                runs: u32::try_from(run).unwrap_or(u32::MAX),
                steps,
                of_steps: steps,
            });
        }
        let gone = |_| Err(Error::internal("a thread of the runs is gone"));
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(gone))
            .collect()
    });
    let parts: Vec<Vec<_>> = parts.into_iter().collect::<Result<_>>()?;
    Ok(Outcome {
        outputs: parts.into_iter().flatten().collect(),
        ..Outcome::default()
    })
}

fn on_board(
    file: &ModelFile,
    board: &'static board::Board,
    runs: &[Vec<Vec<u8>>],
    how: How,
    told: &mut dyn FnMut(Progress),
) -> Result<Outcome> {
    ready(board)?;
    warn(board, &file.view()?)?;
    let sizes = file.output_sizes()?;
    let options = RunOptions {
        runs: u32::try_from(runs.len()).map_err(|_| Error::input(format!("{} runs", runs.len())))?,
        reset_each: how.reset_each,
        profile: how.profile,
        guard_blob: file.bytes().len() <= board::GUARDED_BYTES,
        timeout: how.timeout,
        ..RunOptions::default()
    };
    let inputs: Vec<u8> = runs.iter().flatten().flatten().copied().collect();
    let report = board::run_with_progress(board, file.blob(), &inputs, &options, told).map_err(Error::from)?;
    let outputs = split_outputs(board, &report.outputs, runs.len(), &sizes)?;
    Ok(Outcome {
        outputs,
        instructions: report.instructions,
        step_instructions: report.steps.last().cloned().unwrap_or_default(),
        ..Outcome::default()
    })
}

/// The outputs of all runs, by run and output.
///
/// # Errors
/// [`crate::ErrorKind::Internal`] where there are fewer bytes.
pub(crate) fn split_outputs(
    board: &board::Board,
    outputs: &[u8],
    runs: usize,
    sizes: &[usize],
) -> Result<Vec<Vec<Vec<u8>>>> {
    let mut rest = outputs;
    let mut split = Vec::with_capacity(runs);
    for _ in 0..runs {
        let mut of_run = Vec::with_capacity(sizes.len());
        for &size in sizes {
            let (bytes, others) = rest
                .split_at_checked(size)
                .ok_or_else(|| Error::internal(format!("{} gave {} output bytes", board.name, outputs.len())))?;
            of_run.push(bytes.to_vec());
            rest = others;
        }
        split.push(of_run);
    }
    Ok(split)
}

fn over_serial(
    file: &ModelFile,
    port: &SerialPort,
    runs: &[Vec<Vec<u8>>],
    how: How,
    told: &mut dyn FnMut(Progress),
) -> Result<Outcome> {
    let options = SerialOptions {
        reset_each: how.reset_each,
        profile: how.profile,
        timeout: how.timeout,
    };
    let (mut link, _) = board::connect(port)?;
    let report = link.run(file.bytes(), runs, options, &mut |runs| {
        told(Progress::Running {
            runs: u32::try_from(runs).unwrap_or(u32::MAX),
            steps: 0,
            of_steps: 0,
        });
    })?;
    Ok(Outcome {
        outputs: report.outputs,
        counts: report.counts,
        step_counts: report.steps,
        ..Outcome::default()
    })
}
