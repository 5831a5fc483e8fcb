//! The flash that qemu emulates behind the controller of `sifive_u`.

use std::path::Path;

use arenite::Target;
use arenite_host::board::{Board, BoardError, RunOptions, ready, run_streamed};
use arenite_host::model::run;
use arenite_host::pack::{Options, Streamed};
use arenite_host::report::Pieces;
use arenite_tests::{digits_options, skip};

use crate::stream::{flash, floats, packed_for};

/// The real registers of a controller and the commands of a chip, as qemu has them: the flash of `sifive_u`.
#[test]
fn an_emulated_flash_is_read_piece_by_piece() {
    const TEST: &str = "an_emulated_flash_is_read_piece_by_piece";
    let board = Board::find("sifive-u").expect("a known board");
    if let Err(reason) = ready(board) {
        return skip(TEST, &reason.to_string());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        target: Target::Riscv64gc,
        ..digits_options("digits", Path::new("digits.bin"))
    };
    let stream = flash(1 << 20).map(|streamed| Streamed {
        buffer: Some(3000),
        ..streamed
    });
    let network = packed_for(&options, stream, folder.path());
    let Pieces { pieces, read_bytes, .. } = network.pieces();
    let images = floats("test_images.npy", 3 * 64);
    let bytes = |values: &[f32]| -> Vec<u8> { values.iter().flat_map(|value| value.to_le_bytes()).collect() };
    let runs: Vec<Vec<Vec<u8>>> = images.chunks(64).map(|image| vec![bytes(image)]).collect();
    let expected = run(
        &network.whole.load().expect("it loads"),
        &runs,
        false,
        &mut |_, _, _| {},
    )
    .expect("it runs");
    let options = RunOptions {
        runs: 3,
        profile: true,
        ..RunOptions::default()
    };
    let report = run_streamed(board, &network.file, &bytes(&images), &options, &mut |_| ());
    let report = report.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.run.outputs, expected.concat().concat());
    assert!(report.run.steps.iter().all(|steps| steps.len() == pieces));
    // With a look at the state, a command and an address before each transfer.
    let all = read_bytes + 2 * 7 * pieces as u64;
    assert_eq!(report.run_bytes[1..], [all; 2], "{report:?}");
    // A byte that is another one there is told.
    let mut damaged = network.file.clone();
    let at = damaged.len() - 5000;
    damaged[at] ^= 4;
    let error = run_streamed(board, &damaged, &bytes(&images), &options, &mut |_| ()).expect_err("it is damaged");
    assert!(
        matches!(&error, BoardError::Refused { text, .. } if text.contains("piece ")),
        "{error}"
    );
}
