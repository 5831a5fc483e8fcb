//! Values of `--calibrate`, `--keep-f32`, `--input-dtype` and `--output-dtype`, and their refusals.

use std::path::Path;

use arenite::DType;
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::report::Summary;
use arenite_host::{Error, ErrorKind, quantize};
use arenite_tests::{shared, skip};
use ndarray::{ArrayD, IxDyn};
use ndarray_npy::{NpzWriter, write_npy};
use serde_json::json;

use crate::quantise::network::{Network, answers, calibrated};

const SHAPE: [usize; 4] = [1, 2, 5, 4];

/// conv2d0 -> relu1 -> tanh2 -> conv2d3
fn network() -> Network {
    let mut network = Network::new(7, &SHAPE);
    let y = network.conv2d("x", [4, 2, 3, 2], json!({}));
    let y = network.push("relu", &[&y], json!({}));
    let y = network.push("tanh", &[&y], json!({}));
    network.conv2d(&y, [3, 4, 1, 2], json!({}));
    network
}

fn options(folder: &Path, samples: &Path) -> Options {
    let trace = network().write(folder);
    Options {
        dtype: Some(DType::I8),
        quantize: Some(quantize::Request {
            samples: samples.to_path_buf(),
            ..quantize::Request::default()
        }),
        ..Options::new(trace, folder.join("net.arenite"))
    }
}

fn refused(options: &Options) -> Error {
    let error = pack(options, &mut |_, _, _| {}).map(|_| ()).expect_err("it is wrong");
    assert!(!options.output.exists(), "{error}");
    error
}

fn array(shape: &[usize], value: impl Fn(usize) -> f32) -> ArrayD<f32> {
    let values = (0..shape.iter().product()).map(value).collect();
    ArrayD::from_shape_vec(IxDyn(shape), values).expect("as many values")
}

/// Four samples, of which `change` may spoil one element.
fn samples(at: usize, value: f32) -> ArrayD<f32> {
    let mut all = array(&[4, 1, 2, 5, 4], |i| (i as f32 * 0.7).sin());
    if let Some(element) = all.iter_mut().nth(at) {
        *element = value;
    }
    all
}

#[test]
fn samples_that_are_not_the_networks_inputs_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.npy");
    let message = |expected: &[&str]| {
        let message = refused(&options(folder.path(), &path)).to_string();
        for word in expected.iter().chain(&["s.np"]) {
            assert!(message.contains(word), "{word}: {message}");
        }
    };
    write_npy(&path, &array(&[4, 2, 4, 5], |_| 0.5)).expect("written");
    message(&["`x`", "[4, 2, 4, 5]", "[1, 2, 5, 4]"]);
    write_npy(&path, &ArrayD::<i32>::zeros(IxDyn(&[4, 1, 2, 5, 4]))).expect("written");
    message(&["`x`", "int32", "f32", "astype"]);
    write_npy(&path, &array(&[0, 2, 5, 4], |_| 0.5)).expect("written");
    message(&["no sample", "at least one"]);
    for (value, word) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        write_npy(&path, &samples(2 * 40 + 7, value)).expect("written");
        message(&["`x`", "sample 2", "element 7", word]);
    }
    // Finite samples, but not what comes of them.
    write_npy(&path, &samples(40, 3e38)).expect("written");
    let mut large = network();
    let doubled = large.parameter(&[1], |_| 3e38);
    let last = large.push("mul", &["x", &doubled], json!({}));
    let trace = large.write(folder.path());
    let options = Options {
        input: trace,
        ..options(folder.path(), &path)
    };
    large.write(folder.path());
    let error = refused(&options).to_string();
    assert!(
        error.contains(&format!("`{last}`")) && error.contains("sample 1"),
        "{error}"
    );
}

#[test]
fn an_archive_has_an_array_for_each_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.npz");
    let write = |names: &[&str]| {
        let mut npz = NpzWriter::new(std::fs::File::create(&path).expect("made"));
        for name in names {
            npz.add_array(*name, &samples(0, 0.1)).expect("written");
        }
        npz.finish().expect("written");
    };
    write(&["y"]);
    let error = refused(&options(folder.path(), &path)).to_string();
    assert!(error.contains("array `x`") && error.contains("s.npz"), "{error}");
    write(&["x", "y"]);
    let packed = pack(&options(folder.path(), &path), &mut |_, _, _| {}).expect("packs");
    assert!(
        packed.warnings.iter().any(|w| w.contains("`y` is no input")),
        "{:?}",
        packed.warnings
    );
}

#[test]
fn constants_and_single_samples_pack_with_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let network = network();
    let zeros = array(&SHAPE, |_| 0.0);
    let (packed, file) = network.packed(folder.path(), &[zeros], &[]).expect("packs");
    let said = |word: &str| packed.warnings.iter().any(|warning| warning.contains(word));
    assert!(
        said("one sample") && said("`x` is zero for every sample"),
        "{:?}",
        packed.warnings
    );
    let view = file.view().expect("a model");
    assert!(view.inputs.iter().chain(&view.outputs).all(|port| port.scale > 0.0));
    // A constant that is not zero has its own range, and is exact.
    let constant = array(&SHAPE, |_| 0.37);
    let (_, file) = network
        .packed(folder.path(), &[constant.clone(), constant.clone()], &[])
        .expect("packs");
    let (expected, found) = (network.expected(&constant), &answers(&file, &[constant])[0]);
    for (expected, found) in expected.iter().zip(found) {
        assert!((expected - found).abs() < 0.02, "{expected} {found}");
    }
}

#[test]
fn channels_without_weights_keep_their_bias() {
    let mut network = Network::new(3, &SHAPE);
    let weights = network.parameter(&[3, 2, 1, 1], |_| 0.0);
    let bias = network.parameter(&[3], |v| v);
    network.push("conv2d", &["x", &weights, &bias], json!({}));
    let folder = tempfile::tempdir().expect("a folder");
    let samples = network.samples(4);
    let (_, file) = network.packed(folder.path(), &samples, &[]).expect("packs");
    let (expected, found) = (network.expected(&samples[0]), &answers(&file, &samples[..1])[0]);
    for (expected, found) in expected.iter().zip(found) {
        assert!((expected - found).abs() < 0.01, "{expected} {found}");
    }
}

#[test]
fn values_that_no_scale_holds_are_named() {
    let mut network = Network::new(3, &SHAPE);
    let weights = network.parameter(&[3, 2, 1, 1], |v| v * 1e-40);
    let last = network.push("conv2d", &["x", &weights], json!({}));
    let folder = tempfile::tempdir().expect("a folder");
    let samples = network.samples(4);
    let error = network
        .packed(folder.path(), &samples, &[])
        .map(|_| ())
        .expect_err("no scale")
        .to_string();
    assert!(
        error.contains(&format!("`{last}")) && error.contains("no scale of f32"),
        "{error}"
    );
}

#[test]
fn a_layer_that_is_not_there_is_named_with_the_nearest() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = network();
    let samples = network.samples(3);
    let error = network
        .packed(folder.path(), &samples, &["tanh3"])
        .map(|_| ())
        .expect_err("no such layer");
    assert_eq!(error.kind(), ErrorKind::Usage);
    let message = error.to_string();
    assert!(
        message.contains("--keep-f32 tanh3") && message.contains("`tanh2`"),
        "{message}"
    );
}

/// Seven layers without a form between some that have one: the refusal names all; `auto` leaves them, and nothing else.
#[test]
fn auto_leaves_what_has_no_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = Network::new(11, &[1, 3, 9, 5]);
    network.activations = quantize::Activations::Int16;
    let (mut last, mut without) = ("x".to_string(), Vec::new());
    for _ in 0..7 {
        let weights = network.parameter(&[3, 3, 1, 1], |v| v);
        let y = network.push("conv2d", &[&last, &weights], json!({}));
        let by = network.push("sigmoid", &["x"], json!({}));
        last = network.push("div", &[&y, &by], json!({}));
        without.push(last.clone());
    }
    let samples = network.samples(3);
    let message = match network.packed(folder.path(), &samples, &[]) {
        Ok(_) => panic!("int16 has no quotients"),
        Err(error) => error.to_string(),
    };
    for name in &without {
        assert!(message.contains(&format!("--keep-f32 '{name}'")), "{message}");
    }
    assert!(message.contains("--keep-f32 auto"), "{message}");
    let names: Vec<&str> = without.iter().map(String::as_str).collect();
    let kept = |keep: &[&str]| {
        let (packed, _) = network.packed(folder.path(), &samples, keep).expect("packs");
        let told = packed
            .warnings
            .into_iter()
            .filter(|text| text.starts_with("--keep-f32 auto"));
        let kept = packed.summary.quantization.expect("done").kept_f32;
        (kept, told.collect::<Vec<_>>())
    };
    let ((by_name, silent), (auto, told)) = (kept(&names), kept(&["auto"]));
    assert_eq!(auto, without);
    assert!(auto.iter().all(|name| by_name.contains(name)) && silent.is_empty());
    assert!(
        told.len() == 1 && names.iter().all(|name| told[0].contains(name)),
        "{told:?}"
    );
    // Beside a name: that layer too.
    let (both, _) = kept(&["auto", "conv2d0"]);
    assert!(
        both.len() > auto.len() && both.iter().any(|name| name == "conv2d0"),
        "{both:?}"
    );
}

#[test]
fn auto_says_where_it_does_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = network();
    let samples = network.samples(3);
    let packed = |keep: &[&str]| {
        let (packed, _) = network.packed(folder.path(), &samples, keep).expect("packs");
        (
            packed,
            std::fs::read(folder.path().join("net.arenite")).expect("a file"),
        )
    };
    let ((plain, by_itself), (auto, file)) = (packed(&[]), packed(&["auto"]));
    assert!(by_itself == file, "auto packs another network");
    let nothing = |text: &String| text.starts_with("--keep-f32 auto: every layer has a form");
    assert!(auto.warnings.iter().any(nothing), "{:?}", auto.warnings);
    assert!(!plain.warnings.iter().any(nothing), "{:?}", plain.warnings);
}

#[test]
fn a_layer_in_f32_has_conversions_around_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = network();
    let samples = network.samples(8);
    let kinds = |keep: &[&str]| {
        let (packed, file) = network.packed(folder.path(), &samples, keep).expect("packs");
        let kept = packed.summary.quantization.expect("done").kept_f32;
        // With a layer goes the transposition that brings its result into the traced order.
        assert!(
            keep.iter().all(|name| kept.iter().any(|other| other == name)),
            "{kept:?}"
        );
        assert!(
            kept.iter().all(|name| keep.iter().any(|other| name.starts_with(other))),
            "{kept:?}"
        );
        let steps = file.view().and_then(|view| view.metadata()).expect("metadata").steps;
        steps.iter().map(|step| step.kind.clone()).collect::<Vec<_>>()
    };
    let conversions = |kinds: &[String]| {
        let count = |kind: &str| kinds.iter().filter(|other| *other == kind).count();
        [count("dequantize"), count("quantize")]
    };
    assert_eq!(conversions(&kinds(&[])), [0, 0]);
    assert_eq!(conversions(&kinds(&["tanh2"])), [1, 1]);
    // Neighbours in f32 share one border.
    assert_eq!(conversions(&kinds(&["tanh2", "conv2d3"])), [1, 1]);
    assert!(network.snr(&["tanh2"]).expect("packs") >= 25.0);
    assert!(network.snr(&["conv2d0", "tanh2", "conv2d3"]).expect("packs") >= 25.0);
}

#[test]
fn inputs_and_outputs_come_in_other_types() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = network();
    let samples = network.samples(8);
    let trace = network.write(folder.path());
    let packed = |input: Option<DType>, output: Option<DType>, keep: &[&str]| {
        let mut options = calibrated(&trace, folder.path(), &samples, keep);
        (options.input_dtype, options.output_dtype) = (input, output);
        let packed = pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
        let file = ModelFile::open(&options.output).expect("just written");
        let view = file.view().expect("a model");
        let types = (view.inputs[0].dtype, view.outputs[0].dtype);
        assert_eq!(types, (input.unwrap_or(DType::I8), output.unwrap_or(DType::I8)));
        assert_eq!(packed.summary.inputs[0].dtype, types.0.name());
        (answers(&file, &samples), packed.summary)
    };
    let (plain, plain_summary) = packed(None, None, &[]);
    for input in [DType::F32, DType::U8, DType::I8] {
        for output in [DType::F32, DType::U8, DType::I8] {
            let (found, summary) = packed(Some(input), Some(output), &[]);
            for (plain, found) in plain.concat().iter().zip(found.concat()) {
                assert!((plain - found).abs() < 1e-6, "{input:?} {output:?}: {plain} {found}");
            }
            let converted = [input, output].iter().filter(|dtype| **dtype != DType::I8).count();
            assert_eq!(summary.steps, plain_summary.steps + converted);
            assert_eq!(summary.liveness_as_traced_bytes, plain_summary.liveness_as_traced_bytes);
        }
    }
}

/// A network whose file has f32 at both ends, and int8 between them.
#[test]
fn floats_that_a_network_converts_at_once_are_left_out() {
    let Some(shared) = shared() else {
        return skip("floats_that_a_network_converts_at_once_are_left_out", "no shared data");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let images = Network::new(9, &[1, 80, 80, 3]).samples(2);
    let packed = |input: Option<DType>, output: Option<DType>| {
        let options = Options {
            input_dtype: input,
            output_dtype: output,
            ..Options::new(
                shared.join("data/models/tinyengine_vww.tflite"),
                folder.path().join("net.arenite"),
            )
        };
        let packed = pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
        let file = ModelFile::open(&options.output).expect("just written");
        let view = file.view().expect("a model");
        let types = (view.inputs[0].dtype, view.outputs[0].dtype);
        assert_eq!(types, (input.unwrap_or(DType::F32), output.unwrap_or(DType::F32)));
        (answers(&file, &images).concat(), packed.summary)
    };
    let (plain, whole) = packed(None, None);
    let conversions =
        |summary: &Summary| ["quantize", "dequantize"].map(|kind| summary.ops_final.get(kind).copied().unwrap_or(0));
    assert_eq!(conversions(&whole), [1, 1]);
    for (input, output, left) in [
        (Some(DType::I8), None, [0, 1]),
        (None, Some(DType::I8), [1, 0]),
        (Some(DType::I8), Some(DType::I8), [0, 0]),
        // Bytes become int8 by steps of another kind.
        (Some(DType::U8), Some(DType::U8), [0, 0]),
    ] {
        let (found, summary) = packed(input, output);
        for (plain, found) in plain.iter().zip(found) {
            assert!((plain - found).abs() < 1e-6, "{input:?} {output:?}: {plain} {found}");
        }
        assert_eq!(conversions(&summary), left, "{input:?} {output:?}");
        assert!(input.is_none() || summary.arena_bytes < whole.arena_bytes);
    }
}

#[test]
fn layers_in_f32_read_and_write_the_callers_floats_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = Network::new(5, &[1, 6]);
    let mut y = "x".to_string();
    for [inputs, outputs] in [[6, 5], [5, 4], [4, 3]] {
        let weights = network.parameter(&[outputs, inputs], |v| v);
        let bias = network.parameter(&[outputs], |v| v);
        y = network.push("linear", &[&y, &weights, &bias], json!({}));
    }
    let samples = network.samples(8);
    let trace = network.write(folder.path());
    let conversions = |dtype: DType| {
        let mut options = calibrated(&trace, folder.path(), &samples, &["linear0", "linear2"]);
        (options.input_dtype, options.output_dtype) = (Some(dtype), Some(dtype));
        let packed = pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
        let steps = packed.summary.ops_final;
        ["quantize", "dequantize"].map(|kind| steps.get(kind).copied().unwrap_or(0))
    };
    assert_eq!(conversions(DType::F32), [1, 1]);
    assert_eq!(conversions(DType::I8), [2, 2]);
}

#[test]
fn a_network_with_a_state_in_f32_is_refused_with_its_users() {
    let folder = tempfile::tempdir().expect("a folder");
    let row = |role: &str| json!({"shape": [1, 3], "dtype": "f32", "role": role});
    let trace = json!({"arenite_trace": 2, "name": "sum", "inputs": ["x"], "outputs": ["y"],
        "tensors": {"x": row("input"), "s": row("state"), "y": row("activation")},
        "state": [{"input": "s", "output": "y"}],
        "ops": [{"name": "sum", "op": "add", "inputs": ["x", "s"], "outputs": ["y"]}]});
    let path = folder.path().join("sum.trace.json");
    std::fs::write(&path, trace.to_string()).expect("written");
    let samples = folder.path().join("s.npy");
    write_npy(&samples, &array(&[4, 1, 3], |i| i as f32 * 0.1)).expect("written");
    let options = Options {
        input: path,
        ..options(folder.path(), &samples)
    };
    let error = refused(&options);
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let said = "a network with a state in f32, `s`, of `s.read` (read_state), `s.assign` (assign_state); \
        expected a network whose runs do not depend on each other";
    assert!(error.to_string().contains(said), "{error}");
}

#[test]
fn a_network_that_is_not_of_the_type_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = network().write(folder.path());
    let plain = Options::new(&trace, folder.path().join("net.arenite"));
    let without = Options {
        dtype: Some(DType::I8),
        ..plain.clone()
    };
    let error = refused(&without);
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("--calibrate"), "{error}");
    let other = Options {
        input_dtype: Some(DType::U8),
        ..plain.clone()
    };
    assert!(refused(&other).to_string().contains("--dtype int8 --calibrate"));
    let own = Options {
        dtype: Some(DType::F32),
        ..plain
    };
    pack(&own, &mut |_, _, _| {}).expect("its own type");

    let int8 = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops/conv_1x1.tflite");
    let int8 = Options::new(int8, folder.path().join("int8.arenite"));
    for dtype in [DType::I8, DType::F32] {
        let wanted = Options {
            dtype: Some(dtype),
            ..int8.clone()
        };
        match dtype {
            DType::I8 => drop(pack(&wanted, &mut |_, _, _| {}).expect("its own type")),
            _ => {
                std::fs::remove_file(&wanted.output).expect("written before");
                assert!(refused(&wanted).to_string().contains("--dtype f32"));
            }
        }
    }
    let twice = Options {
        dtype: Some(DType::I8),
        quantize: Some(quantize::Request::default()),
        ..int8
    };
    assert!(refused(&twice).to_string().contains("nothing to quantise"));
}
