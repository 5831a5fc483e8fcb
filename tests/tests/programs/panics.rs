//! Nothing that a program links of the runtime can panic: its release builds hold no function of the panic machinery. The program is
//! `firmware/footprint/src/gate.rs`, which calls all there is: single models and bundles, with state and without, runs whole and by steps.

use std::path::Path;

use arenite::Target;

use arenite_host::board::{BOARDS, Board, Firmware, panics, ready};
use arenite_tests::golden::{packed, packed_small};
use arenite_tests::{shared, skip, turns};
use arenite_xtask::results::SUBJECTS;

/// A board of each build of the runtime, which several boards may share.
fn builds(test: &str) -> Vec<&'static Board> {
    let mut boards: Vec<&'static Board> = Vec::new();
    for board in &BOARDS {
        let same = |other: &&Board| (other.triple, other.rustflags) == (board.triple, board.rustflags);
        if boards.iter().any(|other| same(other) && other.targets == board.targets) {
            continue;
        }
        match ready(board) {
            Ok(()) => boards.push(board),
            Err(reason) => skip(&format!("{test}: {}", board.name), &reason.to_string()),
        }
    }
    boards
}

/// Returns the functions of the panic machinery in a gate; one that holds no kernel either would prove nothing.
fn found(board: &'static Board, model: Option<&Path>) -> Vec<String> {
    let gate = Firmware::build_gate(board, model).unwrap_or_else(|error| panic!("{error}"));
    let kernels = gate
        .functions("arenite::kernels::table::run_step")
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(!kernels.is_empty(), "{}: a gate without the runtime", board.name);
    panics(&gate).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn no_kernel_of_any_target_can_panic() {
    let mut linked = Vec::new();
    const TEST: &str = "no_kernel_of_any_target_can_panic";
    for board in turns(TEST, 5, builds(TEST)) {
        linked.extend(
            found(board, None)
                .into_iter()
                .map(|name| format!("{}: {name}", board.name)),
        );
    }
    assert!(linked.is_empty(), "{}", linked.join("\n"));
}

/// A tracked model, packed for a board's own target and with `--size`.
fn own_sets(name: &str, model: &Path, board: &'static Board) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let named = |target: &Target| board.targets.last() == Some(&target.name());
    let target = Target::ALL.into_iter().find(named).unwrap_or(Target::Portable);
    let mut linked = Vec::new();
    for (form, pack) in [("", packed as fn(&Path, &Path, Target) -> _), (" --size", packed_small)] {
        let Ok(file) = pack(model, folder.path(), target) else {
            panic!("{name} is not packed for {}", target.name());
        };
        let of = |function| format!("{name}{form} on {}: {function}", board.name);
        linked.extend(found(board, Some(file.path())).into_iter().map(of));
    }
    linked
}

/// The set that once linked a formatting panic and a division.
#[test]
fn visual_wake_words_cannot_panic_on_the_m55() {
    const TEST: &str = "visual_wake_words_cannot_panic_on_the_m55";
    let Some(shared) = shared() else {
        return skip(TEST, "no shared data");
    };
    let board = Board::find("mps3-an547").expect("a known board");
    if let Err(reason) = ready(board) {
        return skip(TEST, &reason.to_string());
    }
    let model = shared.join("data/models/vww_96_int8.tflite");
    assert_eq!(own_sets("vww_96_int8", &model, board), Vec::<String>::new());
}

#[test]
#[ignore = "long: every tracked model's own kernels for every target"]
fn no_tracked_model_can_panic() {
    const TEST: &str = "no_tracked_model_can_panic";
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let mut linked = Vec::new();
    for subject in SUBJECTS {
        let Some(model) = subject.file(&models, shared().as_deref()) else {
            skip(&format!("{TEST}: {}", subject.name), "no shared data");
            continue;
        };
        for board in builds(TEST) {
            linked.extend(own_sets(subject.name, &model, board));
        }
    }
    assert!(linked.is_empty(), "{}", linked.join("\n"));
}
