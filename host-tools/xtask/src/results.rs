//! The tracked results: what the models of the benchmarks cost on every board, and whether that has grown.
//!
//! A file `tests/results/MODEL.json` holds a list of [`Measured`], a step on each line so that a change reads well. `tests/tests/boards/results.rs` compares
//! them with fresh measurements; [`update`] writes them.

use std::fs;
use std::path::{Path, PathBuf};

use arenite::Target;
use arenite_host::files;
use serde::{Deserialize, Serialize};

use crate::tables::published::CHIP;
use arenite_host::board::{BOARDS, Bench, BenchOptions, Board, Flash, bench, ready};
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::{Error, ErrorKind, Result};

/// A growth of more than a fiftieth is one.
const TOLERANCE: u64 = 50;
/// Steps may grow by this many instructions: a step of 300 is no place to look at per cent.
const SLACK: u64 = 100;

/// A model of the benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// Stem of its results file.
    pub name: &'static str,
    /// Path inside the tests' own models, or inside the shared data.
    pub path: &'static str,
    /// Whether it lies in the shared data.
    pub shared: bool,
    /// The boards that it is measured on; empty for all that it fits.
    pub boards: &'static [&'static str],
    /// Whether it is packed for the scalar kernels as well, to compare.
    pub scalar: bool,
}

const fn int8(name: &'static str, path: &'static str) -> Subject {
    Subject {
        name,
        path,
        shared: true,
        boards: &[],
        scalar: false,
    }
}

const fn f32(name: &'static str, path: &'static str) -> Subject {
    Subject {
        name,
        path,
        shared: true,
        boards: &["mps2-an386", "mps2-an500", "mps3-an547"],
        scalar: true,
    }
}

/// The models, in the order of the tables.
pub const SUBJECTS: [Subject; 8] = [
    int8("ad01_int8", "ad01_int8.tflite"),
    int8("kws_ref_model", "kws_ref_model.tflite"),
    int8("vww_96_int8", "vww_96_int8.tflite"),
    int8("pretrainedResnet_quant", "pretrainedResnet_quant.tflite"),
    Subject {
        name: "digits",
        path: "digits/digits.trace.json",
        shared: false,
        boards: &[],
        scalar: true,
    },
    f32("ad01_fp32", "ad01_fp32.tflite"),
    f32("pretrainedResnet", "pretrainedResnet.tflite"),
    f32("vww_96_float", "vww_96_float.tflite"),
];

/// One measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Whether it was packed with `--size`.
    pub size: bool,
    /// Cost of the model.
    #[serde(flatten)]
    pub bench: Bench,
}

impl Measured {
    /// Returns the key that tells it from the others of its model.
    pub fn key(&self) -> (&str, &str, bool) {
        (&self.bench.board, &self.bench.target, self.size)
    }
}

/// One way of packing a subject for a board.
#[derive(Debug, Clone, Copy)]
pub struct Configuration {
    /// The board.
    pub board: &'static Board,
    /// `pack --target`.
    pub target: Target,
    /// `pack --size`.
    pub size: bool,
}

impl Subject {
    /// Where the model is: `tests` is the folder of the tests' own models, `shared` that of the shared data.
    pub fn file(&self, tests: &Path, shared: Option<&Path>) -> Option<PathBuf> {
        if self.shared {
            Some(shared?.join("data/models").join(self.path))
        } else {
            Some(tests.join(self.path))
        }
    }

    /// Every way in which it is measured.
    pub fn configurations(&self) -> Vec<Configuration> {
        // The core of a board that is there for its flash, or for having several, is another one's.
        let wanted = |board: &&'static Board| match self.boards {
            [] => board.spi_flash().is_none() && board.cores() == 1,
            boards => boards.contains(&board.name),
        };
        let each = BOARDS.iter().filter(wanted).flat_map(|board| {
            let target = best_target(board);
            let with = |target, size| Configuration { board, target, size };
            let scalar = (self.scalar && target != Target::Portable).then(|| with(Target::Portable, false));
            let small = (!self.scalar && board.name == "mps2-an386").then(|| with(target, true));
            [Some(with(target, false)), scalar, small].into_iter().flatten()
        });
        each.collect()
    }
}

/// The target whose kernels use all that the board's core has: the last that its firmware runs.
pub fn best_target(board: &Board) -> Target {
    let best = board.targets.last().copied().unwrap_or("portable");
    Target::ALL
        .into_iter()
        .find(|target| target.name() == best)
        .unwrap_or(Target::Portable)
}

/// Packs `model` as `configuration` says, into `folder`.
///
/// # Errors
/// As [`pack`].
pub fn packed(model: &Path, configuration: Configuration, folder: &Path) -> Result<ModelFile> {
    let stem = model.file_stem().unwrap_or_default().to_string_lossy();
    let size = if configuration.size { "-size" } else { "" };
    let output = folder.join(format!("{stem}.{}{size}.arenite", configuration.target.name()));
    let options = Options {
        target: configuration.target,
        size: configuration.size,
        ..Options::new(model, &output)
    };
    pack(&options, &mut |_, _, _| {})?;
    ModelFile::open(&output)
}

/// Packs and measures; instructions hardly depend on an input's values, so the input is zeros, which everybody has. `None` where the board lacks
/// the room.
///
/// # Errors
/// As [`pack`] and [`bench()`].
pub fn measure(model: &Path, configuration: Configuration, options: &BenchOptions) -> Result<Option<Measured>> {
    let folder = files::Scratch::new().map_err(|e| Error::io(&std::env::temp_dir(), "make a folder", &e))?;
    let file = packed(model, configuration, folder.path())?;
    let inputs = vec![0; file.view()?.header().input_bytes as usize];
    match bench(configuration.board, &file, &inputs, options, &mut |_| ()) {
        Ok(mut bench) => {
            // The table that it comes from is tracked itself.
            bench.steps.iter_mut().for_each(|step| step.at_most = None);
            let size = configuration.size;
            Ok(Some(Measured { size, bench }))
        }
        Err(e) if e.kind() == ErrorKind::DoesNotFit => Ok(None),
        Err(e) => Err(e),
    }
}

/// Reads a results file.
///
/// # Errors
/// [`ErrorKind::Io`], [`ErrorKind::Input`].
pub fn read(path: &Path) -> Result<Vec<Measured>> {
    let text = fs::read_to_string(path).map_err(|e| Error::io(path, "read the results", &e))?;
    serde_json::from_str(&text).map_err(|e| Error::input(format!("no results: {e}")).in_file(path))
}

/// Writes a results file, a step on each line.
///
/// # Errors
/// [`ErrorKind::Io`].
pub fn write(path: &Path, results: &[Measured]) -> Result<()> {
    let entries = results.iter().map(|measured| {
        let mut whole = measured.clone();
        let steps: Vec<String> = whole
            .bench
            .steps
            .drain(..)
            .map(|step| format!("    {}", json(&step)))
            .collect();
        let steps = format!("\"steps\":[\n{}\n  ]", steps.join(",\n"));
        format!("  {}", json(&whole).replace("\"steps\":[]", &steps))
    });
    let text = format!("[\n{}\n]\n", entries.collect::<Vec<_>>().join(",\n"));
    files::write(path, text.as_bytes())
}

/// Whether a measurement is cheap enough for every run of the tests: the in-project model everywhere, the two small int8 models on one board of each kind of
/// kernels.
pub fn quick(subject: &Subject, configuration: &Configuration) -> bool {
    let board = configuration.board.name;
    let kinds = [
        "mps2-an385",
        "mps2-an385:thumbv6m",
        "mps2-an386",
        "mps3-an547",
        "riscv32-virt",
    ];
    match subject.name {
        "digits" => true,
        "ad01_int8" | "kws_ref_model" => !configuration.size && kinds.contains(&board),
        _ => false,
    }
}

/// Returns the figures of `new` that are over 2 % above the tracked result of the same key.
pub fn grown(old: &[Measured], new: &Measured) -> Vec<String> {
    let Some(old) = old.iter().find(|old| old.key() == new.key()) else {
        return vec![format!("{:?} has no tracked result", new.key())];
    };
    let (was, is) = (&old.bench, &new.bench);
    let mut found = Vec::new();
    let mut compare = |what: String, was: u64, is: u64, slack: u64| {
        if is > was + (was / TOLERANCE).max(slack) {
            found.push(format!("{}: {what}: {was} -> {is}", new.bench.board));
        }
    };
    compare("instructions".to_owned(), was.instructions, is.instructions, 0);
    compare(
        "instructions of load".to_owned(),
        was.load_instructions,
        is.load_instructions,
        0,
    );
    compare("bytes of arena".to_owned(), was.arena_bytes, is.arena_bytes, 0);
    compare(
        "bytes of stack".to_owned(),
        was.stack_bytes.into(),
        is.stack_bytes.into(),
        16,
    );
    if let (Some(was), Some(is)) = (was.code_bytes, is.code_bytes) {
        compare("bytes of code".to_owned(), was, is, 0);
    }
    for (was, is) in was.steps.iter().zip(&is.steps) {
        let what = format!("step {} {} ({})", is.index, is.op, is.name);
        compare(what, was.instructions, is.instructions, SLACK);
    }
    if was.steps.len() != is.steps.len() {
        found.push(format!("{}: {} steps -> {}", is.board, was.steps.len(), is.steps.len()));
    }
    found
}

/// Measures the subjects named in `only` (all where it is empty) on their boards, and rewrites their results files in `results`. A subject of the
/// shared data is left as it is where there is none. `note` hears of each measurement.
///
/// # Errors
/// As [`measure`] and [`write()`]; [`ErrorKind::Usage`] for a name that is none.
pub fn update(
    tests: &Path,
    shared: Option<&Path>,
    results: &Path,
    only: &[String],
    note: &mut dyn FnMut(&str),
) -> Result<()> {
    if let Some(name) = only
        .iter()
        .find(|name| SUBJECTS.iter().all(|subject| subject.name != **name))
    {
        let known: Vec<_> = SUBJECTS.iter().map(|subject| subject.name).collect();
        return Err(
            Error::new(ErrorKind::Usage, format!("no model of the benchmarks is called {name}"))
                .expected(known.join(", ")),
        );
    }
    let wanted = |subject: &&Subject| only.is_empty() || only.iter().any(|name| name == subject.name);
    for subject in SUBJECTS.iter().filter(wanted) {
        let Some(model) = subject.file(tests, shared) else {
            note(&format!("{}: left as it is, there is no shared data", subject.name));
            continue;
        };
        let mut measured = Vec::new();
        for configuration in subject.configurations() {
            ready(configuration.board)?;
            let options = BenchOptions {
                // The Cortex-M4F is where the sizes are compared.
                code: configuration.board.name == "mps2-an386",
                chip: Flash::find(CHIP.0).filter(|_| configuration.board.name == CHIP.1 && !configuration.size),
                ..BenchOptions::default()
            };
            let found = measure(&model, configuration, &options)?;
            let told = match &found {
                Some(found) => format!("{} instructions", found.bench.instructions),
                None => "does not fit".to_owned(),
            };
            let (board, target) = (configuration.board.name, configuration.target.name());
            note(&format!("{} for {target} on {board}: {told}", subject.name));
            measured.extend(found);
        }
        write(&results.join(format!("{}.json", subject.name)), &measured)?;
    }
    Ok(())
}

/// JSON of a value that always has one.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenite_host::board::BenchStep;

    fn measured(instructions: u64) -> Measured {
        let step = |index, instructions| BenchStep {
            index,
            name: format!("step {index}"),
            op: "conv2d".to_owned(),
            kernel: "Conv2dS8".to_owned(),
            instructions,
            macs: 7,
            bound: (index == 0).then_some(instructions / 2),
            at_most: None,
            cycles: None,
            chip_cycles: None,
        };
        Measured {
            size: false,
            bench: Bench {
                board: "mps2-an386".to_owned(),
                target: "cortex-m4".to_owned(),
                instructions,
                load_instructions: 10,
                load_crc_instructions: Some(5),
                cycles: Some(1),
                cycles_source: None,
                chip: None,
                chip_cycles: None,
                cores: Vec::new(),
                steps: vec![step(0, instructions - 300), step(1, 300)],
                arena_bytes: 16,
                arena_touched_bytes: 16,
                state_bytes: 0,
                stack_bytes: 100,
                load_stack_bytes: 100,
                stack_at_most: Some(110),
                load_stack_at_most: None,
                code_bytes: Some(1000),
            },
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.json");
        let all = [measured(1000), measured(2000)];
        write(&path, &all).expect("writes");
        assert_eq!(read(&path).expect("reads"), all);
        assert_eq!(fs::read_to_string(&path).expect("text").lines().count(), 2 + 2 * 4);
    }

    #[test]
    fn growth_of_more_than_two_per_cent_is_found() {
        let old = [measured(10_000)];
        // Step 0 grows by 190 of 9,700.
        assert_eq!(grown(&old, &measured(10_190)), Vec::<String>::new());
        assert_eq!(grown(&old, &measured(9_000)), Vec::<String>::new());
        let found = grown(&old, &measured(10_400));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("10000 -> 10400") && found[1].contains("step 0"),
            "{found:?}"
        );
        let mut other = measured(10_000);
        other.bench.target = "portable".to_owned();
        assert!(grown(&old, &other)[0].contains("no tracked result"));
    }
}
