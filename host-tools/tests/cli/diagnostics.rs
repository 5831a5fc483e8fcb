//! Errors on a terminal: the line of the file, with what is meant underlined; in colours unless `NO_COLOR` is set. A pipe gets the plain text.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{ARENITE, Bench, PACK, digits, models, refused, run};
use crate::progress::{on_a_terminal, without_colours};

/// A file in which one text is in the place of another, once.
fn wrong(bench: &Bench, from: PathBuf, old: &str, new: &str) -> PathBuf {
    let text = fs::read_to_string(&from).expect("a committed file");
    assert!(text.contains(old), "{}: no {old}", from.display());
    for companion in ["mlp.safetensors", "mlp.samples.safetensors"] {
        fs::copy(digits(companion), bench.path(companion)).expect("copied");
    }
    let path = bench.path("wrong.json");
    fs::write(&path, text.replacen(old, new, 1)).expect("written");
    path
}

/// Returns the text that a failing `pack` draws on a terminal, as it is and without colours.
fn drawn(bench: &Bench, colours: bool) -> (String, String) {
    let mut pack = Command::new(PACK);
    pack.args(["wrong.json", "-o", "m.bin"]).current_dir(bench.path(""));
    if colours {
        pack.env_remove("NO_COLOR");
    } else {
        pack.env("NO_COLOR", "1");
    }
    let (output, drawn) = on_a_terminal(&mut pack);
    assert_eq!(output.status.code(), Some(1), "{drawn}");
    let drawn = drawn.replace("\r\n", "\n");
    (without_colours(&drawn), drawn)
}

/// The number of the line that is shown, and what is underlined in it.
fn underlined(drawn: &str) -> (usize, String) {
    let lines: Vec<&str> = drawn.lines().collect();
    let carets = lines.iter().position(|line| line.contains('^'));
    let at = carets.unwrap_or_else(|| panic!("nothing is underlined in\n{drawn}"));
    let (source, below) = (lines[at - 1], lines[at]);
    let number = source.split('|').next().unwrap_or_default().trim();
    let first = below.chars().position(|c| c == '^').expect("found");
    let count = below.chars().filter(|c| *c == '^').count();
    let meant = source.chars().skip(first).take(count).collect();
    (
        number.parse().unwrap_or_else(|_| panic!("no number in\n{drawn}")),
        meant,
    )
}

#[test]
fn an_error_on_a_terminal_shows_what_it_means() {
    let corpus = |dialect: &str| models().join("../corpus").join(dialect).join("small");
    let trace = || digits("mlp.trace.json");
    for (from, old, new, meant) in [
        (trace(), "\"shape\": [32, 64]", "\"shape\": [32, -64]", "-64"),
        (trace(), "\"shape\": [32, 64]", "\"shape\": \"32x64\"", "\"32x64\""),
        (trace(), "\"dtype\": \"f32\"", "\"dtype\": \"f64\"", "\"f64\""),
        (trace(), "\"role\": \"input\"", "\"role\": \"inputs\"", "\"inputs\""),
        (
            trace(),
            "\"outputs\": [\"logits\"]",
            "\"outputs\": [\"scores\"]",
            "\"scores\"",
        ),
        (trace(), "{\"shape\": [-1, 64]}", "{\"shape\": [-1, 60]}", "[-1, 60]"),
        (trace(), "\"runs\": 8", "\"runs\": 0", "0"),
        // Of a file in one line a part is shown.
        (corpus("megengine"), "\"stride_w\":1", "\"stride_w\":0", "0"),
    ] {
        let bench = Bench::new();
        let path = wrong(&bench, from, old, new);
        let (plain, coloured) = drawn(&bench, true);
        let text = fs::read_to_string(path).expect("written");
        let before = text.split(new).next().unwrap_or_default();
        let line = before.lines().count().max(1);
        assert_eq!(underlined(&plain), (line, meant.to_string()), "{plain}");
        assert!(plain.contains(&format!(" wrong.json:{line}:")), "{plain}");
        assert!(coloured.contains("\u{1b}[") && coloured != plain, "{coloured:?}");
        assert!(plain.lines().all(|line| line.chars().count() < 400), "{plain}");

        // The same without colours.
        let (same, uncoloured) = drawn(&bench, false);
        assert_eq!(underlined(&same), (line, meant.to_string()), "{same}");
        assert_eq!(same, uncoloured, "colours in spite of NO_COLOR");

        // In a pipe one sentence, as ever.
        let mut piped = Command::new(PACK);
        piped.args(["wrong.json", "-o", "m.bin"]).current_dir(bench.path(""));
        let message = refused(piped.output().expect("it starts"), 1);
        let place = format!("error: wrong.json: line {line}, column ");
        assert!(message.starts_with(&place), "{message}");
        assert!(!message.contains(['^', '\u{1b}']), "{message}");
    }
}

#[test]
fn places_of_native_dumps_show_their_line() {
    let corpus = |dialect: &str| models().join("../corpus").join(dialect).join("small");
    for (from, old, new, shown) in [
        (corpus("chainer"), "LinearFunction", "LinaerFunction", "backward"),
        (corpus("chainer"), "0 5120", "0 5121", "0 5121"),
        (corpus("tf_shapes"), "(2x4x17x17)", "(2x4x17)", "(2x4x17"),
        (
            digits("mlp.trace.json"),
            "\"outputs\": [\"tanh\"]",
            "\"outputs\": [\"fc1\"]",
            "[\"fc1\"]",
        ),
    ] {
        let bench = Bench::new();
        wrong(&bench, from, old, new);
        let (plain, _) = drawn(&bench, true);
        let (number, meant) = underlined(&plain);
        assert!(number > 1 && !meant.is_empty(), "{plain}");
        let source = plain
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{number} |")));
        assert!(
            source.is_some_and(|line| line.contains(shown)),
            "no {shown} in\n{plain}"
        );
    }
}

#[test]
fn what_has_no_line_is_told_as_it_is() {
    let bench = Bench::new();
    let absent = [ARENITE, "inspect", "absent.bin"];
    let mut inspect = Command::new(absent[0]);
    inspect
        .args(&absent[1..])
        .current_dir(bench.path(""))
        .env_remove("NO_COLOR");
    let (output, coloured) = on_a_terminal(&mut inspect);
    assert_eq!(output.status.code(), Some(1));
    let plain = without_colours(&coloured);
    assert!(plain.contains("error: absent.bin: cannot "), "{plain:?}");
    assert!(coloured.contains("\u{1b}[1;91merror"), "{coloured:?}");
    // From a pipe, which is read once, the sentence is all that there is.
    let piped = "printf '{\"arenite_trace\": 9}' | \"$0\" - -o m.bin";
    let mut pack = Command::new("sh");
    pack.args(["-c", piped, PACK]).current_dir(bench.path(""));
    let (output, coloured) = on_a_terminal(&mut pack);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        without_colours(&coloured).contains("error: stdin: line 1, column "),
        "{coloured:?}"
    );
    // Usage errors, too, are plain in a pipe.
    assert!(!refused(run(PACK, &["--targt"]), 2).contains('\u{1b}'));
}
