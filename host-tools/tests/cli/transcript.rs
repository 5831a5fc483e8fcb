//! Output of the programs, word for word: `transcript.txt` has commands, and under each their output, on standard error with a `!`, and their status.
//!
//! The commands are read from that file. Where what they print is meant to change, `ARENITE_BLESS=1` writes it anew. Other tests hold the figures to be right.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use ndarray::{Array3, ArrayD, Axis, IxDyn, Slice};
use ndarray_npy::{NpzWriter, read_npy, write_npy};

use crate::common::{ARENITE, Bench, PACK, digits, models};

/// The figures of stacks are measured anew whenever a kernel changes: not part of the transcript.
fn told_of_stack(line: &str) -> String {
    if !line.contains("stack") {
        return line.to_string();
    }
    line.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect()
}

/// The words of a command: those between `'` are one.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in command.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_string());
        } else {
            words.extend(part.split_whitespace().map(String::from));
        }
    }
    words
}

/// Runs a command; returns its output and status in the transcript's form.
pub(crate) fn told(command: &str, bench: &Bench) -> String {
    let mut words = words(command).into_iter();
    let program = match words.next().as_deref() {
        Some("pack") => PACK,
        _ => ARENITE,
    };
    let output = Command::new(program)
        .args(words)
        .current_dir(bench.path(""))
        .stdin(Stdio::null())
        .output();
    let output = output.expect("it starts");
    let shown = |bytes: &[u8], mark: &str| -> String {
        let text = String::from_utf8_lossy(bytes).replace(env!("CARGO_PKG_VERSION"), "VERSION");
        text.lines()
            .map(|line| format!("{mark}{}\n", told_of_stack(line)))
            .collect()
    };
    let status = match output.status.code() {
        Some(0) => String::new(),
        code => format!("status {code:?}\n"),
    };
    format!("{}{}{status}", shown(&output.stdout, ""), shown(&output.stderr, "! "))
}

#[test]
fn the_programs_print_what_the_transcript_says() {
    let bench = Bench::new();
    for entry in fs::read_dir(digits("")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("UTF-8")
            .to_string();
        fs::copy(&path, bench.path(&name)).expect("copied");
    }
    for name in ["conv_1x1", "svdf_i8_state", "add_broadcast_int8"] {
        let name = format!("{name}.tflite");
        fs::copy(models().join("tflite_ops").join(&name), bench.path(&name)).expect("copied");
    }
    fs::write(
        bench.path("names.txt"),
        "zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n",
    )
    .expect("written");
    fs::write(bench.path("short.txt"), "zero\none\n").expect("written");
    fs::write(bench.path("empty.txt"), "").expect("written");
    let images: ArrayD<f32> = read_npy(digits("test_images.npy")).expect("a committed file");
    let few = images.slice_axis(Axis(0), Slice::from(..5)).to_owned();
    let right: ArrayD<i64> = read_npy(digits("test_labels.npy")).expect("a committed file");
    let few_right = right.slice_axis(Axis(0), Slice::from(..5)).to_owned();
    write_npy(bench.path("few_labels.npy"), &few_right).expect("written");
    write_npy(bench.path("few.npy"), &few).expect("written");
    write_npy(bench.path("one.npy"), &few.index_axis(Axis(0), 3).to_owned()).expect("written");
    let mut reference = NpzWriter::new(fs::File::create(bench.path("reference.npz")).expect("created"));
    let image = few.index_axis(Axis(0), 2).to_owned();
    reference.add_array("image", &image).expect("written");
    for (name, shape) in [
        ("relu1", &[1, 8, 8, 8][..]),
        ("pool2", &[1, 24, 2, 2]),
        ("logits", &[1, 10]),
        ("other", &[3]),
    ] {
        let zeros = ArrayD::<f32>::zeros(IxDyn(shape));
        reference.add_array(name, &zeros).expect("written");
    }
    reference.finish().expect("written");
    write_npy(bench.path("odd.npy"), &Array3::<f32>::zeros((2, 3, 5))).expect("written");

    held("transcript", |line| match line.strip_prefix("$ ") {
        Some(command) => format!("{line}\n{}", told(command, &bench)),
        None => String::new(),
    });
}

/// Holds what becomes of each line of the record `name` to that record, which `ARENITE_BLESS=1` writes anew.
pub(crate) fn held(name: &str, becomes: impl FnMut(&str) -> String) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cli/{name}.txt"));
    let tracked = fs::read_to_string(&file).expect("the record");
    let found: String = tracked.lines().map(becomes).collect();
    if std::env::var_os("ARENITE_BLESS").is_some() {
        fs::write(&file, &found).expect("written");
        return;
    }
    let (mut command, mut lines) = ("", tracked.lines());
    for line in found.lines() {
        if line.starts_with("$ ") {
            command = line;
        }
        assert_eq!(
            Some(line),
            lines.next(),
            "{command}\nwhere this is meant: ARENITE_BLESS=1 cargo test -p arenite-host --test cli {name}"
        );
    }
    assert_eq!(lines.next(), None);
}
