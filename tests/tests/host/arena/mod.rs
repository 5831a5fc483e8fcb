//! The arena that `pack` plans: its size on known networks, what `--fit` and `--region` make of it, and that runs stay inside.

mod chains;
mod rolling;
mod rolling_random;
mod split;
mod sums;

use std::cell::Cell;
use std::path::{Path, PathBuf};

use arenite::{DType, Session, SessionError, Target};
use arenite_host::ErrorKind;
use arenite_host::board::{self, Blob, RunOptions};
use arenite_host::memory::Region;
use arenite_host::memory::fit::Point;
use arenite_host::model::{Aligned, ModelFile, run};
use arenite_host::pack::{Options, pack};
use arenite_host::report::Summary;
use arenite_tests::golden::options;
use arenite_tests::{properties, shared, skip};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// The models of the shared data, or a word on why the test does not run.
fn models(test: &str) -> Option<PathBuf> {
    let models = shared().map(|shared| shared.join("data/models"));
    if models.is_none() {
        skip(test, "no shared data");
    }
    models
}

fn digits(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("models/digits/{name}.trace.json"))
}

fn summary(options: &Options) -> Summary {
    match pack(options, &mut |_, _, _| {}) {
        Ok(packed) => packed.summary,
        Err(error) => panic!("{}: {error}", options.input.display()),
    }
}

/// The options with this much memory to fit into.
fn fitted(options: &Options, bytes: u64) -> Options {
    let sram = Region {
        name: "sram".into(),
        size: Some(bytes),
    };
    Options {
        regions: vec![sram],
        fit: Some(bytes),
        ..options.clone()
    }
}

/// The outputs for a few pseudo-random inputs that depend on `seed` alone.
fn outputs(file: &ModelFile, seed: u64) -> Vec<Vec<Vec<u8>>> {
    let model = file.load().expect("it loads");
    let mut state = seed;
    let mut byte = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let runs: Vec<Vec<Vec<u8>>> = (0..2)
        .map(|_| {
            (0..)
                .map_while(|port| model.input(port))
                .map(|port| {
                    let bytes = port.bytes().expect("a size");
                    match port.dtype {
                        DType::F32 => (0..bytes / 4)
                            .flat_map(|_| (f32::from(byte()) / 64.0 - 2.0).to_le_bytes())
                            .collect(),
                        _ => (0..bytes).map(|_| byte()).collect(),
                    }
                })
                .collect()
        })
        .collect();
    run(&model, &runs, false, &mut |_, _, _| {}).expect("it runs")
}

fn packed_outputs(options: &Options, seed: u64) -> (Summary, Vec<Vec<Vec<u8>>>) {
    let summary = summary(options);
    let file = ModelFile::open(&options.output).expect("the model");
    let outputs = outputs(&file, seed);
    (summary, outputs)
}

/// Kernel scratch included; what TensorFlow Lite Micro needs for the same is 73,728, 16,000, 49,152 and 768 bytes.
#[test]
fn known_networks_need_no_more_than_this() {
    let Some(models) = models("known_networks_need_no_more_than_this") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    for (name, separate, shared) in [
        ("vww_96_int8", 55_296, 46_080),
        ("kws_ref_model", 16_000, 9_999),
        ("pretrainedResnet_quant", 49_152, 33_999),
        ("ad01_int8", 768, 768),
    ] {
        let options = options(&models.join(format!("{name}.tflite")), folder.path(), Target::Portable);
        let with = summary(&options);
        let without = summary(&Options {
            in_place: false,
            ..options
        });
        assert!(without.arena_bytes <= separate, "{name}: {}", without.arena_bytes);
        assert!(without.plan_proven_optimal, "{name}");
        assert_eq!(without.arena_bytes, without.plan_lower_bound_bytes, "{name}");
        assert!(with.arena_bytes <= shared, "{name}: {}", with.arena_bytes);
    }
}

/// The input alone is 27,648 bytes.
#[test]
fn visual_wake_words_fits_32_kib_bit_for_bit() {
    let Some(models) = models("visual_wake_words_fits_32_kib_bit_for_bit") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    for target in [Target::Portable, Target::CortexM3, Target::CortexM4] {
        let whole = options(&models.join("vww_96_int8.tflite"), folder.path(), target);
        let (plain, expected) = packed_outputs(&whole, 1);
        let (small, found) = packed_outputs(&fitted(&whole, 32 << 10), 1);
        let name = target.name();
        assert!(plain.arena_bytes > 32 << 10, "{name}: nothing to do");
        assert!(small.arena_bytes <= 32 << 10, "{name}: {}", small.arena_bytes);
        assert_eq!(plain.extra_macs, 0);
        assert!(small.extra_macs < small.macs, "{name}: {}", small.extra_macs);
        assert!(found == expected, "{name}: the outputs differ");
        eprintln!("{name}: {} bytes, {} extra MACs", small.arena_bytes, small.extra_macs);
    }
}

/// A fit pays in steps, and steps in flash.
#[test]
fn a_model_larger_than_the_flash_is_refused_with_both_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = options(&digits("digits"), folder.path(), Target::Portable);
    let arena = summary(&whole).arena_bytes;
    for fit in [None, Some(arena)] {
        let limited = |bytes| Options {
            fit,
            max_flash: bytes,
            ..whole.clone()
        };
        let free = summary(&limited(None));
        std::fs::remove_file(&whole.output).expect("it was written");
        let error = pack(&limited(Some(free.model_bytes - 1)), &mut |_, _, _| {}).expect_err("a byte too small");
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::DoesNotFit, "{text}");
        for figure in [free.model_bytes, free.model_bytes - 1, free.weights_bytes] {
            assert!(text.contains(&figure.to_string()), "{text}");
        }
        assert!(!whole.output.exists());
        assert_eq!(summary(&limited(Some(free.model_bytes))), free);
    }
}

/// Every cut that `--explain` offers for the int8 networks is one that `--fit` makes, and changes no bit.
#[test]
fn every_fit_on_offer_is_bit_exact() {
    let Some(models) = models("every_fit_on_offer_is_bit_exact") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut points = 0;
    for (name, target) in [
        ("kws_ref_model", Target::Portable),
        ("kws_ref_model", Target::CortexM55),
        ("pretrainedResnet_quant", Target::CortexM4),
        ("emlearn_mnist_cnn_int8", Target::Portable),
        ("tinymaix_mnist_resnet_q", Target::CortexM4),
    ] {
        let whole = options(&models.join(format!("{name}.tflite")), folder.path(), target);
        let (plain, expected) = packed_outputs(
            &Options {
                explain: true,
                ..whole.clone()
            },
            2,
        );
        for point in plain.pareto.iter().filter(|p| p.arena_bytes < plain.arena_bytes) {
            let (small, found) = packed_outputs(&fitted(&whole, point.arena_bytes), 2);
            assert!(small.arena_bytes <= point.arena_bytes, "{name}");
            assert!(small.extra_macs <= point.extra_macs, "{name}");
            assert!(found == expected, "{name}: {}", point.cuts);
            points += 1;
        }
    }
    assert!(points >= 3, "{points} cuts were compared");
}

/// `--region fast=SIZE --region slow=SIZE`, with a fast one too small for everything.
fn two_regions(options: &Options, fast: u64) -> Options {
    let region = |name: &str, size| Region {
        name: name.into(),
        size: Some(size),
    };
    Options {
        regions: vec![region("fast", fast), region("slow", 1 << 20)],
        output: options.output.with_extension("regions.arenite"),
        ..options.clone()
    }
}

#[test]
fn two_regions_give_the_same_results() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["digits", "mlp", "residual"] {
        let one = options(&digits(name), folder.path(), Target::Portable);
        let (whole, expected) = packed_outputs(&one, 3);
        let two = two_regions(&one, whole.arena_bytes / 2);
        let (split, found) = packed_outputs(&two, 3);
        let [fast, slow] = &split.regions[..] else {
            panic!("{name}: {:?}", split.regions);
        };
        assert!(
            fast.bytes > 0 && fast.bytes <= whole.arena_bytes / 2,
            "{name}: {fast:?}"
        );
        assert!(slow.bytes > 0, "{name}: {slow:?}");
        assert_eq!(fast.bytes + slow.bytes, split.arena_bytes);
        assert!(found == expected, "{name}: the outputs differ");
    }
}

/// Tensors that fit the first region stay there, also where they fit to the byte; a word less, and something moves.
#[test]
fn a_first_region_of_the_right_size_takes_all() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["digits", "mlp", "residual"] {
        let one = options(&digits(name), folder.path(), Target::Portable);
        let whole = summary(&one).arena_bytes;
        for (size, all) in [(whole, true), (whole - 4, false)] {
            let split = summary(&two_regions(&one, size));
            let bytes: Vec<u64> = split.regions.iter().map(|region| region.bytes).collect();
            assert_eq!(bytes == [whole, 0], all, "{name}: {size} of {whole}: {bytes:?}");
            assert!(bytes[0] <= size, "{name}: {bytes:?}");
        }
        // Too little in all regions together: what has no place is named, with the sizes.
        let mut regions = two_regions(&one, 8);
        regions.regions[1].size = Some(whole / 2);
        let error = pack(&regions, &mut |_, _, _| {}).expect_err("too little");
        assert_eq!(error.kind(), ErrorKind::DoesNotFit, "{error}");
        assert!(error.to_string().contains("fits in no region"), "{error}");
    }
}

/// A survey of what could be cut, and a fit into what the model takes anyway, write the file that is written without them.
#[test]
fn a_survey_and_a_fit_without_need_change_no_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops");
    let mut files: Vec<PathBuf> = std::fs::read_dir(models)
        .expect("the cases")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tflite"))
        .collect();
    files.sort();
    let windows = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        ["conv", "depthwise", "pool"].iter().any(|word| name.contains(word))
    };
    let targets = [Target::Portable, Target::CortexM3, Target::CortexM55];
    for (index, file) in files.iter().filter(|file| windows(file)).enumerate() {
        for in_place in [true, false] {
            let plain = Options {
                in_place,
                ..options(file, folder.path(), targets[index % targets.len()])
            };
            // All but the metadata, which says what was asked for.
            let written = |options: &Options| {
                let arena = summary(options).arena_bytes;
                let file = ModelFile::open(&options.output).expect("the model");
                let model = file.load().expect("it loads");
                let steps: Vec<(u8, Vec<u8>)> = (model.steps().flatten())
                    .map(|(kernel, parameters)| (kernel, parameters.to_vec()))
                    .collect();
                (arena, steps, model.weights().to_vec())
            };
            let expected = written(&plain);
            let explained = Options {
                explain: true,
                ..plain.clone()
            };
            let name = format!("{}, in place: {in_place}", file.display());
            assert!(written(&explained) == expected, "{name}: explained");
            assert!(written(&fitted(&plain, expected.0)) == expected, "{name}: fitted");
        }
    }
}

#[test]
fn a_board_runs_two_regions_and_leaves_the_canaries() {
    let board = board::BOARDS.iter().find(|b| b.name == "mps2-an386").expect("a board");
    if let Err(reason) = board::ready(board) {
        return skip("a_board_runs_two_regions_and_leaves_the_canaries", &reason.to_string());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let one = options(&digits("residual"), folder.path(), Target::Portable);
    let whole = summary(&one);
    let two = two_regions(&one, whole.arena_bytes / 2);
    let split = summary(&two);
    let given: Vec<u8> = (0..64u16)
        .flat_map(|i| (f32::from(i % 17) / 16.0).to_le_bytes())
        .collect();
    // The firmware puts canaries around every region and reports a changed one as an error.
    let report = |options: &Options| {
        board::run(board, Blob::File(&options.output), &given, &RunOptions::default())
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let (whole_report, split_report) = (report(&one), report(&two));
    assert_eq!(whole_report.arena_bytes, whole.arena_bytes);
    assert_eq!(split_report.arena_bytes, split.arena_bytes);
    assert!(split.regions.iter().all(|region| region.bytes > 0));
    assert_eq!(whole_report.outputs, split_report.outputs);
}

#[test]
fn an_arena_one_byte_smaller_than_printed_is_refused_and_the_canary_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["digits", "mlp", "residual"] {
        let options = options(&digits(name), folder.path(), Target::Portable);
        let bytes = summary(&options).arena_bytes as usize;
        let file = ModelFile::open(&options.output).expect("the model");
        let model = file.load().expect("it loads");
        let (mut arena, mut state) = (Aligned::new(bytes + 64), Aligned::new(model.state_bytes()));
        let mut session = |given: usize| {
            let arena = &mut arena.bytes()[..given];
            Session::new(model, arena, state.bytes()).map(|mut session| {
                for port in 0..usize::from(model.header().inputs) {
                    session.input_mut(port).expect("a port").fill(0);
                }
                session.run().expect("it runs");
            })
        };
        let refused = session(bytes - 1);
        assert!(
            matches!(refused, Err(SessionError::ArenaTooSmall { region: 0, .. })),
            "{name}: {refused:?}"
        );
        assert!(session(bytes).is_ok(), "{name}");
        arena.bytes()[bytes..].fill(0xc5);
        let mut session = Session::new(model, &mut arena.bytes()[..bytes], state.bytes()).expect("as before");
        for port in 0..usize::from(model.header().inputs) {
            session.input_mut(port).expect("a port").fill(0);
        }
        session.run().expect("it runs");
        assert!(arena.bytes()[bytes..].iter().all(|&byte| byte == 0xc5), "{name}");
    }
}
