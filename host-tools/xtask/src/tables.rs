//! The tables of the [`DOCUMENTS`], from the tracked results and the reference figures in `tests/results/tflm.json`.
//!
//! A table stands between `<!-- table: NAME -->` and `<!-- end -->`; [`fill`] writes what belongs there.

mod cliffs;
mod code_bytes;
pub mod layers;
mod operands;
pub(crate) mod published;
mod quantise;
mod table;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use arenite::kernels::Backend;
use arenite::kernels::api::candidate::JobKind;
use arenite::{KernelId, Target};
use serde::Deserialize;

use self::cliffs::cliffs;
use self::table::{Table, grouped, ratio};
use crate::cliffs::{Cliffs, read as read_cliffs};
use crate::long_tier::LongTier;
use crate::peer::{self, Peer};
use crate::results::{Measured, SUBJECTS, read};
use crate::tiers;
use arenite_host::board::{BOARDS, Bench, Board};
use arenite_host::{Error, Result};

/// The documents with tables.
pub const DOCUMENTS: [&str; 7] = [
    "docs/README.md",
    "docs/benchmarks.md",
    "docs/cycles.md",
    "docs/footprint.md",
    "docs/quantise.md",
    "docs/safety.md",
    "docs/testing.md",
];

/// The int8 models that have reference figures, with the head of their columns.
const INT8: [(&str, &str); 4] = [
    ("ad01_int8", "ad01"),
    ("kws_ref_model", "kws"),
    ("vww_96_int8", "vww_96"),
    ("pretrainedResnet_quant", "resnet8"),
];

/// At most this many instructions, by board, in the order of [`INT8`].
const TARGETS: [(&str, [u64; 4]); 7] = [
    ("mps2-an385", [660_000, 6_800_000, 20_500_000, 27_000_000]),
    ("mps2-an386", [400_000, 4_800_000, 13_500_000, 18_000_000]),
    ("mps2-an500", [400_000, 4_800_000, 13_500_000, 18_000_000]),
    ("mps2-an505", [400_000, 4_800_000, 13_500_000, 18_000_000]),
    ("mps3-an547", [55_000, 1_200_000, 3_600_000, 3_300_000]),
    ("riscv32-virt", [900_000, 8_800_000, 25_000_000, 35_000_000]),
    ("mps2-an385:thumbv6m", [1_350_000, 16_500_000, 50_000_000, 66_000_000]),
];

const BEGIN: &str = "<!-- table: ";
const END: &str = "<!-- end -->";

/// Everything that the tables are made of.
struct Data {
    measured: BTreeMap<&'static str, Vec<Measured>>,
    reference: BTreeMap<String, Reference>,
    peers: Vec<Peer>,
    tiers: BTreeMap<String, tiers::Passed>,
    long: LongTier,
    cliffs: Cliffs,
    quantised: Vec<crate::quantise::Row>,
    quantisers: Vec<crate::quantisers::Row>,
}

#[derive(Deserialize)]
struct References {
    models: BTreeMap<String, Reference>,
}

/// Memory and instructions that TensorFlow Lite Micro needs for a model.
#[derive(Deserialize)]
struct Reference {
    /// Instructions by board.
    totals: BTreeMap<String, u64>,
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
struct Layer {
    op: String,
    shape: String,
    macs: u64,
    #[serde(flatten)]
    instructions: BTreeMap<String, u64>,
}

/// Replaces every table in `text` by the one that the files in `results` give. A model without a results file has empty cells.
///
/// # Errors
/// [`arenite_host::ErrorKind::Input`] for a table that is not known or not ended, or a file that is none; [`arenite_host::ErrorKind::Io`].
pub fn fill(text: &str, results: &Path) -> Result<String> {
    let data = Data::read(results)?;
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let unended = || Error::input("a table of the document is not ended").expected(END);
        let (name, after) = after.split_once(" -->").ok_or_else(unended)?;
        let (_, after) = after.split_once(END).ok_or_else(unended)?;
        let table = data
            .table(name)
            .ok_or_else(|| Error::input(format!("the document wants the table `{name}`, which is not known")))?;
        write!(out, "{before}{BEGIN}{name} -->\n\n{table}\n{END}").map_err(|e| Error::internal(e.to_string()))?;
        rest = after;
    }
    Ok(out + rest)
}

impl Data {
    fn read(results: &Path) -> Result<Self> {
        let path = results.join("tflm.json");
        let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, "read the reference figures", &e))?;
        let references: References =
            serde_json::from_str(&text).map_err(|e| Error::input(format!("no figures: {e}")).in_file(&path))?;
        let mut measured = BTreeMap::new();
        for subject in &SUBJECTS {
            let path = results.join(format!("{}.json", subject.name));
            if path.is_file() {
                measured.insert(subject.name, read(&path)?);
            }
        }
        Ok(Self {
            measured,
            reference: references.models,
            peers: peer::read(&results.join("microflow.json"))?,
            tiers: tiers::read(results)?,
            long: LongTier::read(results)?,
            cliffs: read_cliffs(results)?,
            quantised: crate::quantise::read(results)?,
            quantisers: crate::quantisers::read(results)?,
        })
    }

    /// The measurement of `model` on `board`; that of the scalar kernels with `scalar`.
    fn find(&self, model: &str, board: &str, scalar: bool, size: bool) -> Option<&Bench> {
        let native =
            |b: &Bench| Board::find(board).is_some_and(|board| board.targets.last() == Some(&b.target.as_str()));
        let fits = |m: &&Measured| m.bench.board == board && m.size == size && native(&m.bench) != scalar;
        self.measured.get(model)?.iter().find(fits).map(|m| &m.bench)
    }

    fn table(&self, name: &str) -> Option<String> {
        Some(match name {
            "macs" => self.macs(),
            "instructions" => self.instructions(),
            "ratios" => self.ratios(),
            "cycles" => self.cycles(),
            "chip" => published::chip(INT8.map(|(model, _)| {
                let bench = self.find(model, published::CHIP.1, false, false);
                bench.map_or((None, None), |bench| (bench.cycles, bench.chip_cycles))
            })),
            "bounds" => self.bounds(),
            "memory" => self.memory(),
            "f32" => self.f32(),
            "size" => self.size(),
            "operators" => operators(),
            "candidates" => candidates(),
            "peer" => self.peer(),
            "tiers" => tiers::table(&self.tiers),
            "long" => self.long.table(),
            "cliffs" => cliffs(&self.cliffs),
            "operands" => operands::operands(),
            "code-bytes" => code_bytes::code_bytes(),
            "quantised" => quantise::published(&self.quantised),
            "quantisers" => quantise::peers(&self.quantisers, &self.quantised),
            _ => return None,
        })
    }

    /// Cells of each int8 model on each board with targets.
    fn by_board(&self, cell: impl Fn(usize, &str, &str, u64, &Bench) -> String) -> String {
        let mut table = Table::new(&["board", "ad01", "kws", "vww_96", "resnet8"], 1);
        for (board, targets) in TARGETS {
            let core = Board::find(board).map_or("", |board| board.core);
            let cells = INT8.iter().zip(targets).enumerate().map(|(at, ((model, _), target))| {
                self.find(model, board, false, false)
                    .map_or_else(String::new, |bench| cell(at, model, board, target, bench))
            });
            table.row([format!("`{board}`: {core}")].into_iter().chain(cells));
        }
        table.text
    }

    fn macs(&self) -> String {
        let mut table = Table::new(&["", "ad01", "kws", "vww_96", "resnet8"], 1);
        let macs = INT8.map(|(model, _)| self.find(model, "mps2-an386", false, false).map_or(0, Bench::macs));
        table.row(["multiply-accumulates".to_owned()].into_iter().chain(macs.map(grouped)));
        table.text
    }

    fn instructions(&self) -> String {
        self.by_board(|_, _, _, target, bench| {
            let verdict = if bench.instructions <= target { "" } else { " **over**" };
            format!("{} of {}{verdict}", grouped(bench.instructions), grouped(target))
        })
    }

    fn ratios(&self) -> String {
        self.by_board(|_, model, board, _, bench| {
            let theirs = self.reference.get(model).and_then(|r| r.totals.get(board)).copied();
            let per_mac = ratio(bench.instructions, bench.macs());
            match theirs {
                Some(theirs) => format!(
                    "{} of {} ({per_mac})",
                    ratio(bench.instructions, theirs),
                    grouped(theirs)
                ),
                None => format!("- ({per_mac})"),
            }
        })
    }

    fn cycles(&self) -> String {
        self.by_board(|_, _, _, _, bench| match bench.cycles {
            Some(cycles) => format!("{} ({})", grouped(cycles), ratio(cycles, bench.macs())),
            None => "-".to_owned(),
        })
    }

    fn bounds(&self) -> String {
        self.by_board(|_, _, _, _, bench| {
            let (bound, instructions) = bench.bounded();
            let share = 100.0 * instructions as f64 / bench.instructions.max(1) as f64;
            format!("{} ({share:.0} %)", ratio(instructions, bound))
        })
    }

    fn memory(&self) -> String {
        let heads = [
            "model",
            "board",
            "arena",
            "stack, running",
            "stack, loading",
            "code",
            "load",
            "of which CRC",
        ];
        let mut table = Table::new(&heads, 2);
        for (model, head) in INT8 {
            for board in &BOARDS {
                let Some(bench) = self.find(model, board.name, false, false) else {
                    continue;
                };
                let or_dash = |n: Option<u64>| n.map_or("-".to_owned(), grouped);
                table.row([
                    head.to_owned(),
                    format!("`{}`", board.name),
                    grouped(bench.arena_bytes),
                    grouped(bench.stack_bytes.into()),
                    grouped(bench.load_stack_bytes.into()),
                    or_dash(bench.code_bytes),
                    grouped(bench.load_instructions),
                    or_dash(bench.load_crc_instructions),
                ]);
            }
        }
        table.text
    }

    fn f32(&self) -> String {
        let mut table = Table::new(
            &[
                "model",
                "board",
                "scalar kernels",
                "its own",
                "ratio",
                "per MAC",
                "convolutions",
                "linear",
            ],
            2,
        );
        for subject in SUBJECTS.iter().filter(|subject| subject.scalar) {
            for board in &BOARDS {
                let both = (
                    self.find(subject.name, board.name, true, false),
                    self.find(subject.name, board.name, false, false),
                );
                let (Some(scalar), Some(own)) = both else { continue };
                let kind = |kind: &str| {
                    let sum = |b: &Bench| -> u64 {
                        let steps = b.steps.iter().filter(|step| step.op.contains(kind));
                        steps.map(|step| step.instructions).sum()
                    };
                    ratio(sum(own), sum(scalar))
                };
                table.row([
                    subject.name.to_owned(),
                    format!("`{}`", board.name),
                    grouped(scalar.instructions),
                    grouped(own.instructions),
                    ratio(own.instructions, scalar.instructions),
                    ratio(own.instructions, own.macs()),
                    kind("conv"),
                    kind("linear"),
                ]);
            }
        }
        table.text
    }

    fn size(&self) -> String {
        let mut table = Table::new(
            &[
                "model, on `mps2-an386`",
                "code",
                "with `--size`",
                "instructions",
                "with `--size`",
            ],
            1,
        );
        for (model, head) in INT8 {
            let both = (
                self.find(model, "mps2-an386", false, false),
                self.find(model, "mps2-an386", false, true),
            );
            let (Some(fast), Some(small)) = both else { continue };
            table.row([
                head.to_owned(),
                grouped(fast.code_bytes.unwrap_or(0)),
                grouped(small.code_bytes.unwrap_or(0)),
                grouped(fast.instructions),
                grouped(small.instructions),
            ]);
        }
        table.text
    }

    fn peer(&self) -> String {
        let heads = [
            "model",
            "Arenite",
            peer::VERSION,
            "ratio",
            "arena and stack",
            "its stack",
            "its code",
            "its outputs beside Arenite's",
        ];
        let mut table = Table::new(&heads, 1);
        for peer in &self.peers {
            let mut cells = vec![peer.model.clone(), grouped(peer.instructions)];
            match &peer.microflow {
                Ok(theirs) => cells.extend([
                    grouped(theirs.instructions),
                    ratio(peer.instructions, theirs.instructions),
                    grouped(peer.ram_bytes),
                    grouped(theirs.stack_bytes),
                    grouped(theirs.text_bytes),
                    match theirs.differ {
                        0 => "equal".to_owned(),
                        differ => format!("{differ} differ, by up to {} steps", theirs.steps),
                    },
                ]),
                Err(reason) => cells.extend([
                    "-".to_owned(),
                    "-".to_owned(),
                    grouped(peer.ram_bytes),
                    "-".to_owned(),
                    "-".to_owned(),
                    reason.clone(),
                ]),
            }
            table.row(cells);
        }
        table.text
    }
}

/// Kernels by what they compute and by backend, from the runtime's own table: their numbers in the file format.
fn operators() -> String {
    let mut backends = Backend::ALL.to_vec();
    backends.sort_by_key(|&backend| backend as u8);
    let names = backends.iter().map(|backend| backend.name());
    let heads: Vec<&str> = ["kernel"].into_iter().chain(names).collect();
    let mut rows: BTreeMap<String, Vec<KernelId>> = BTreeMap::new();
    for &kernel in KernelId::ALL {
        let name = kernel.job().map_or(kernel.name().to_owned(), |job| format!("{job:?}"));
        rows.entry(name).or_default().push(kernel);
    }
    let mut table = Table::new(&heads, 1);
    for (name, kernels) in rows {
        let cells = backends
            .iter()
            .map(|&backend| numbers(kernels.iter().copied().filter(|kernel| kernel.backend() == backend)));
        table.row([name].into_iter().chain(cells));
    }
    table.text
}

/// The candidates for each job, in the order of preference.
fn candidates() -> String {
    let jobs = JobKind::ALL.map(|job| format!("{job:?}"));
    let heads: Vec<&str> = ["target"].into_iter().chain(jobs.iter().map(String::as_str)).collect();
    let mut table = Table::new(&heads, 1);
    let mut row = |name: &str, target: Target, size: bool| {
        let cells = JobKind::ALL
            .map(|job| numbers(KernelId::candidates(target, size).filter(|kernel| kernel.job() == Some(job))));
        table.row([name.to_owned()].into_iter().chain(cells));
    };
    for target in Target::ALL {
        row(target.name(), target, false);
    }
    row("any, with `--size`", Target::Portable, true);
    table.text
}

fn numbers(kernels: impl Iterator<Item = KernelId>) -> String {
    kernels
        .map(|kernel| (kernel as u8).to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests;
