//! Chips that qemu emulates: their projects start, classify three digits over the UART, and count cycles. docs/boards.md has what they counted.

use std::fs;
use std::path::Path;

use arenite::Target;
use arenite_host::board::find_program;
use arenite_host::chips::{self, Chip, NETWORK};
use arenite_tests::golden::packed;
use arenite_tests::{skip, turns};

use crate::new::{cargo, good, has_library, project, root, said};

const TEST: &str = "chips_that_qemu_emulates_classify_digits";

/// The digits of the program's images, with the second guesses of PyTorch.
const DIGITS: [(&str, &str); 3] = [("7", "9"), ("2", "5"), ("6", "8")];

/// How much cycles may be off the document: compilers and HAL crates have versions of their own.
const SLACK: f64 = 0.1;

fn document() -> String {
    fs::read_to_string(root().join("docs/boards.md")).expect("the document")
}

/// Cells of the chip's row in docs/boards.md: machine, crates, cycles of the three digits, what the machine lacks.
fn row(chip: &Chip) -> [String; 4] {
    let document = document();
    let begin = format!("| `{}` | ", chip.name);
    let row = document.lines().find_map(|line| line.strip_prefix(&begin));
    let row = row.unwrap_or_else(|| panic!("{}: no row in docs/boards.md", chip.name));
    let cells: Vec<String> = row
        .trim_end_matches('|')
        .split('|')
        .map(|cell| cell.trim().to_owned())
        .collect();
    cells.try_into().expect("four cells")
}

/// Digit, second guess and cycles of each line that the program prints.
fn printed(text: &str) -> Vec<(String, String, f64)> {
    let line = |line: &str| {
        let (digit, rest) = line.trim().strip_prefix("this is a ")?.split_once(", or else a ")?;
        let (second, rest) = rest.split_once(": ")?;
        let cycles = rest.strip_suffix(" cycles")?.parse().ok()?;
        Some((digit.to_owned(), second.to_owned(), cycles))
    };
    let read = |text: &str| line(text).unwrap_or_else(|| panic!("{text:?}"));
    text.lines().map(read).collect()
}

/// Whether the network fits, by the account of `arenite size`.
fn fits(chip: &Chip) {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, bytes) in NETWORK {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, bytes).expect("written");
    }
    let target = Target::ALL.into_iter().find(|target| target.name() == chip.target);
    let file = packed(
        &folder.path().join(NETWORK[0].0),
        folder.path(),
        target.expect("a target"),
    );
    let file = file.unwrap_or_else(|error| panic!("{error}"));
    let fit = chips::fit(&file.view().expect("intact"), chip).expect("a fit");
    assert!(fit.fits, "{fit:?}");
}

/// Builds for silicon, runs for the emulator, and ends with an error where the program faults.
fn runs(chip: &Chip, folder: &Path) {
    let built = cargo(folder, &["build"]);
    good(&built);
    assert!(!said(&built).contains("warning"), "{}:\n{}", chip.name, said(&built));

    let found = printed(&good(&cargo(folder, &["emulate"])));
    let [_, _, cycles, _] = row(chip);
    let cycles: Vec<f64> = cycles
        .split(", ")
        .map(|count| count.parse().expect("a count"))
        .collect();
    assert_eq!(
        (found.len(), cycles.len()),
        (DIGITS.len(), DIGITS.len()),
        "{}: {found:?}",
        chip.name
    );
    for ((digit, second, count), ((wanted, or_else), known)) in found.iter().zip(DIGITS.iter().zip(cycles)) {
        assert_eq!((digit.as_str(), second.as_str()), (*wanted, *or_else), "{}", chip.name);
        assert!((count - known).abs() <= SLACK * known, "{}: {found:?}", chip.name);
    }

    let program = folder.join("src/main.rs");
    let text = fs::read_to_string(&program).expect("written");
    let faulty = text.replace("    end()\n", "    cortex_m::asm::udf()\n");
    assert_ne!(faulty, text);
    fs::write(program, faulty).expect("written");
    let faulted = cargo(folder, &["emulate"]);
    assert!(!faulted.status.success(), "{}", chip.name);
    assert!(
        said(&faulted).contains("a fault at 0x"),
        "{}:\n{}",
        chip.name,
        said(&faulted)
    );
}

#[test]
fn chips_that_qemu_emulates_classify_digits() {
    if find_program("qemu-system-arm").is_none() {
        return skip(TEST, "no qemu-system-arm");
    }
    let chips = chips::all().into_iter().filter(|chip| chip.emulation.is_some());
    for chip in turns(TEST, 5, chips) {
        fits(&chip);
        if !has_library(TEST, &chip) {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join(chip.name);
        project(&["--chip", chip.name], &folder);
        let fetched = cargo(&folder, &["fetch"]);
        if !fetched.status.success() {
            skip(
                TEST,
                &format!("{}: its crates are not to be had: {}", chip.name, said(&fetched)),
            );
            continue;
        }
        runs(&chip, &folder);
    }
}

/// The document has what the projects say of themselves.
#[test]
fn the_document_has_every_chip_that_qemu_emulates() {
    let document = document();
    for chip in chips::all() {
        let Some(emulation) = &chip.emulation else { continue };
        let [machine, crates, _, lacks] = row(&chip);
        assert_eq!(machine, format!("`{}`", emulation.machine));
        let rate = format!("{:.3}", chip.cycles_per_instruction().expect("a clock"));
        assert!(
            document
                .split_whitespace()
                .any(|word| word == rate.trim_end_matches('0')),
            "{}: {rate}",
            chip.name
        );
        assert_eq!(
            (crates.as_str(), lacks.as_str()),
            (emulation.crates, emulation.lacks),
            "{}",
            chip.name
        );
    }
}
