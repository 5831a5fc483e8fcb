//! The kernels that packing chooses by tables: the tables against what boards execute, and the chosen kernels beside the others that could have run.

use std::path::{Path, PathBuf};

use arenite_host::board::{Board, ready};
use arenite_host::pack::board_of;
use arenite_host::worst::cycles::{Rates, TABLE};
use arenite_host::worst::instructions;
use arenite_tests::{named_by_turns, shared, skip};
use arenite_xtask::choices::of;
use arenite_xtask::most::rates::{BOARDS, is_chosen};
use arenite_xtask::results::{SUBJECTS, best_target, packed, read};

/// An estimate may be so many hundredths of what was counted, or as much below it, of steps of no fewer cycles.
const HUNDREDTHS: u64 = 150;
const SMALL: u64 = 10_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn every_tabled_board_has_cycles_of_every_kernel() {
    for name in BOARDS {
        let rows = TABLE.0.get(name).unwrap_or_else(|| panic!("no cycles of {name}"));
        for (row, rate) in rows {
            assert!((0.3..6.0).contains(rate), "{name}, {row}: {rate}");
        }
        // The board that packing asks, for every kernel that can be chosen there.
        let board = Board::find(name).expect("a board");
        let asked = board_of(best_target(board)).map(|board| board.name);
        assert_eq!(asked, Some(name));
        for kernel in arenite::KernelId::ALL
            .iter()
            .filter(|kernel| is_chosen(**kernel) && board.has(**kernel))
        {
            let of_it = |row: &String| row.split(' ').next() == Some(kernel.name());
            assert!(rows.keys().any(of_it), "{name}: {}", kernel.name());
        }
    }
}

/// A board without timings compares instructions; a step of which nothing is known has no estimate where others have.
#[test]
fn what_is_not_known_is_not_estimated() {
    let board = Board::find("mps2-an386").expect("a board");
    let mut random = arenite_xtask::most::generate::Random::new(1);
    let mut some = || arenite_xtask::most::generate::step(arenite::KernelId::Conv2dS8, &mut random, 0, 0);
    let generated = (0..50).find_map(|_| some()).expect("a step");
    let of = |rates: &Rates| {
        let names = (board.name, board.counts_as().name);
        rates.of(&instructions::TABLE, names, &generated.step, &generated.constants)
    };
    let bound = instructions::TABLE
        .of(board.name, &generated.step, &generated.constants)
        .ok();
    assert_eq!(of(&Rates::default()), bound);
    let mut rates = TABLE.clone();
    assert!(of(&rates) > bound);
    rates
        .0
        .get_mut(board.name)
        .expect("rows")
        .retain(|row, _| !row.starts_with("Conv2dS8"));
    assert_eq!(of(&rates), None);
}

#[test]
fn estimates_are_near_what_was_counted() {
    let (mut found, mut compared) = (Vec::new(), 0);
    for subject in SUBJECTS.iter().filter(|subject| subject.shared) {
        let Some(model) = subject.file(&root().join("tests/models"), shared().as_deref()) else {
            skip(subject.name, "no shared data");
            continue;
        };
        let tracked = read(&root().join(format!("tests/results/{}.json", subject.name))).expect("results");
        for configuration in subject.configurations() {
            let board = configuration.board;
            let key = (board.name, configuration.target.name(), configuration.size);
            let measured = tracked.iter().find(|measured| measured.key() == key);
            let Some(measured) = measured.filter(|_| TABLE.0.contains_key(board.name) && !configuration.size) else {
                continue;
            };
            let folder = tempfile::tempdir().expect("a folder");
            let file = packed(&model, configuration, folder.path()).expect("packs");
            let view = file.view().expect("a file");
            for (step, counted) in view.steps().expect("steps").iter().zip(&measured.bench.steps) {
                let Some(cycles) = counted
                    .cycles
                    .filter(|&cycles| cycles >= SMALL && is_chosen(step.kernel()))
                else {
                    continue;
                };
                let names = (board.name, board.counts_as().name);
                let estimate = TABLE.of(&instructions::TABLE, names, step, view.weights());
                compared += 1;
                let near =
                    |estimate: u64| estimate * 100 <= cycles * HUNDREDTHS && cycles * 100 <= estimate * HUNDREDTHS;
                if !estimate.is_some_and(near) {
                    found.push(format!(
                        "{} on {}, step {}, {}: {estimate:?} for {cycles}",
                        subject.name,
                        board.name,
                        counted.index,
                        step.kernel().name()
                    ));
                }
            }
        }
    }
    println!("{compared} steps");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Of models of a layer, on cores with several backends.
#[test]
fn chosen_kernels_take_the_fewest_cycles() {
    let mut with_another = 0;
    for (model, boards) in [
        ("wide_conv_1d", ["mps2-an386", "mps3-an547"]),
        ("wide_depthwise_5x5", ["mps2-an386", "mps3-an547"]),
        ("wide_depthwise_1d", ["mps2-an386", "mps3-an547"]),
        ("wide_linear_odd", ["mps2-an386", "mps2-an385"]),
    ] {
        for board in named_by_turns("chosen_kernels_take_the_fewest_cycles", &boards) {
            if let Err(reason) = ready(board) {
                skip(
                    &format!("chosen_kernels_take_the_fewest_cycles: {}", board.name),
                    &reason.to_string(),
                );
                continue;
            }
            let choices = of(&root().join(format!("tests/models/tflite_wide/{model}.tflite")), board).expect("runs");
            assert!(!choices.is_empty(), "{model} on {}", board.name);
            for choice in choices {
                println!("{choice}");
                // The fewest of all: flash and scratch are in the way of none of these.
                let fewest = choice.others.iter().all(|other| other.cycles > choice.chosen.cycles);
                assert!(fewest && !choice.is_wrong(), "{choice}");
                with_another += choice.others.len();
            }
        }
    }
    // Without the boards of other turns it is the first alone.
    let least = arenite_xtask::turns::number().map_or(8, |_| 4);
    assert!(with_another >= least || ready(Board::find("mps2-an386").expect("a board")).is_err());
}
