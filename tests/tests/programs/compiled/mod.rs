//! Compiled models on boards: the bytes of programs with one, and the bits and instructions of their runs beside those of loaded ones.

mod several;
mod table;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use arenite::Target;
use arenite_host::board::{Board, Firmware, compiled_footprint, execute, loaded_footprint, ready};
use arenite_host::model::ModelFile;
use arenite_tests::golden::{packed, packed_small};
use arenite_tests::{shared, skip, turns};

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
    let pack = if small { packed_small } else { packed };
    pack(&path, folder, CORES[core].2).unwrap_or_else(|error| panic!("{network}: {error}"))
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
        let compiled =
            compiled_footprint(board, file.path(), weights).unwrap_or_else(|error| panic!("{network}: {error}"));
        assert_eq!(compiled.panics, Vec::<String>::new(), "{network} on {name}");
        let loaded = loaded_footprint(board, file.path()).unwrap_or_else(|error| panic!("{network}: {error}"));
        assert!(compiled.code_bytes < loaded, "{network} on {name}");
        let size = if small { ", `--size`" } else { "" };
        let label = format!("{network}{size} | {about} | {weights}");
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
        let firmware =
            Firmware::build_with_model(board, "both_forms", file.path()).unwrap_or_else(|error| panic!("{error}"));
        let logs = execute(&firmware, TIMEOUT).unwrap_or_else(|error| panic!("{network} on {name}: {error}"));
        let numbers = logs.iter().flat_map(|line| line.text.split(' ')).map(str::parse);
        let numbers: Result<Vec<u64>, _> = numbers.collect();
        let Ok(&[opened, run, by_load]) = numbers.as_deref() else {
            panic!("{network} on {name}: {logs:?}");
        };
        println!("{network} on {name}, small {small}: opened in {opened}, a run {run}, loaded {by_load}");
        assert!(opened <= 500, "{network} on {name}: opened in {opened} instructions");
        assert!(
            run <= by_load,
            "{network} on {name}: {run} instructions, loaded {by_load}"
        );
    }
}
