//! Networks that `arenite_trace` traced from PyTorch, with PyTorch's outputs: packed and run; in the long tier traced anew.

use std::path::{Path, PathBuf};
use std::process::Command;

use arenite::{DType, Target};
use arenite_host::import::{ImportOptions, Samples, import};
use arenite_host::model::run;
use arenite_tests::golden::packed;
use arenite_tests::oracle::compared;
use arenite_tests::skip;

const NETWORKS: [&str; 13] = [
    "dense",
    "depthwise",
    "detection",
    "gru",
    "inception",
    "lstm",
    "residual",
    "squeezeexcite",
    "superresolution",
    "transformer",
    "unet",
    "wavenet",
    "words",
];

/// The most bytes that a network and its runs may take in the tree.
const LARGEST: u64 = 300_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/pytorch")
}

fn trace(name: &str) -> PathBuf {
    folder().join(name).with_extension("trace.json")
}

#[test]
fn every_network_of_the_folder_is_small_and_tested() {
    let mut sizes = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(folder()).expect("the folder") {
        let entry = entry.expect("an entry");
        let file = entry.file_name().into_string().expect("a name");
        let name = file.split('.').next().unwrap_or_default().to_string();
        *sizes.entry(name).or_insert(0) += entry.metadata().expect("a size").len();
    }
    assert!(sizes.keys().map(String::as_str).eq(NETWORKS), "{sizes:?}");
    assert!(sizes.values().all(|&size| size <= LARGEST), "{sizes:?}");
}

/// The largest difference, of the largest expected value.
fn error(got: &[u8], expected: &[u8]) -> f32 {
    let floats = |bytes: &[u8]| -> Vec<f32> {
        let words = bytes.chunks_exact(4);
        words.map(|b| f32::from_le_bytes(b.try_into().expect("four"))).collect()
    };
    let (got, expected) = (floats(got), floats(expected));
    assert_eq!(got.len(), expected.len());
    let largest = expected.iter().fold(0f32, |a, b| a.max(b.abs()));
    got.iter().zip(&expected).fold(0f32, |a, (x, y)| a.max((x - y).abs())) / largest
}

fn samples(name: &str) -> (Samples, Vec<DType>) {
    let (dialect, imported) = import(&trace(name), None, &ImportOptions::default()).expect("it is imported");
    assert_eq!(dialect, "native");
    let dtypes = imported.graph.outputs.iter().map(|&id| imported.graph.tensor(id).dtype);
    let dtypes = dtypes.collect();
    (imported.samples.expect("runs"), dtypes)
}

#[test]
fn they_compute_what_pytorch_does() {
    let scratch = tempfile::tempdir().unwrap();
    let mut checked = 0;
    for name in NETWORKS {
        let (samples, dtypes) = samples(name);
        let runs: Vec<Vec<Vec<u8>>> = (samples.runs.iter())
            .map(|run| run.inputs.iter().map(|(_, bytes)| bytes.clone()).collect())
            .collect();
        for target in [Target::Portable, Target::CortexM4, Target::CortexM55] {
            let file = packed(&trace(name), scratch.path(), target).unwrap_or_else(|e| panic!("{name}: {e}"));
            let model = file.load().expect("it loads");
            let results = run(&model, &runs, true, &mut |_, _, _| {}).expect("it runs");
            for (result, expected) in results.iter().zip(&samples.runs) {
                assert_eq!(result.len(), expected.outputs.len(), "{name}");
                for ((got, (output, expected)), dtype) in result.iter().zip(&expected.outputs).zip(&dtypes) {
                    let what = format!("{name}, `{output}`, {}", target.name());
                    match dtype {
                        DType::F32 => assert!(error(got, expected) <= 1e-5, "{what}: {}", error(got, expected)),
                        _ => assert_eq!(got, expected, "{what}"),
                    }
                    checked += 1;
                }
            }
        }
    }
    compared("PyTorch", checked, 140);
}

#[test]
#[ignore = "long: needs PyTorch, and traces thirteen networks"]
fn traced_anew_they_are_the_same() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let python = std::env::var("ARENITE_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let with = |arguments: &[&str]| {
        let mut command = Command::new(&python);
        command.args(arguments).current_dir(&root);
        command.env("PYTHONPATH", root.join("host-tools/python")).output()
    };
    if !with(&["-c", "import torch, safetensors"]).is_ok_and(|output| output.status.success()) {
        return skip("traced_anew_they_are_the_same", "no PyTorch");
    }
    let output = with(&["tests/oracle/make_pytorch.py", "--check"]).expect("it runs");
    let said = [output.stdout, output.stderr].map(|s| String::from_utf8_lossy(&s).into_owned());
    assert!(output.status.success(), "{}\n{}", said[0], said[1]);
    compared("PyTorch", NETWORKS.len(), NETWORKS.len());
}
