//! Cost of one inference on a board: instructions in total and by step, an estimate of cycles, memory, code.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bound::bound;
use super::firmware::Firmware;
use super::flash::Flash;
use super::footprint::footprint_watched;
use super::progress::Progress;
use super::run::{RunOptions, RunReport, run_with_progress};
use super::table::Board;
use super::trace::{CoreCount, Interval};
use super::worst::most_instructions;
use crate::error::Result;
use crate::model::ModelFile;
use crate::worst::stack;

/// The cost of one inference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bench {
    /// The board.
    pub board: String,
    /// Target that the model was packed for.
    pub target: String,
    /// Instructions of one inference; of several cores all together, but for those of waiting.
    pub instructions: u64,
    /// Instructions of the checked load.
    pub load_instructions: u64,
    /// Those of them that compute the CRC-32 of the file, where the load was traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_crc_instructions: Option<u64>,
    /// An estimate of the cycles of one inference; `None` untraced, or where the core has no table of timings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<u64>,
    /// Where those timings come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles_source: Option<String>,
    /// The chip whose flash is taken into account, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chip: Option<String>,
    /// The estimate with that chip's wait states and caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chip_cycles: Option<u64>,
    /// By core, where several run the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<CoreCount>,
    /// By step.
    pub steps: Vec<BenchStep>,
    /// Bytes of all arena regions.
    pub arena_bytes: u64,
    /// Bytes of the arena that were written.
    pub arena_touched_bytes: u64,
    /// Bytes of state.
    pub state_bytes: u64,
    /// Stack bytes of one inference.
    pub stack_bytes: u32,
    /// Stack bytes of the checked load.
    pub load_stack_bytes: u32,
    /// The most stack bytes that a run of these kernels takes, as the tracked table has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_at_most: Option<u64>,
    /// The same of the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_stack_at_most: Option<u64>,
    /// Bytes of code and constants of the runtime linked for this model; `None` where it was not asked for, or not on a Cortex-M.
    pub code_bytes: Option<u64>,
}

/// The cost of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchStep {
    /// Its index.
    pub index: usize,
    /// The operator's name in the trace.
    pub name: String,
    /// Its kind.
    pub op: String,
    /// The kernel that computes it.
    pub kernel: String,
    /// Instructions.
    pub instructions: u64,
    /// Multiply-accumulates.
    pub macs: u64,
    /// The fewest instructions that the kernel's loops could take; `None` for kernels that state none.
    pub bound: Option<u64>,
    /// The most instructions, for any data; `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u64>,
    /// An estimate of its cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<u64>,
    /// The estimate with the chip's wait states and caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chip_cycles: Option<u64>,
}

/// Options of a measurement.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// Whether executed instructions are recorded, for the estimate of cycles and the share of the CRC; several times slower.
    pub trace: bool,
    /// A chip whose flash is taken into account; wants `trace`.
    pub chip: Option<&'static Flash>,
    /// Whether the runtime is linked for this model alone, for its size.
    pub code: bool,
    /// Wall time that each of the two runs gets.
    pub timeout: Duration,
}

impl Default for BenchOptions {
    fn default() -> Self {
        Self {
            trace: true,
            chip: None,
            code: true,
            timeout: Duration::from_secs(600),
        }
    }
}

impl Bench {
    /// Multiply-accumulates of one inference.
    pub fn macs(&self) -> u64 {
        self.steps.iter().map(|step| step.macs).sum()
    }

    /// The most instructions of one inference, where all of its steps have such a bound.
    pub fn at_most(&self) -> Option<u64> {
        self.steps.iter().map(|step| step.at_most).sum()
    }

    /// The bound of all steps that have one, and the instructions of those steps.
    pub fn bounded(&self) -> (u64, u64) {
        let bounded = |(bound, instructions), step: &BenchStep| match step.bound {
            Some(b) => (bound + b, instructions + step.instructions),
            None => (bound, instructions),
        };
        self.steps.iter().fold((0, 0), bounded)
    }
}

/// Measures `model` on `board`, on one set of `inputs` (raw, little-endian, in order).
///
/// The total is that of an undivided run; the steps come from a second one, where the plugin watches.
///
/// # Errors
/// Those of a run ([`super::BoardError`]) and of a damaged file.
pub fn bench(
    board: &'static Board,
    model: &ModelFile,
    inputs: &[u8],
    options: &BenchOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Bench> {
    let view = model.view()?;
    let (steps, metadata) = (view.steps()?, view.metadata()?);
    let metas = &metadata.steps;
    let target = arenite::Target::ALL
        .get(usize::from(view.header().target))
        .copied()
        .unwrap_or(arenite::Target::Portable);
    let blob = model.blob();
    let plain = RunOptions {
        timeout: options.timeout,
        ..RunOptions::default()
    };
    // Several cores run an undivided run alone.
    let undivided = RunOptions {
        trace: board.cores() > 1 && (view.cores().is_some() || view.accelerator().is_some()),
        ..plain.clone()
    };
    let mut whole = run_with_progress(board, blob, inputs, &undivided, &mut *progress)?;
    let run = whole.trace.take().and_then(|trace| trace.runs.into_iter().next());
    let cores = run.map(|run| run.cores).unwrap_or_default();
    let instructions = match &cores[..] {
        [] => whole.instructions.first().copied().unwrap_or_default(),
        cores => cores.iter().map(|core| core.instructions).sum(),
    };
    let stepwise = RunOptions {
        profile: true,
        trace: options.trace,
        flash: options.chip,
        ..plain
    };
    // The core alone may lack kernels of steps that it hands over: there is no run of it step by step.
    let divided = match view.accelerator() {
        Some(_) => RunReport::default(),
        None => run_with_progress(board, blob, inputs, &stepwise, &mut *progress)?,
    };

    let counts = divided.steps.into_iter().next().unwrap_or_default();
    let (load, intervals) = divided.trace.map(|trace| (trace.load, trace.runs)).unzip();
    let intervals = intervals.unwrap_or_default();
    let estimates: Vec<_> = intervals
        .iter()
        .map(|interval| interval.cycles(board.timings))
        .collect();
    let on_chip: Vec<Option<u64>> = intervals
        .iter()
        .zip(&estimates)
        .map(|(interval, estimate)| Some((*estimate)?.cycles + options.chip?.stalls(interval, (*estimate)?.cycles)?))
        .collect();
    let measured = counts.iter().enumerate().map(|(index, &instructions)| {
        let (meta, step) = (metas.get(index), steps.get(index));
        BenchStep {
            index,
            name: meta.map(|meta| meta.name.clone()).unwrap_or_default(),
            op: meta.map(|meta| meta.kind.clone()).unwrap_or_default(),
            kernel: step.map(|step| step.kernel().name().to_owned()).unwrap_or_default(),
            instructions,
            macs: meta.map_or(0, |meta| meta.macs),
            bound: step.and_then(|step| bound(step, target, board, metadata.computed_macs(index))),
            at_most: step.and_then(|step| most_instructions(board, step, view.weights()).ok()),
            cycles: estimates.get(index).copied().flatten().map(|estimate| estimate.cycles),
            chip_cycles: on_chip.get(index).copied().flatten(),
        }
    });
    // The table is of a core alone.
    let stack = match view.accelerator() {
        Some(_) => None,
        None => stack::TABLE.bound(board.name, steps.iter().map(arenite::Step::kernel)),
    };
    // The steps of training of a file (`FILE#training`) are no file that a program could link.
    let code = options.code && board.triple.starts_with("thumb") && model.path().is_file();
    Ok(Bench {
        board: board.name.to_owned(),
        target: target.name().to_owned(),
        instructions,
        load_instructions: whole.load_instructions,
        load_crc_instructions: load.map(|load| crc_part(board, &load)).transpose()?,
        // One table of timings serves all steps, so the estimates are all there or all missing.
        cycles: match estimates[..] {
            [] => None,
            _ => estimates.iter().map(|estimate| estimate.map(|e| e.cycles)).sum(),
        },
        cycles_source: estimates
            .first()
            .copied()
            .flatten()
            .map(|estimate| estimate.source.to_owned()),
        chip: options.chip.map(|chip| chip.name.to_owned()),
        chip_cycles: match on_chip[..] {
            [] => None,
            _ => on_chip.iter().copied().sum(),
        },
        cores,
        steps: measured.collect(),
        arena_bytes: whole.arena_bytes,
        arena_touched_bytes: whole.arena_touched_bytes,
        state_bytes: whole.state_bytes,
        stack_bytes: whole.stack_bytes,
        load_stack_bytes: whole.load_stack_bytes,
        stack_at_most: stack.map(|stack| stack.run),
        load_stack_at_most: stack.map(|stack| stack.load),
        code_bytes: if code {
            Some(footprint_watched(board, model.path(), progress)?.code_bytes)
        } else {
            None
        },
    })
}

/// Instructions of `load` in the function that computes the checksum.
fn crc_part(board: &'static Board, load: &Interval) -> Result<u64> {
    let functions = Firmware::build(board, "infer")?.functions("::crc::")?;
    let inside = |address: &u64| functions.iter().any(|range| range.contains(address));
    let executed = load.executed.iter().filter(|(address, _)| inside(address));
    Ok(executed.map(|(_, executed)| executed.count).sum())
}
