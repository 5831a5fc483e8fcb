//! Counts generated steps on boards.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Duration;

use arenite::{DType, KernelId};
use arenite_host::board::{Board, RunOptions, RunReport, run};
use arenite_host::model::Blob as File;
use arenite_host::worst::instructions::{features, row};

use super::generate::{Generated, Random, step};
use crate::blob::{Blob, Tensor, at};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A step and its counts, by contents of the arena: anything, zeros, extremes.
pub struct Sample {
    /// The step, with its constants.
    pub generated: Generated,
    /// Instructions.
    pub instructions: Vec<u64>,
    /// The weights of the file that it was in.
    pub weights: Rc<Vec<u8>>,
}

impl Sample {
    /// The row of the table that it belongs to.
    pub fn row(&self) -> String {
        row(&self.generated.step, &self.weights)
    }

    /// Its features.
    pub fn features(&self) -> BTreeMap<String, f64> {
        features(&self.generated.step, &self.weights)
    }

    /// The most instructions of all contents.
    pub fn most(&self) -> f64 {
        self.instructions.iter().max().map_or(0.0, |&most| most as f64)
    }

    /// The fewest.
    pub fn least(&self) -> f64 {
        self.instructions.iter().min().map_or(1.0, |&least| least as f64)
    }
}

/// The board that counts for `board`: the same build on a machine with room, where it has none.
fn roomy(board: &'static Board) -> &'static Board {
    static SMALL: LazyLock<Board> = LazyLock::new(|| {
        let find = |name| Board::find(name).unwrap_or(&arenite_host::board::BOARDS[0]);
        Board {
            name: "mps2-an385:microbit",
            rustflags: find("microbit").rustflags,
            ..find("mps2-an385:thumbv6m").clone()
        }
    });
    if board.extra.is_none() { &SMALL } else { board }
}

/// The most bytes of operands in a file.
const ARENA: u32 = 3 << 20;

/// Counts `count` steps of `kernel` on `board`, of the seeds from `seed` on.
///
/// # Errors
/// Where a board does not run them.
pub fn count(board: &'static Board, kernel: KernelId, seed: u64, count: usize) -> Result<Vec<Sample>> {
    let options = RunOptions {
        runs: 4,
        ..RunOptions::default()
    };
    let Some((all, report)) = ran(board, kernel, (seed, count), options)? else {
        return Ok(Vec::new());
    };
    let (steps, weights) = all;
    let samples = steps.into_iter().enumerate().map(|(index, generated)| {
        let instructions = report
            .steps
            .iter()
            .filter_map(|steps| steps.get(index).copied())
            .collect();
        Sample {
            generated,
            instructions,
            weights: Rc::clone(&weights),
        }
    });
    Ok(samples.collect())
}

/// Steps, and the weights of the file that they were in.
type Steps = (Vec<Generated>, Rc<Vec<u8>>);

/// Such steps, and the estimate of each one's cycles on an arena of anything. None on a core without timings.
///
/// # Errors
/// Where a board does not run them.
pub fn cycles(board: &'static Board, kernel: KernelId, seed: u64, count: usize) -> Result<(Steps, Vec<u64>)> {
    let options = RunOptions {
        trace: true,
        ..RunOptions::default()
    };
    let Some((all, report)) = ran(board, kernel, (seed, count), options)? else {
        return Ok(((Vec::new(), Rc::default()), Vec::new()));
    };
    let runs = report.trace.map(|trace| trace.runs).unwrap_or_default();
    let estimates = runs.iter().map(|interval| interval.cycles(board.timings));
    let cycles: Option<Vec<u64>> = estimates.map(|estimate| Some(estimate?.cycles)).collect();
    Ok((all, cycles.unwrap_or_default()))
}

/// Runs `count` steps of `kernel` as `options` say, of the seeds from `seed` on; `None` where there are none.
fn ran(
    board: &'static Board,
    kernel: KernelId,
    (seed, count): (u64, usize),
    options: RunOptions,
) -> Result<Option<(Steps, RunReport)>> {
    let mut random = Random::new(seed);
    let (mut arena, mut weights) = (0u32, Vec::new());
    let mut blob = Blob::default();
    let mut all = Vec::new();
    for _ in 0..count * 8 {
        if all.len() == count || arena > ARENA {
            break;
        }
        let Some(generated) = step(kernel, &mut random, arena, weights.len() as u32) else {
            continue;
        };
        arena += generated.bytes;
        weights.extend(&generated.constants);
        weights.resize(weights.len().next_multiple_of(16), 0);
        blob = blob.step(&generated.step);
        all.push(generated);
    }
    if all.is_empty() {
        return Ok(None);
    }
    blob.arena = [arena, 0, 0, 0];
    blob.weights = weights;
    blob.inputs = vec![Tensor::new("all", at(0), DType::I8, &[arena])];
    let float = kernel.name().contains("F32");
    let inputs: Vec<u8> = (0..options.runs as usize)
        .flat_map(|how| contents(&mut random, arena, float, how))
        .collect();
    let options = RunOptions {
        profile: true,
        timeout: Duration::from_secs(900),
        ..options
    };
    let file = blob.file();
    let weights = Rc::new(blob.weights);
    let report = run(roomy(board), File::Bytes(&file), &inputs, &options)?;
    Ok(Some(((all, weights), report)))
}

/// Returns the bytes of the arena: anything, zeros, extremes, or NaNs, which loops over blocks of f32 compute again.
pub(super) fn contents(random: &mut Random, bytes: u32, float: bool, how: usize) -> Vec<u8> {
    let word = |random: &mut Random| match (how, float) {
        (0, true) => random.float().to_le_bytes(),
        (0, false) => [0; 4].map(|_| random.byte()),
        (1, _) => [0; 4],
        (3, true) => f32::NAN.to_le_bytes(),
        // Between the largest, the least and numbers without a leading one.
        (_, true) => [1e-39, -3e38, 1e-45, 0.7e-19, f32::MAX][usize::from(random.byte()) % 5].to_le_bytes(),
        (_, false) => [0; 4].map(|_| [0x80, 0x7f][usize::from(random.byte()) % 2]),
    };
    (0..bytes.div_ceil(4))
        .flat_map(|_| word(random))
        .take(bytes as usize)
        .collect()
}
