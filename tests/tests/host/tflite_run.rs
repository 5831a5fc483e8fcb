//! Imported TensorFlow Lite models against TensorFlow Lite Micro: integers bit for bit, f32 within 1e-5.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arenite::{DType, Target};
use arenite_host::model::run;
use arenite_tests::golden::{Archive, Runs, difference, packed};
use arenite_tests::{oracle, shared, skip};

/// One target of each backend: hosts have all kernels in portable Rust.
const TARGETS: &[Target] = &[
    Target::Portable,
    Target::CortexM3,
    Target::CortexM4,
    Target::CortexM55,
    Target::X8664,
];

/// Runs a model, packed for each target, on arrays and compares all outputs: how many were compared, or what differs.
fn mismatch(
    model: &Path,
    folder: &Path,
    archive: &mut Archive,
    inputs: &[String],
    outputs: &[String],
    reset: bool,
) -> Result<usize, String> {
    let mut compared = 0;
    for &target in TARGETS {
        let found = mismatch_for(target, model, folder, archive, inputs, outputs, reset);
        compared += found.map_err(|text| format!("{}: {text}", target.name()))?;
    }
    Ok(compared)
}

fn mismatch_for(
    target: Target,
    model: &Path,
    folder: &Path,
    archive: &mut Archive,
    inputs: &[String],
    outputs: &[String],
    reset: bool,
) -> Result<usize, String> {
    let file = packed(model, folder, target).map_err(|error| error.to_string())?;
    let model = file.load().expect("it loads");
    let inputs: Vec<Runs> = inputs.iter().map(|key| archive.runs(key)).collect();
    let runs: Vec<Vec<Vec<u8>>> = (0..inputs[0].0.len())
        .map(|run| inputs.iter().map(|input| input.0[run].clone()).collect())
        .collect();
    let results = run(&model, &runs, reset, &mut |_, _, _| {}).map_err(|error| error.to_string())?;
    let mut compared = 0;
    for (port, key) in outputs.iter().enumerate() {
        let expected = archive.runs(key);
        let dtype = model.output(port).expect("an output").dtype;
        for (index, (result, expected)) in results.iter().zip(&expected.0).enumerate() {
            if let Some(text) = difference(dtype, &result[port], expected) {
                return Err(format!("{key}, run {index}: {text}"));
            }
            compared += 1;
        }
    }
    Ok(compared)
}

fn models(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(folder)
}

#[test]
fn every_single_operator_is_as_in_tensorflow_lite_micro() {
    let [compared, by_other] = compare_all("tflite_ops");
    oracle::compared("TensorFlow Lite Micro, operators", compared, 3800);
    oracle::compared("LiteRT's reference kernels, operators", by_other, 1500);
}

#[test]
fn layers_of_real_sizes_are_as_in_tensorflow_lite_micro() {
    let [compared, _] = compare_all("tflite_wide");
    oracle::compared("TensorFlow Lite Micro, wide layers", compared, 300);
}

/// Compares every case of a folder: how many outputs with TensorFlow Lite Micro's, and with LiteRT's.
fn compare_all(operators: &str) -> [usize; 2] {
    let operators = models(operators);
    let folder = tempfile::tempdir().expect("a folder");
    let mut archive = Archive::open(&operators.join("cases.npz"));
    let mut cases: BTreeMap<String, (Vec<String>, Vec<String>)> = BTreeMap::new();
    for key in archive.names() {
        let (case, array) = key.split_once('/').expect("case/array");
        let (inputs, outputs) = cases.entry(case.to_string()).or_default();
        if array.starts_with("in_") { inputs } else { outputs }.push(key.clone());
    }
    // Cases of operators, types and versions that TensorFlow Lite Micro has not.
    let other = std::fs::read_to_string(operators.join("litert.txt")).unwrap_or_default();
    let other: Vec<&str> = other.lines().collect();
    let (mut wrong, mut compared, mut by_other) = (Vec::new(), 0, 0);
    for (case, (mut inputs, mut outputs)) in cases {
        inputs.sort();
        outputs.sort();
        let path = operators.join(format!("{case}.tflite"));
        match mismatch(&path, folder.path(), &mut archive, &inputs, &outputs, false) {
            Err(text) => wrong.push(format!("{case}: {text}")),
            Ok(found) if other.contains(&case.as_str()) => by_other += found,
            Ok(found) => compared += found,
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
    [compared, by_other]
}

/// Real models and what they are made to: records of channels, biases, filling and states are no reason for a larger file. Cores without multiplications of
/// several bytes at once have fully connected layers of 16 bits, for speed.
#[test]
fn no_int8_file_is_larger_than_its_tflite() {
    let Some(shared) = shared() else {
        return skip("no_int8_file_is_larger_than_its_tflite", "no shared data");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut compared = 0;
    for entry in std::fs::read_dir(shared.join("data/models")).expect("models") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|e| e != "tflite") {
            continue;
        }
        let most = std::fs::metadata(&path).expect("a model").len() as usize;
        for target in [
            Target::Portable,
            Target::CortexM4,
            Target::CortexM7,
            Target::CortexM33,
            Target::CortexM55,
        ] {
            let file = packed(&path, folder.path(), target).expect("it packs");
            let model = file.load().expect("it loads");
            if model.input(0).expect("an input").dtype == DType::F32 {
                continue;
            }
            let bytes = file.bytes().len();
            assert!(
                bytes <= most,
                "{} for {}: {bytes} bytes, {most} as .tflite",
                path.display(),
                target.name()
            );
            compared += 1;
        }
    }
    assert!(compared >= 5 * 10, "{compared} files");
}

#[test]
fn every_real_model_is_as_in_tensorflow_lite_micro() {
    let Some(shared) = shared() else {
        return skip("every_real_model_is_as_in_tensorflow_lite_micro", "no shared data");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let models = shared.join("data/models");
    let mut wrong = Vec::new();
    let (mut compared, mut results) = (0, 0);
    for entry in std::fs::read_dir(&models).expect("models") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if path.extension().is_none_or(|e| e != "tflite") || name == "kws_ref_model_float32" {
            continue;
        }
        let mut archive = Archive::open(&models.join(format!("golden/{name}.npz")));
        let keys = archive.names();
        for set in ["rand", "real", "seq", "seqreal"] {
            let with = |prefix: &str| {
                let mut keys: Vec<String> = keys.iter().filter(|k| k.starts_with(prefix)).cloned().collect();
                keys.sort();
                keys
            };
            let (inputs, outputs) = (with(&format!("in_{set}_")), with(&format!("out_{set}_tflm_")));
            if inputs.is_empty() || outputs.is_empty() {
                continue;
            }
            let reset = !set.starts_with("seq");
            match mismatch(&path, folder.path(), &mut archive, &inputs, &outputs, reset) {
                Ok(found) => results += found,
                Err(text) => wrong.push(format!("{name}: {text}")),
            }
            compared += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 21, "{compared} sets were compared");
    oracle::compared("TensorFlow Lite Micro, whole models", results, 1000);
}

/// A hybrid model computes in float32 here, as NumPy does with the same weights (tests/oracle/make_hybrid.py). TensorFlow Lite quantises its activations at
/// run time: real inputs come out within what that costs.
#[test]
fn the_hybrid_model_is_float32_arithmetic() {
    let Some(shared) = shared() else {
        return skip("the_hybrid_model_is_float32_arithmetic", "no shared data");
    };
    let models = shared.join("data/models");
    let folder = tempfile::tempdir().expect("a folder");
    let path = models.join("kws_ref_model_float32.tflite");
    let file = packed(&path, folder.path(), Target::Portable).expect("it packs");
    let model = file.load().expect("it loads");
    let mut archive = Archive::open(&models.join("golden/kws_ref_model_float32.npz"));
    let text = include_str!("../../models/hybrid_kws.json");
    let computed: BTreeMap<String, Vec<Vec<f32>>> = serde_json::from_str(text).expect("probabilities");
    let numbers = |bytes: &[u8]| -> Vec<f32> {
        let words = bytes.as_chunks::<4>().0.iter();
        words.map(|word| f32::from_le_bytes(*word)).collect()
    };
    let worst = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let mut compared = 0;
    for (set, computed) in computed {
        let inputs = archive.runs(&format!("in_{set}_0")).0;
        let runs: Vec<Vec<Vec<u8>>> = inputs.into_iter().map(|input| vec![input]).collect();
        let golden = archive.runs(&format!("out_{set}_xnn_0")).0;
        let results = run(&model, &runs, true, &mut |_, _, _| {}).expect("it runs");
        for ((result, computed), golden) in results.iter().zip(&computed).zip(&golden) {
            let found = numbers(&result[0]);
            assert!(worst(&found, computed) < 1e-5, "{set}: {}", worst(&found, computed));
            if set == "real" {
                let golden = numbers(golden);
                assert!(worst(&found, &golden) < 1e-2, "{}", worst(&found, &golden));
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 22);
}
