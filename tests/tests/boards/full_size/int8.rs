//! The reference traces in int8 at full size: how near they stay to the float network, beside ONNX Runtime's static quantiser, and the same bits on a board.

use std::path::{Path, PathBuf};
use std::process::Command;

use arenite_host::model::ModelFile;
use ndarray::ArrayD;
use serde_json::Value;

use super::{Tools, mib, row};

#[test]
#[ignore = "long: minutes"]
fn alexnet_int8() {
    check_int8("alexnet-tf-shapes.trace.txt");
}

#[test]
#[ignore = "long: minutes"]
fn resnet50_megengine_int8() {
    check_int8("resnet50-megengine.trace.json");
}

#[test]
#[ignore = "long: minutes"]
fn resnet50_keras_int8() {
    check_int8("resnet50-keras-order.trace.txt");
}

#[test]
#[ignore = "long: ten minutes"]
fn vgg19_int8() {
    check_int8("vgg19-chainer.trace.txt");
}

#[test]
#[ignore = "long: ten minutes, 6 GB of disk"]
fn local_net_int8() {
    check_int8("localnet-rects.trace.txt");
}

/// In int8 from an emulated flash through 64 KiB, each byte of the weights read 1.2 times at most.
#[test]
#[ignore = "long: ten minutes"]
fn resnet50_keras_from_a_flash() {
    const BUFFER: u64 = 64 << 10;
    const ARENA: u64 = 1_206_000;
    let stem = "resnet50-keras-order";
    let Some(tools) = Tools::find(stem) else { return };
    let trace = tools.traces.join("resnet50-keras-order.trace.txt");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let (x, picture) = (file("x.npy"), file("picture.npy"));
    ndarray_npy::write_npy(&x, &pictures(&[1, 224, 224, 3], 0, CALIBRATE)).expect("written");
    ndarray_npy::write_npy(&picture, &pictures(&[1, 224, 224, 3], CALIBRATE, 1)).expect("written");
    let packed = |name: &str, region: &[&str]| {
        let output = file(name);
        let options = "--weights seeded:1 --dtype int8 --target portable --json";
        let options: Vec<&Path> = options
            .split(' ')
            .chain(region.iter().copied())
            .map(Path::new)
            .collect();
        let files = [&trace, Path::new("--calibrate"), &x, Path::new("-o"), &output];
        let packed = tools.program("pack", &[&files, &options[..]].concat());
        let summary: Value = serde_json::from_str(&packed.stdout).expect("pack --json");
        (output, summary, packed)
    };
    let (whole, _, _) = packed("whole.bin", &[]);
    let (pieces, summary, ran) = packed("pieces.bin", &["--region", "spi=32M:stream,buffer=64K"]);
    let of = |field: &str| summary["stream"][field].as_u64().expect("a figure");
    let weights = summary["weights_bytes"].as_u64().expect("bytes");
    assert!(of("buffer_bytes") <= BUFFER, "{summary}");
    assert!(
        summary["arena_bytes"].as_u64().is_some_and(|bytes| bytes <= ARENA),
        "{summary}"
    );
    assert!(5 * of("read_bytes") <= 6 * weights, "{summary}");
    tools.arenite(&["verify".as_ref(), &pieces]);
    let run = |model: &Path, on: &str| {
        let arguments = ["--json", "--timeout", "7200", "--on", on, "--input"].map(Path::new);
        let ran = tools.arenite(&[&["run".as_ref(), model], &arguments[..], &[&picture]].concat());
        let report: Value = serde_json::from_str(&ran.stdout).expect("run --json");
        report["outputs"][0]["sha256"].clone()
    };
    let expected = run(&whole, "host");
    assert_eq!(run(&pieces, "host"), expected);
    assert_eq!(run(&pieces, "qemu:sifive-u"), expected);
    let note = format!("arena {}, {}", summary["arena_bytes"], summary["stream"]);
    row(stem, "packed, int8 in pieces", ran.seconds, &note);
}

/// Pictures that calibrate a network, and others that judge it.
const CALIBRATE: usize = 16;
const JUDGE: usize = 16;

/// Signal over noise that they must reach before a last softmax, in dB.
const INT8: f64 = 25.0;
/// Signal over noise that each step must reach by itself, or be named with the reason.
const ALONE: f64 = 30.0;
/// How far below ONNX Runtime's the deviations from the mean may be, in dB.
const BELOW: f64 = 0.5;

/// The board, and what is packed for it.
const BOARD: (&str, &str) = ("cortex-m55", "qemu:mps3-an547");

/// Slow waves of several contrasts.
fn pictures(shape: &[usize], from: usize, count: usize) -> ArrayD<f32> {
    let channels = if shape[1] <= 3 { 1 } else { 3 };
    let all = [&[count], &shape[1..]].concat();
    ArrayD::from_shape_fn(all, |at| {
        let picture = (from + at[0]) as f64;
        let channel = at[channels] as f64;
        let [row, column] = [1, 2].map(|axis| at[if channels == 1 { axis + 1 } else { axis }] as f64);
        let wave = |k: f64| {
            let (a, b) = ((picture * 1.7 + k).sin() * 0.12, (picture * 0.9 + 2.3 * k).cos() * 0.12);
            (a * row + b * column + channel * k + picture).sin() / k
        };
        let contrast = [1.0, 0.6, 0.8, 0.4][(from + at[0]) % 4];
        (contrast * (1..=5).map(|k| wave(f64::from(k))).sum::<f64>()) as f32
    })
}

/// A network of a trace becomes int8 whole: no step computes in f32, and its answers to other pictures are near the float network's.
fn check_int8(trace: &str) {
    let (stem, _) = trace.split_once('.').expect("a trace's name");
    let Some(tools) = Tools::find(stem) else { return };
    let trace = tools.traces.join(trace);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let (float, int8, x, others) = (file("f32.bin"), file("int8.bin"), file("x.npy"), file("others.npy"));
    let packed = tools.pack(&trace, Path::new("seeded:1"), "portable", &float);
    let summary: Value = serde_json::from_str(&packed.stdout).expect("pack --json");
    let shape = summary["inputs"][0]["shape"].as_array().expect("a shape");
    let shape: Vec<usize> = shape.iter().map(|n| n.as_u64().expect("an extent") as usize).collect();
    ndarray_npy::write_npy(&x, &pictures(&shape, 0, CALIBRATE)).expect("written");
    ndarray_npy::write_npy(&others, &pictures(&shape, CALIBRATE, JUDGE)).expect("written");
    let made = |target: &str| {
        let options = ["--weights", "seeded:1", "--dtype", "int8", "--target", target, "--json"].map(Path::new);
        let files = ["--calibrate".as_ref(), x.as_path(), "-o".as_ref(), int8.as_path()];
        tools.program("pack", &[&[trace.as_path()], &options[..], &files[..]].concat())
    };
    let packed = made("portable");
    let summary: Value = serde_json::from_str(&packed.stdout).expect("pack --json");
    assert_eq!(summary["quantization"]["kept_f32"], serde_json::json!([]), "{stem}");
    let model = ModelFile::open(&int8).expect("just written");
    let steps = model.view().expect("a model").steps().expect("steps");
    let names = steps.iter().map(|step| step.kernel().name());
    assert_eq!(names.filter(|name| name.contains("F32")).count(), 0, "{stem}");
    let arguments = [
        Path::new("diff"),
        int8.as_path(),
        Path::new("--float"),
        float.as_path(),
        Path::new("--inputs"),
        others.as_path(),
    ];
    let compared = tools.arenite(&[&arguments[..], &[Path::new("--json")]].concat());
    let report: Value = serde_json::from_str(&compared.stdout).expect("diff --json");
    let snr = report["snr_db"].as_f64().expect("noise");
    let note = format!(
        "int8: {snr:.1} dB, less the mean {}, another's {}, arena {}, file {}, {}",
        report["deviations_db"],
        report["another_db"],
        summary["arena_bytes"],
        summary["model_bytes"],
        mib(packed.peak_bytes)
    );
    row(stem, "packed, int8", packed.seconds, &note);
    each_by_itself(stem, &report);
    std::fs::remove_file(&float).expect("removes");
    let weights = file("weights.safetensors");
    let files = [trace.as_path(), "-o".as_ref(), &weights];
    tools.arenite(&[&["weights".as_ref(), "--seed".as_ref(), "1".as_ref()], &files[..]].concat());
    beside_onnx_runtime(stem, &trace, [&weights, &x, &others], &report);
    assert!(snr >= INT8, "{stem}: {snr} dB");

    let (target, board) = BOARD;
    made(target);
    let (one, here, there) = (file("one.npy"), file("here.npy"), file("there.npy"));
    ndarray_npy::write_npy(&one, &pictures(&shape, CALIBRATE, 1)).expect("written");
    let ran = ["host", board].map(|on| {
        let to = if on == "host" { &here } else { &there };
        let options = ["--on", on, "--timeout", "20000", "--json"].map(Path::new);
        let files = [
            "run".as_ref(),
            int8.as_path(),
            "--input".as_ref(),
            &one,
            "--output".as_ref(),
            to,
        ];
        tools.arenite(&[&files[..], &options].concat())
    });
    assert_eq!(
        std::fs::read(&here).expect("written"),
        std::fs::read(&there).expect("written"),
        "{stem}"
    );
    let report: Value = serde_json::from_str(&ran[1].stdout).expect("run --json");
    row(
        stem,
        &format!("int8 on {board}"),
        ran[1].seconds,
        &report["instructions"][0].to_string(),
    );
}

/// Every step, fed with its f32 operands as they are stored, is near the float layer, or `arenite diff` names it with the reason.
fn each_by_itself(stem: &str, report: &Value) {
    let list = |field: &str| report[field].as_array().expect("a list").clone();
    let (layers, weak) = (list("layers"), list("weak"));
    let alone = |layer: &Value| Some((layer["alone_db"].as_f64()?, layer["name"].clone()));
    let all: Vec<_> = layers.iter().filter_map(alone).collect();
    assert!(all.len() > 2, "{stem}: {} layers by themselves", all.len());
    for (decibels, name) in all.iter().filter(|(decibels, _)| *decibels < ALONE) {
        let named = weak.iter().find(|weak| weak["name"] == *name);
        let reason = named.and_then(|weak| weak["reason"].as_str()).unwrap_or_default();
        assert!(!reason.is_empty(), "{stem}, {name} by itself: {decibels} dB");
        row(
            stem,
            &format!("{name} by itself"),
            0.0,
            &format!("{decibels:.1} dB: {reason}"),
        );
    }
    let least = all.iter().map(|(decibels, _)| *decibels).fold(f64::INFINITY, f64::min);
    let note = format!(
        "{} layers, at least {least:.1} dB, {} below {ALONE}",
        all.len(),
        weak.len()
    );
    row(stem, "each layer by itself", 0.0, &note);
}

/// Compares layers at three depths, and the answers, with what ONNX Runtime's static quantiser makes of the same network from the same pictures.
fn beside_onnx_runtime(stem: &str, trace: &Path, [weights, x, others]: [&PathBuf; 3], ours: &Value) {
    if stem.starts_with("localnet") {
        return arenite_tests::skip(stem, "ONNX has no locally connected layers");
    }
    let Some(python) = std::env::var_os("ARENITE_ONNXRUNTIME") else {
        return arenite_tests::skip(
            stem,
            "ARENITE_ONNXRUNTIME names no program with onnx, onnxruntime and safetensors",
        );
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("reference/quantised.py");
    let mut command = Command::new(python);
    command.arg(script).arg(trace).arg("--weights").arg(weights);
    let output = command
        .arg("--calibrate")
        .arg(x)
        .arg("--judge")
        .arg(others)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let decibels = |layer: &Value| layer["deviations_db"].as_f64();
    let layers: Vec<(&str, f64, f64)> = ours["layers"]
        .as_array()
        .expect("layers")
        .iter()
        .filter_map(|layer| {
            let name = layer["name"].as_str()?;
            Some((name, decibels(layer)?, decibels(&theirs["layers"][name])?))
        })
        .collect();
    assert!(layers.len() > 3, "{stem}: {} layers of both", layers.len());
    let last = (
        "answers",
        decibels(ours).expect("noise"),
        decibels(&theirs["answers"]).expect("noise"),
    );
    let depths = [1, 2, 3].map(|quarter| layers[layers.len() * quarter / 4]);
    for (name, ours, theirs) in depths.into_iter().chain([last]) {
        row(
            stem,
            name,
            0.0,
            &format!("less the mean {ours:.1} dB, ONNX Runtime {theirs:.1}"),
        );
        assert!(
            ours >= theirs - BELOW,
            "{stem}, {name}: {ours} dB, ONNX Runtime {theirs}"
        );
    }
}
