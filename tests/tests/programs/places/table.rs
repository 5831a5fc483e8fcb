//! The table of cores agrees with the documents, the boards, the chips, and the file that CMake reads.

use std::fs;

use arenite_host::board::BOARDS;
use arenite_host::chips;
use arenite_xtask::places::{CORES, cmake};

use super::bare::root;

#[test]
fn cmake_reads_the_table() {
    let path = root().join("firmware/c/cmake/cores.cmake");
    if std::env::var_os("ARENITE_BLESS").is_some() {
        fs::write(&path, cmake()).expect("written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == cmake(), "{}: ARENITE_BLESS=1 writes it again", path.display());
}

/// A row of docs/features.md for the triple has the features and the target.
#[test]
fn the_documents_have_every_row() {
    let text = fs::read_to_string(root().join("docs/features.md")).expect("readable");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
    for core in &CORES {
        let agrees = |row: &&&str| {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let [_, triples, features, targets] = cells[..] else {
                return false;
            };
            let written = triples.replace("`…-eabihf`", "`thumbv8m.main-none-eabihf`");
            let written = written.replace("riscv32imac-…", "riscv32imac-unknown-none-elf");
            let written = written.replace("riscv32imc-…", "riscv32imc-unknown-none-elf");
            let mut wanted: Vec<String> = core.features.iter().map(|feature| format!("`{feature}`")).collect();
            if wanted.is_empty() {
                wanted.push("none".to_owned());
            }
            written.contains(&format!("`{}`", core.triple))
                && features == wanted.join(", ")
                && targets.contains(&format!("`{}`", core.target))
        };
        assert!(
            rows.iter().any(|row| agrees(&row)),
            "{}: no row of docs/features.md",
            core.name
        );
    }
}

/// Targets of boards and chips have a library.
#[test]
fn boards_and_chips_have_a_library() {
    let own = ["dsp", "mve", "rvv", "sme"];
    let has = |triple: &str, features: &[&str]| {
        let features: Vec<&str> = features.iter().copied().filter(|name| own.contains(name)).collect();
        CORES
            .iter()
            .any(|core| core.triple == triple && core.features == features)
    };
    for chip in chips::all() {
        assert!(has(chip.triple, chip.features), "{}", chip.name);
    }
    for board in &BOARDS {
        // No CMake, Zephyr or Arduino of theirs is tried: vectors of RISC-V, AArch64.
        let left = board.runtime.contains(&"rvv") || board.triple.starts_with("aarch64");
        assert!(left || has(board.triple, board.runtime), "{}", board.name);
    }
}
