//! `arenite bench` of a model in pieces: what reading and computing them takes on a board with a flash at a serial bus.

use serde::Serialize;

use super::bench::{Args, boards_with, step_table};
use super::machine::ready;
use super::opened::{piece_meta, without_flash};
use super::outcome::StepFigures;
use super::program::{Verdict, print_json};
use super::progress::Shown;
use crate::board::{self, Board, RunOptions};
use crate::files::print::{note, out as print_out};
use crate::pieces::PiecesFile;
use crate::report::grouped;
use crate::{Error, ErrorKind, Result};

/// One inference; its steps are the pieces, what it takes to read them and their checks included.
#[derive(Serialize)]
struct Report {
    board: &'static str,
    target: String,
    instructions: u64,
    /// Those of opening it, where every piece is read and checked.
    load_instructions: u64,
    arena_bytes: u64,
    buffer_bytes: u64,
    /// Bytes over the bus in a run, commands and addresses among them.
    bus_bytes: u64,
    /// The same while it is opened.
    load_bus_bytes: u64,
    steps: Vec<StepFigures>,
}

pub(super) fn run(args: &Args, pieces: &PiecesFile) -> Result<Verdict> {
    let refused = [
        (args.chip.is_some(), "--chip"),
        (args.quick, "--quick"),
        (args.state.is_some(), "--state"),
    ];
    if let Some((_, option)) = refused.iter().find(|(given, _)| *given) {
        return Err(Error::new(ErrorKind::Usage, format!("{option} with a model in pieces"))
            .help("a chip's memories, bounds and saved states are of models in one file: pack it without :stream"));
    }
    let view = pieces.ends()[0].view()?;
    let zeros = vec![0; view.header().input_bytes as usize];
    let mut reports = Vec::new();
    for board in boards_with(args, &view)? {
        match board.spi_flash() {
            Some(_) => reports.push(one(args, pieces, board, &zeros)?),
            None if args.all => note(format_args!("left out: {}", without_flash(board.name, "").message())),
            None => return Err(without_flash(board.name, "")),
        }
    }
    if reports.is_empty() {
        let target = view.target_name();
        return Err(without_flash(&format!("no board of target {target}"), ""));
    }
    match (args.json, &reports[..]) {
        (true, [one]) if !args.all => print_json(one)?,
        (true, all) => print_json(&all)?,
        (false, all) => print_out(&all.iter().map(text).collect::<String>())?,
    }
    Ok(Verdict::Good)
}

fn one(args: &Args, pieces: &PiecesFile, board: &'static Board, zeros: &[u8]) -> Result<Report> {
    ready(board)?;
    let shown = Shown::new(&format!("starting on {}", board.name));
    let options = RunOptions {
        profile: true,
        timeout: args.timeout(),
        ..RunOptions::default()
    };
    let told = &mut |now| shown.running(board.name, 1, now);
    let report = board::run_streamed(board, pieces.bytes(), zeros, &options, told).map_err(Error::from)?;
    let counts = report.run.steps.into_iter().next().unwrap_or_default();
    let of = |(index, instructions): (usize, u64)| {
        let meta = piece_meta(&pieces.pieces[index])?;
        Ok(StepFigures {
            index,
            name: meta.name,
            op: meta.kind,
            instructions: Some(instructions),
            nanoseconds: None,
            count: None,
            macs: meta.macs,
            bound: None,
            cycles: None,
        })
    };
    Ok(Report {
        board: board.name,
        target: pieces.ends()[0].view()?.target_name().to_string(),
        instructions: counts.iter().sum(),
        load_instructions: report.run.load_instructions,
        arena_bytes: report.run.arena_bytes,
        buffer_bytes: pieces.sizes.buffer.into(),
        bus_bytes: report.run_bytes.first().copied().unwrap_or_default(),
        load_bus_bytes: report.opening_bytes,
        steps: counts.into_iter().enumerate().map(of).collect::<Result<_>>()?,
    })
}

fn text(report: &Report) -> String {
    format!(
        "{}: {} instructions, {} bytes over the bus; opened with {} and {}; arena {}, buffer {}\n{}",
        report.board,
        grouped(report.instructions),
        grouped(report.bus_bytes),
        grouped(report.load_instructions),
        grouped(report.load_bus_bytes),
        grouped(report.arena_bytes),
        grouped(report.buffer_bytes),
        step_table(&report.steps)
    )
}
