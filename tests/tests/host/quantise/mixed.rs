//! `pack --budget`, `--target-snr`: networks of several precisions against loops in f64, and their sizes against the files.

use std::path::Path;

use arenite::{DType, Step};
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, Packed, pack};
use arenite_host::quantize::{Activations, Aims};
use arenite_host::report::Quantization;
use arenite_host::{Error, ErrorKind};
use arenite_tests::oracle;
use ndarray::{ArrayD, Axis};
use serde_json::json;

use crate::quantise::network::{Network, answers, calibrated_to};

fn options(trace: &Path, folder: &Path, samples: &[ArrayD<f32>], aims: Aims, keep: &[&str]) -> Options {
    let mut options = calibrated_to(Activations::Int8, trace, folder, samples, keep);
    if let Some(request) = &mut options.quantize {
        request.mixed = Some(aims);
    }
    options
}

fn packed(options: &Options) -> Result<(Packed, ModelFile, Quantization), Error> {
    let packed = pack(options, &mut |_, _, _| {})?;
    let report = packed.summary.quantization.clone().expect("what was done");
    Ok((packed, ModelFile::open(&options.output)?, report))
}

fn flash(bytes: u64) -> Aims {
    Aims {
        flash: Some(bytes),
        snr_db: None,
    }
}

fn snr(decibels: f64) -> Aims {
    Aims {
        flash: None,
        snr_db: Some(decibels),
    }
}

/// Convolutions of all kinds, an addition, a function and a linear layer.
pub(crate) fn network(seed: u64) -> Network {
    let mut network = Network::new(seed, &[1, 3, 7, 5]);
    let y = network.conv2d("x", [12, 3, 3, 2], json!({"padding": [1, 1, 0, 1], "strides": [1, 2]}));
    let y = network.push("relu", &[&y], json!({}));
    let z = network.conv2d(&y, [12, 1, 3, 3], json!({"groups": 12, "padding": [1, 1, 1, 1]}));
    let y = network.push("add", &[&z, &y], json!({}));
    let y = network.conv2d(&y, [10, 12, 2, 2], json!({"dilation": [2, 1]}));
    let y = network.push("tanh", &[&y], json!({}));
    let y = network.push("mean", &[&y], json!({"axes": [2, 3]}));
    let weights = network.parameter(&[5, 10], |v| v);
    let bias = network.parameter(&[5], |v| v);
    network.push("linear", &[&y, &weights, &bias], json!({}));
    network
}

/// Squares of what loops in f64 answer over squares of the differences, in dB.
fn by_loops(network: &Network, file: &ModelFile, samples: &[ArrayD<f32>]) -> f64 {
    let found = answers(file, samples);
    let (mut signal, mut noise) = (0.0, 0.0);
    for (x, found) in samples.iter().zip(found) {
        for (expected, found) in network.expected(x).into_iter().zip(found) {
            signal += expected * expected;
            noise += (expected - found) * (expected - found);
        }
    }
    10.0 * (signal / noise).log10()
}

#[test]
fn what_is_asked_for_is_met_and_the_figures_are_true() {
    let mut compared = 0;
    for seed in [1, 2] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut network = network(90 + seed);
        let samples = network.samples(16);
        let trace = network.write(folder.path());
        let pack =
            |aims| packed(&options(&trace, folder.path(), &samples, aims, &[])).unwrap_or_else(|e| panic!("{e}"));
        let (_, _, all) = pack(snr(0.0));
        let front = &all.front;
        assert!(
            front.len() > 3 && front.iter().filter(|point| point.chosen).count() == 1,
            "{front:?}"
        );
        for pair in front.windows(2) {
            assert!(
                pair[0].model_bytes < pair[1].model_bytes && pair[0].snr_db < pair[1].snr_db,
                "{front:?}"
            );
        }
        // The smallest is good enough for nothing, and has weights of four bits.
        assert!(front[0].chosen && front[0].layers.contains_key("int4"), "{front:?}");
        let best = front.last().expect("one").snr_db.expect("noise");
        for wanted in [front[0].snr_db.expect("noise") + 1.0, 25.0, (best - 0.5).min(40.0)] {
            let (packed, file, report) = pack(snr(wanted));
            let told = report.snr_db.expect("noise");
            assert!(told >= wanted, "{told} of {wanted}");
            let true_snr = by_loops(&network, &file, &samples);
            assert!((true_snr - told).abs() < 0.02, "{told}, by loops {true_snr}");
            figures(&packed, &file, &report);
            compared += samples.len();
        }
        for bytes in [
            front[0].model_bytes,
            front[1].model_bytes + 40,
            front[2].model_bytes + 100,
        ] {
            let (packed, file, report) = pack(flash(bytes));
            assert!(file.bytes().len() as u64 <= bytes);
            let true_snr = by_loops(&network, &file, &samples);
            assert!(
                (true_snr - report.snr_db.expect("noise")).abs() < 0.02,
                "{report:?}, by loops {true_snr}"
            );
            let fitting = report.front.iter().filter(|point| point.model_bytes <= bytes);
            let most = fitting.filter_map(|point| point.snr_db).fold(0.0, f64::max);
            assert_eq!(report.snr_db, Some(most));
            figures(&packed, &file, &report);
            compared += samples.len();
        }
    }
    oracle::compared("loops in f64", compared, 2 * 6 * 16);
}

/// The size that decided is the file's, and the precisions are those of its steps.
fn figures(packed: &Packed, file: &ModelFile, report: &Quantization) {
    let bytes = file.bytes().len() as u64;
    let chosen = report.front.iter().find(|point| point.chosen).expect("one");
    assert_eq!((chosen.model_bytes, packed.summary.model_bytes), (bytes, bytes));
    assert_eq!((&chosen.layers, chosen.snr_db), (&report.precisions, report.snr_db));
    let of = |name: &str| report.layers.values().filter(|layer| layer.precision == name).count();
    for (name, &count) in &report.precisions {
        assert_eq!(of(name), count, "{name}");
    }
    let steps = file.view().expect("a model").steps().expect("steps");
    let four = steps.iter().filter(|step| matches!(step, Step::W4Conv2dS8(_))).count();
    assert_eq!((four, report.low_bit_layers), (of("int4"), of("int4")));
    let sixteen = steps.iter().filter(|step| matches!(step, Step::Conv2dS16(_))).count();
    let layers = |name: &str| {
        let all = report.layers.values();
        all.filter(|layer| layer.precision == name && layer.int8_weights_snr_db.is_some())
            .count()
    };
    assert_eq!(sixteen, layers("int16x8"));
    // The summary that a device carries has counts, and no lists.
    let held = file.view().and_then(|view| view.summary()).expect("a summary");
    let held = held.quantization.expect("what was done");
    assert!(held.layers.is_empty() && held.front.is_empty() && held.precisions == report.precisions);
}

#[test]
fn what_cannot_be_met_is_refused_with_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = network(95);
    let samples = network.samples(12);
    let trace = network.write(folder.path());
    let with = |aims| options(&trace, folder.path(), &samples, aims, &[]);
    let (_, _, report) = packed(&with(snr(0.0))).unwrap_or_else(|e| panic!("{e}"));
    let (first, last) = (report.front[0].clone(), report.front.last().expect("one").clone());
    std::fs::remove_file(folder.path().join("net.arenite")).expect("it is there");
    let refused = |aims, words: &[&str]| {
        let options = with(aims);
        let error = packed(&options).map(|_| ()).expect_err("it cannot be met");
        assert_eq!(error.kind(), ErrorKind::DoesNotFit, "{error}");
        for word in words {
            assert!(error.to_string().contains(word), "{word}: {error}");
        }
        assert!(!options.output.exists());
    };
    let smallest = format!("smallest network found takes {} bytes", first.model_bytes);
    refused(flash(first.model_bytes - 1), &[&smallest, "--budget flash"]);
    let best = format!("with {:.1} dB", last.snr_db.expect("noise"));
    refused(snr(120.0), &[&best, "--target-snr", "at least 120 dB"]);
    let both = Aims {
        flash: Some(first.model_bytes),
        snr_db: Some(first.snr_db.expect("noise") + 5.0),
    };
    refused(
        both,
        &[
            "both --budget flash and --target-snr",
            &format!("within {} bytes", first.model_bytes),
        ],
    );
}

#[test]
fn layers_that_are_to_stay_in_f32_stay_and_float_ports_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = network(97);
    let samples = network.samples(12);
    let trace = network.write(folder.path());
    let (_, _, report) =
        packed(&options(&trace, folder.path(), &samples, snr(0.0), &["conv2d0"])).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(report.kept_f32, ["conv2d0"]);
    assert!(
        !report.layers.contains_key("conv2d0") && report.precisions["f32"] == 1,
        "{report:?}"
    );
    // All layers in f32 between ports of f32 add nothing: only there more dB can be had than int8 inputs have.
    let int8 = packed(&options(&trace, folder.path(), &samples, snr(75.0), &[])).map(|_| ());
    assert_eq!(int8.expect_err("the input is rounded").kind(), ErrorKind::DoesNotFit);
    let mut float = options(&trace, folder.path(), &samples, snr(75.0), &[]);
    (float.input_dtype, float.output_dtype) = (Some(DType::F32), Some(DType::F32));
    let (_, file, report) = packed(&float).unwrap_or_else(|e| panic!("{e}"));
    assert!(by_loops(&network, &file, &samples) >= 75.0, "{report:?}");
}

#[test]
fn a_layers_figures_are_what_its_own_rounding_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = Network::new(99, &[1, 3, 6, 5]);
    network.conv2d("x", [7, 3, 3, 2], json!({}));
    let samples = network.samples(12);
    let trace = network.write(folder.path());
    let options = options(&trace, folder.path(), &samples, snr(0.0), &[]);
    let (_, _, report) = packed(&options).unwrap_or_else(|e| panic!("{e}"));
    let told = report.layers["conv2d0"].int8_weights_snr_db.expect("noise");
    let expected: Vec<Vec<f64>> = samples.iter().map(|x| network.expected(x)).collect();
    network.each_weight(|weights| {
        for mut filter in weights.axis_iter_mut(Axis(0)) {
            let scale = filter.iter().fold(0.0_f64, |most, w| most.max(w.abs())) / 127.0;
            filter.mapv_inplace(|w| (w / scale).round() * scale);
        }
    });
    let (mut signal, mut noise) = (0.0, 0.0);
    for (x, expected) in samples.iter().zip(expected) {
        for (rounded, exact) in network.expected(x).into_iter().zip(expected) {
            signal += exact * exact;
            noise += (exact - rounded) * (exact - rounded);
        }
    }
    let by_loops = 10.0 * (signal / noise).log10();
    assert!((told - by_loops).abs() < 0.1, "{told}, by loops {by_loops}");
}

#[test]
fn the_file_does_not_depend_on_the_threads() {
    let mut network = network(98);
    let samples = network.samples(12);
    let [one, three] = [1, 3].map(|threads| {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = network.write(folder.path());
        let mut options = options(&trace, folder.path(), &samples, snr(30.0), &[]);
        if let Some(request) = &mut options.quantize {
            request.threads = Some(threads);
        }
        packed(&options).unwrap_or_else(|e| panic!("{e}")).1.bytes().to_vec()
    });
    assert!(one == three);
}
