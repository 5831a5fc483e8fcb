//! Cost of verifying a signature on each core: the table of docs/safety.md, measured. `ARENITE_BLESS=1` writes it anew.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arenite_host::board::{Board, Firmware, execute, panics, ready};
use arenite_host::pack::{Options, pack};
use arenite_host::sign::Signer;
use arenite_tests::{digits_options, skip, turns};
use ed25519_dalek::SigningKey;

const TIMEOUT: Duration = Duration::from_secs(600);

/// The cores of the table.
const BOARDS: [(&str, &str); 6] = [
    ("mps2-an385:thumbv6m", "Cortex-M0, M0+"),
    ("mps2-an385", "Cortex-M3"),
    ("mps2-an386", "Cortex-M4F"),
    ("mps2-an505", "Cortex-M33"),
    ("mps3-an547", "Cortex-M55"),
    ("riscv32-virt", "RISC-V, rv32imac"),
];

/// RFC 8032, 7.1, test 1: the firmware trusts its public key.
const SECRET: [u8; 32] = [
    0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4, 0x44, 0x49, 0xc5,
    0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
];

fn signed(folder: &Path) -> PathBuf {
    let path = folder.join("signed.bin");
    let options = Options {
        sign: Some(Signer::new(SigningKey::from_bytes(&SECRET), 1)),
        ..digits_options("mlp", &path)
    };
    pack(&options, &mut |_, _, _| {}).expect("a signed model");
    path
}

/// Instructions of a load, thousandths of one for a byte, stack, and bytes of code and constants.
fn measured(board: &'static Board, model: &Path, verifying: bool) -> [u64; 4] {
    let firmware = Firmware::build_signed(board, model, verifying).unwrap_or_else(|error| panic!("{error}"));
    let logs = execute(&firmware, TIMEOUT).unwrap_or_else(|error| panic!("{}: {error}", board.name));
    let numbers: Vec<u64> = logs
        .iter()
        .flat_map(|line| line.text.split(' '))
        .map(|number| number.parse().unwrap_or_else(|_| panic!("{}: {logs:?}", board.name)))
        .collect();
    let [instructions, per_byte, stack] = numbers[..] else {
        panic!("{}: {logs:?}", board.name)
    };
    let code = firmware.section_bytes(".text") + firmware.section_bytes(".rodata");
    [instructions, per_byte, stack, code]
}

/// A line of the table: what verifying adds.
fn row(board: &'static Board, core: &str, model: &Path) -> String {
    let bytes = fs::metadata(model).expect("the model").len() - 72;
    let [plain, _, plain_stack, plain_code] = measured(board, model, false);
    let [verified, per_byte, stack, code] = measured(board, model, true);
    assert!(stack > plain_stack && code > plain_code && per_byte > 0);
    let fixed = verified - plain - bytes * per_byte / 1000;
    format!(
        "| {core} | {} | {stack} | {fixed} | {}.{} |\n",
        code - plain_code,
        per_byte / 1000,
        per_byte % 1000 / 100
    )
}

fn numbers(line: &str) -> Vec<f64> {
    line.split('|')
        .skip(2)
        .filter_map(|cell| cell.trim().parse().ok())
        .collect()
}

/// Figures of other builds of one compiler differ by little; 2 % is what all counts of this project may.
fn holds(stated: &str, found: &str) -> bool {
    let (stated, found) = (numbers(stated), numbers(found));
    stated.len() == 4 && stated.iter().zip(&found).all(|(a, b)| (a - b).abs() <= 0.02 * a)
}

#[test]
fn the_documented_cost_is_the_measured_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = signed(folder.path());
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/safety.md");
    let text = fs::read_to_string(&document).expect("docs/safety.md");
    let marker = "<!-- signatures: measured -->\n";
    let start = text.find(marker).expect("the table") + marker.len();
    let end = start + text[start..].find("<!-- end -->").expect("its end");
    let stated = &text[start..end];
    let mut table = String::from(
        "| core | code and constants, bytes | stack of the load, bytes | instructions | and for a byte of the file |\n\
         | --- | ---: | ---: | ---: | ---: |\n",
    );
    let mut wrong = String::new();
    let mine = turns("the_documented_cost_is_the_measured_one", 3, BOARDS);
    for (name, core) in BOARDS {
        let board = Board::find(name).expect("a known board");
        let old = stated.lines().find(|line| line.starts_with(&format!("| {core} |")));
        if !mine.contains(&(name, core)) {
            let _ = writeln!(table, "{}", old.unwrap_or_default());
            continue;
        }
        if let Err(reason) = ready(board) {
            skip(&format!("signatures on {name}"), &reason.to_string());
            let _ = writeln!(table, "{}", old.unwrap_or_default());
            continue;
        }
        let row = row(board, core, &model);
        if !old.is_some_and(|old| holds(old, &row)) {
            let _ = writeln!(wrong, "stated {old:?}, found {row}");
        }
        table += &row;
    }
    if std::env::var_os("ARENITE_BLESS").is_some() {
        fs::write(&document, format!("{}{table}{}", &text[..start], &text[end..])).expect("it can be written");
        return;
    }
    assert!(
        wrong.is_empty(),
        "{wrong}where that is meant: ARENITE_BLESS=1 cargo test -p arenite-tests --test programs signed_boards::"
    );
}

/// The one panic path that verification links is a bounds check of the curve's arithmetic, whose index is below the bound by construction (docs/safety.md).
#[test]
fn verification_links_one_bounds_check_and_no_other_panic() {
    let board = Board::find("mps2-an386").expect("a known board");
    if let Err(reason) = ready(board) {
        return skip("verification_links_one_bounds_check", &reason.to_string());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let model = signed(folder.path());
    let gate = Firmware::build_verifying_gate(board, &model).unwrap_or_else(|error| panic!("{error}"));
    assert!(
        !gate
            .functions("arenite::verify::signed_by")
            .expect("symbols")
            .is_empty()
    );
    let known = ["core::panicking::panic_bounds_check", "core::panicking::panic_fmt"];
    let found = panics(&gate).unwrap_or_else(|error| panic!("{error}"));
    assert!(found.iter().all(|name| known.contains(&name.as_str())), "{found:?}");
}
