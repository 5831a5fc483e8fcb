//! `arenite bench`: instructions, arena and stack on boards, for scripts and for people.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::outcome::{How, StepFigures, bar, execute};
use super::place::{Place, ready};
use super::{Verdict, grouped, print_json, print_out};
use crate::board::{BOARDS, Board};
use crate::model::{ModelFile, ModelView};
use crate::{Error, ErrorKind, Result};

/// Arguments of `arenite bench`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model file.
    model: PathBuf,
    /// The board; repeatable.
    #[arg(long, value_name = "qemu:BOARD", required_unless_present = "all")]
    on: Vec<Place>,
    /// Every board that runs the model's target and has room for it; the others are named on stderr.
    #[arg(long, conflicts_with = "on")]
    all: bool,
    /// Prints the figures as JSON on stdout: an object for one board, a list for several.
    #[arg(long)]
    json: bool,
    /// The wall time that each board gets.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
}

/// One board's figures.
#[derive(Debug, Serialize)]
struct Bench {
    board: &'static str,
    target: String,
    /// One inference.
    instructions: u64,
    /// The checked load.
    load_instructions: u64,
    steps: Vec<StepFigures>,
    arena_bytes: u64,
    state_bytes: u64,
    stack_bytes: u64,
    /// Runtime and kernels in flash; null until it is measured on a program that links the model's kernels alone.
    code_bytes: Option<u64>,
}

/// Instructions do not depend on the input's values but for a few branches; zeros are what everybody can repeat.
pub(super) fn run(args: &Args) -> Result<Verdict> {
    let file = ModelFile::open(&args.model)?;
    let view = file.view(false)?;
    let boards = boards(args, &view)?;
    let mut figures: Vec<Bench> = Vec::new();
    for board in boards {
        match bench(&file, &view, board, Duration::from_secs(args.timeout)) {
            Ok(bench) => figures.push(bench),
            Err(e) if args.all && e.kind() == ErrorKind::DoesNotFit => eprintln!("left out: {}", e.message()),
            Err(e) => return Err(e),
        }
    }
    match (args.json, &figures[..]) {
        (true, [one]) if !args.all => print_json(one)?,
        (true, all) => print_json(&all)?,
        (false, [one]) => print_out(&format!("{}{}", board_table(&figures), step_table(&one.steps)))?,
        (false, all) => print_out(&board_table(all))?,
    }
    Ok(Verdict::Good)
}

fn boards(args: &Args, view: &ModelView<'_>) -> Result<Vec<&'static Board>> {
    if args.all {
        let target = view.target_name();
        let (boards, others): (Vec<_>, Vec<_>) = BOARDS.iter().partition(|b| b.targets.contains(&target));
        for board in others {
            eprintln!("left out: {} has no kernels for the target {target}", board.name);
        }
        let (boards, others): (Vec<_>, Vec<_>) = boards.into_iter().partition(|b| ready(b).is_ok());
        for board in others {
            eprintln!(
                "left out: {}: not installed; `arenite doctor` says what is missing",
                board.name
            );
        }
        return Ok(boards);
    }
    let boards = args.on.iter().map(|place| match place {
        Place::Board(board) => Ok(*board),
        Place::Host => Err(
            Error::new(ErrorKind::Usage, "--on host: this host counts no instructions")
                .expected("qemu:BOARD")
                .help("`arenite run --on host --profile` times the steps"),
        ),
    });
    boards.collect()
}

fn bench(file: &ModelFile, view: &ModelView<'_>, board: &'static Board, timeout: Duration) -> Result<Bench> {
    let zeros = view
        .inputs
        .iter()
        .map(|port| vec![0; port.bytes().unwrap_or(0) as usize]);
    let runs = [zeros.collect::<Vec<_>>()];
    let metas = view.metadata()?.steps;
    let how = |profile| How {
        reset_each: false,
        profile,
        timeout,
    };
    let bar = bar(metas.len() as u64, board.name);
    // Counting every step by itself costs the caller some stack, so totals and stack are of a plain run.
    let plain = execute(file, Place::Board(board), &runs, how(false), &mut |_, _| bar.tick());
    let profiled = plain.and_then(|plain| {
        let mut done = |_, steps: Option<(u32, u32)>| bar.set_position(steps.map_or(0, |(done, _)| u64::from(done)));
        execute(file, Place::Board(board), &runs, how(true), &mut done).map(|profiled| (plain, profiled))
    });
    bar.finish_and_clear();
    let (plain, profiled) = profiled?;
    let header = view.header();
    Ok(Bench {
        board: board.name,
        target: view.target_name().to_string(),
        instructions: plain.instructions.first().copied().unwrap_or(0),
        load_instructions: plain.load_instructions,
        steps: profiled.steps(&metas),
        arena_bytes: header.arena.iter().map(|&bytes| u64::from(bytes)).sum(),
        state_bytes: u64::from(header.state_init.len),
        stack_bytes: plain.stack_bytes.unwrap_or(0),
        code_bytes: None,
    })
}

fn board_table(all: &[Bench]) -> String {
    let mut text = format!(
        "{:<20} {:>16} {:>8} {:>14} {:>12} {:>8} {:>8}\n",
        "board", "instructions", "per MAC", "load", "arena", "state", "stack"
    );
    for bench in all {
        let macs: u64 = bench.steps.iter().map(|step| step.macs).sum();
        text += &format!(
            "{:<20} {:>16} {:>8} {:>14} {:>12} {:>8} {:>8}\n",
            bench.board,
            grouped(bench.instructions),
            per_mac(bench.instructions, macs),
            grouped(bench.load_instructions),
            grouped(bench.arena_bytes),
            grouped(bench.state_bytes),
            grouped(bench.stack_bytes)
        );
    }
    text
}

/// The steps, one a line.
pub(super) fn step_table(steps: &[StepFigures]) -> String {
    let counted = steps.iter().any(|step| step.instructions.is_some());
    let unit = if counted { "instructions" } else { "nanoseconds" };
    let mut text = format!(
        "{:>4} {:<18} {unit:>16} {:>14} {:>8}  name\n",
        "step", "op", "MACs", "per MAC"
    );
    for step in steps {
        let cost = step.instructions.or(step.nanoseconds).unwrap_or(0);
        text += &format!(
            "{:>4} {:<18} {:>16} {:>14} {:>8}  {}\n",
            step.index,
            step.op,
            grouped(cost),
            grouped(step.macs),
            per_mac(cost, step.macs),
            step.name
        );
    }
    text
}

fn per_mac(cost: u64, macs: u64) -> String {
    match macs {
        0 => "-".to_string(),
        _ => format!("{:.2}", cost as f64 / macs as f64),
    }
}
