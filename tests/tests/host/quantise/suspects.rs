//! Warnings about samples that calibrate a network badly. The advice of a warning is tried, and helps.

use std::path::Path;

use arenite::DType;
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::quantize;
use arenite_tests::{shared, skip};
use ndarray::{ArrayD, Axis, IxDyn};
use serde_json::json;

use crate::quantise::network::{Network, answers, calibrated};

/// The warnings of packing with these samples.
fn warned(network: &Network, samples: &[ArrayD<f32>]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    network.packed(folder.path(), samples, &[]).expect("packs").0.warnings
}

fn array(shape: &[usize], values: impl Iterator<Item = f32>) -> ArrayD<f32> {
    let values: Vec<f32> = values.take(shape.iter().product()).collect();
    ArrayD::from_shape_vec(IxDyn(shape), values).expect("as many values")
}

fn only(warnings: &[String], parts: &[&str]) {
    let [text] = warnings else {
        panic!("one warning: {warnings:#?}")
    };
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// fc0 -> relu1 -> fc2, of rows.
fn rows(columns: usize) -> Network {
    let mut network = Network::new(3, &[1, columns]);
    let weights = network.parameter(&[5, columns], |v| v / (columns as f64).sqrt());
    let bias = network.parameter(&[5], |v| 0.1 * v);
    let y = network.push("linear", &["x", &weights, &bias], json!({}));
    let y = network.push("relu", &[&y], json!({}));
    let weights = network.parameter(&[3, 5], |v| v);
    let bias = network.parameter(&[3], |v| 0.1 * v);
    network.push("linear", &[&y, &weights, &bias], json!({}));
    network
}

/// conv2d0 -> relu1 -> conv2d2, of pictures.
fn pictures() -> Network {
    let mut network = Network::new(5, &[1, 3, 9, 11]);
    let y = network.conv2d("x", [4, 3, 3, 2], json!({}));
    let y = network.push("relu", &[&y], json!({}));
    network.conv2d(&y, [2, 4, 1, 2], json!({}));
    network
}

#[test]
fn usual_samples_are_not_warned_of() {
    for mut network in [rows(7), pictures()] {
        let samples = network.samples(12);
        assert_eq!(warned(&network, &samples), [] as [String; 0]);
    }
}

#[test]
fn a_broken_sample_is_named() {
    let mut network = rows(7);
    let mut samples = network.samples(12);
    samples[4][[0, 2]] = 1e30;
    // The network cannot be good: that is said too.
    let warnings = warned(&network, &samples);
    only(
        &warnings[..1],
        &["`x` is 1e30", "element 2 of sample 4", "leave out sample 4"],
    );
    samples[4][[0, 2]] = 170.0;
    samples[9][[0, 6]] = -300.0;
    let warnings = warned(&network, &samples);
    only(
        &warnings[..1],
        &["`x` is 170.0 at element 2 of sample 4", "sample 4, 9"],
    );
}

#[test]
fn repeated_and_empty_samples_are_counted() {
    let mut network = rows(7);
    let samples = network.samples(6);
    let same = vec![samples[0].clone(); 6];
    only(&warned(&network, &same), &["all 6 samples are the same"]);
    let mut many = samples.clone();
    many.extend(vec![samples[1].clone(); 7]);
    only(
        &warned(&network, &many),
        &["7 of 13 samples repeat others", "sample 6, 7, 8, 9, 10, …"],
    );
    let mut empty = samples;
    empty[3].fill(0.0);
    only(&warned(&network, &empty), &["1 of 6 samples are all zero (sample 3)"]);
}

/// Channels of a slowly changing picture.
fn pixel(sample: usize, [channel, row, column]: [usize; 3]) -> f32 {
    let (y, x, s) = (row as f32, column as f32, sample as f32);
    0.4 * (y * 0.3 + s).sin() + 0.4 * (x * 0.4 - s).cos() + 0.2 * channel as f32
}

#[test]
fn pictures_with_their_channels_elsewhere_are_told() {
    let network = pictures();
    let places = |sample: usize, last: bool| {
        let [channels, rows, columns] = [3, 9, 11];
        (0..channels * rows * columns).map(move |at| {
            let place = if last {
                [at % channels, at / channels / columns, at / channels % columns]
            } else {
                [at / columns / rows, at / columns % rows, at % columns]
            };
            pixel(sample, place)
        })
    };
    let samples = |last: bool| -> Vec<_> { (0..8).map(|s| array(&[1, 3, 9, 11], places(s, last))).collect() };
    assert_eq!(warned(&network, &samples(false)), [] as [String; 0]);
    only(
        &warned(&network, &samples(true)),
        &[
            "`x`",
            "stored as [rows, columns, channels]",
            "takes [3, 9, 11]",
            ".transpose(0, 3, 1, 2)",
        ],
    );
}

#[test]
fn bytes_for_a_network_of_fractions_are_told_and_the_advice_helps() {
    let network = pictures();
    let bytes = |s: usize| {
        array(
            &[1, 3, 9, 11],
            (0..).map(move |at| ((at * at * 7 + s * 31) % 256) as f32),
        )
    };
    let samples: Vec<_> = (0..8).map(bytes).collect();
    only(
        &warned(&network, &samples),
        &["`x`", "from 0 to 255", "u8 scale=0.00392157"],
    );
    let scaled: Vec<_> = samples.iter().map(|sample| sample / 255.0).collect();
    assert_eq!(warned(&network, &scaled), [] as [String; 0]);
    // A network that was trained on bytes has small weights.
    let mut trained = pictures();
    trained.each_weight(|weights| {
        // The first layer's.
        if weights.shape()[1] == 3 {
            weights.mapv_inplace(|v| f64::from((v / 255.0) as f32));
        }
    });
    assert_eq!(warned(&trained, &samples), [] as [String; 0]);
}

/// Signal over noise in dB of the first output against the formulas.
fn decibels(network: &Network, file: &ModelFile, judged: &[ArrayD<f32>]) -> f64 {
    let (mut signal, mut noise) = (0.0, 0.0);
    for (x, found) in judged.iter().zip(answers(file, judged)) {
        for (expected, found) in network.expected(x).into_iter().zip(found) {
            signal += expected * expected;
            noise += (expected - found) * (expected - found);
        }
    }
    10.0 * (signal / noise.max(f64::MIN_POSITIVE)).log10()
}

/// Packs as a warning advises: the options behind its last colon.
fn as_advised(trace: &Path, folder: &Path, samples: &[ArrayD<f32>], warning: &str) -> ModelFile {
    let (_, advice) = warning.rsplit_once(": ").expect("advice behind a colon");
    let words: Vec<&str> = advice.split(' ').collect();
    assert_eq!(words[..2], ["--input-dtype", "f32"], "{warning}");
    let kept: Vec<&str> = words[2..].chunks(2).map(|pair| pair[1].trim_matches('\'')).collect();
    let mut options = calibrated(trace, folder, samples, &kept);
    options.input_dtype = Some(DType::F32);
    let packed = pack(&options, &mut |_, _, _| {}).expect("packs as advised");
    assert_eq!(packed.warnings, [] as [String; 0]);
    ModelFile::open(&options.output).expect("a model")
}

/// Samples of which every fourth column spans 1,500 times as much as the others, far from zero in places.
fn unlike(shape: &[usize], seed: u64, count: usize) -> Vec<ArrayD<f32>> {
    let mut other = Network::new(seed, shape);
    let mut sample = || {
        let value = |at: usize| match at % 4 {
            1 => 3000.0 * other.random(),
            2 => 1.5 * other.random() + 40.0,
            _ => 2.0 * other.random(),
        };
        let values: Vec<f32> = (0..shape.iter().product())
            .map(value)
            .map(|value| value as f32)
            .collect();
        array(shape, values.into_iter())
    };
    (0..count).map(|_| sample()).collect()
}

#[test]
fn columns_of_unlike_units_get_scales_of_their_own() {
    // Weights are as large as their columns are small, as training makes them.
    let mut network = rows(8);
    network.each_weight(|weights| {
        if weights.shape()[1] == 8 {
            for (at, value) in weights.iter_mut().enumerate() {
                *value /= if at % 4 == 1 { 1500.0 } else { 1.0 };
                *value = f64::from(*value as f32);
            }
        }
    });
    let (samples, unseen) = (unlike(&[1, 8], 11, 40), unlike(&[1, 8], 12, 30));
    let folder = tempfile::tempdir().expect("a folder");
    let (packed, file) = network.packed(folder.path(), &samples, &[]).expect("packs");
    only(
        &packed.warnings,
        &["the columns of `x`", "inputs are f32", "--input-dtype int8"],
    );
    assert_eq!(file.view().expect("a view").inputs[0].dtype, DType::F32);
    let own = decibels(&network, &file, &unseen);
    // Asked for, they are no surprise.
    let trace = network.write(folder.path());
    let mut options = calibrated(&trace, folder.path(), &samples, &[]);
    options.input_dtype = Some(DType::F32);
    let packed = pack(&options, &mut |_, _, _| {}).expect("packs");
    assert_eq!(packed.warnings, [] as [String; 0]);
    assert_eq!(
        packed.summary.quantization.expect("quantised").kept_f32,
        [] as [String; 0]
    );
    let asked = ModelFile::open(&options.output).expect("a model");
    assert_eq!(asked.bytes(), file.bytes());
    // One scale where the caller gives integers.
    options.input_dtype = Some(DType::I8);
    let packed = pack(&options, &mut |_, _, _| {}).expect("packs");
    only(
        &packed.warnings[..1],
        &[
            "`x`",
            "6 of its 8 columns along axis 1",
            "(0, 2, 3, 4, 6, …)",
            "leave --input-dtype",
        ],
    );
    let one = decibels(&network, &ModelFile::open(&options.output).expect("a model"), &unseen);
    assert!(own > 30.0 && one < own - 15.0, "{own} dB, {one} dB of one scale");
}

#[test]
fn sensors_of_unlike_units_get_scales_of_their_own() {
    // Six sensors over time, zeros around them: their means stay.
    let mut network = Network::new(7, &[1, 6, 1, 20]);
    let y = network.conv2d("x", [5, 6, 1, 3], json!({"padding": [0, 0, 1, 1]}));
    network.push("relu", &[&y], json!({}));
    let units = [1.0, 0.02, 300.0, 1.0, 0.02, 300.0];
    network.each_weight(|weights| {
        for (mut of_sensor, unit) in weights.axis_iter_mut(Axis(1)).zip(units) {
            of_sensor.mapv_inplace(|value| f64::from((value / unit) as f32));
        }
    });
    let samples = |seed: u64, count: usize| -> Vec<ArrayD<f32>> {
        let mut other = Network::new(seed, &[1]);
        let mut sample = || {
            array(
                &[1, 6, 1, 20],
                (0..120).map(|at| (units[at / 20] * other.random()) as f32),
            )
        };
        (0..count).map(|_| sample()).collect()
    };
    let (samples, unseen) = (samples(3, 32), samples(4, 20));
    let folder = tempfile::tempdir().expect("a folder");
    let (packed, file) = network.packed(folder.path(), &samples, &[]).expect("packs");
    only(&packed.warnings, &["the columns of `x`"]);
    let own = decibels(&network, &file, &unseen);
    assert!(own > 30.0, "{own} dB");
}

#[test]
fn an_input_whose_logarithm_is_lost_is_told_and_the_advice_helps() {
    let mut network = Network::new(13, &[1, 6, 8]);
    let y = network.push("log", &["x"], json!({}));
    let weights = network.parameter(&[5, 8], |v| v);
    let bias = network.parameter(&[5], |v| v);
    network.push("linear", &[&y, &weights, &bias], json!({}));
    let mut other = Network::new(17, &[1, 6, 8]);
    let mut sample = || {
        let values: Vec<f32> = (0..48).map(|_| (6.0 * other.random()).exp() as f32).collect();
        array(&[1, 6, 8], values.into_iter())
    };
    let samples: Vec<_> = (0..24).map(|_| sample()).collect();
    let warnings = warned(&network, &samples);
    only(
        &warnings[..1],
        &[
            "`x` goes into `log0`",
            "logarithms are lost",
            "--input-dtype f32 --keep-f32 'log0'",
        ],
    );
    let folder = tempfile::tempdir().expect("a folder");
    let trace = network.write(folder.path());
    let (_, plain) = network.packed(folder.path(), &samples, &[]).expect("packs");
    let file = as_advised(&trace, folder.path(), &samples, &warnings[0]);
    let [plain, advised] = [&plain, &file].map(|file| decibels(&network, file, &samples));
    assert!(
        advised > 35.0 && plain < advised - 20.0,
        "{plain} dB, {advised} dB as advised"
    );
}

#[test]
fn answers_that_are_lost_are_told() {
    let Some(folder) = shared() else {
        return skip("answers_that_are_lost_are_told", "the shared data is not there");
    };
    let defects = folder.join("data/defects");
    let out = tempfile::tempdir().expect("a folder");
    let options = Options {
        dtype: Some(DType::I8),
        quantize: Some(quantize::Request {
            samples: defects.join("log_of_wide_input.calibrate.npy"),
            ..quantize::Request::default()
        }),
        ..Options::new(defects.join("log_of_wide_input.onnx"), out.path().join("net.arenite"))
    };
    let packed = pack(&options, &mut |_, _, _| {}).expect("packs");
    let text = packed.warnings.join("\n");
    for part in [
        "`x` goes into",
        "logarithms are lost",
        "from the float network's",
        "--dtype int16x8",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
