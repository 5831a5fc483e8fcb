//! Graphs read from models and traces of many kinds, and from many small changes to each, are on record as digests: a file for each kind in `digests`.
//!
//! The other records sample every model thinly. This one goes over small files densely, and a digest is of all that is read: every field of the network,
//! what was assumed, what was warned of, or all that an error says. Others hold the files' meaning to be right. Where a digest is meant to change,
//! `ARENITE_BLESS=1` writes the file anew.

use std::fmt::Write;

use arenite_host::import::import_content;
use arenite_tests::record::{Digest, held};

use super::binary::files;
use super::record::{edited, relined, words};
use super::*;

fn read(digest: &mut Digest, dialect: Option<&str>, path: &Path, content: &[u8], options: &ImportOptions) {
    let _ = match import_content(path, content, dialect, options) {
        Ok((dialect, imported)) => write!(digest, "{dialect} {imported:?};"),
        Err(error) => write!(digest, "{:?} {error};", error.kind()),
    };
}

/// A line: the name, the digest of the file itself, of it at other batches and shapes, of it changed in many ways.
fn line(
    name: &str,
    dialect: Option<&str>,
    path: &Path,
    content: &[u8],
    changed: impl Iterator<Item = Vec<u8>>,
) -> String {
    let plain = ImportOptions::default();
    let [mut itself, mut otherwise, mut changes] = <[Digest; 3]>::default();
    read(&mut itself, dialect, path, content, &plain);
    let shapes = [vec![3, 29], vec![2, 23, 31, 3], vec![2, 3, 23, 31]].map(|shape| ImportOptions {
        input_shape: Some(shape),
        ..ImportOptions::default()
    });
    for options in [at_batch(3), assuming(&[("batch", "2")])].iter().chain(&shapes) {
        read(&mut otherwise, dialect, path, content, options);
    }
    for content in changed {
        read(&mut changes, dialect, path, &content, &plain);
    }
    format!("{name} {} {} {}\n", itself.text(), otherwise.text(), changes.text())
}

/// The bytes with one of them changed: a flag, a type, a length or an offset becomes another one, or one that there is none of.
fn bytes_changed(bytes: &[u8], samples: usize) -> impl Iterator<Item = Vec<u8>> {
    let samples = samples.min(bytes.len());
    (0..samples).map(move |sample| {
        let at = (sample * bytes.len() / samples + sample % 4) % bytes.len();
        let mut changed = bytes.to_vec();
        changed[at] = match sample % 5 {
            0 => bytes[at] ^ 1,
            1 | 2 => bytes[at].wrapping_add(1),
            3 => bytes[at].wrapping_sub(1),
            _ => !bytes[at],
        };
        changed
    })
}

/// The text with one of its words or lines changed.
fn text_changed(text: &str, samples: usize) -> impl Iterator<Item = Vec<u8>> {
    let words = words(text);
    let of_words = (0..samples).map(move |sample| {
        let at = (sample * words.len() / samples + sample % 3) % words.len();
        edited(text, &words, at, [0, 1, 0, 2, 0, 3][sample % 6])
    });
    let of_lines = (0..samples / 5).filter_map(move |sample| relined(text, sample, sample % 3));
    of_words.chain(of_lines).map(String::into_bytes)
}

fn compared(record: &str, lines: &str) {
    held(
        &format!("tests/host/round_trip/digests/{record}"),
        lines,
        "round_trip::digests",
    );
}

/// Networks of every trace dialect but the native one.
fn traces() -> Vec<(String, &'static str, String)> {
    let pool = |kernel, stride, ceiling| Layer::MaxPool {
        kernel,
        stride,
        ceiling,
    };
    let image = |batch, image, layers| Chain { batch, image, layers };
    let dense = image(
        3,
        [2, 13, 22],
        vec![
            Layer::conv(5, [3, 2], [1, 2], [1, 0], 1, [2, 1]),
            Layer::Relu,
            Layer::Flatten,
            Layer::Linear { out: 11 },
            Layer::Relu,
            Layer::Linear { out: 4 },
        ],
    );
    let strided = |ceiling| {
        let layers = vec![
            Layer::conv(6, [5, 3], [2, 1], [2, 1], 1, [1, 1]),
            Layer::Relu,
            pool([3, 2], [2, 2], ceiling),
            Layer::conv(8, [1, 3], [1, 1], [0, 1], 2, [1, 1]),
        ];
        image(4, [3, 27, 45], layers)
    };
    let square = |batch, image: [usize; 3], window| {
        let layers = vec![
            Layer::conv(6, [5; 2], [1; 2], [2; 2], 1, [1; 2]),
            Layer::Relu,
            Layer::Lrn,
            pool([window; 2], [2; 2], false),
            Layer::conv(8, [3; 2], [1; 2], [1; 2], 2, [1; 2]),
            Layer::Relu,
            pool([3; 2], [2; 2], false),
        ];
        Chain { batch, image, layers }
    };
    let mut all = Vec::new();
    for (name, chain) in [
        ("uneven", uneven(2, true)),
        ("dense", dense.clone()),
        ("strided", strided(true)),
    ] {
        all.push((name, "chainer", chainer::write(&chain, 3)));
    }
    for (name, chain) in [
        ("uneven", uneven(2, false)),
        ("dense", dense),
        ("strided", strided(false)),
    ] {
        all.push((name, "megengine", megengine::write(&chain)));
    }
    for (name, chain, seed) in [
        ("low", square(2, [3, 18, 29], 3), None),
        ("high", square(5, [4, 41, 26], 3), Some(7)),
        ("tight", square(2, [3, 21, 16], 2), Some(2)),
    ] {
        all.push((name, "tf-shapes", tf_shapes::write(&chain, seed)));
    }
    for (name, blocks) in [("resnet8", [2, 1].as_slice()), ("resnet50", &[3, 4, 6, 3])] {
        all.push((name, "keras-order", keras_order::write(name, blocks)));
    }
    for (name, layers) in [
        ("two", [(8, 5), (6, 3)].as_slice()),
        ("three", &[(4, 3), (4, 3), (5, 4)]),
    ] {
        all.push((name, "rects", local(layers).write()));
    }
    let named = |(name, dialect, text): (&str, _, _)| (format!("{dialect}/{name}"), dialect, text);
    all.into_iter().map(named).collect()
}

#[test]
fn digests_of_traces_are_on_record() {
    let mut lines = String::new();
    for (name, dialect, text) in traces() {
        let path = Path::new("small.trace");
        // Long traces are of layers that are alike.
        let samples = if text.len() > 50_000 { 40 } else { 200 };
        lines += &line(
            &name,
            Some(dialect),
            path,
            text.as_bytes(),
            text_changed(&text, samples),
        );
    }
    // As they lie in the package, so that no message names a folder of this machine.
    for folder in ["models/digits", "models/mfcc", "models/pytorch"] {
        for path in files(Path::new(folder), "trace.json") {
            let text = std::fs::read_to_string(&path).expect("a trace");
            lines += &line(&named(&path), None, &path, text.as_bytes(), text_changed(&text, 30));
        }
    }
    compared("traces.txt", &lines);
}

fn named(path: &Path) -> String {
    path.with_extension("").display().to_string().replace('\\', "/")
}

fn of_models(folders: &[&str], extension: &str, samples: usize) -> String {
    let paths = folders.iter().flat_map(|folder| files(Path::new(folder), extension));
    let of_model = |path: std::path::PathBuf| {
        let content = std::fs::read(&path).expect("a model");
        let changed = bytes_changed(&content, samples);
        line(&named(&path), None, &path, &content, changed)
    };
    paths.map(of_model).collect()
}

#[test]
fn digests_of_tflite_models_are_on_record() {
    let folders = ["models/tflite_ops", "models/tflite_odd", "models/tflite_signal"];
    compared("tflite.txt", &of_models(&folders, "tflite", 24));
}

#[test]
fn digests_of_onnx_models_are_on_record() {
    compared("onnx.txt", &of_models(&["models/onnx"], "onnx", 40));
}
