//! What one inference costs on a board: instructions in total and by step, memory, code.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::{Blob, Board, BoardError, RunOptions, footprint, run};
use crate::metadata::StepMeta;

/// The cost of one inference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bench {
    /// The board.
    pub board: &'static str,
    /// What the model was packed for.
    pub target: String,
    /// Instructions of one inference.
    pub instructions: u64,
    /// Instructions of the checked load.
    pub load_instructions: u64,
    /// An estimate of the cycles of one inference, where the core has a table of timings.
    pub cycles: Option<u64>,
    /// Where those timings come from.
    pub cycles_source: Option<&'static str>,
    /// By step.
    pub steps: Vec<BenchStep>,
    /// Bytes of all arena regions.
    pub arena_bytes: u64,
    /// Bytes of the arena that were written.
    pub arena_touched_bytes: u64,
    /// Stack bytes of one inference.
    pub stack_bytes: u32,
    /// Stack bytes of the checked load.
    pub load_stack_bytes: u32,
    /// Bytes of code and constants of the runtime linked for this model; measured on Cortex-M.
    pub code_bytes: Option<u64>,
}

/// The cost of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BenchStep {
    /// Its index.
    pub index: usize,
    /// The operator's name in the trace.
    pub name: String,
    /// Its kind.
    pub op: String,
    /// Instructions.
    pub instructions: u64,
    /// Multiply-accumulates.
    pub macs: u64,
    /// The fewest instructions that the kernel's loop could take; `None` where no model of the loop exists.
    pub bound: Option<u64>,
    /// An estimate of its cycles.
    pub cycles: Option<u64>,
}

/// Measures the model file at `model` on `board`, on one set of `inputs` (raw, little-endian, in order). `steps` and `target` are
/// what the file says of itself. With `code`, the runtime is linked for this model alone and measured as well.
/// Each of the two runs gets `timeout` of wall time.
///
/// The total is that of an undivided run; the steps come from a second one, where the plugin watches.
///
/// # Errors
/// As [`run()`] and [`footprint()`].
pub fn bench(
    board: &'static Board,
    model: &Path,
    target: &str,
    steps: &[StepMeta],
    inputs: &[u8],
    code: bool,
    timeout: Duration,
) -> Result<Bench, BoardError> {
    let options = RunOptions {
        timeout,
        ..RunOptions::default()
    };
    let whole = run(board, Blob::File(model), inputs, &options)?;
    let stepwise = RunOptions {
        profile: true,
        trace: true,
        ..options
    };
    let divided = run(board, Blob::File(model), inputs, &stepwise)?;

    let counts = divided.steps.into_iter().next().unwrap_or_default();
    let intervals = divided.trace.unwrap_or_default().runs;
    let estimates: Vec<_> = intervals
        .iter()
        .map(|interval| interval.cycles(board.timings))
        .collect();
    let steps = counts.iter().enumerate().map(|(index, &instructions)| {
        let meta = steps.get(index);
        BenchStep {
            index,
            name: meta.map(|meta| meta.name.clone()).unwrap_or_default(),
            op: meta.map(|meta| meta.kind.clone()).unwrap_or_default(),
            instructions,
            macs: meta.map_or(0, |meta| meta.macs),
            bound: None,
            cycles: estimates.get(index).copied().flatten().map(|estimate| estimate.cycles),
        }
    });
    let code = code && board.triple.starts_with("thumb");
    Ok(Bench {
        board: board.name,
        target: target.to_owned(),
        instructions: whole.instructions.first().copied().unwrap_or_default(),
        load_instructions: whole.load_instructions,
        // One table of timings serves all steps, so the estimates are all there or all missing.
        cycles: estimates
            .iter()
            .map(|estimate| estimate.map(|estimate| estimate.cycles))
            .sum(),
        cycles_source: estimates.first().copied().flatten().map(|estimate| estimate.source),
        steps: steps.collect(),
        arena_bytes: whole.arena_bytes,
        arena_touched_bytes: whole.arena_touched_bytes,
        stack_bytes: whole.stack_bytes,
        load_stack_bytes: whole.load_stack_bytes,
        code_bytes: if code {
            Some(footprint(board, model)?.code_bytes)
        } else {
            None
        },
    })
}
