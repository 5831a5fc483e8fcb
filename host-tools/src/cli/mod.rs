//! The programs: `pack`, and `arenite` with one file a subcommand. Each has an `Args` and a `run`; messages go to stderr, results to stdout.

mod bench;
mod bench_pieces;
mod beside;
mod borders;
pub mod calls;
mod compare;
mod diagnostic;
mod diff;
mod doctor;
mod element_type;
mod emit;
mod eval;
mod examples;
mod explain;
mod flash;
mod generate;
mod inspect;
mod keygen;
mod limits;
mod machine;
mod migrate;
mod new;
mod opened;
mod outcome;
mod pack;
mod packed;
mod plan;
mod planned;
mod program;
mod progress;
pub mod regions;
mod report;
mod run;
mod size;
mod trace;
mod train;
mod update;
mod verify;
mod watch;
mod weights;

pub use crate::report::grouped;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use program::{Verdict, run_to_the_end};

use crate::Result;
use crate::pieces::PiecesFile;

/// Looks into model files, runs them on this host or on emulated boards, and compares them with references.
#[derive(Parser)]
#[command(name = "arenite", version, term_width = examples::COLUMNS)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Says what a model holds and needs.
    Inspect(inspect::Args),
    /// Checks a model as a device does, and proves again that no live bytes overlap.
    Verify(verify::Args),
    /// Runs a model on NumPy files, here or on a board.
    Run(run::Args),
    /// Counts instructions, arena and stack on boards.
    Bench(bench::Args),
    /// Writes a run for Perfetto: each step on the core that has it.
    Trace(trace::Args),
    /// Runs a model on labelled inputs: accuracy and confusion matrix.
    Eval(eval::Args),
    /// Trains a model that was packed with --train on labelled inputs, here or on a board.
    Train(Box<train::Args>),
    /// Compares every layer with a reference and names the first that differs.
    Diff(diff::Args),
    /// Plans one arena for the buffers of a CSV file.
    Plan(crate::memory::plan::PlanArgs),
    /// Writes the weights that `pack --weights seeded:N` uses, or lists what a network needs.
    Weights(weights::Args),
    /// Converts a model of an older format version into today's.
    Migrate(migrate::Args),
    /// Makes a key to sign files with.
    Keygen(keygen::Args),
    /// Says what the four bytes of an error's code mean.
    ExplainCode(explain::Args),
    /// Says what is installed, what is missing, and how to get it.
    Doctor(doctor::Args),
    /// Writes a model as one HTML page: graph, arena over time, steps.
    Report(Box<report::Args>),
    /// Compares two models: arena, flash, steps, outputs.
    Compare(compare::Args),
    /// Says whether a model fits a chip, why not, and about how long it takes there.
    Size(size::Args),
    /// Compares a model's figures with those that a tracked file allows.
    Limits(limits::Args),
    /// Writes a project for a chip that builds as it stands.
    New(new::Args),
    /// Lets a language model write: text behind a prompt, as it comes.
    Generate(generate::Args),
    /// Flashes a program or a model with probe-rs.
    Flash(flash::Args),
    /// Packs again when a file changes, counts on a board, and shows the difference.
    Watch(watch::Args),
    /// Sends a model over a serial port into the slots of a board, which uses it from then on.
    Update(update::Args),
}

/// The program `pack`: parses the arguments, does the work, reports errors.
pub fn pack() -> ExitCode {
    run_to_the_end(pack::run)
}

/// Returns the commands of both programs, for manuals and completions.
pub fn commands() -> [clap::Command; 2] {
    [pack::Args::command(), Cli::command()].map(examples::helped)
}

/// The program `arenite`.
pub fn main() -> ExitCode {
    run_to_the_end(work)
}

/// The work of a command of `arenite`.
fn work(cli: Cli) -> Result<Verdict> {
    match cli.command {
        Command::Inspect(args) => inspect::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Bench(args) => match PiecesFile::open(&args.model)? {
            Some(pieces) => bench_pieces::run(&args, &pieces),
            None => bench::run(&args),
        },
        Command::Trace(args) => trace::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Train(args) => train::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Weights(args) => weights::run(&args),
        Command::Migrate(args) => migrate::run(&args),
        Command::Keygen(args) => keygen::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Size(args) => size::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Limits(args) => limits::run(&args),
        Command::New(args) => new::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Flash(args) => flash::run(&args),
        Command::Update(args) => update::run(&args),
        Command::ExplainCode(args) => explain::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_lines_are_consistent() {
        commands().into_iter().for_each(clap::Command::debug_assert);
    }
}
