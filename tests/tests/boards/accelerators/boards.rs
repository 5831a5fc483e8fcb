//! Boards with an accelerator, and without.

use std::path::Path;
use std::time::Duration;

use arenite::kernels::Backend;
use arenite::{BARRIER, Step, Target};
use arenite_host::accelerator::Accelerator as Declared;
use arenite_host::board::{Blob, Board, RunOptions, RunReport, doubted, ready, run};
use arenite_host::model::ModelFile;
use arenite_tests::golden::{Archive, Runs};
use arenite_tests::writers::Random;
use arenite_tests::{shared, skip};

use super::networks::same_beside_a_thread;
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

/// Returns the declaration of a board's accelerator, where it leaves parts of its steps to the core or takes all of them.
fn of_board(file: &str, share: bool) -> Declared {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../firmware").join(file);
    let text = std::fs::read_to_string(&path).expect("committed");
    Declared::parse(&format!("{text}share = {share}\n"), &path).expect("a declaration")
}

/// The second core of `mps2-an521`.
fn second_m33(share: bool) -> Declared {
    of_board("second-m33.toml", share)
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
        // Instructions of the busier one beside those of the busier one of whole steps.
        let busier = both[0].instructions.max(both[1].instructions);
        if busier as f64 > 0.75 * second as f64 {
            lazy.push(name);
        }
    }
    assert!(lazy.is_empty(), "{lazy:?}");
}

/// Inputs of a real model and the outputs of TensorFlow Lite Micro, so many runs.
fn golden(name: &str, runs: usize) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut archive = Archive::open(&shared()?.join(format!("data/models/golden/{name}.npz")));
    let mut all = |prefix: &str| -> Vec<u8> {
        let key = archive.names().into_iter().find(|key| key.starts_with(prefix));
        let Runs(found) = archive.runs(&key.unwrap_or_else(|| panic!("{name} has no {prefix}")));
        found.into_iter().take(runs).flatten().collect()
    };
    Some((all("in_rand_"), all("out_rand_tflm_")))
}

/// Convolutions go through the trait to the unit of outer products, at both lengths of its vectors, and all else is computed by the dot products.
#[test]
fn outer_products_take_over_the_convolutions_of_whole_networks() {
    let test = "outer_products_take_over_the_convolutions_of_whole_networks";
    const RUNS: usize = 2;
    for name in ["ad01_int8", "kws_ref_model", "vww_96_int8", "pretrainedResnet_quant"] {
        let (Some(path), Some((inputs, expected))) = (real(name), golden(name, RUNS)) else {
            return skip(test, "no shared data");
        };
        let folder = tempfile::tempdir().expect("a folder");
        let target = Target::Aarch64Dotprod;
        let (_, alone) = packed(&path, folder.path(), target, None).unwrap_or_else(|e| panic!("{e}"));
        let alone = kept(&alone, folder.path());
        for share in [false, true] {
            let accelerator = of_board("sme.toml", share);
            let (summary, file) =
                packed(&path, folder.path(), target, Some(accelerator)).unwrap_or_else(|e| panic!("{e}"));
            let view = file.view().expect("a view");
            if view.accelerator().is_some() {
                same_beside_a_thread(name, &file, &alone, 5);
            }
            let steps = view.steps().expect("steps");
            // The anomaly detector has no convolutions, and its file none for an accelerator.
            let on = view
                .accelerator()
                .map_or_else(|| vec![0; steps.len()], |(_, on)| on.to_vec());
            let handed = on.iter().filter(|&on| on & !BARRIER == 1).count();
            assert_eq!(handed > 0, name != "ad01_int8", "{name}");
            for (step, on) in steps.iter().zip(on) {
                let (backend, unit) = (step.kernel().backend(), on & !BARRIER == 1);
                assert_eq!(backend == Backend::Sme, unit, "{name}: {}", step.kernel().name());
                assert!(backend != Backend::I8mm, "{name}: {}", step.kernel().name());
            }
            let written: u32 = steps
                .iter()
                .filter(|step| step.kernel().backend() == Backend::Sme)
                .map(written)
                .sum();
            for board in ["aarch64-virt:max", "aarch64-virt:sme512"] {
                let board = Board::find(board).expect("a known board");
                if let Err(reason) = ready(board) {
                    return skip(test, &reason.to_string());
                }
                let counted = |file: &ModelFile, profile: bool| -> RunReport {
                    let options = RunOptions {
                        runs: RUNS as u32,
                        profile,
                        timeout: Duration::from_secs(600),
                        ..RunOptions::default()
                    };
                    let report = run(board, Blob::Bytes(file.bytes()), &inputs, &options);
                    report.unwrap_or_else(|e| panic!("{name} on {}: {e}", board.name))
                };
                let [one, one_by_steps] = [false, true].map(|profile| counted(&alone, profile));
                let [two, two_by_steps] = [false, true].map(|profile| counted(&file, profile));
                assert_eq!(one.outputs, expected, "{name} on {}", board.name);
                match doubted(board, steps.iter().map(Step::kernel)) {
                    Some(reason) => skip(&format!("outputs of {name} on {}", board.name), &reason),
                    None => {
                        assert_eq!(two.outputs, expected, "{name} on {}", board.name);
                        assert_eq!(two_by_steps.outputs, expected, "{name} on {}", board.name);
                    }
                }
                // Runs in steps compute the same on the core: what is more is what the hand-over costs.
                let total = |report: &RunReport| report.instructions[0] as i64;
                let cost = total(&two) - total(&two_by_steps) - (total(&one) - total(&one_by_steps));
                println!(
                    "{name} on {}, share {share}: alone {}, with the unit {}, of that to hand over {cost}, {handed} steps of {}, {written} bytes; arena {}, {}",
                    board.name,
                    total(&one),
                    total(&two),
                    steps.len(),
                    one.arena_bytes,
                    summary.summary.arena_bytes
                );
                let each = cost / handed.max(1) as i64 - i64::from(written) * 3 / handed.max(1) as i64;
                assert!(handed == 0 || each < 4000, "{name} on {}: {cost}", board.name);
            }
        }
    }
}

/// Bytes of a step's first operand, its output.
fn written(step: &Step) -> u32 {
    let mut first = None;
    step.operands(&mut |operand| _ = first.get_or_insert(operand.bytes));
    first.unwrap_or_default()
}

/// A board without such an accelerator, with another one, and a core that has not the unit: an error says so, and no instruction is undefined.
#[test]
fn outer_products_are_refused_where_there_are_none() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/pytorch_int8/mobile_pt2e.trace.json");
    let folder = tempfile::tempdir().expect("a folder");
    let target = Target::Aarch64Dotprod;
    let of = |board: &str, accelerator: Declared, processor: &[&str]| {
        let board = Board::find(board).expect("a known board");
        if let Err(reason) = ready(board) {
            skip("outer_products_are_refused_where_there_are_none", &reason.to_string());
            return None;
        }
        let (_, file) = packed(&path, folder.path(), target, Some(accelerator)).unwrap_or_else(|e| panic!("{e}"));
        let inputs = vec![0; file.view().expect("a view").header().input_bytes as usize];
        let options = RunOptions {
            qemu_arguments: processor.iter().map(|argument| argument.to_string()).collect(),
            ..RunOptions::default()
        };
        let error = run(board, Blob::Bytes(file.bytes()), &inputs, &options).expect_err("refused");
        Some(error.to_string())
    };
    // The network is smaller than what is worth handing over.
    let declared = |from: &str, to: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../firmware/sme.toml");
        let text = std::fs::read_to_string(&path).expect("committed");
        let text = text.replacen(from, to, 1).replace("least_work", "#");
        Declared::parse(&text, &path).expect("a declaration")
    };
    for (board, accelerator, processor, said) in [
        ("aarch64-virt", declared("", ""), &[][..], "is for an accelerator"),
        (
            "aarch64-virt:max",
            declared("version = 1", "version = 2"),
            &[],
            "another version",
        ),
        (
            "aarch64-virt:max",
            declared("alignment = 1", "alignment = 4"),
            &[],
            "aligned",
        ),
        ("aarch64-virt:max", declared("\"sme\"", "\"smo\""), &[], "another name"),
        (
            "aarch64-virt:max",
            declared("", ""),
            &["-cpu", "neoverse-n1"],
            "this core has not the instructions of `sme`",
        ),
    ] {
        if let Some(error) = of(board, accelerator, processor) {
            assert!(error.contains(said), "{board}: {error}");
        }
    }
}
