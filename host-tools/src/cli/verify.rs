//! `arenite verify`: the device's checks, and the proof that no step destroys what a later one reads.

use std::path::PathBuf;

use serde::Serialize;

use super::program::{Verdict, grouped, print_json};
use crate::files::print::out as print_out;
use crate::memory::prove;
use crate::model::ModelFile;
use crate::{ErrorKind, Result};

/// Arguments of `arenite verify`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model file.
    model: PathBuf,
    /// Prints the findings as JSON on stdout.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    target: String,
    /// Whether this host loaded the model with the device's own code; false where it lacks the target's kernels, whose operands
    /// are then checked by the tools.
    loaded: bool,
    steps: usize,
    /// Operands whose bytes were followed from writer to reader.
    reads: usize,
    /// The highest byte that any step touches, plus one; at most the arena's size.
    arena_touched_bytes: u64,
    arena_bytes: u64,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let file = ModelFile::open(&args.model)?;
    let loaded = match file.load() {
        Ok(_) => true,
        Err(e) if e.kind() == ErrorKind::Unsupported => false,
        Err(e) => return Err(e),
    };
    let view = file.view()?;
    let proof = prove::prove(&view).map_err(|e| e.in_file(&args.model))?;
    let report = Report {
        target: view.target_name().to_string(),
        loaded,
        steps: view.header().step_count as usize,
        reads: proof.reads,
        arena_touched_bytes: proof.arena_touched,
        arena_bytes: view.header().arena.iter().map(|&bytes| u64::from(bytes)).sum(),
    };
    if args.json {
        print_json(&report)?;
        return Ok(Verdict::Good);
    }
    let how = if report.loaded {
        "passes the checks of a device"
    } else {
        "is intact; this host lacks the kernels of its target, so its operands were checked by the tools"
    };
    print_out(&format!(
        "{}: {how}\n{} steps, {} reads: each finds the bytes that were written for it, in {} of {} bytes of arena\n",
        args.model.display(),
        report.steps,
        report.reads,
        grouped(report.arena_touched_bytes),
        grouped(report.arena_bytes)
    ))?;
    Ok(Verdict::Good)
}
