//! Cost of the runtime beside model and arena (docs/footprint.md): code, stack and load of vww_96 on the Cortex-M4F within their limits.

use std::path::Path;

use arenite::Target;
use arenite_host::board::{Bench, BenchOptions, Board, bench, error_footprint, footprint, ready};
use arenite_host::model::ModelFile;
use arenite_tests::golden::{packed, packed_small};
use arenite_tests::{shared, skip};

const KIB: u64 = 1024;

/// vww_96 packed for the M4F and measured there, at full speed or with `--size`.
fn measured(test: &str, small: bool) -> Option<(Bench, u64)> {
    let Some(shared) = shared() else {
        skip(test, "no shared data");
        return None;
    };
    let board = Board::find("mps2-an386").expect("a known board");
    if let Err(reason) = ready(board) {
        skip(test, &reason.to_string());
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let pack = if small { packed_small } else { packed };
    let model = shared.join("data/models/vww_96_int8.tflite");
    let file: ModelFile = pack(&model, folder.path(), Target::CortexM4).unwrap_or_else(|error| panic!("{error}"));
    let inputs = vec![0; file.view().expect("an intact file").header().input_bytes as usize];
    let options = BenchOptions::default();
    let bench = bench(board, &file, &inputs, &options, &mut |_| ()).unwrap_or_else(|error| panic!("{error}"));
    let linked = footprint(board, file.path()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(linked.panics, Vec::<String>::new());
    Some((bench, u64::from(file.view().expect("an intact file").header().total)))
}

/// Limits of code, instructions and what holds for both; the checksum takes at most four instructions for each of the file's `bytes`.
fn holds((bench, bytes): &(Bench, u64), code: u64, load: u64, instructions: u64) {
    println!(
        "code {:?}, stack {} and {} (load), load {} of which the CRC {:?}, run {}",
        bench.code_bytes,
        bench.stack_bytes,
        bench.load_stack_bytes,
        bench.load_instructions,
        bench.load_crc_instructions,
        bench.instructions
    );
    assert!(bench.code_bytes.is_some_and(|bytes| bytes > KIB && bytes <= code));
    assert!(bench.stack_bytes > 100 && bench.stack_bytes < 800);
    let checksum = bench.load_crc_instructions.expect("a traced load");
    assert!(checksum > 3 * bytes && checksum <= 4 * bytes && bench.load_instructions - checksum <= load);
    assert!(bench.instructions <= instructions);
}

#[test]
fn full_speed_is_within_its_limits() {
    if let Some(bench) = measured("full_speed_is_within_its_limits", false) {
        holds(&bench, 20 * KIB + 256, 75_000, 5_600_000);
    }
}

/// No slower than a third of the C library's reference kernels, which take 116 million.
#[test]
fn size_is_within_its_limits() {
    if let Some(bench) = measured("size_is_within_its_limits", true) {
        holds(&bench, 12 * KIB + 128, 84_000, 28_000_000);
    }
}

/// The smallest network on the M4F takes what the table of chips says: the long tier counts that table on every chip, with its HAL and start-up code.
#[test]
fn the_smallest_network_takes_what_the_documents_say() {
    let test = "the_smallest_network_takes_what_the_documents_say";
    let Some(shared) = shared() else {
        skip(test, "no shared data");
        return;
    };
    let board = Board::find("mps2-an386").expect("a known board");
    if let Err(reason) = ready(board) {
        skip(test, &reason.to_string());
        return;
    }
    const NETWORK: &str = "tflm_hello_world_int8";
    let folder = tempfile::tempdir().expect("a folder");
    let model = shared.join(format!("data/models/{NETWORK}.tflite"));
    let file: ModelFile = packed(&model, folder.path(), Target::CortexM4).unwrap_or_else(|error| panic!("{error}"));
    let linked = footprint(board, file.path()).unwrap_or_else(|error| panic!("{error}"));
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/footprint.md");
    let document = std::fs::read_to_string(document).expect("the document");
    let rows = document
        .lines()
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let mut rows = rows.filter(|cells| cells.len() > 6 && cells[1].starts_with("stm32f407vg ") && cells[2] == NETWORK);
    let row = rows.next().expect("the chip's row");
    let [code, bytes] = [row[5], row[6]].map(|cell| cell.parse::<u64>().expect("a number"));
    println!("{linked:?}, the document: {code} and {bytes}");
    assert_eq!(linked.model_bytes, bytes, "the model file");
    // The program's own start-up is less than what the document takes off for a chip's.
    assert!(
        linked.code_bytes.abs_diff(code) * 10 <= code,
        "{} bytes of code, {code} in docs/footprint.md",
        linked.code_bytes
    );
}

/// A result that is unwrapped under a panic handler that prints brings the text of errors, and without the feature `error-text` their number alone.
#[test]
fn errors_without_text_take_no_code() {
    let test = "errors_without_text_take_no_code";
    let board = Board::find("mps2-an386").expect("a known board");
    if let Err(reason) = ready(board) {
        skip(test, &reason.to_string());
        return;
    }
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/compat/mlp-v2.bin");
    let [text, number] = error_footprint(board, &model).unwrap_or_else(|error| panic!("{error}"));
    println!("an unwrapped error brings {text} bytes with its text, {number} without");
    assert!(text > 4 * KIB, "{text} bytes of text");
    assert!(number <= 300, "{number} bytes for a number");
}

/// The program is measured and never run: its code has a size where the model leaves none of the board's flash for it.
#[test]
fn a_model_that_fills_the_flash_is_measured() {
    let test = "a_model_that_fills_the_flash_is_measured";
    let Some(shared) = shared() else {
        skip(test, "no shared data");
        return;
    };
    let board = Board::find("mps3-an547").expect("a known board");
    if let Err(reason) = ready(board) {
        skip(test, &reason.to_string());
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let model = shared.join("data/models/tinyengine_vww.tflite");
    let file: ModelFile = packed(&model, folder.path(), Target::CortexM55).unwrap_or_else(|error| panic!("{error}"));
    let linked = footprint(board, file.path()).unwrap_or_else(|error| panic!("{error}"));
    assert!(linked.model_bytes + linked.code_bytes > board.flash.size, "{linked:?}");
    assert!((4 * KIB..96 * KIB).contains(&linked.code_bytes), "{linked:?}");
}
