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
pub mod regions;
mod run;
mod unbuilt;
mod verify;
mod weights;

pub use unbuilt::UnbuiltPackOptions;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::files::print::{self, out as print_out};
use crate::{Error, ErrorKind, Result, files};

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

/// What the process ends with: the contract's exit status 1 where what was asked is done but its answer is no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Status 0.
    Good,
    /// Status 1.
    Bad,
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

/// A whole program: signals, arguments, work, and the exit status that the contract gives to what came of it.
pub fn run_to_the_end<A: Parser>(work: impl FnOnce(A) -> Result<Verdict>) -> ExitCode {
    files::signals::watch();
    let result = match A::try_parse() {
        Ok(arguments) => work(arguments),
        Err(e) if e.use_stderr() => {
            // Where standard error takes nothing there is nobody to tell.
            let _ = e.print();
            return ExitCode::from(2);
        }
        // Help and version are results.
        Err(e) => {
            let (page, styled) = (e.render(), std::io::stdout().is_terminal());
            let text = if styled {
                page.ansi().to_string()
            } else {
                page.to_string()
            };
            print::out(&text).map(|()| Verdict::Good)
        }
    };
    match result {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::from(1),
        Err(error) => {
            if error.kind() != ErrorKind::Closed {
                print::note(format_args!("error: {error}"));
            }
            ExitCode::from(if error.kind() == ErrorKind::Usage { 2 } else { 1 })
        }
    }
}

/// Prints JSON on stdout.
fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::internal(format!("JSON: {e}")))?;
    print::out(&format!("{text}\n"))
}

/// A number with thin separators, for people: `25,526,632`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (25_526_632, "25,526,632")];
        for (n, text) in cases {
            assert_eq!(grouped(n), text);
        }
    }
}
