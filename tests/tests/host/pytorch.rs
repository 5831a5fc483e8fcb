//! Networks that `arenite_trace` traced from PyTorch, with PyTorch's outputs: packed and run; in the long tier traced anew.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use arenite::{DType, Target};
use arenite_host::import::{ImportOptions, Samples, import};
use arenite_host::model::run;
use arenite_tests::golden::packed;
use arenite_tests::oracle::compared;
use arenite_tests::skip;
use serde_json::Value;

const NETWORKS: [&str; 14] = [
    "choices",
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

/// Networks that torchao has quantised, with how many steps away from PyTorch a number may be, where the output is quantised.
const QUANTISED: [(&str, Option<usize>); 5] = [
    ("branches_qat", Some(1)),
    ("branches_u8", None),
    ("layer_pt2e", Some(1)),
    ("mobile_pt2e", Some(2)),
    ("mobile_pt2e_one_scale", Some(2)),
];

/// The most bytes that a network and its runs may take in the tree.
const LARGEST: u64 = 300_000;

fn folder(name: &str) -> PathBuf {
    let quantised = QUANTISED.iter().any(|(known, _)| *known == name);
    let folder = if quantised {
        "models/pytorch_int8"
    } else {
        "models/pytorch"
    };
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

fn trace(name: &str) -> PathBuf {
    folder(name).join(name).with_extension("trace.json")
}

/// Runs Python with these arguments, `arenite_trace` within its reach.
fn python(arguments: &[&str]) -> std::io::Result<Output> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let python = std::env::var("ARENITE_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let mut command = Command::new(&python);
    command.args(arguments).current_dir(&root);
    command.env("PYTHONPATH", root.join("host-tools/python")).output()
}

fn has(packages: &str) -> bool {
    python(&["-c", packages]).is_ok_and(|output| output.status.success())
}

#[test]
fn every_network_of_the_folders_is_small_and_tested() {
    for names in [NETWORKS.to_vec(), QUANTISED.map(|(name, _)| name).to_vec()] {
        let mut sizes = std::collections::BTreeMap::new();
        for entry in std::fs::read_dir(folder(names[0])).expect("the folder") {
            let entry = entry.expect("an entry");
            let file = entry.file_name().into_string().expect("a name");
            let name = file.split('.').next().unwrap_or_default().to_string();
            *sizes.entry(name).or_insert(0) += entry.metadata().expect("a size").len();
        }
        assert!(sizes.keys().map(String::as_str).eq(names), "{sizes:?}");
        assert!(sizes.values().all(|&size| size <= LARGEST), "{sizes:?}");
    }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.chunks_exact(4);
    words.map(|b| f32::from_le_bytes(b.try_into().expect("four"))).collect()
}

/// The largest difference, of the largest expected value.
fn error(got: &[u8], expected: &[u8]) -> f32 {
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

/// The scale of the integers that the network's one output is made of.
fn step(name: &str) -> Option<f32> {
    let text = std::fs::read_to_string(trace(name)).expect("a trace");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    let output = &trace["outputs"][0];
    let writer = trace["ops"].as_array()?.iter().find(|op| op["outputs"][0] == *output)?;
    let integers = writer["inputs"][0].as_str().filter(|_| writer["op"] == "dequantize")?;
    Some(trace["tensors"][integers]["quant"]["scale"][0].as_f64()? as f32)
}

/// PyTorch computes a quantised module in f32 between roundings to even; here sums are integers, biases are in their units, and a product is rounded
/// twice, ties away from zero, as in TensorFlow Lite. A number of a layer is a step away at most, one of two hundred is. Behind the nine layers of a network,
/// of which the last sums up what the others have left, one of five is, and few are two.
#[test]
fn quantised_ones_are_near_pytorch() {
    let scratch = tempfile::tempdir().unwrap();
    let mut checked = 0;
    for (name, most) in QUANTISED {
        let (samples, _) = samples(name);
        let step = step(name);
        assert_eq!(step.is_some(), most.is_some(), "{name}");
        let runs: Vec<Vec<Vec<u8>>> = (samples.runs.iter())
            .map(|run| run.inputs.iter().map(|(_, bytes)| bytes.clone()).collect())
            .collect();
        for target in [
            Target::Portable,
            Target::CortexM0,
            Target::CortexM3,
            Target::CortexM4,
            Target::CortexM55,
        ] {
            let file = packed(&trace(name), scratch.path(), target).unwrap_or_else(|e| panic!("{name}: {e}"));
            let view = file.view().expect("a view");
            let kernels: Vec<_> = view
                .steps()
                .expect("steps")
                .iter()
                .map(|step| step.kernel().name())
                .collect();
            let integer = kernels.iter().filter(|kernel| kernel.contains("S8")).count();
            let float = kernels.iter().filter(|kernel| kernel.contains("F32")).count();
            let alone = !name.starts_with("mobile") || (integer >= 7 && float == 0);
            assert!(alone && integer >= 1, "{name}: {kernels:?}");
            let model = file.load().expect("it loads");
            let results = run(&model, &runs, true, &mut |_, _, _| {}).expect("it runs");
            // By how many steps the numbers are away.
            let mut away = [0; 4];
            for (result, expected) in results.iter().zip(&samples.runs) {
                let (got, expected) = (&result[0], &expected.outputs[0].1);
                checked += 1;
                let Some(step) = step else {
                    assert!(
                        error(got, expected) <= 0.01,
                        "{name}, {}: {}",
                        target.name(),
                        error(got, expected)
                    );
                    continue;
                };
                for (a, b) in floats(got).into_iter().zip(floats(expected)) {
                    away[(((a - b) / step).abs().round() as usize).min(3)] += 1;
                }
            }
            eprintln!("{name}, {}: {away:?}", target.name());
            let whole: usize = away.iter().sum();
            let further = away.iter().skip(2).sum::<usize>();
            let few = match most {
                Some(1) => away[1] * 100 <= whole && further == 0,
                _ => away[1] * 4 <= whole && further * 50 <= whole && away[3] == 0,
            };
            assert!(few, "{name}, {}: {away:?}", target.name());
        }
    }
    compared("PyTorch", checked, 600);
}

#[test]
#[ignore = "long: needs PyTorch, and traces nineteen networks"]
fn traced_anew_they_are_the_same() {
    if !has("import torch, safetensors") {
        return skip("traced_anew_they_are_the_same", "no PyTorch");
    }
    let mut scripts = vec!["tests/oracle/make_pytorch.py"];
    if has("import torchao") {
        scripts.push("tests/oracle/make_pytorch_int8.py");
    }
    for script in scripts {
        let output = python(&[script, "--check"]).expect("it runs");
        let said = [output.stdout, output.stderr].map(|s| String::from_utf8_lossy(&s).into_owned());
        assert!(output.status.success(), "{script}: {}\n{}", said[0], said[1]);
    }
    compared("PyTorch", NETWORKS.len(), NETWORKS.len());
}

/// Files that Python saves beside networks, and the messages of `pack` for them.
const SAVED: [(&str, &str); 7] = [
    ("state.pth", "it is a file of torch.save (.pt, .pth)"),
    ("legacy.pth", "it is a file of torch.save from before PyTorch 1.6"),
    ("script.pt", "it is a TorchScript module"),
    (
        "model.pkl",
        "it is a Python pickle, as scikit-learn and old PyTorch save models",
    ),
    ("arrays", "it is a NumPy archive: it holds weights and no network"),
    ("array.npy", "it is an array of NumPy and no network"),
    ("weights", "it holds weights and no network"),
];

#[test]
fn what_python_saves_is_named() {
    if !has("import torch, safetensors") {
        return skip("what_python_saves_is_named", "no PyTorch");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a name");
    let script = "
import os, pickle, sys, numpy, safetensors.torch, torch
os.chdir(sys.argv[1])
net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU()).eval()
torch.save(net.state_dict(), 'state.pth')
torch.save(net.state_dict(), 'legacy.pth', _use_new_zipfile_serialization=False)
torch.jit.script(net).save('script.pt')
pickle.dump({'weights': [1.0, 2.0]}, open('model.pkl', 'wb'))
with open('arrays', 'wb') as arrays:
    numpy.savez(arrays, a=numpy.zeros(3), b=numpy.ones(2))
numpy.save('array.npy', numpy.zeros((3, 2)))
safetensors.torch.save_file(net.state_dict(), 'weights')
";
    let output = python(&["-c", script, path]).expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (name, expected) in SAVED {
        let Err(error) = import(&folder.path().join(name), None, &ImportOptions::default()) else {
            panic!("{name} is no network");
        };
        assert!(error.to_string().contains(expected), "{name}: {error}");
    }
    compared("PyTorch", SAVED.len(), SAVED.len());
}
