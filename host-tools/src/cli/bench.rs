//! `arenite bench`: instructions, arena and stack on boards, for scripts and for people.

use std::path::PathBuf;
use std::time::Duration;

use super::machine::{Machine, ready, warn};
use super::opened::with_state;
use super::outcome::StepFigures;
use super::program::{Verdict, print_json};
use super::progress::Shown;
use crate::board::{self, BOARDS, Bench, BenchOptions, Board, FLASHES, Flash};
use crate::files::print;
use crate::files::print::out as print_out;
use crate::model::{ModelFile, ModelView};
use crate::report::grouped;
use crate::{Error, ErrorKind, Result};

/// Arguments of `arenite bench`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model file.
    pub(super) model: PathBuf,
    /// The board; repeatable.
    #[arg(long, value_name = "qemu:BOARD", required_unless_present = "all")]
    pub(super) on: Vec<Machine>,
    /// Every board that runs the model's target and has room for it; the others are named on stderr.
    #[arg(long, conflicts_with = "on")]
    pub(super) all: bool,
    /// Prints the figures as JSON on stdout: an object for one board, a list for several.
    #[arg(long)]
    pub(super) json: bool,
    /// Estimates cycles with this chip's flash as well: its wait states and caches.
    #[arg(long, value_name = "NAME", conflicts_with = "quick")]
    pub(super) chip: Option<String>,
    /// Counts from a state that `arenite train` saved.
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
    /// Leaves out what takes longest: cycles, and the size of the code.
    #[arg(long)]
    pub(super) quick: bool,
    /// The wall time that each board gets.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub(super) timeout: u64,
}

impl Args {
    /// The wall time that each board gets.
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// Instructions do not depend on the input's values but for a few branches; zeros are what everybody can repeat.
pub(super) fn run(args: &Args) -> Result<Verdict> {
    let file = with_state(ModelFile::open(&args.model)?, args.state.as_deref())?;
    let view = file.view()?;
    if !args.quick {
        view.refuse_rolling("`bench` without --quick")?;
    }
    let boards = boards_with(args, &view)?;
    let mut figures: Vec<Bench> = Vec::new();
    for board in boards {
        match bench(&file, &view, board, args, !args.quick) {
            Ok(bench) => figures.push(bench),
            Err(e) if args.all && e.kind() == ErrorKind::DoesNotFit => {
                print::note(format_args!("left out: {}", e.message()));
            }
            Err(e) => return Err(e),
        }
    }
    match (args.json, &figures[..]) {
        (true, [one]) if !args.all => print_json(one)?,
        (true, all) => print_json(&all)?,
        (false, [one]) => print_out(&format!("{}{}", board_table(&figures), step_table(&bench_steps(one))))?,
        (false, all) => print_out(&board_table(all))?,
    }
    Ok(Verdict::Good)
}

pub(super) fn boards_with(args: &Args, view: &ModelView<'_>) -> Result<Vec<&'static Board>> {
    if args.all {
        let target = view.target_name();
        let (boards, others): (Vec<_>, Vec<_>) = BOARDS.iter().partition(|b| b.targets.contains(&target));
        for board in others {
            print::note(format_args!(
                "left out: {} has no kernels for the target {target}",
                board.name
            ));
        }
        let (boards, others): (Vec<_>, Vec<_>) = boards.into_iter().partition(|b| ready(b).is_ok());
        for board in others {
            print::note(format_args!(
                "left out: {}: not installed; `arenite doctor` says what is missing",
                board.name
            ));
        }
        return Ok(boards);
    }
    let boards = args.on.iter().map(|place| match place {
        Machine::Board(board) => Ok(*board),
        Machine::Serial(_) => Err(place.not_over_serial("instructions, stack and code are counted in qemu")),
        Machine::Host => Err(
            Error::new(ErrorKind::Usage, "--on host: this host counts no instructions")
                .expected("qemu:BOARD")
                .help("`arenite run --on host --profile` times the steps"),
        ),
    });
    boards.collect()
}

/// The figures of the first board, without the size of the code.
pub(super) fn counted(file: &ModelFile, view: &ModelView<'_>, args: &Args) -> Result<Bench> {
    let boards = boards_with(args, view)?;
    let board = boards.first().ok_or_else(|| Error::internal("no board was named"))?;
    bench(file, view, board, args, false)
}

fn bench(file: &ModelFile, view: &ModelView<'_>, board: &'static Board, args: &Args, code: bool) -> Result<Bench> {
    warn(board, view)?;
    let zeros = vec![0; view.header().input_bytes as usize];
    let options = BenchOptions {
        chip: chip(args, board)?,
        trace: !args.quick,
        code,
        timeout: args.timeout(),
    };
    let shown = Shown::new(&format!("starting on {}", board.name));
    board::bench(board, file, &zeros, &options, &mut |now| {
        shown.running(board.name, 1, now);
    })
}

/// The flash of the chip that was named, on a board of its core; with `--all` others go without.
fn chip(args: &Args, board: &Board) -> Result<Option<&'static Flash>> {
    let Some(name) = &args.chip else { return Ok(None) };
    let flash = Flash::find(name).ok_or_else(|| {
        let known: Vec<_> = FLASHES.iter().map(|flash| flash.name).collect();
        Error::new(
            ErrorKind::Usage,
            format!("--chip {name}: the flash of this chip is not known"),
        )
        .expected(known.join(", "))
        .help("without --chip the estimate is that of a memory without wait states")
    })?;
    if flash.core == board.timings {
        return Ok(Some(flash));
    }
    if args.all {
        return Ok(None);
    }
    let of_its_core: Vec<_> = BOARDS
        .iter()
        .filter(|board| board.timings == flash.core)
        .map(|b| b.name)
        .collect();
    Err(Error::new(
        ErrorKind::Usage,
        format!("--chip {name}: {} has another core", board.name),
    )
    .expected(format!("--on qemu:{}", of_its_core.join(", qemu:"))))
}

fn board_table(all: &[Bench]) -> String {
    let mut text = format!(
        "{:<20} {:>16} {:>8} {:>14} {:>14} {:>12} {:>12} {:>8} {:>8} {:>8}\n",
        "board", "instructions", "per MAC", "est. cycles", "on chip", "load", "arena", "stack", "at most", "code"
    );
    let or_dash = |n: Option<u64>| n.map_or("-".to_string(), grouped);
    for bench in all {
        let macs: u64 = bench.steps.iter().map(|step| step.macs).sum();
        text += &format!(
            "{:<20} {:>16} {:>8} {:>14} {:>14} {:>12} {:>12} {:>8} {:>8} {:>8}\n",
            bench.board,
            grouped(bench.instructions),
            per_mac(bench.instructions, macs),
            or_dash(bench.cycles),
            or_dash(bench.chip_cycles),
            grouped(bench.load_instructions),
            grouped(bench.arena_bytes),
            grouped(u64::from(bench.stack_bytes)),
            or_dash(bench.stack_at_most),
            or_dash(bench.code_bytes)
        );
        for (index, core) in bench.cores.iter().enumerate() {
            let name = format!("  core {index}");
            let (worked, waited) = (grouped(core.instructions), grouped(core.waiting));
            text += &format!("{name:<20} {worked:>16}, and {waited} waiting\n");
        }
    }
    text
}

fn bench_steps(bench: &Bench) -> Vec<StepFigures> {
    let figures = bench.steps.iter().map(|step| StepFigures {
        index: step.index,
        name: step.name.clone(),
        op: step.op.clone(),
        instructions: Some(step.instructions),
        nanoseconds: None,
        count: None,
        macs: step.macs,
        bound: step.bound,
        cycles: step.chip_cycles.or(step.cycles),
    });
    figures.collect()
}

/// The steps, one a line.
pub(super) fn step_table(steps: &[StepFigures]) -> String {
    let counted = steps.iter().any(|step| step.instructions.is_some());
    let unit = match steps.iter().any(|step| step.count.is_some()) {
        true => "counted",
        false if counted => "instructions",
        false => "nanoseconds",
    };
    let estimated = steps.iter().any(|step| step.cycles.is_some());
    let cycles = |text: &str| {
        if estimated {
            format!(" {text:>14}")
        } else {
            String::new()
        }
    };
    let mut text = format!(
        "{:>4} {:<18} {unit:>16} {:>14} {:>8}{}  name\n",
        "step",
        "op",
        "MACs",
        "per MAC",
        cycles("est. cycles")
    );
    for step in steps {
        let cost = step.instructions.or(step.count).or(step.nanoseconds).unwrap_or(0);
        text += &format!(
            "{:>4} {:<18} {:>16} {:>14} {:>8}{}  {}\n",
            step.index,
            step.op,
            grouped(cost),
            grouped(step.macs),
            per_mac(cost, step.macs),
            cycles(&step.cycles.map_or("-".to_owned(), grouped)),
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
