//! Steps that take more than their kind may: every int8 model of the shared data and the generated ones of `tests/models/tflite_wide`, on a board of each kind
//! of core, step by step against a limit that follows from the four models of the benchmarks. `tests/results/cliffs.json` has those above it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arenite::{DType, Step};
use arenite_host::board::{BenchOptions, Board, ready};
use arenite_host::files;
use arenite_host::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::results::{Configuration, best_target, measure, packed, read as read_results};

/// The file in the folder of the results.
pub const FILE: &str = "cliffs.json";

/// The boards: a core of each kind.
pub const BOARDS: [&str; 5] = [
    "mps2-an386",
    "mps3-an547",
    "mps2-an385",
    "mps2-an385:thumbv6m",
    "riscv32-virt",
];

/// The models whose instructions a unit set the limits.
const MEASURES: [&str; 4] = ["ad01_int8", "kws_ref_model", "vww_96_int8", "pretrainedResnet_quant"];

/// Instructions that any step may take.
const STEP: u64 = 1500;
/// Instructions that a copied byte may take.
const BYTE: u64 = 2;
/// Instructions that an element of softmax, logistic function or hyperbolic tangent may take.
const FUNCTION: u64 = 40;

/// Unit of a step's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// MACs of a convolution.
    Convolution,
    /// MACs of a depthwise convolution.
    Depthwise,
    /// MACs of a fully connected layer.
    Dense,
    /// Elements of a sum of two tensors; other elementwise operators count as one.
    Sum,
    /// Elements that a pooling reads; reductions count as one.
    Pool,
}

/// A step above its limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cliff {
    /// Stem of the model's file.
    pub model: String,
    /// The board.
    pub board: String,
    /// Index of the step.
    pub step: usize,
    /// Its kernel.
    pub kernel: String,
    /// Its products, elements or bytes.
    pub work: u64,
    /// Its instructions.
    pub instructions: u64,
    /// The most that it may take.
    pub limit: u64,
}

/// All that was found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cliffs {
    /// Models that ran on every board with room.
    pub models: Vec<String>,
    /// Steps that were looked at.
    pub steps: usize,
    /// Those above their limit, the largest excess first.
    pub above: Vec<Cliff>,
    /// Files larger than their .tflite.
    pub larger: Vec<Larger>,
}

impl Cliff {
    /// Instructions above the limit.
    pub fn excess(&self) -> u64 {
        self.instructions.saturating_sub(self.limit)
    }
}

/// A model whose file is larger than the .tflite that it was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Larger {
    /// Stem of the model's file.
    pub model: String,
    /// Target that it was packed for.
    pub target: String,
    /// Bytes of the packed file.
    pub bytes: u64,
    /// Bytes of the .tflite.
    pub tflite: u64,
}

/// Units of work of a kind.
type Work = (Kind, u64);

/// Instructions a unit of each kind, summed over the four models.
type Rates = BTreeMap<Kind, f64>;

/// Returns the rates of a board in the tracked results.
fn rates(results: &Path, board: &str) -> Result<Rates> {
    let mut sums = BTreeMap::<Kind, (u64, u64)>::new();
    for model in MEASURES {
        let measured = read_results(&results.join(format!("{model}.json")))?;
        let measured = measured.iter().find(|m| m.bench.board == board && !m.size);
        let measured = measured.ok_or_else(|| Error::input(format!("{model} has no result on {board}")))?;
        for step in &measured.bench.steps {
            let Some((kind, work)) = traced(&step.op, step.macs).or_else(|| unweighted(model, &step.op, step.index))
            else {
                continue;
            };
            let sum = sums.entry(kind).or_default();
            *sum = (sum.0 + step.instructions, sum.1 + work);
        }
    }
    let rate = |(kind, (instructions, work)): (Kind, (u64, u64))| (kind, instructions as f64 / work.max(1) as f64);
    Ok(sums.into_iter().map(rate).collect())
}

/// The kind that multiplies, and its products.
fn traced(op: &str, macs: u64) -> Option<Work> {
    if macs == 0 {
        return None;
    }
    Some(match op {
        "depthwise_conv2d" => (Kind::Depthwise, macs),
        "linear" | "lstm" | "svdf" => (Kind::Dense, macs),
        _ => (Kind::Convolution, macs),
    })
}

/// Elements of the sums of resnet8 and of its average and that of kws: results do not have them. The rest of the average of vww is no measure.
fn unweighted(model: &str, op: &str, step: usize) -> Option<Work> {
    match (model, op, step) {
        ("pretrainedResnet_quant", "add", 3) => Some((Kind::Sum, 32 * 32 * 16)),
        ("pretrainedResnet_quant", "add", 7) => Some((Kind::Sum, 16 * 16 * 32)),
        ("pretrainedResnet_quant", "add", 11) => Some((Kind::Sum, 8 * 8 * 64)),
        ("pretrainedResnet_quant", "avg_pool2d", _) => Some((Kind::Pool, 8 * 8 * 64)),
        ("kws_ref_model", "avg_pool2d", _) => Some((Kind::Pool, 25 * 5 * 64)),
        _ => None,
    }
}

/// Cost of a step's elements: a kind to be rated, or instructions that the rule grants at once.
enum Elements {
    Rated(Work),
    Granted(u64, u64),
}

/// The elements of a step without products; none of a kind that is not an integer's.
fn elements(step: &Step) -> Option<Elements> {
    let output = |loops: &[arenite::ops::elementwise::Loop]| loops.iter().map(|l| u64::from(l.count)).product::<u64>();
    let window = |w: &arenite::ops::window::Window2d| {
        let [rows, columns, channels] = w.output.map(u64::from);
        let [height, width] = w.kernel.map(u64::from);
        u64::from(w.batch) * rows * columns * channels * height * width
    };
    let of = |extents: &[u32]| extents.iter().map(|&n| u64::from(n)).product::<u64>();
    let function = |n: u64| Elements::Granted(n, FUNCTION * n);
    Some(match step {
        Step::CopyBytes(op) => {
            let counts: Vec<u32> = op.loops.iter().map(|l| l.count).collect();
            let bytes = of(&counts) * u64::from(op.element);
            Elements::Granted(bytes, BYTE * bytes)
        }
        Step::Table(op) => function(op.count.into()),
        Step::SigmoidS16(op) => function(op.count.into()),
        Step::TableS16(op) => function(op.count.into()),
        Step::SoftmaxS8(op) | Step::SoftmaxInt(op) => function(of(&[op.rows, op.classes])),
        Step::BinaryInt(op) | Step::IntAddS8(op) | Step::MveSumS8(op) => {
            Elements::Rated((Kind::Sum, output(&op.loops)))
        }
        Step::IntSumS8(op) | Step::DspSumS8(op) | Step::MveLinearSumS8(op) => {
            Elements::Rated((Kind::Sum, op.count.into()))
        }
        Step::Rescale(op) => Elements::Rated((Kind::Sum, op.count.into())),
        Step::Convert(op) => Elements::Rated((Kind::Sum, op.count.into())),
        Step::MaxPoolInt(op) | Step::IntMaxPoolS8(op) | Step::DspMaxPoolS8(op) | Step::MveMaxPoolS8(op) => {
            Elements::Rated((Kind::Pool, window(&op.window)))
        }
        Step::AvgPoolInt(op) | Step::IntAvgPoolS8(op) | Step::DspAvgPoolS8(op) | Step::MveAvgPoolS8(op) => {
            Elements::Rated((Kind::Pool, window(&op.window)))
        }
        Step::ReduceInt(op) => Elements::Rated((Kind::Pool, of(&op.shape))),
        Step::ArgMax(op) => Elements::Rated((Kind::Pool, of(&op.shape))),
        Step::Resize(op) => Elements::Rated((Kind::Sum, of(&[op.batch, op.to[0], op.to[1], op.channels]))),
        _ => return None,
    })
}

/// Work and limit of a step.
fn limit(rates: &Rates, op: &str, macs: u64, step: &Step) -> (u64, u64) {
    let rated = |(kind, work): Work| {
        // Twice what it takes in the four models; of 16 bits three times.
        let times = if is_wide(step) { 3.0 } else { 2.0 };
        (times * rates.get(&kind).copied().unwrap_or_default() * work as f64) as u64
    };
    match (traced(op, macs), elements(step)) {
        (Some(work), _) => (work.1, STEP + rated(work) + functions(step)),
        (None, Some(Elements::Rated(work))) => (work.1, STEP + rated(work)),
        (None, Some(Elements::Granted(work, instructions))) => (work, STEP + instructions),
        (None, None) => (0, STEP),
    }
}

/// Returns the instructions that the functions of a step with products may take: three gates and two hyperbolic tangents for each cell of an LSTM.
fn functions(step: &Step) -> u64 {
    match step {
        Step::LstmInt(op) => {
            let shape = &op.shape;
            5 * FUNCTION * u64::from(shape.batch) * u64::from(shape.time) * u64::from(shape.cells)
        }
        _ => 0,
    }
}

/// Whether its activations have 16 bits or more.
fn is_wide(step: &Step) -> bool {
    match step {
        Step::Conv2dS16(_) => true,
        Step::LstmInt(op) => op.dtype == DType::I16,
        Step::BinaryInt(op) => op.dtype != DType::I8,
        Step::Rescale(op) => [op.from, op.to].iter().any(|dtype| dtype.bytes() > 1),
        Step::Convert(op) => [op.from, op.to].iter().any(|dtype| dtype.bytes() > 1),
        Step::MaxPoolInt(op) | Step::AvgPoolInt(op) => op.dtype != DType::I8,
        Step::ReduceInt(op) => op.dtype != DType::I8,
        _ => false,
    }
}

/// The models: of the shared data those whose products are of integers, and the generated ones; `only` these names, where there are any.
pub(crate) fn models(tests: &Path, shared: Option<&Path>, only: &[String]) -> Result<Vec<PathBuf>> {
    let folders = [
        shared.map(|shared| shared.join("data/models")),
        Some(tests.join("tflite_wide")),
    ];
    let mut found = Vec::new();
    for folder in folders.into_iter().flatten() {
        let entries = std::fs::read_dir(&folder).map_err(|e| Error::io(&folder, "list the models", &e))?;
        for entry in entries {
            let path = entry.map_err(|e| Error::io(&folder, "list the models", &e))?.path();
            let wanted = only.is_empty() || only.contains(&stem(&path));
            if wanted && path.extension().is_some_and(|e| e == "tflite") && is_integer(&path)? {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

pub(crate) fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn configuration(board: &'static Board) -> Configuration {
    Configuration {
        board,
        target: best_target(board),
        size: false,
    }
}

/// Whether a model packs, and none of its products is of floating point.
fn is_integer(model: &Path) -> Result<bool> {
    let folder = scratch()?;
    let Some(board) = Board::find("mps2-an386") else {
        return Err(Error::internal("no board to pack for"));
    };
    let file = match packed(model, configuration(board), folder.path()) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::Unsupported => return Ok(false),
        Err(e) => return Err(e),
    };
    let view = file.view()?;
    let metadata = view.metadata()?;
    let real = |(step, meta): (&Step, &arenite_host::metadata::StepMeta)| {
        meta.macs > 0 && step.kernel().name().ends_with("F32")
    };
    Ok(!view.steps()?.iter().zip(&metadata.steps).any(real))
}

fn scratch() -> Result<files::Scratch> {
    files::Scratch::new().map_err(|e| Error::io(&std::env::temp_dir(), "make a folder", &e))
}

/// Looks at every step of the models called `only`, all where there are none, on the boards; `note` hears of each model.
///
/// # Errors
/// As [`packed`] and [`measure`]; [`ErrorKind::Io`].
pub fn find(
    tests: &Path,
    shared: Option<&Path>,
    results: &Path,
    only: &[String],
    note: &mut dyn FnMut(&str),
) -> Result<Cliffs> {
    let mut found = Cliffs::default();
    let options = BenchOptions {
        trace: false,
        code: false,
        ..BenchOptions::default()
    };
    for model in models(tests, shared, only)? {
        let name = stem(&model);
        let tflite = std::fs::metadata(&model)
            .map_err(|e| Error::io(&model, "look at", &e))?
            .len();
        let mut m4 = Vec::new();
        for board in BOARDS {
            let board = Board::find(board).ok_or_else(|| Error::internal(format!("no board {board}")))?;
            ready(board)?;
            let configuration = configuration(board);
            let folder = scratch()?;
            let file = packed(&model, configuration, folder.path())?;
            let bytes = file.bytes().len() as u64;
            if shared.is_some_and(|shared| model.starts_with(shared)) && bytes > tflite {
                found.larger.push(Larger {
                    model: name.clone(),
                    target: configuration.target.name().to_owned(),
                    bytes,
                    tflite,
                });
            }
            let Some(measured) = measure(&model, configuration, &options)? else {
                note(&format!("{name} on {}: no room", board.name));
                continue;
            };
            let rates = rates(results, board.name)?;
            let view = file.view()?;
            let steps = view.steps()?;
            let mut above = 0;
            for (step, counted) in steps.iter().zip(&measured.bench.steps) {
                let (work, limit) = limit(&rates, &counted.op, counted.macs, step);
                // Helium may take a tenth more than the DSP extension at the most.
                let beside = match m4.get(counted.index) {
                    Some(&(ref op, instructions)) if board.name == "mps3-an547" && *op == counted.op => {
                        instructions * 11 / 10
                    }
                    _ => u64::MAX,
                };
                let limit = limit.min(beside);
                found.steps += 1;
                if counted.instructions > limit {
                    above += counted.instructions - limit;
                    found.above.push(Cliff {
                        model: name.clone(),
                        board: board.name.to_owned(),
                        step: counted.index,
                        kernel: counted.kernel.clone(),
                        work,
                        instructions: counted.instructions,
                        limit,
                    });
                }
            }
            if board.name == "mps2-an386" {
                let of = |step: &arenite_host::board::BenchStep| (step.op.clone(), step.instructions);
                m4 = measured.bench.steps.iter().map(of).collect();
            }
            note(&format!(
                "{name} on {}: {} instructions, {above} of them above the limits",
                board.name, measured.bench.instructions
            ));
        }
        found.models.push(name);
    }
    found.above.sort_by_key(|cliff| std::cmp::Reverse(cliff.excess()));
    Ok(found)
}

/// Writes the file.
///
/// # Errors
/// [`ErrorKind::Io`].
pub fn write(results: &Path, cliffs: &Cliffs) -> Result<()> {
    fn line(value: &impl Serialize) -> String {
        format!("  {}", serde_json::to_string(value).unwrap_or_default())
    }
    fn lines(values: &[impl Serialize]) -> String {
        values.iter().map(line).collect::<Vec<_>>().join(",\n")
    }
    let text = format!(
        "{{\"models\":{},\"steps\":{},\"above\":[\n{}\n],\"larger\":[\n{}\n]}}\n",
        serde_json::to_string(&cliffs.models).unwrap_or_default(),
        cliffs.steps,
        lines(&cliffs.above),
        lines(&cliffs.larger)
    );
    files::write(&results.join(FILE), text.as_bytes())
}

/// Reads the file.
///
/// # Errors
/// [`ErrorKind::Io`], [`ErrorKind::Input`].
pub fn read(results: &Path) -> Result<Cliffs> {
    let path = results.join(FILE);
    let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, "read the cliffs", &e))?;
    serde_json::from_str(&text).map_err(|e| Error::input(format!("no cliffs: {e}")).in_file(&path))
}
