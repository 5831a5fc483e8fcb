//! `pack --dtype int16x8 --calibrate`: what is its own beside int8.

use arenite::DType;
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::{Options, pack};
use arenite_host::quantize::{self, Activations};
use arenite_host::{Error, ErrorKind, compare};
use arenite_tests::golden::Archive;
use arenite_tests::oracle;
use ndarray::{ArrayD, IxDyn};
use serde_json::json;

use crate::quantise::network::{Network, answers, calibrated_to, stored};

const SHAPE: [usize; 4] = [1, 3, 7, 5];

/// conv2d0 -> tanh1 -> conv2d2 -> add3 -> linear
fn network(seed: u64) -> Network {
    let mut network = Network::new(seed, &SHAPE);
    network.activations = Activations::Int16;
    let first = network.conv2d("x", [4, 3, 3, 2], json!({"padding": [1, 1, 0, 1]}));
    let y = network.push("tanh", &[&first], json!({}));
    let y = network.conv2d(&y, [4, 1, 3, 3], json!({"groups": 4, "padding": [1, 1, 1, 1]}));
    let y = network.push("add", &[&y, &first], json!({}));
    let flat = network.push("flatten", &[&y], json!({}));
    let weights = network.parameter(&[6, 140], |v| v * 0.2);
    let bias = network.parameter(&[6], |v| v);
    network.push("linear", &[&flat, &weights, &bias], json!({}));
    network
}

fn decibels<'a>(pairs: impl Iterator<Item = (&'a f64, &'a f64)>) -> f64 {
    let (mut signal, mut noise) = (0.0, 0.0);
    for (expected, found) in pairs {
        signal += expected * expected;
        noise += (expected - found) * (expected - found);
    }
    10.0 * (signal / noise).log10()
}

#[test]
fn zero_points_are_zero_and_layers_in_f32_have_conversions_around_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = network(11);
    let samples = network.samples(12);
    let (packed, file) = network.packed(folder.path(), &samples, &[]).expect("packs");
    assert_eq!(packed.summary.dtype, "int16");
    let view = file.view().expect("a model");
    for port in view.inputs.iter().chain(&view.outputs) {
        assert!(
            port.dtype == DType::I16 && port.zero_point == 0 && port.scale > 0.0,
            "{port:?}"
        );
    }
    let (kept, _) = network.packed(folder.path(), &samples, &["conv2d2"]).expect("packs");
    let count = |kind: &str| kept.summary.ops_final.get(kind).copied().unwrap_or(0);
    assert_eq!([count("dequantize"), count("quantize")], [1, 1]);
    let [whole, kept] = [&[][..], &["conv2d2"]].map(|keep| network.snr(keep).expect("packs"));
    assert!(whole >= 40.0 && kept >= 40.0, "{whole:.1} {kept:.1} dB");
}

/// f32 at the edges is rounded as the caller would round it; bytes are the upper eight bits.
#[test]
fn inputs_and_outputs_come_in_other_types() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = network(12);
    let samples = network.samples(12);
    let trace = network.write(folder.path());
    let packed = |input: Option<DType>, output: Option<DType>| {
        let mut options = calibrated_to(Activations::Int16, &trace, folder.path(), &samples, &[]);
        (options.input_dtype, options.output_dtype) = (input, output);
        pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
        let file = ModelFile::open(&options.output).expect("just written");
        let view = file.view().expect("a model");
        let types = (view.inputs[0].dtype, view.outputs[0].dtype);
        assert_eq!(types, (input.unwrap_or(DType::I16), output.unwrap_or(DType::I16)));
        answers(&file, &samples).concat()
    };
    let plain = packed(None, None);
    let all = [DType::F32, DType::I8, DType::U8];
    for (input, output) in all.into_iter().flat_map(|input| all.map(|output| (input, output))) {
        let found = packed(Some(input), Some(output));
        let snr = decibels(plain.iter().zip(&found));
        // Floats lose nothing more; bytes what eight bits store.
        let least = if [input, output] == [DType::F32; 2] {
            120.0
        } else {
            30.0
        };
        assert!(snr >= least, "{input:?} {output:?}: {snr:.1} dB");
    }
}

#[test]
fn optimised_rounding_finds_better_weights() {
    let mut better = 0;
    for seed in 1..5 {
        let folder = tempfile::tempdir().expect("a folder");
        let mut network = network(20 + seed);
        let (samples, judged) = (network.samples(64), network.samples(24));
        let trace = network.write(folder.path());
        let snr = |optimise: bool| {
            let mut options = calibrated_to(Activations::Int16, &trace, folder.path(), &samples, &[]);
            if let Some(request) = &mut options.quantize {
                request.optimise_rounding = optimise;
            }
            pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
            let file = ModelFile::open(&options.output).expect("just written");
            let expected: Vec<f64> = judged.iter().flat_map(|x| network.expected(x)).collect();
            decibels(expected.iter().zip(&answers(&file, &judged).concat()))
        };
        let [nearest, optimised] = [false, true].map(snr);
        better += usize::from(optimised > nearest + 0.5);
        assert!(
            optimised > nearest - 0.5,
            "{seed}: {nearest:.1} dB, optimised {optimised:.1} dB"
        );
    }
    assert!(better >= 2, "{better} of 4");
}

#[test]
fn a_network_of_the_other_integers_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |input: &str, wanted: Activations| -> Error {
        let input = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("models")
            .join(input);
        let options = Options {
            dtype: Some(wanted.dtype()),
            ..Options::new(input, folder.path().join("net.arenite"))
        };
        let error = pack(&options, &mut |_, _, _| {})
            .map(|_| ())
            .expect_err("it is of another type");
        assert!(!options.output.exists(), "{error}");
        error
    };
    for (model, is, wanted) in [
        ("tflite_ops/conv_1x1.tflite", "is int8", Activations::Int16),
        ("tflite_ops/conv_i16.tflite", "is int16", Activations::Int8),
    ] {
        let error = refused(model, wanted).to_string();
        assert!(error.contains(is) && error.contains(wanted.option()), "{error}");
    }
    let error = refused("digits/digits.trace.json", Activations::Int16);
    assert_eq!(error.kind(), ErrorKind::Usage);
    let error = error.to_string();
    assert!(error.contains("--calibrate") && error.contains("int16x8"), "{error}");
}

/// Functions that int16 has no form of are refused by name, and so are sums of too many terms.
#[test]
fn layers_without_a_form_are_named() {
    for (op, attrs, reason) in [
        ("log_softmax", json!({"axis": 3}), "int16 has no such operator"),
        ("mean", json!({"axes": [2, 3]}), "32 bits"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut network = Network::new(5, &[1, 2, 259, 257]);
        network.activations = Activations::Int16;
        let last = network.push(op, &["x"], attrs);
        let samples = network.samples(2);
        let error = network
            .packed(folder.path(), &samples, &[])
            .map(|_| ())
            .expect_err("no form");
        let error = error.to_string();
        assert!(
            error.contains(reason) && error.contains(&format!("--keep-f32 '{last}'")),
            "{error}"
        );
    }
}

/// Returns the outputs of a file in front of its last softmax, or in the end, in real numbers.
fn before_softmax(file: &ModelFile, inputs: &[ArrayD<f32>]) -> Vec<Vec<f64>> {
    let view = file.view().expect("a model");
    let stored_input = |input: &ArrayD<f32>| vec![input.iter().flat_map(|&v| stored(v, &view.inputs[0])).collect()];
    let runs: Vec<Vec<Vec<u8>>> = inputs.iter().map(stored_input).collect();
    let steps = view.metadata().expect("metadata").steps;
    let judged = steps.len()
        - if steps.last().is_some_and(|step| step.kind == "softmax") {
            2
        } else {
            1
        };
    let tensor = steps[judged].completes.clone().expect("a tensor");
    let bytes = tensor.shape.iter().product::<u32>() * tensor.dtype.bytes() as u32;
    let mut found = Vec::new();
    run(&file.load().expect("loads"), &runs, true, &mut |_, step, session| {
        if step as usize == judged {
            let values = compare::to_f64(tensor.dtype, session.read(tensor.slot, bytes).expect("in the arena"));
            let real = |value| f64::from(tensor.scale) * (value - f64::from(tensor.zero_point));
            found.push(values.into_iter().map(real).collect());
        }
    })
    .expect("runs");
    found
}

/// Float networks of MLPerf Tiny by LiteRT: half of the real inputs and what a user makes of them calibrates, the others judge.
#[test]
fn mlperf_networks_are_near_litert() {
    let Some(shared) = arenite_tests::shared() else {
        arenite_tests::skip("MLPerf Tiny in int16", "no shared data");
        return;
    };
    let models = shared.join("data/models");
    for (name, shape, least) in [
        ("ad01_fp32", vec![1, 640], 48.0),
        ("pretrainedResnet", vec![1, 32, 32, 3], 34.0),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut archive = Archive::open(&models.join(format!("golden/{name}.npz")));
        let mut read = |key: &str| -> Vec<Vec<f32>> {
            let runs = archive.runs(key).0.into_iter();
            runs.map(|run| run.as_chunks().0.iter().map(|&word| f32::from_le_bytes(word)).collect())
                .collect()
        };
        let inputs = read("in_real_0");
        let key = if name.starts_with("ad") {
            "out_real_ref_0"
        } else {
            "logits_real_ref"
        };
        let expected = read(key);
        let arrays: Vec<ArrayD<f32>> = inputs
            .into_iter()
            .map(|values| ArrayD::from_shape_vec(IxDyn(&shape), values).expect("as many values"))
            .collect();
        let half = arrays.len() / 2;
        let brighter = |array: &ArrayD<f32>| [1.0, 0.8, 1.1].map(|factor| array.mapv(|value| value * factor));
        let samples: Vec<ArrayD<f32>> = arrays[..half].iter().flat_map(brighter).collect();
        let input = models.join(format!("{name}.tflite"));
        let options = calibrated_to(Activations::Int16, &input, folder.path(), &samples, &[]);
        pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{name}: {e}"));
        let file = ModelFile::open(&options.output).expect("just written");
        let found = before_softmax(&file, &arrays[half..]);
        let pairs = expected[half..].iter().flatten().zip(found.iter().flatten());
        let pairs: Vec<(f64, f64)> = pairs.map(|(&expected, &found)| (expected.into(), found)).collect();
        let snr = decibels(pairs.iter().map(|(expected, found)| (expected, found)));
        assert!(snr >= least, "{name}: {snr:.1} dB");
        oracle::compared("LiteRT", found.len(), 2);
    }
}

/// The option by its name, as a request has it.
#[test]
fn requests_are_int8_by_default() {
    assert_eq!(quantize::Request::default().activations, Activations::Int8);
    assert_eq!(Activations::Int16.option(), "int16x8");
}
