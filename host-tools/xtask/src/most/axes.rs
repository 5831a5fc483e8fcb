//! Steps of which one axis is scaled, counted on boards: whether `Cost` follows what they take.

use std::time::Duration;

use arenite::arena::Access;
use arenite::ops::detections::Suppression;
use arenite::ops::window::Window2d;
use arenite::{DType, KernelId, Slot, Step};
use arenite_host::board::{Board, RunOptions, run};
use arenite_host::model::Blob as File;

use super::generate::{Generated, Random, step};
use crate::blob::{Blob, Tensor, at};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Products or elements of a base: what an operator does beside them is little.
const BASE: [u64; 2] = [10_000, 14_000];

/// Factors of extents, in turn, until bases are large enough.
const LARGER: [u32; 5] = [1, 2, 8, 64, 256];

/// Seeds that a base is looked for among.
const SEEDS: u64 = 2_000;

/// Bytes of constants and of operands in a file, at most: boards with 16 MiB have room for both.
const FILE: u32 = 5 << 20;

/// Instructions of a step beside those for each unit of its cost: decoding, and what a kernel prepares.
pub const STEP: u64 = 8_000;

/// Instructions for each unit of a step's cost, at most, beside [`STEP`]: more on cores without a wide product, and on those without an FPU; twice as many
/// where the runtime is compiled for size.
pub fn instructions_of_a_unit(board: &Board) -> u64 {
    let of_core = match board.triple {
        triple if triple.starts_with("thumbv6m") => 10,
        triple if triple.starts_with("thumbv7m-") || triple.starts_with("riscv32") => 6,
        _ => 4,
    };
    if board.rustflags.contains(&"opt-level=s") {
        2 * of_core
    } else {
        of_core
    }
}

/// A step of a seed with an axis `factor` times as long; a factor of 1 is the base.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The kernel.
    pub kernel: KernelId,
    /// The seed of the base.
    pub seed: u64,
    /// How many times as long as drawn all extents of the base are.
    pub larger: u32,
    /// The axis.
    pub axis: &'static str,
    /// How many times as long as in the base.
    pub factor: u32,
}

/// Cost of a case.
#[derive(Debug, Clone)]
pub struct Counted {
    /// The case.
    pub case: Case,
    /// Its cost.
    pub cost: u64,
    /// Instructions by contents of the operands: anything, zeros, extremes.
    pub instructions: Vec<u64>,
    /// The step.
    pub step: Step,
}

impl Counted {
    /// Instructions for each unit of cost, of the contents that take most.
    pub fn quotient(&self) -> f64 {
        self.instructions.iter().copied().max().unwrap_or(0) as f64 / self.cost as f64
    }

    /// Whether it has as many products or elements as a base: a stride or a dilation leaves fewer, beside which the step's beginning counts.
    pub fn is_large(&self) -> bool {
        size(&self.step) >= BASE[0]
    }
}

impl Case {
    /// The step, its constants from `weights` on; `None` where the kernel is not meant for it.
    pub fn generated(&self, weights: u32) -> Option<Generated> {
        step(
            self.kernel,
            &mut Random::scaled(self.seed, self.larger, self.axis, self.factor),
            0,
            weights,
        )
    }
}

/// The first `count` bases of a kernel from `seed` on.
pub fn bases(kernel: KernelId, seed: u64, count: usize) -> Vec<Case> {
    let case = |larger, seed| Case {
        kernel,
        seed,
        larger,
        axis: "",
        factor: 1,
    };
    let large = |case: &Case| {
        let generated = case.generated(0);
        generated
            .is_some_and(|generated| (BASE[0]..BASE[1]).contains(&size(&generated.step)) && generated.bytes < FILE / 16)
    };
    // Extents are drawn small where there are many of them, and in windows alone large enough.
    let of = |larger| {
        (seed..seed + SEEDS)
            .map(move |seed| case(larger, seed))
            .filter(large)
            .take(count)
    };
    let mut found = LARGER.iter().map(|&larger| of(larger).collect::<Vec<Case>>());
    found.find(|cases| cases.len() == count).unwrap_or_default()
}

/// A base and what it becomes by scaling each of its axes by each of `factors`. Steps that the kernel is not meant for are left out, as are those that change
/// nothing.
pub fn scaled(base: Case, factors: &[u32]) -> Vec<Case> {
    let mut random = Random::scaled(base.seed, base.larger, "", 1);
    let Some(generated) = step(base.kernel, &mut random, 0, 0) else {
        return Vec::new();
    };
    let is_other = |case: &Case| {
        let scaled = case.generated(0);
        let fits = |scaled: &Generated| scaled.bytes + (scaled.constants.len() as u32) < FILE;
        scaled
            .filter(fits)
            .is_some_and(|scaled| format!("{:?}", scaled.step) != format!("{:?}", generated.step))
    };
    let each = random.axes().iter().flat_map(|&axis| {
        let case = move |&factor| Case { axis, factor, ..base };
        factors.iter().map(case)
    });
    std::iter::once(base).chain(each.filter(is_other)).collect()
}

/// Products of a step with weights or windows, without padding; elements of others: no part of `Cost`.
fn size(step: &Step) -> u64 {
    let of = |extents: &[u32]| extents.iter().map(|&extent| u64::from(extent)).product::<u64>();
    match step.clone() {
        Step::MatMulInt(op) => {
            let matrices: u64 = op.loops.iter().map(|axis| u64::from(axis.count)).product();
            matrices * of(&op.shape)
        }
        Step::LinearF32(op) | Step::MveLinearF32(op) => of(&[op.rows, op.inputs, op.outputs]),
        // Comparisons of boxes.
        Step::Detections(op) => match op.suppression {
            Suppression::Fast { .. } => of(&[op.candidates, op.taken()]),
            Suppression::Regular { .. } => of(&[op.candidates, op.taken(), op.labels]),
        },
        mut step => match step.window_mut().copied() {
            Some(window) => {
                let pixels = inside(&window, 0) * inside(&window, 1) * u64::from(window.batch);
                pixels * of(&[window.output[2], window.input[2]].map(u32::from)) / channels_apart(&step, &window)
            }
            None => {
                let mut elements = 0;
                step.operands(&mut |operand| {
                    let of_step = u64::from(operand.bytes / operand.align.clamp(1, 8));
                    elements = of_step.max(elements);
                });
                elements
            }
        },
    }
}

/// Positions of a window's rows or columns, in all of its places, that lie in the input.
fn inside(window: &Window2d, axis: usize) -> u64 {
    let [stride, dilation, padding] = [window.stride, window.dilation, window.padding].map(|of| i64::from(of[axis]));
    let at = |place: u16| i64::from(place) * stride - padding;
    let taps = |place| (0..i64::from(window.kernel[axis])).map(move |tap| at(place) + tap * dilation);
    let within = |position: &i64| (0..i64::from(window.input[axis])).contains(position);
    (0..window.output[axis]).flat_map(taps).filter(within).count() as u64
}

/// Groups of channels whose sums have nothing in common.
fn channels_apart(step: &Step, window: &Window2d) -> u64 {
    let name = step.kernel().name();
    if name.contains("Depthwise") || name.contains("Pool") {
        return window.input[2].into();
    }
    let text = format!("{step:?}");
    let groups = text.split_once("groups: ").map_or("1", |(_, rest)| rest);
    let digits = groups.split(|c: char| !c.is_ascii_digit()).next().unwrap_or("1");
    digits.parse().unwrap_or(1).max(1)
}

/// Counts `cases` on `board`, `runs` times: on anything, on zeros, on extremes. All steps of a file read the same operands and write to the same place.
///
/// # Errors
/// Where the board does not run them.
pub fn count(board: &'static Board, cases: &[Case], runs: u32) -> Result<Vec<Counted>> {
    let mut counted = Vec::new();
    let mut rest = cases;
    while !rest.is_empty() {
        let file = Steps::of(rest);
        counted.extend(file.counted(board, runs)?);
        rest = &rest[file.taken..];
    }
    Ok(counted)
}

/// The steps of a file.
#[derive(Default)]
struct Steps {
    cases: Vec<(Case, Step)>,
    weights: Vec<u8>,
    taken: usize,
    /// Bytes of the operands that are read, of integers and of floats; that are written; that are both.
    bytes: [u32; 4],
}

impl Steps {
    /// As many as a file has room for, at least one.
    fn of(cases: &[Case]) -> Self {
        let mut file = Self::default();
        for case in cases {
            let Some(generated) = case.generated(file.weights.len() as u32) else {
                file.taken += 1;
                continue;
            };
            let bytes = file.bytes_with(&generated.step);
            let all = bytes.iter().sum::<u32>() + (file.weights.len() + generated.constants.len()) as u32;
            if all > FILE && !file.cases.is_empty() {
                break;
            }
            file.bytes = bytes;
            file.weights.extend(&generated.constants);
            file.weights.resize(file.weights.len().next_multiple_of(16), 0);
            file.cases.push((*case, generated.step));
            file.taken += 1;
        }
        file
    }

    fn bytes_with(&self, step: &Step) -> [u32; 4] {
        let mut own = [0; 4];
        for (pool, bytes) in operands(step) {
            own[pool] += bytes;
        }
        let mut all = self.bytes;
        for pool in 0..3 {
            all[pool] = all[pool].max(own[pool]);
        }
        all[3] += own[3];
        all
    }

    /// The steps with their places, and their file.
    fn counted(&self, board: &'static Board, runs: u32) -> Result<Vec<Counted>> {
        let mut starts = [0; 4];
        for pool in 1..4 {
            starts[pool] = starts[pool - 1] + self.bytes[pool - 1];
        }
        // An operand that is both read and written lies last and is nobody else's.
        let mut updated = starts[3];
        let mut blob = Blob::default();
        let mut placed = Vec::new();
        for (case, step) in &self.cases {
            let mut next = [starts[0], starts[1], starts[2], updated];
            let mut sizes = operands(step).into_iter();
            let step = step.clone().map(&mut |slot: Slot| {
                if slot.region == Slot::WEIGHTS {
                    return Ok(slot);
                }
                let (pool, bytes) = sizes.next().ok_or("more places than operands")?;
                let offset = next[pool];
                next[pool] += bytes;
                Ok::<_, &str>(Slot { region: 0, offset })
            })?;
            updated = next[3];
            blob = blob.step(&step);
            placed.push((*case, step));
        }
        let arena = self.bytes.iter().sum::<u32>();
        blob.arena = [arena, 0, 0, 0];
        blob.weights.clone_from(&self.weights);
        let input = |name, start: u32, bytes| Tensor::new(name, at(start), DType::I8, &[bytes]);
        blob.inputs = vec![input("all", 0, arena)];
        let mut random = Random::new(arena.into());
        let mut inputs = Vec::new();
        for how in 0..runs as usize {
            inputs.extend(super::measure::contents(&mut random, self.bytes[0], false, how));
            inputs.extend(super::measure::contents(&mut random, self.bytes[1], true, how));
            let rest = inputs.len() + (self.bytes[2] + self.bytes[3]) as usize;
            inputs.resize(rest, 0);
        }
        let options = RunOptions {
            profile: true,
            runs,
            timeout: Duration::from_secs(900),
            ..RunOptions::default()
        };
        let report = run(board, File::Bytes(&blob.file()), &inputs, &options)?;
        let counted = placed.into_iter().enumerate().map(|(index, (case, step))| Counted {
            case,
            cost: step.cost().total(),
            instructions: report.steps.iter().filter_map(|run| run.get(index).copied()).collect(),
            step,
        });
        Ok(counted.collect())
    }
}

/// The operands of a step outside the constants: the pool that each lies in, and its bytes.
fn operands(step: &Step) -> Vec<(usize, u32)> {
    let float = step.kernel().name().contains("F32");
    let mut all = Vec::new();
    step.operands(&mut |operand| {
        if operand.place.region != Slot::WEIGHTS {
            let pool = match operand.access {
                Access::Read => usize::from(float),
                Access::Write | Access::Scratch => 2,
                Access::Update => 3,
            };
            all.push((pool, operand.bytes.next_multiple_of(16)));
        }
    });
    all
}
