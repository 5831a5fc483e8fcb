//! `arenite plan`: the planner on a CSV file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

use super::check::{CheckError, check};
use super::csv::{self, CsvError};
use super::problem::{Options, PlanError};
use super::solve::solve_watched;
use crate::error::Error;
use crate::files::{self, Draft, Output};
use crate::stage::Progress;

/// Arguments of `arenite plan`.
#[derive(Clone, Debug, clap::Args)]
pub struct PlanArgs {
    /// Buffers: a header `id,lower,upper,size`, then one row each; lifetimes in steps, upper exclusive; sizes in bytes
    pub file: PathBuf,
    /// Stop at the first plan of at most this many bytes; without it, minimise
    #[arg(long, value_name = "BYTES")]
    pub capacity: Option<u64>,
    /// Write the buffers with their offsets to this CSV file
    #[arg(short, long = "output", value_name = "OUT.csv")]
    pub output: Option<PathBuf>,
    /// Print height, lower_bound, proven_optimal and seconds as JSON
    #[arg(long)]
    pub json: bool,
    /// Budget of the exact search, in nodes
    #[arg(long, value_name = "N", default_value_t = Options::DEFAULT_NODES)]
    pub plan_nodes: u64,
}

/// Report that `arenite plan` prints; serialises to its JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Number of buffers.
    pub buffers: usize,
    /// Height of the plan, in bytes.
    pub height: u64,
    /// No plan is lower, in bytes.
    pub lower_bound: u64,
    /// Whether the height equals the bound.
    pub proven_optimal: bool,
    /// Nodes of the exact search.
    pub nodes: u64,
    /// Time to plan, in seconds, without reading and writing.
    pub seconds: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} buffers in {} bytes, ", self.buffers, self.height)?;
        if self.proven_optimal {
            write!(f, "proven optimal")?;
        } else {
            write!(f, "lower bound {}", self.lower_bound)?;
        }
        write!(f, " ({} nodes, {:.3} s)", self.nodes, self.seconds)
    }
}

/// Why `arenite plan` failed; its exit status is 1.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] Error),
    /// The input file is no valid list of buffers.
    #[error("{}: {source}", .path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// The fault and its position.
        source: CsvError,
    },
    /// The problem contradicts itself.
    #[error("{}: {source}", .path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: PlanError,
    },
    /// The plan did not survive its check: an error of the planner.
    #[error("the planner made a wrong plan, please report it: {0}")]
    Check(#[from] CheckError),
    /// No plan within the capacity was found.
    #[error("{}", does_not_fit(path, *.capacity, *.height, *.lower_bound))]
    DoesNotFit {
        /// The file.
        path: PathBuf,
        /// The capacity asked for, in bytes.
        capacity: u64,
        /// The lowest plan found, in bytes.
        height: u64,
        /// No plan is lower, in bytes.
        lower_bound: u64,
    },
}

/// Reads the buffers, plans, checks the plan, and drafts the file where one is asked for.
///
/// # Errors
/// See [`CommandError`]. Nothing is left behind then.
pub fn command(args: &PlanArgs, progress: &mut Progress<'_>) -> Result<(Report, Option<Draft>), CommandError> {
    let path = || files::paths::shown(&args.file);
    let output = args.output.as_deref().map(Output::to).transpose()?;
    output.iter().try_for_each(|output| output.differs_from(&args.file))?;
    let text = files::read_text(&args.file, "read the buffers")?;
    let problem = csv::read(&text).map_err(|source| CommandError::Csv { path: path(), source })?;
    let options = Options {
        capacity: args.capacity,
        nodes: args.plan_nodes,
    };
    let start = Instant::now();
    let mut spent = |nodes| progress("planning the arena", nodes, args.plan_nodes);
    let plan =
        solve_watched(&problem, &options, &mut spent).map_err(|source| CommandError::Plan { path: path(), source })?;
    let seconds = start.elapsed().as_secs_f64();
    check(&problem, &plan)?;
    if let Some(capacity) = args.capacity.filter(|&capacity| plan.height > capacity) {
        let (height, lower_bound) = (plan.height, plan.lower_bound);
        return Err(CommandError::DoesNotFit {
            path: path(),
            capacity,
            height,
            lower_bound,
        });
    }
    let draft = output.map(|output| {
        let drafted = output.draft_of(csv::write(&problem, &plan.offsets).as_bytes());
        drafted.map_err(|e| Error::io(output.path(), "write the plan", &e))
    });
    let report = Report {
        buffers: problem.buffers.len(),
        height: plan.height,
        lower_bound: plan.lower_bound,
        proven_optimal: plan.proven_optimal,
        nodes: plan.nodes,
        seconds,
    };
    Ok((report, draft.transpose()?))
}

fn does_not_fit(path: &Path, capacity: u64, height: u64, lower_bound: u64) -> String {
    let path = path.display();
    if lower_bound > capacity {
        format!("{path}: no plan fits {capacity} bytes: at least {lower_bound} are needed, and {height} are enough")
    } else {
        format!(
            "{path}: no plan within {capacity} bytes was found, nor proven impossible: {height} bytes are enough, at least {lower_bound} \
             are needed; raise --plan-nodes or --capacity"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Impossible plans are told from plans that were not found.
    #[test]
    fn a_bound_above_the_capacity_proves_that_nothing_fits() {
        let said = |capacity| does_not_fit(Path::new("p.csv"), capacity, 12, 10);
        assert!(said(9).contains("no plan fits 9 bytes: at least 10 are needed, and 12 are enough"));
        for capacity in [10, 11] {
            assert!(said(capacity).contains("nor proven impossible: 12 bytes are enough, at least 10 are needed"));
        }
    }
}
