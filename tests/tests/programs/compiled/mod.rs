//! Compiled models on boards: the bytes of programs with one, and the bits and instructions of their runs beside those of loaded ones.

mod several;
mod table;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use arenite::Target;
use arenite_host::board::{BOARDS, Board, Firmware, compiled_footprint, execute, loaded_footprint, ready};
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::worst::code_bytes::TABLE;
use arenite_tests::golden::{packed, packed_small};
use arenite_tests::{shared, skip, turns};
use arenite_xtask::code_bytes;

use self::table::Table;

const TIMEOUT: Duration = Duration::from_secs(600);

/// Boards, what their cores are called, and what models are packed for.
const CORES: [(&str, &str, Target); 3] = [
    ("mps2-an386", "Cortex-M4F", Target::CortexM4),
    ("mps2-an385:thumbv6m", "Cortex-M0+", Target::CortexM0),
    ("riscv32-virt", "RV32IMAC", Target::Riscv32imac),
];

/// A network on a core: its board, and how it is packed; the bytes beyond start-up and weights that a program with it compiled is to have at most.
type Row = (&'static str, usize, bool, Option<u64>);

const ROWS: [Row; 19] = [
    ("tflm_hello_world_int8", 0, false, Some(3_000)),
    ("tflm_hello_world_int8", 1, false, Some(3_000)),
    ("tflm_hello_world_int8", 2, false, Some(3_300)),
    ("tflm_micro_speech_quantized", 0, false, Some(5_500)),
    ("tflm_micro_speech_quantized", 1, false, Some(6_000)),
    ("tflm_micro_speech_quantized", 2, false, Some(6_500)),
    ("ad01_int8", 0, false, None),
    ("ad01_int8", 1, false, None),
    ("ad01_int8", 2, false, None),
    ("kws_ref_model", 0, false, None),
    ("kws_ref_model", 1, false, None),
    ("kws_ref_model", 2, false, None),
    ("vww_96_int8", 0, false, Some(14_000)),
    ("vww_96_int8", 0, true, Some(8_500)),
    ("vww_96_int8", 1, false, None),
    ("vww_96_int8", 2, false, None),
    ("pretrainedResnet_quant", 0, false, None),
    ("pretrainedResnet_quant", 1, false, None),
    ("pretrainedResnet_quant", 2, false, None),
];

/// Of so many runs that have this program each takes a part of its rows.
const TURNS: usize = 3;

/// How many functions and constants of a program the document lists.
const LARGEST: usize = 20;

/// The macro writes types of operators by their names alone: all modules of operators are there.
#[test]
fn every_operator_has_a_name_in_compiled_models() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src");
    let read = |file: &str| fs::read_to_string(core.join(file)).expect("a source");
    let (modules, names) = (read("ops/mod.rs"), read("compiled/names.rs"));
    // Rules of operators, and the one that is handed over.
    let others = ["cost", "ethos_u", "fault", "operator"];
    let modules = modules
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .filter(|module| !others.contains(module));
    let missing: Vec<&str> = modules
        .filter(|module| !names.contains(&format!("crate::ops::{module}::*")))
        .collect();
    assert_eq!(missing, [""; 0], "core/src/compiled/names.rs");
}

/// A network packed for a core.
fn model(shared: &Path, folder: &Path, (network, core, small, _): Row) -> ModelFile {
    let path = shared.join(format!("data/models/{network}.tflite"));
    let of_core = if small { packed_small } else { packed };
    of_core(&path, folder, CORES[core].2).unwrap_or_else(|error| panic!("{network}: {error}"))
}

/// A symbol without the crate's name and that of the kernels, which most have.
fn short(name: &str) -> &str {
    let name = name.strip_prefix("arenite::").unwrap_or(name);
    name.strip_prefix("kernels::").unwrap_or(name)
}

/// Bytes of a model's weights.
fn weights(file: &ModelFile) -> u64 {
    u64::from(file.view().expect("an intact file").header().weights.len)
}

/// The bytes of each network, compiled and loaded, are those of the document.
#[test]
fn compiled_models_take_what_the_documents_say() {
    const TEST: &str = "compiled_models_take_what_the_documents_say";
    let Some(shared) = shared() else {
        return skip(TEST, "no shared data");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut table = Table::new(
        "compiled",
        "| network | core | weights | compiled | loaded | compiled, at most |\n| --- | --- | ---: | ---: | ---: | ---: |\n",
    );
    let mut far = Vec::new();
    let mut symbols = "| network | core | largest |\n| --- | --- | --- |\n".to_owned();
    for row in turns(TEST, TURNS, ROWS) {
        let (network, core, small, aim) = row;
        let (name, about, _) = CORES[core];
        let board = Board::find(name).expect("a known board");
        if let Err(reason) = ready(board) {
            return skip(TEST, &reason.to_string());
        }
        let file = model(&shared, folder.path(), row);
        let weights = weights(&file);
        let size = if small { ", `--size`" } else { "" };
        let label = format!("{network}{size} | {about} | {weights}");
        let compiled =
            compiled_footprint(board, file.path(), weights).unwrap_or_else(|error| panic!("{network}: {error}"));
        assert_eq!(compiled.panics, Vec::<String>::new(), "{network} on {name}");
        let loaded = loaded_footprint(board, file.path()).unwrap_or_else(|error| panic!("{network}: {error}"));
        assert!(compiled.code_bytes < loaded, "{network} on {name}");
        let view = file.view().expect("an intact file");
        let steps = view.steps().expect("steps that decode");
        let estimate = TABLE.estimate(board.counts_as().name, &steps, view.weights());
        let estimate = estimate.unwrap_or_else(|| panic!("{network} on {name}: its kernels are not in the table"));
        let start = compiled.start_bytes;
        far.extend(off(
            &label,
            [estimate.compiled, estimate.loaded],
            [compiled.code_bytes + start, loaded + start],
        ));
        table.row(&label, &[compiled.code_bytes, loaded], aim);
        if aim.is_some() {
            let largest = compiled.symbols.iter().take(LARGEST);
            let largest: Vec<String> = largest
                .map(|(name, bytes)| format!("`{}` {bytes}", short(name)))
                .collect();
            let _ = writeln!(symbols, "| {network}{size} | {about} | {} |", largest.join(", "));
        }
    }
    table.after(&format!(
        "\nThe largest {LARGEST} functions and constants of compiled ones, in bytes:\n\n{symbols}"
    ));
    table.compare();
    assert!(
        far.is_empty(),
        "`cargo xtask bench --code-bytes` makes the table again:\n{}",
        far.join("\n")
    );
}

/// Estimate of `pack` for a program's bytes that does not hold: at most so many where the model is compiled, and about so many where it is loaded.
fn off(of: &str, estimated: [u64; 2], measured: [u64; 2]) -> Option<String> {
    let text = format!("{of}: estimated {estimated:?}, measured {measured:?}");
    println!("{text}");
    let [compiled, loaded] = [0, 1].map(|form| (estimated[form], measured[form]));
    let is_off = compiled.0 < compiled.1 || loaded.0.abs_diff(loaded.1) * 6 > loaded.1;
    is_off.then_some(text)
}

#[test]
fn an_estimate_that_is_off_is_seen() {
    assert_eq!(off("net", [1_000, 9_000], [1_000, 10_000]), None);
    assert!(off("net", [999, 9_000], [1_000, 10_000]).is_some());
    assert!(off("net", [1_000, 8_333], [1_000, 10_000]).is_some());
    assert!(off("net", [1_000, 11_667], [1_000, 10_000]).is_some());
}

/// The bytes of kernels that `pack` estimates from are those of this compiler.
#[test]
fn bytes_of_kernels_are_those_of_the_table() {
    const TEST: &str = "bytes_of_kernels_are_those_of_the_table";
    let boards: Vec<&'static Board> = BOARDS.iter().filter(|board| code_bytes::is_measured(board)).collect();
    for board in turns(TEST, boards.len(), boards) {
        if let Err(reason) = ready(board) {
            return skip(TEST, &reason.to_string());
        }
        if std::env::var_os("ARENITE_BLESS").is_some() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host-tools/board/src/worst/code_bytes.json");
            code_bytes::update(&path, &[board], &mut |line| println!("{line}"))
                .unwrap_or_else(|error| panic!("{}: {error}", board.name));
            continue;
        }
        let code = code_bytes::of(board).unwrap_or_else(|error| panic!("{}: {error}", board.name));
        let known = TABLE
            .0
            .get(board.name)
            .unwrap_or_else(|| panic!("{} has no row", board.name));
        let far = known.unlike(&code, table::slack);
        assert!(
            far.is_empty(),
            "`cargo xtask bench --code-bytes {}` makes the row again:\n{}",
            board.name,
            far.join("\n")
        );
    }
}

/// On boards a compiled model gives the bits of the loaded one, in no more instructions, and is opened in no more than 500.
#[test]
fn compiled_models_run_on_boards_as_loaded_ones() {
    const TEST: &str = "compiled_models_run_on_boards_as_loaded_ones";
    let Some(shared) = shared() else {
        return skip(TEST, "no shared data");
    };
    let folder = tempfile::tempdir().expect("a folder");
    // Networks of the same kernels prove nearly the same.
    for row in ROWS.into_iter().filter(|(.., aim)| aim.is_some()) {
        let (network, core, small, _) = row;
        let (name, ..) = CORES[core];
        let board = Board::find(name).expect("a known board");
        if let Err(reason) = ready(board) {
            return skip(TEST, &reason.to_string());
        }
        let file = model(&shared, folder.path(), row);
        let [opened, run, by_load] = in_both_forms(board, &file);
        println!("{network} on {name}, small {small}: opened in {opened}, a run {run}, loaded {by_load}");
        assert!(opened <= 500, "{network} on {name}: opened in {opened} instructions");
        assert!(
            run <= by_load,
            "{network} on {name}: {run} instructions, loaded {by_load}"
        );
    }
}

/// Instructions of a model in both forms on a board, whose bits are the same: of opening the compiled one, of its run, of the loaded one's.
fn in_both_forms(board: &'static Board, file: &ModelFile) -> [u64; 3] {
    let of = format!("{} on {}", file.path().display(), board.name);
    let firmware =
        Firmware::build_with_model(board, "both_forms", file.path()).unwrap_or_else(|error| panic!("{error}"));
    let logs = execute(&firmware, TIMEOUT).unwrap_or_else(|error| panic!("{of}: {error}"));
    let numbers = logs.iter().flat_map(|line| line.text.split(' ')).map(str::parse);
    let numbers: Result<Vec<u64>, _> = numbers.collect();
    let numbers = numbers.ok().and_then(|numbers| numbers.try_into().ok());
    numbers.unwrap_or_else(|| panic!("{of}: {logs:?}"))
}

/// A language model gives the same logits in both forms, token by token, and refuses the same positions.
#[test]
fn compiled_language_models_run_on_boards_as_loaded_ones() {
    const TEST: &str = "compiled_language_models_run_on_boards_as_loaded_ones";
    let folder = shared().map(|shared| shared.join("data/language"));
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        return skip(TEST, "no shared data");
    };
    let board = Board::find("mps2-an386").expect("a known board");
    if let Err(reason) = ready(board) {
        return skip(TEST, &reason.to_string());
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let mut options = Options::new(folder.join("stories260K.bin"), scratch.path().join("story.bin"));
    options.target = Target::CortexM4;
    options.import.context = Some(16);
    pack(&options, &mut |_, _, _| {}).unwrap_or_else(|error| panic!("{error}"));
    let file = ModelFile::open(&options.output).expect("a model");
    let [opened, run, by_load] = in_both_forms(board, &file);
    println!("stories260K: opened in {opened}, a run {run}, loaded {by_load}");
    assert!(run <= by_load, "{run} instructions, loaded {by_load}");
}
