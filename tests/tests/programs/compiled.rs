//! Compiled models on boards: the bytes of a program with one (the table of docs/footprint.md; `ARENITE_BLESS=1` writes it anew), and the bits and
//! instructions of their runs beside those of loaded ones.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use arenite::Target;
use arenite_host::board::{Board, Firmware, compiled_footprint, execute, ready};
use arenite_host::model::ModelFile;
use arenite_tests::golden::{packed, packed_small};
use arenite_tests::{shared, skip};

const TIMEOUT: Duration = Duration::from_secs(600);

/// Boards, what their cores are called, and what models are packed for.
const CORES: [(&str, &str, Target); 3] = [
    ("mps2-an386", "Cortex-M4F", Target::CortexM4),
    ("mps2-an385:thumbv6m", "Cortex-M0+", Target::CortexM0),
    ("riscv32-virt", "RV32IMAC", Target::Riscv32imac),
];

/// A network on a core: its board, and how it is packed; the bytes beyond start-up and weights that a program with it compiled is to have at most.
type Row = (&'static str, usize, bool, u64);

const ROWS: [Row; 8] = [
    ("tflm_hello_world_int8", 0, false, 3_000),
    ("tflm_hello_world_int8", 1, false, 3_000),
    ("tflm_hello_world_int8", 2, false, 3_300),
    ("tflm_micro_speech_quantized", 0, false, 5_500),
    ("tflm_micro_speech_quantized", 1, false, 6_000),
    ("tflm_micro_speech_quantized", 2, false, 6_500),
    ("vww_96_int8", 0, false, 14_000),
    ("vww_96_int8", 0, true, 8_500),
];

/// How many functions and constants of a program the document lists.
const LARGEST: usize = 20;

const BEGIN: &str = "<!-- compiled -->\n";
const END: &str = "\n<!-- end of compiled -->";

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

fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output().expect("rustc starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// The bytes of each network are those of the document: within 2 % or 64 bytes by the compiler on record, 10 % by another.
#[test]
fn compiled_models_take_what_the_documents_say() {
    const TEST: &str = "compiled_models_take_what_the_documents_say";
    let Some(shared) = shared() else {
        return skip(TEST, "no shared data");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let compiler = compiler();
    let mut table = format!(
        "\n| network | core | weights | code and constants, by rustc {compiler} | aim |\n\
         | --- | --- | ---: | ---: | ---: |\n"
    );
    let mut symbols = "| network | core | largest |\n| --- | --- | --- |\n".to_owned();
    let mut measured = Vec::new();
    for row in ROWS {
        let (network, core, small, aim) = row;
        let (name, about, _) = CORES[core];
        let board = Board::find(name).expect("a known board");
        if let Err(reason) = ready(board) {
            return skip(TEST, &reason.to_string());
        }
        let file = model(&shared, folder.path(), row);
        let weights = u64::from(file.view().expect("an intact file").header().weights.len);
        let compiled =
            compiled_footprint(board, file.path(), weights).unwrap_or_else(|error| panic!("{network}: {error}"));
        assert_eq!(compiled.panics, Vec::<String>::new(), "{network} on {name}");
        let size = if small { ", `--size`" } else { "" };
        let _ = writeln!(
            table,
            "| {network}{size} | {about} | {weights} | {} | {aim} |",
            compiled.code_bytes
        );
        measured.push(compiled.code_bytes);
        let largest = compiled.symbols.iter().take(LARGEST);
        let largest: Vec<String> = largest
            .map(|(name, bytes)| format!("`{}` {bytes}", short(name)))
            .collect();
        let _ = writeln!(symbols, "| {network}{size} | {about} | {} |", largest.join(", "));
    }
    let table = format!("{table}\nThe largest {LARGEST} functions and constants of each, in bytes:\n\n{symbols}");
    print!("{table}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/footprint.md");
    let document = fs::read_to_string(&path).expect("the document");
    let (head, rest) = document.split_once(BEGIN).expect("a place for the table");
    let (tracked, tail) = rest.split_once(END).expect("its end");
    if std::env::var_os("ARENITE_BLESS").is_some() {
        fs::write(&path, format!("{head}{BEGIN}{table}{END}{tail}")).expect("written");
        return;
    }
    let (tracked, _) = tracked.split_once("\n\nThe largest").expect("the largest functions");
    let rows = tracked.lines().filter(|line| line.starts_with("| ")).skip(2);
    let last = |row: &str| row.split('|').nth(4).and_then(|cell| cell.trim().parse().ok());
    let known: Vec<u64> = rows.map(|row| last(row).expect("a number")).collect();
    assert_eq!(known.len(), measured.len(), "{tracked}");
    let same_compiler = tracked.contains(&format!("rustc {compiler} "));
    for ((found, known), (network, _, _, aim)) in measured.iter().zip(&known).zip(ROWS) {
        // Another compiler is held to what is on record.
        assert!(
            !same_compiler || *found <= aim,
            "{network}: {found} bytes, at most {aim} are wanted"
        );
        let slack = if same_compiler {
            (known / 50).max(64)
        } else {
            known / 10
        };
        assert!(
            found.abs_diff(*known) <= slack,
            "{found} bytes instead of {known}, by rustc {compiler}: ARENITE_BLESS=1 writes the table\n{table}"
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
    for row in ROWS {
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
