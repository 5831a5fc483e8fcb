//! Names of a file that hold ends of lines and escape sequences: no output has them as they are, and each is one line.

use std::fs;
use std::path::Path;

use crate::common::{ARENITE, Bench, PACK, run};
use crate::onnx;

/// A name that clears a terminal, of as many bytes as [`PLAIN`].
const ODD: &[u8] = b"N\n\x1b[2J\xc2\x9b";
const PLAIN: &[u8] = b"ODD_NAME";
/// How it is shown, but for its end.
const SHOWN: &str = "N\\n\\u{1b}[2J";

/// A network all of whose names are odd.
fn network(path: &Path) {
    let mut bytes =
        onnx::file("ODD_NAME1 f32[1,4]; w f32[4] 1 2 3 4; ODD_NAME2 = Add(ODD_NAME1,w); ODD_NAME3 = Tanh(ODD_NAME2)");
    let mut replaced = 0;
    while let Some(at) = bytes.windows(PLAIN.len()).position(|window| window == PLAIN) {
        bytes[at..at + PLAIN.len()].copy_from_slice(ODD);
        replaced += 1;
    }
    assert!(replaced > 4, "{replaced}");
    fs::write(path, bytes).expect("written");
}

/// Both streams of a command, which must move no terminal.
fn said(bench: &Bench, program: &str, words: &[&str]) -> String {
    let paths: Vec<String> = words
        .iter()
        .map(|word| {
            if word.contains('.') && !word.starts_with('-') {
                bench.path(word).display().to_string()
            } else {
                (*word).to_owned()
            }
        })
        .collect();
    let output = run(program, &paths.iter().map(String::as_str).collect::<Vec<_>>());
    let text = [output.stdout, output.stderr].concat();
    // JSON escapes the escapes.
    let text = String::from_utf8(text).expect("text").replace("\\\\", "\\");
    let moves = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!text.contains(moves), "{words:?}: {text:?}");
    assert!(
        !text.lines().any(|line| line.starts_with("\\u{1b}[2J")),
        "{words:?}: {text}"
    );
    text
}

#[test]
fn names_move_no_terminal_and_break_no_line() {
    let bench = Bench::new();
    network(&bench.path("odd.onnx"));
    let packed = said(&bench, PACK, &["odd.onnx", "-o", "odd.bin"]);
    assert!(bench.path("odd.bin").exists(), "{packed}");
    for words in [
        &["inspect", "odd.bin", "--steps"][..],
        &["inspect", "odd.bin", "--json"],
        &["verify", "odd.bin"],
        &["run", "odd.bin", "--input", "none.npy"],
        &["run", "odd.bin", "--input", "N1=none.npy"],
        &["size", "odd.bin"],
    ] {
        said(&bench, ARENITE, words);
    }
    let steps = said(&bench, ARENITE, &["inspect", "odd.bin", "--steps"]);
    assert!(
        steps.lines().filter(|line| line.contains(SHOWN)).count() >= 3,
        "{steps}"
    );
    for pass in ["import", "fuse", "schedule", "plan"] {
        let dump = said(&bench, PACK, &["odd.onnx", "-o", "odd.bin", "--dump-after", pass]);
        assert!(dump.contains(SHOWN), "{pass}: {dump}");
    }
    for option in ["--until", "--from", "--keep-f32"] {
        let error = said(&bench, PACK, &["odd.onnx", "-o", "odd.bin", option, "N[2J1"]);
        assert!(error.starts_with("error: "), "{option}: {error}");
    }
}
