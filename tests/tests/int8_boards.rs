//! The int8 models on every board: packed for its core's own kernels, run on the reference inputs, bit for bit what TensorFlow Lite Micro gives, and so
//! the same on all boards.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use arenite_host::board::results::{Configuration, best_target, packed};
use arenite_host::board::{BOARDS, Blob, Board, BoardError, RunOptions, ready, run};
use arenite_tests::golden::Archive;
use arenite_tests::{shared, skip};
use sha2::{Digest, Sha256};

/// A model, and the sets of its archive.
struct Case {
    name: &'static str,
    sets: &'static [&'static str],
}

const fn case(name: &'static str, sets: &'static [&'static str]) -> Case {
    Case { name, sets }
}

const CASES: [Case; 13] = [
    case("ad01_int8", &["rand", "real"]),
    case("emlearn_mnist_cnn_int8", &["rand", "real"]),
    case("esphome_v2_vad", &["seq", "seqreal"]),
    case("kws_ref_model", &["rand", "real"]),
    case("pretrainedResnet_large_int8", &["rand", "real"]),
    case("pretrainedResnet_quant", &["rand", "real"]),
    case("str_ww_ref_model", &["rand", "real"]),
    case("tflm_hello_world_int8", &["rand"]),
    case("tflm_keyword_scrambled", &["seq"]),
    case("tflm_micro_speech_quantized", &["rand", "real"]),
    case("tflm_mnist_lstm_int8", &["seq", "real"]),
    case("tinymaix_mnist_resnet_q", &["rand", "real"]),
    case("vww_96_int8", &["rand", "real"]),
];

/// Models of more than 5 million MACs: one input on each board is enough outside the long tier.
const SLOW: [&str; 3] = ["pretrainedResnet_large_int8", "pretrainedResnet_quant", "vww_96_int8"];

/// What became of a set on a board.
enum Outcome {
    /// The digest of all outputs.
    Same(String),
    Different(String),
    /// The board's own words, with both figures.
    DoesNotFit(String),
}

/// Runs at most `most` inputs of a set; a sequence is cut, not divided.
fn outcome(
    board: &'static Board,
    model: &Path,
    archive: &mut Archive,
    set: &str,
    most: usize,
    folder: &Path,
) -> Outcome {
    let configuration = Configuration {
        board,
        target: best_target(board),
        size: false,
    };
    let file = packed(model, configuration, folder).unwrap_or_else(|e| panic!("{e}"));
    let mut rows = |prefix: &str| {
        let mut keys: Vec<String> = archive.names();
        keys.retain(|key| key.starts_with(prefix));
        keys.sort();
        let columns: Vec<_> = keys.iter().map(|key| archive.runs(key).0).collect();
        let runs = columns[0].len().min(most);
        let of_run = |run: usize| {
            columns
                .iter()
                .flat_map(|column| column[run].clone())
                .collect::<Vec<u8>>()
        };
        (0..runs).map(of_run).collect::<Vec<_>>()
    };
    let inputs = rows(&format!("in_{set}_"));
    let expected = rows(&format!("out_{set}_tflm_"));
    let options = RunOptions {
        runs: inputs.len() as u32,
        reset_each: !set.starts_with("seq"),
        timeout: Duration::from_secs(1200),
        ..RunOptions::default()
    };
    let report = match run(board, Blob::File(file.path()), &inputs.concat(), &options) {
        Ok(report) => report,
        Err(error @ (BoardError::BlobTooLarge { .. } | BoardError::OutOfMemory { .. })) => {
            return Outcome::DoesNotFit(error.to_string());
        }
        Err(error) => return Outcome::Different(error.to_string()),
    };
    let each = report.output_bytes as usize;
    let wrong = report
        .outputs
        .chunks(each)
        .zip(&expected)
        .position(|(got, expected)| got != &expected[..]);
    match wrong {
        _ if report.outputs.len() != each * expected.len() => {
            Outcome::Different(format!("{} bytes", report.outputs.len()))
        }
        Some(run) => Outcome::Different(format!("run {run} differs from TensorFlow Lite Micro")),
        None => {
            let digest = Sha256::digest(&report.outputs);
            Outcome::Same(digest.iter().map(|byte| format!("{byte:02x}")).collect())
        }
    }
}

/// Compares every case on every board.
fn compare(test: &str, most: impl Fn(&Case) -> usize) {
    let Some(shared) = shared() else {
        return skip(test, "no shared data");
    };
    let models = shared.join("data/models");
    let folder = tempfile::tempdir().expect("a folder");
    let (mut wrong, mut unfit) = (Vec::new(), BTreeMap::<&str, usize>::new());
    let mut digests: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for board in &BOARDS {
        if let Err(reason) = ready(board) {
            skip(test, &format!("{}: {reason}", board.name));
            continue;
        }
        for case in &CASES {
            let model = models.join(format!("{}.tflite", case.name));
            let mut archive = Archive::open(&models.join(format!("golden/{}.npz", case.name)));
            for set in case.sets {
                match outcome(board, &model, &mut archive, set, most(case), folder.path()) {
                    Outcome::Same(digest) => {
                        let first = digests.entry((case.name, set)).or_insert_with(|| digest.clone());
                        if *first != digest {
                            wrong.push(format!("{} {set} on {}: another digest", case.name, board.name));
                        }
                    }
                    Outcome::Different(text) => wrong.push(format!("{} {set} on {}: {text}", case.name, board.name)),
                    Outcome::DoesNotFit(text) => {
                        println!("{} on {}: {text}", case.name, board.name);
                        // Both figures, and neither is missing.
                        assert!(text.matches(|c: char| c.is_ascii_digit()).count() >= 2, "{text}");
                        *unfit.entry(board.name).or_default() += 1;
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} comparisons:\n{}", wrong.len(), wrong.join("\n"));
    // Every board but the smallest has room for every model, and the smallest for some.
    let sets: usize = CASES.iter().map(|case| case.sets.len()).sum();
    let small = unfit.remove("microbit").unwrap_or(0);
    assert!(unfit.is_empty() && small < sets, "{unfit:?}, {small} of {sets}");
}

#[test]
fn int8_models_give_the_same_bits_on_every_board() {
    compare("int8_models_give_the_same_bits_on_every_board", |case| {
        if SLOW.contains(&case.name) { 1 } else { 2 }
    });
}

#[test]
#[ignore = "long: every reference input of every int8 model on every board"]
fn int8_models_give_the_same_bits_on_every_board_for_every_input() {
    compare("int8_models_give_the_same_bits_on_every_board_for_every_input", |_| {
        usize::MAX
    });
}
