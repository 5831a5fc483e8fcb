//! Programs with a model inside: the digit classifier as a user would flash it, and the runtime alone, measured.

use std::path::{Path, PathBuf};
use std::time::Duration;

use arenite_host::board::{Board, Firmware, execute, footprint, panics, ready};
use arenite_tests::digits_options;

/// Packs a traced digits network.
fn pack(network: &str, folder: &Path) -> PathBuf {
    let model = folder.join(format!("{network}.bin"));
    arenite_host::pack::pack(&digits_options(network, &model), &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
    model
}

fn board(test: &str, name: &str) -> Option<&'static Board> {
    let board = Board::find(name).expect("a known board");
    ready(board)
        .inspect_err(|reason| eprintln!("skipped: {test} on {name}: {reason}"))
        .ok()
        .map(|()| board)
}

#[test]
fn the_embedded_example_classifies_its_images() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = pack("digits", folder.path());
    for board in ["mps2-an386", "mps2-an385:thumbv6m", "riscv32-virt"]
        .into_iter()
        .filter_map(|name| board("example", name))
    {
        let firmware = Firmware::build_with_model(board, "digits", &model).unwrap_or_else(|error| panic!("{error}"));
        let logs = execute(&firmware, Duration::from_secs(600)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(logs.len(), 9, "{}: {logs:?}", board.name);
        assert!(logs[0].text.starts_with("this is a "), "{}: {logs:?}", board.name);
        assert!(logs[8].text.starts_with("8 of 8 right"), "{}: {logs:?}", board.name);
    }
}

#[test]
fn the_runtime_alone_is_small_and_cannot_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = pack("digits", folder.path());
    // The digits network is f32: cores without an FPU link the compiler's soft-float routines as well.
    let boards = [
        ("mps2-an385:thumbv6m", 32 * 1024),
        ("mps2-an386", 24 * 1024),
        ("mps3-an547", 24 * 1024),
    ];
    for (name, most) in boards {
        let Some(board) = board("footprint", name) else {
            continue;
        };
        let measured = footprint(board, &model).unwrap_or_else(|error| panic!("{error}"));
        println!("{}: {measured:?}", board.name);
        assert_eq!(measured.panics, Vec::<String>::new(), "{}", board.name);
        assert!(
            measured.code_bytes > 1024 && measured.code_bytes <= most,
            "{}: {measured:?}",
            board.name
        );
    }
}

/// A program that does panic is seen to: the gate above is no empty one.
#[test]
fn a_program_that_panics_does_not_pass_the_gate() {
    let Some(board) = board("gate", "mps2-an386") else {
        return;
    };
    let firmware = Firmware::build(board, "selfcheck").unwrap_or_else(|error| panic!("{error}"));
    assert!(!panics(&firmware).expect("an ELF file").is_empty());
}
