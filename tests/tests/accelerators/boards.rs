//! Boards with an accelerator, and without.

use std::path::Path;
use std::time::Duration;

use arenite::Target;
use arenite_host::accelerator::Accelerator as Declared;
use arenite_host::board::{Blob, Board, RunOptions, ready, run};
use arenite_host::model::ModelFile;
use arenite_tests::skip;
use arenite_tests::writers::Random;

use super::{declared, kept, packed, real};

/// A build without the feature, as boards have it.
#[test]
fn a_core_without_accelerators_refuses_the_file_by_name() {
    let board = Board::find("mps2-an505").expect("a known board");
    if let Err(reason) = ready(board) {
        return skip(
            "a_core_without_accelerators_refuses_the_file_by_name",
            &reason.to_string(),
        );
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits/residual.trace.json");
    let folder = tempfile::tempdir().expect("a folder");
    let accelerator = declared(Target::CortexM33, "'conv2d'", 0, "");
    let (_, file) =
        packed(&path, folder.path(), Target::CortexM33, Some(accelerator)).unwrap_or_else(|e| panic!("{e}"));
    let inputs = vec![0; file.view().expect("a view").header().input_bytes as usize];
    let error = run(board, Blob::Bytes(file.bytes()), &inputs, &RunOptions::default()).expect_err("it has none");
    assert!(error.to_string().contains("is for an accelerator"), "{error}");
}

/// What the second core of `mps2-an521` is declared as, where it leaves parts of its steps to the first or takes all of them.
fn second_m33(share: bool) -> Declared {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../firmware/second-m33.toml");
    let text = std::fs::read_to_string(&path).expect("committed");
    Declared::parse(&format!("{text}share = {share}\n"), &path).expect("a declaration")
}

/// The first core loads what it could not run, the second one runs it, and each of them sleeps while the other works; or both work, on parts of the same steps.
#[test]
fn the_second_m33_takes_over_the_steps_of_whole_networks() {
    let test = "the_second_m33_takes_over_the_steps_of_whole_networks";
    let board = Board::find("mps2-an521").expect("a known board");
    if let Err(reason) = ready(board) {
        return skip(test, &reason.to_string());
    }
    let mut lazy = Vec::new();
    for (name, most) in [
        ("ad01_int8", 0.12),
        ("kws_ref_model", 0.12),
        ("vww_96_int8", 0.12),
        ("pretrainedResnet_quant", 0.12),
    ] {
        let Some(path) = real(name) else {
            return skip(test, "no shared data");
        };
        let folder = tempfile::tempdir().expect("a folder");
        let (_, alone) = packed(&path, folder.path(), Target::CortexM3, None).unwrap_or_else(|e| panic!("{e}"));
        let alone = kept(&alone, folder.path());
        let (summary, file) =
            packed(&path, folder.path(), Target::CortexM3, Some(second_m33(false))).unwrap_or_else(|e| panic!("{e}"));
        let handed = summary.summary.accelerator.expect("stated");
        let bytes = file.view().expect("a view").header().input_bytes as usize;
        let mut random = Random::new(3);
        let inputs: Vec<u8> = (0..bytes).map(|_| random.below(256) as u8).collect();
        let traced = |file: &ModelFile| {
            let options = RunOptions {
                trace: true,
                timeout: Duration::from_secs(600),
                ..RunOptions::default()
            };
            run(board, Blob::Bytes(file.bytes()), &inputs, &options).unwrap_or_else(|e| panic!("{name}: {e}"))
        };
        let (one, two) = (traced(&alone), traced(&file));
        let one_outputs = one.outputs;
        assert_eq!(one_outputs, two.outputs, "{name}");
        let one = one.trace.expect("traced").runs[0].cores.clone();
        let two = two.trace.expect("traced").runs[0].cores.clone();
        println!("{name}: alone {one:?}, with the second {two:?}, {handed:?}");
        assert_eq!(two.len(), 2, "{two:?}");
        // The second one has instructions at hand that the first has not, and does most of the work.
        let [first, second] = [two[0].instructions, two[1].instructions];
        if first + second > one[0].instructions || first as f64 > most * one[0].instructions as f64 {
            lazy.push(name);
        }
        let (arena, bytes) = (summary.summary.arena_bytes, file.bytes().len());
        let (shared, file) =
            packed(&path, folder.path(), Target::CortexM3, Some(second_m33(true))).unwrap_or_else(|e| panic!("{e}"));
        let both = traced(&file);
        assert_eq!(one_outputs, both.outputs, "{name}");
        let both = both.trace.expect("traced").runs[0].cores.clone();
        let told = shared.summary.accelerator.expect("stated").shared.expect("some are");
        println!(
            "{name}: shared {both:?}, arena {arena} and {}, file {bytes} and {}, {told:?}",
            shared.summary.arena_bytes,
            file.bytes().len()
        );
        // What the busier one has beside the busier one of whole steps.
        let busier = both[0].instructions.max(both[1].instructions);
        if busier as f64 > 0.75 * second as f64 {
            lazy.push(name);
        }
    }
    assert!(lazy.is_empty(), "{lazy:?}");
}
