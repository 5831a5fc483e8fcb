//! Instructions beside `Model::cost`, where one axis of an operator at a time is scaled.

use std::collections::BTreeSet;

use arenite::{KernelId, Step};
use arenite_host::board::Board;

use super::generate::{Generated, Random, step};
use super::measure::FileOfSteps;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Factors of an axis.
pub const FACTORS: [u32; 2] = [4, 16];

/// Products or elements of a base, at least.
pub const LEAST: u64 = 10_000;

/// Units of cost of a base, at most: 16 times as many are counted.
const MOST: u64 = 90_000;

/// Seeds that bases are looked for among.
const SEEDS: u64 = 6_000;

/// Bytes of operands and constants of a file.
const FILE: u64 = 3 << 20;

/// Bytes of a step, at most.
const STEP: u64 = 2 << 20;

/// A generated step by the numbers that make it.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// The kernel.
    pub kernel: KernelId,
    /// The seed of all draws.
    pub seed: u64,
    /// Number of the axis that is scaled, and the factor.
    pub scaled: Option<(usize, u32)>,
}

impl Origin {
    /// The step, with operands and constants from these addresses on.
    pub fn step(self, arena: u32, weights: u32) -> Option<Generated> {
        step(self.kernel, &mut self.random(), arena, weights)
    }

    fn random(self) -> Random {
        match self.scaled {
            Some((axis, factor)) => Random::scaled(self.seed, axis, factor),
            None => Random::new(self.seed),
        }
    }
}

/// An axis of a step.
#[derive(Debug, Clone)]
pub struct Axis {
    /// The parameter that it changes, with its extent: `shape[2]`.
    pub name: String,
    /// The step scaled by each of [`FACTORS`].
    pub scaled: [Origin; 2],
}

/// A step and its axes.
#[derive(Debug, Clone)]
pub struct Base {
    /// The step.
    pub origin: Origin,
    /// Every axis along which the kernel takes both scaled steps.
    pub axes: Vec<Axis>,
}

/// A step's count.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    /// Instructions, the most of all contents.
    pub instructions: u64,
    /// [`arenite::ops::cost::Cost::total`].
    pub cost: u64,
}

impl Count {
    /// Instructions for a unit of cost.
    pub fn quotient(self) -> f64 {
        self.instructions as f64 / self.cost.max(1) as f64
    }
}

/// The first `count` bases of `kernel`, and as many more as have axes that none of them has.
pub fn bases(kernel: KernelId, count: usize) -> Vec<Base> {
    let (mut found, mut names) = (Vec::new(), BTreeSet::new());
    for seed in 0..SEEDS {
        let Some(base) = base(kernel, seed) else { continue };
        let new = base.axes.iter().filter(|axis| names.insert(axis.name.clone())).count();
        if found.len() < count || new > 0 {
            found.push(base);
        }
    }
    found
}

/// The base of a seed; `None` where it is too small, too large or has no axis.
fn base(kernel: KernelId, seed: u64) -> Option<Base> {
    let origin = Origin {
        kernel,
        seed,
        scaled: None,
    };
    let mut random = origin.random();
    let plain = step(kernel, &mut random, 0, 0)?;
    let cost = plain.step.cost();
    let elements = cost.products.max(cost.reads).max(cost.writes);
    (elements >= LEAST && cost.total() <= MOST).then_some(())?;
    let axes = (0..random.extents()).filter_map(|axis| {
        let scaled = FACTORS.map(|factor| Origin {
            scaled: Some((axis, factor)),
            ..origin
        });
        let mut name = String::new();
        for origin in scaled {
            let large = origin.step(0, 0)?;
            let bytes = u64::from(large.bytes) + large.constants.len() as u64;
            name = changed(&plain.step, &large.step).filter(|_| bytes <= STEP)?;
        }
        Some(Axis { name, scaled })
    });
    let axes: Vec<Axis> = axes.collect();
    (!axes.is_empty()).then_some(Base { origin, axes })
}

/// The first number by which two steps differ, places aside, as a path of fields; `None` where they are alike.
fn changed(a: &Step, b: &Step) -> Option<String> {
    let [a, b] = [a, b].map(|step| format!("{:#?}", step.clone().map(&mut |_| Ok::<_, ()>(arenite::Slot::default()))));
    let mut path: Vec<(String, usize)> = Vec::new();
    for (a, b) in a.lines().zip(b.lines()) {
        let [a, b] = [a.trim(), b.trim()];
        if a != b && !["weights", "bias", "channels: ", "recurrent", "table", "scales", "factors"].iter().any(|constant| a.starts_with(constant)) {
            let mut names: Vec<String> = path.iter().skip(3).map(|(name, at)| format!("{name}{at}.")).collect();
            names.push(a.split(':').next().unwrap_or(a).to_owned());
            return Some(names.concat());
        }
        if a.ends_with(['{', '[', '(']) {
            path.push((a.split([':', ' ', '(']).next().unwrap_or(a).to_owned(), 0));
        } else if a.starts_with(['}', ']', ')']) {
            _ = path.pop();
        }
        if let Some((_, at)) = path.last_mut() {
            *at += usize::from(!a.ends_with(['{', '[', '(']));
        }
    }
    None
}

/// Counts steps on a board, of `runs` contents each.
///
/// # Errors
/// Where the board does not run them.
pub fn count(board: &'static Board, origins: &[Origin], runs: u32) -> Result<Vec<Count>> {
    let mut counts = Vec::new();
    let mut file = FileOfSteps::default();
    let mut flush = |file: &mut FileOfSteps| -> Result<()> {
        if !file.steps().is_empty() {
            let instructions = file.instructions(board, runs)?;
            let costs = file.steps().iter().map(|of| of.step.cost().total());
            counts.extend(instructions.into_iter().zip(costs).map(|(instructions, cost)| Count { instructions, cost }));
        }
        *file = FileOfSteps::default();
        Ok(())
    };
    for origin in origins {
        let kernels = file.steps().first().map(|first| first.step.kernel() == origin.kernel);
        if file.bytes() > FILE || kernels == Some(false) {
            flush(&mut file)?;
        }
        if !file.push(|arena, weights| origin.step(arena, weights)) {
            return Err(format!("{origin:?} makes no step").into());
        }
    }
    flush(&mut file)?;
    Ok(counts)
}
