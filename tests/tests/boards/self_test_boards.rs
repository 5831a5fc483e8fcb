//! Self-tests and canaries on the boards' own kernels, and what both cost: the table of docs/safety.md. `ARENITE_BLESS=1` writes it anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arenite::Target;
use arenite_host::board::{Board, Firmware, execute, ready};
use arenite_host::pack::{Options, pack};
use arenite_tests::{digits_options, skip};

const TIMEOUT: Duration = Duration::from_secs(600);

const BOARDS: [(&str, &str, Target); 4] = [
    ("mps2-an385:thumbv6m", "Cortex-M0, M0+", Target::CortexM0),
    ("mps2-an386", "Cortex-M4F", Target::CortexM4),
    ("mps3-an547", "Cortex-M55", Target::CortexM55),
    ("riscv32-virt", "RISC-V, rv32imac", Target::Riscv32imac),
];

/// The digits network, whose samples are the first held-out images.
fn tested(folder: &Path, target: Target) -> PathBuf {
    let path = folder.join(format!("{}.bin", target.name()));
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits/test_images.npy");
    let bytes = fs::read(&images).expect("a tracked file");
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let pixels: Vec<f32> = bytes[start..start + 2 * 256]
        .as_chunks()
        .0
        .iter()
        .map(|&pixel| f32::from_le_bytes(pixel))
        .collect();
    let samples = folder.join("samples.npy");
    let array = ndarray::Array::from_shape_vec((2, 1, 1, 8, 8), pixels).expect("two images");
    ndarray_npy::write_npy(&samples, &array).expect("written");
    let options = Options {
        target,
        self_test: Some(samples),
        ..digits_options("digits", &path)
    };
    pack(&options, &mut |_, _, _| {}).expect("a model");
    path
}

/// Runs of the self-test; instructions of opening a session plainly and guarded, of a check, of reading the marks; the arena's mark.
fn measured(board: &'static Board, model: &Path) -> [u64; 6] {
    let firmware = Firmware::build_with_model(board, "monitored", model).unwrap_or_else(|error| panic!("{error}"));
    let logs = execute(&firmware, TIMEOUT).unwrap_or_else(|error| panic!("{}: {error}", board.name));
    let numbers = logs.iter().flat_map(|line| line.text.split(' ')).map(str::parse);
    let numbers: Result<Vec<u64>, _> = numbers.collect();
    let numbers = numbers.unwrap_or_else(|_| panic!("{}: {logs:?}", board.name));
    numbers
        .try_into()
        .unwrap_or_else(|_| panic!("{}: {logs:?}", board.name))
}

#[test]
fn boards_pass_the_self_test_and_see_a_stray_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/safety.md");
    let text = fs::read_to_string(&document).expect("docs/safety.md");
    let marker = "<!-- canaries: measured -->\n";
    let start = text.find(marker).expect("the table") + marker.len();
    let end = start + text[start..].find("<!-- end -->").expect("its end");
    let mut table = String::from(
        "| core | opening a session, more | a check | reading the marks |\n| --- | ---: | ---: | ---: |\n",
    );
    for (name, core, target) in BOARDS {
        let board = Board::find(name).expect("a known board");
        if let Err(reason) = ready(board) {
            skip(&format!("self-test on {name}"), &reason.to_string());
            return;
        }
        let model = tested(folder.path(), target);
        let [runs, plain, guarded, check, marks, mark] = measured(board, &model);
        assert_eq!(runs, 2, "{name}");
        assert!(mark > 256 && check < 200, "{name}: mark {mark}, check {check}");
        table += &format!("| {core} | {} | {check} | {marks} |\n", guarded.saturating_sub(plain));
    }
    if std::env::var_os("ARENITE_BLESS").is_some() {
        fs::write(&document, format!("{}{table}{}", &text[..start], &text[end..])).expect("it can be written");
        return;
    }
    let numbers = |text: &str| -> Vec<f64> {
        text.split(['|', '\n'])
            .filter_map(|cell| cell.trim().parse().ok())
            .collect()
    };
    let (stated, found) = (numbers(&text[start..end]), numbers(&table));
    let near = stated.iter().zip(&found).all(|(a, b)| (a - b).abs() <= 0.05 * a + 8.0);
    assert!(
        stated.len() == found.len() && near,
        "docs/safety.md states\n{}and it is\n{table}",
        &text[start..end]
    );
}
