//! The command `arenite`: one file a subcommand. Each has an `Args` and a `run`; messages go to stderr, results to stdout.

mod array;
mod bench;
mod diff;
mod doctor;
mod eval;
mod inspect;
mod outcome;
mod place;
mod plan;
mod program;
pub mod regions;
mod run;
mod unbuilt;
mod verify;
mod weights;

pub use program::{Verdict, grouped, run_to_the_end};
pub use unbuilt::UnbuiltPackOptions;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Looks into model files, runs them on this host or on emulated boards, and compares them with references.
#[derive(Parser)]
#[command(name = "arenite", version)]
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
    /// Runs a model on labelled inputs: accuracy and confusion matrix.
    Eval(eval::Args),
    /// Compares every layer with a reference and names the first that differs.
    Diff(diff::Args),
    /// The arena planner alone, on a CSV file of buffers.
    Plan(crate::memory::plan::PlanArgs),
    /// Writes the weights that `pack --weights seeded:N` uses.
    Weights(weights::Args),
    /// One page about a model: memory map, steps, assumptions.
    Report(unbuilt::ReportArgs),
    /// Says what is installed, what is missing, and how to get it.
    Doctor(doctor::Args),
}

/// The program: parses the arguments, does the work, reports errors.
pub fn main() -> ExitCode {
    run_to_the_end(|cli: Cli| match cli.command {
        Command::Inspect(args) => inspect::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Weights(args) => weights::run(&args),
        Command::Report(args) => args.refuse(),
        Command::Doctor(args) => doctor::run(&args),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
