//! Common code of the end-to-end tests.

pub mod attacks;
#[cfg(unix)]
pub mod browser;
pub use arenite_xtask::blob;
pub mod emulated;
pub mod exact;
pub mod golden;
pub mod graphs;
pub mod json_schema;
pub mod kit;
pub mod line;
pub mod naive;
pub mod onnx;
pub mod oracle;
pub mod png_file;
pub mod properties;
pub mod record;
pub mod tflite_file;
pub mod tflite_made;
pub mod training;
pub mod typed;
pub mod variants;
pub mod wire;
pub mod writers;

use std::path::{Path, PathBuf};
use std::process::Command;

use arenite_host::board::Board;
use arenite_xtask::{require, turns};

/// Words that belong to the program and not into a message.
pub fn developers_words(message: &str) -> Option<&'static str> {
    let words = [
        "Some(",
        "Ok(",
        "Err(",
        "usize",
        "TensorId",
        "NodeId",
        "Padding2d",
        "unwrap",
        "panicked",
    ];
    words.into_iter().find(|word| message.contains(word))
}

/// The folder of shared reference data (traces, datasets): `ARENITE_SHARED`, or `../shared` beside the workspace.
/// `None` where it is absent; the caller then skips its test with [`skip`].
pub fn shared() -> Option<PathBuf> {
    let folder = match std::env::var_os("ARENITE_SHARED") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
    };
    folder.is_dir().then_some(folder)
}

/// Says that a test did not run, and why.
///
/// # Panics
/// Where `ARENITE_REQUIRE` lists what is missing.
pub fn skip(test: &str, reason: &str) {
    if let Some(what) = require::violated(&require::required(), reason) {
        panic!("{test} is skipped ({reason}), and ARENITE_REQUIRE has `{what}`");
    }
    eprintln!("skipped: {test}: {reason}");
}

/// Those of `all` that are this run's turn, of so many turns: builds that prove nearly the same go by the commit in a whole run of `cargo xtask test`, which
/// says so in `ARENITE_TURN`; elsewhere it is all of them. Tests that wait say so.
pub fn turns<T>(test: &str, turns: usize, all: impl IntoIterator<Item = T>) -> Vec<T> {
    let all: Vec<T> = all.into_iter().collect();
    let Some(number) = turns::number() else {
        return all;
    };
    let (turn, count) = (number % turns, all.len());
    let taken = all.into_iter().enumerate().filter(|(index, _)| index % turns == turn);
    let taken: Vec<T> = taken.map(|(_, one)| one).collect();
    say_waiting(test, taken.len(), count);
    taken
}

/// Those of a test's boards that are this run's turn, one of all that run the same kernels; all where there are no turns. Waiting boards are reported.
pub fn boards_by_turns(test: &str, boards: impl IntoIterator<Item = &'static Board>) -> Vec<&'static Board> {
    let boards: Vec<_> = boards.into_iter().collect();
    let count = boards.len();
    let taken = turns::here(boards);
    say_waiting(test, taken.len(), count);
    taken
}

/// The board that every run builds for.
const ALWAYS: &str = "mps2-an386";

/// Those boards of these names whose kernels are this run's turn, and the one that every run has; all where there are no turns. Waiting boards are reported.
///
/// # Panics
/// Where a board has no such name.
pub fn named_by_turns(test: &str, names: &[&str]) -> Vec<&'static Board> {
    let named = names.iter().map(|name| Board::find(name).expect("a board"));
    let is_mine = |board: &&'static Board| board.name == ALWAYS || !turns::here(vec![*board]).is_empty();
    let taken: Vec<_> = named.filter(is_mine).collect();
    say_waiting(test, taken.len(), names.len());
    taken
}

fn say_waiting(test: &str, taken: usize, count: usize) {
    if taken < count {
        println!("{test}: {taken} of {count}, the others are other commits' turn");
    }
}

/// The folder of the host tools' programs, which are built first. With the features of these tests, so that what cargo has compiled for them serves.
///
/// # Panics
/// Where they do not build, or outside cargo's target folder.
pub fn programs() -> PathBuf {
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args([
        "build",
        "--quiet",
        "--package",
        "arenite-tests",
        "--package",
        "arenite-host",
    ]);
    build.args(["--bin", "pack", "--bin", "arenite"]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    build.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    assert!(
        build.status().expect("cargo starts").success(),
        "the programs do not build"
    );
    // A test is target/<profile>/deps/NAME-<hash>.
    let here = std::env::current_exe().expect("a path");
    here.ancestors().nth(2).expect("a target folder").to_path_buf()
}

/// Options of `pack` for a file of `tests/models/digits`, written to `output`.
pub fn digits_options(network: &str, output: &Path) -> arenite_host::pack::Options {
    let traced = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits");
    arenite_host::pack::Options::new(traced.join(format!("{network}.trace.json")), output)
}
