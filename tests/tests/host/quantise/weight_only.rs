//! `pack --dtype f32 --weight-bits`: weights in fewer bits under f32 activations, against loops in f64 on the weights that are stored.

use std::path::{Path, PathBuf};
use std::time::Duration;

use arenite::DType;
use arenite_host::board::{self, Blob, RunOptions};
use arenite_host::graph::LowBits;
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, Packed, pack};
use arenite_host::quantize::WeightOnly;
use arenite_host::{Error, ErrorKind, compare};
use arenite_tests::oracle;
use ndarray::{ArrayD, Axis};
use serde_json::json;

use crate::quantise::network::{Network, answers};

fn options(input: &Path, folder: &Path, bits: u8, group: Option<usize>, keep: &[&str]) -> Options {
    Options {
        dtype: Some(DType::F32),
        weight_only: Some(WeightOnly {
            bits: LowBits { bits, group },
            keep_f32: keep.iter().map(ToString::to_string).collect(),
        }),
        ..Options::new(input, folder.join("net.arenite"))
    }
}

fn packed(options: &Options) -> Result<(Packed, ModelFile), Error> {
    let packed = pack(options, &mut |_, _, _| {})?;
    Ok((packed, ModelFile::open(&options.output)?))
}

/// Four layers of all kinds; weights in groups lie along `[kh, kw, in]`.
fn network(seed: u64) -> Network {
    let mut network = Network::new(seed, &[1, 3, 7, 5]);
    let y = network.conv2d("x", [5, 3, 3, 2], json!({"padding": [1, 1, 0, 1], "strides": [1, 2]}));
    let y = network.push("relu", &[&y], json!({}));
    let z = network.conv2d(&y, [5, 1, 3, 3], json!({"groups": 5, "padding": [1, 1, 1, 1]}));
    let y = network.push("add", &[&z, &y], json!({}));
    let y = network.conv2d(&y, [6, 5, 2, 2], json!({"dilation": [2, 1]}));
    let y = network.push("mean", &[&y], json!({"axes": [2, 3]}));
    let weights = network.parameter(&[4, 6], |v| v);
    let bias = network.parameter(&[4], |v| v);
    network.push("linear", &[&y, &weights, &bias], json!({}));
    network
}

/// Of eight bits: the nearest multiples of a 127th of the largest in each group.
fn stored(values: &mut ArrayD<f64>, group: Option<usize>) {
    let channels_last = values.ndim() == 4;
    for filter in values.axis_iter_mut(Axis(0)) {
        let view = if channels_last {
            filter.permuted_axes(ndarray::IxDyn(&[1, 2, 0]))
        } else {
            filter
        };
        let mut all: Vec<&mut f64> = view.into_iter().collect();
        let share = group.unwrap_or(all.len()).min(all.len());
        for part in all.chunks_mut(share) {
            let most = part.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
            let scale = f64::from(most as f32 / 127.0);
            part.iter_mut()
                .for_each(|value| **value = (**value / scale).round() * scale);
        }
    }
}

#[test]
fn eight_bits_compute_what_loops_compute_with_the_stored_weights() {
    let mut compared = 0;
    for (seed, group) in [(1, None), (2, Some(4)), (3, Some(7)), (4, Some(1000)), (5, Some(2))] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut network = network(40 + seed);
        let samples = network.samples(8);
        let trace = network.write(folder.path());
        let (packed, file) = packed(&options(&trace, folder.path(), 8, group, &[])).expect("packs");
        let report = packed.summary.weight_only.expect("what was done");
        assert_eq!((report.bits, report.group, report.layers), (8, group, 4));
        assert!(report.weights_snr_db.is_some_and(|snr| snr > 40.0), "{report:?}");
        network.each_weight(|values| stored(values, group));
        for (sample, found) in samples.iter().zip(answers(&file, &samples)) {
            let expected = network.expected(sample);
            let largest = expected.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
            for (expected, found) in expected.iter().zip(&found) {
                assert!(
                    (expected - found).abs() <= 2e-5 * largest,
                    "{group:?}: {expected} {found}"
                );
            }
            compared += 1;
        }
    }
    oracle::compared("loops in f64", compared, 40);
}

/// The float16 nearest to a number, in f64: eleven bits of it, or steps of 2^-24.
fn half(value: f64) -> f64 {
    let exponent = value.abs().log2().floor().max(-14.0);
    let step = 2.0_f64.powi(exponent as i32 - 10);
    (value / step).round_ties_even() * step
}

#[test]
fn sixteen_bits_compute_what_loops_compute_with_halves() {
    let mut compared = 0;
    for seed in 1..=5 {
        let folder = tempfile::tempdir().expect("a folder");
        let mut network = network(80 + seed);
        let samples = network.samples(8);
        let trace = network.write(folder.path());
        let (plain, _) = packed(&Options::new(&trace, folder.path().join("plain.arenite"))).expect("packs");
        let (packed, file) = packed(&options(&trace, folder.path(), 16, None, &[])).expect("packs");
        let report = packed.summary.weight_only.expect("what was done");
        assert_eq!((report.bits, report.group, report.layers), (16, None, 4));
        assert!(report.weights_snr_db.is_some_and(|snr| snr > 65.0), "{report:?}");
        assert!(packed.summary.weights_bytes < plain.summary.weights_bytes);
        network.each_weight(|values| values.iter_mut().for_each(|value| *value = half(*value)));
        for (sample, found) in samples.iter().zip(answers(&file, &samples)) {
            let expected = network.expected(sample);
            let largest = expected.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
            for (expected, found) in expected.iter().zip(&found) {
                assert!((expected - found).abs() <= 2e-5 * largest, "{expected} {found}");
            }
            compared += 1;
        }
    }
    oracle::compared("loops in f64", compared, 40);
}

#[test]
fn four_bits_are_nearer_in_smaller_groups_and_files_are_smaller_in_larger_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = network(60);
    let samples = network.samples(24);
    let trace = network.write(folder.path());
    let (plain, _) = packed(&Options::new(&trace, folder.path().join("plain.arenite"))).expect("packs");
    let expected: Vec<f64> = samples.iter().flat_map(|x| network.expected(x)).collect();
    let mut all = Vec::new();
    for (bits, group) in [(8, None), (4, Some(4)), (4, Some(16)), (4, None)] {
        let (packed, file) = packed(&options(&trace, folder.path(), bits, group, &[])).expect("packs");
        let (mut signal, mut noise) = (0.0, 0.0);
        for (expected, found) in expected.iter().zip(answers(&file, &samples).concat()) {
            signal += expected * expected;
            noise += (expected - found) * (expected - found);
        }
        let report = packed.summary.weight_only.expect("what was done");
        let weights = report.weights_snr_db.expect("some noise");
        all.push((10.0 * (signal / noise).log10(), weights, packed.summary.weights_bytes));
        assert_eq!(packed.summary.arena_bytes, plain.summary.arena_bytes);
        assert!(report.worst.is_some_and(|(_, worst)| worst <= weights), "{weights}");
    }
    let [eight, fours, sixteens, whole] = all[..] else {
        panic!("four forms")
    };
    eprintln!("{all:?}, plain {}", plain.summary.weights_bytes);
    assert!(eight.0 > 38.0 && fours.0 > 18.0, "{all:?}");
    assert!(
        eight.1 > fours.1 && fours.1 > sixteens.1 && sixteens.1 >= whole.1,
        "{all:?}"
    );
    assert!(
        fours.2 > sixteens.2 && sixteens.2 > whole.2 && eight.2 > whole.2,
        "{all:?}"
    );
    assert!(plain.summary.weights_bytes > 2 * eight.2, "{all:?}");
}

#[test]
fn layers_that_are_named_or_gain_nothing_keep_their_weights() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = Network::new(9, &[1, 3, 6, 5]);
    let y = network.conv2d("x", [4, 3, 3, 2], json!({}));
    let z = network.conv2d(&y, [5, 4, 2, 1], json!({}));
    // One weight an output: a scale beside it is no gain.
    let last = network.conv2d(&z, [5, 1, 1, 1], json!({"groups": 5}));
    let trace = network.write(folder.path());
    let (packed_all, _) = packed(&options(&trace, folder.path(), 8, None, &[&z])).expect("packs");
    let report = packed_all.summary.weight_only.expect("what was done");
    assert_eq!((report.layers, report.kept_f32), (1, vec![z.clone()]));
    let said = |word: &str| packed_all.warnings.iter().any(|warning| warning.contains(word));
    assert!(
        said(&format!("`{last}` keeps f32 weights")),
        "{:?}",
        packed_all.warnings
    );

    let error = packed(&options(&trace, folder.path(), 4, None, &["conv2d7"]))
        .map(|_| ())
        .expect_err("no such layer");
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(
        error.to_string().contains("--keep-f32 conv2d7") && error.to_string().contains(&z),
        "{error}"
    );
    let all = options(&trace, folder.path(), 4, None, &[&y, &z]);
    std::fs::remove_file(&all.output).expect("written before");
    let error = packed(&all).map(|_| ()).expect_err("nothing to do").to_string();
    assert!(error.contains("--weight-bits 4") && !all.output.exists(), "{error}");
    let int8 = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops/conv_1x1.tflite");
    let error = packed(&options(&int8, folder.path(), 8, None, &[]))
        .map(|_| ())
        .expect_err("it is int8");
    assert!(error.to_string().contains("--dtype f32"), "{error}");
}

#[test]
fn weights_that_are_no_numbers_are_named() {
    for (value, word) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut network = Network::new(10, &[1, 3, 6, 5]);
        network.conv2d("x", [4, 3, 3, 2], json!({}));
        network.each_weight(|weights| weights[[1, 2, 0, 1]] = value);
        let trace = network.write(folder.path());
        let error = packed(&options(&trace, folder.path(), 4, None, &[]))
            .map(|_| ())
            .expect_err("no number");
        assert!(
            error.to_string().contains(word) && error.to_string().contains("finite"),
            "{error}"
        );
    }
}

fn digits(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits").join(name)
}

fn images() -> Vec<ArrayD<f32>> {
    let array: ArrayD<f32> = ndarray_npy::read_npy(digits("test_images.npy")).expect("a committed file");
    array.axis_iter(Axis(0)).map(|image| image.to_owned()).collect()
}

#[test]
fn the_digit_networks_are_as_good_and_smaller() {
    let labels: ArrayD<i64> = ndarray_npy::read_npy(digits("test_labels.npy")).expect("a committed file");
    let images = images();
    for (name, right_in_f32, missed) in [("digits", 355, 2), ("residual", 356, 10), ("mlp", 350, 6)] {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = digits(&format!("{name}.trace.json"));
        let (plain, _) = packed(&Options::new(&trace, folder.path().join("plain.arenite"))).expect("packs");
        for (bits, group, fewer, part) in [(8, None, 0, 0.4), (4, Some(16), missed, 0.35)] {
            let (packed, file) = packed(&options(&trace, folder.path(), bits, group, &[])).expect("packs");
            let largest = |scores: &Vec<f64>| {
                (0..scores.len()).fold(0, |best, at| if scores[at] > scores[best] { at } else { best })
            };
            let answers = answers(&file, &images);
            let right = answers
                .iter()
                .zip(&labels)
                .filter(|(scores, label)| largest(scores) as i64 == **label)
                .count();
            let bytes = packed.summary.weights_bytes as f64 / plain.summary.weights_bytes as f64;
            eprintln!(
                "{name}, {bits} bits: {right} right, weights {bytes:.3}, {:?}",
                packed.summary.weight_only
            );
            assert!(
                right + fewer >= right_in_f32 && bytes <= part,
                "{name}, {bits} bits: {right}, {bytes:.3}"
            );
        }
        oracle::compared("PyTorch", images.len(), 360);
    }
}

#[test]
fn boards_answer_as_the_host_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let images = images();
    for (bits, name) in [(8, "mps2-an386"), (4, "mps2-an386"), (4, "mps2-an385:thumbv6m")] {
        let Some(&board) = arenite_tests::named_by_turns("boards_answer_as_the_host_does", &[name]).first() else {
            continue;
        };
        if let Err(reason) = board::ready(board) {
            arenite_tests::skip(&format!("weights of {bits} bits on {name}"), &reason.to_string());
            continue;
        }
        let trace = digits("residual.trace.json");
        let (_, file) = packed(&options(&trace, folder.path(), bits, Some(8), &[])).expect("packs");
        let images = &images[..3];
        let inputs: Vec<u8> = images.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
        let run = RunOptions {
            runs: images.len() as u32,
            timeout: Duration::from_secs(600),
            ..RunOptions::default()
        };
        let report = board::run(board, Blob::File(file.path()), &inputs, &run).unwrap_or_else(|e| panic!("{e}"));
        let found = compare::to_f64(DType::F32, &report.outputs);
        for (found, expected) in found.iter().zip(answers(&file, images).concat()) {
            assert!(
                (found - expected).abs() <= 1e-5,
                "{bits} bits on {name}: {found} {expected}"
            );
        }
    }
}
