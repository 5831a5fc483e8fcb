//! Every activation of the int8 models against its reference, for every input: the CRC-32 of its bytes after the step that
//! completes it, and the logits before the last softmax.

use std::collections::BTreeMap;
use std::path::Path;

use arenite::Target;
use arenite_host::import::ImportOptions;
use arenite_host::import::tflite::{import, tensor_names};
use arenite_host::metadata::Restored;
use arenite_host::model::{ModelFile, run};
use arenite_tests::golden::{Archive, completed, first_difference, packed, packed_whole};
use arenite_tests::{shared, skip};

/// Of each run: every tensor that a step completes by name, removed channels put back; and the logits where the model ends in a softmax.
type Traced = (Vec<BTreeMap<String, Restored>>, Vec<Option<Vec<u8>>>);

type Packing = fn(&Path, &Path, Target) -> Result<ModelFile, arenite_host::Error>;

fn trace(model: &Path, inputs: &[Vec<Vec<u8>>], packing: Packing, target: Target) -> Traced {
    let folder = tempfile::tempdir().expect("a folder");
    let file = packing(model, folder.path(), target).unwrap_or_else(|e| panic!("{e}"));
    let model = file.load().expect("it loads");
    let metadata = file.view().and_then(|view| view.metadata()).expect("metadata");
    let softmax = metadata.steps.iter().rposition(|s| s.kind == "softmax");
    let mut traces = vec![BTreeMap::new(); inputs.len()];
    let mut logits = vec![None; inputs.len()];
    run(&model, inputs, true, &mut |run, step, session| {
        let Some((names, tensor)) = completed(&metadata, step, session) else {
            return;
        };
        if softmax == Some(step as usize + 1) {
            assert!((0..tensor.bytes.len()).all(|at| tensor.is_known(at)), "logits are read");
            logits[run] = Some(tensor.bytes.clone());
        }
        for name in names {
            traces[run].insert(name.clone(), tensor.clone());
        }
    })
    .expect("it runs");
    (traces, logits)
}

/// Models of the list below that have dead channels.
const HAS_DEAD_CHANNELS: &[&str] = &["vww_96_int8", "pretrainedResnet_large_int8"];

/// The model without its dead channels, packed for a target of each number of channels at a time, computes what the whole one does: the values of removed
/// channels that its metadata put back are counted.
fn restored_as_they_were(model: &Path, inputs: &[Vec<Vec<u8>>], whole: &[BTreeMap<String, Restored>]) -> usize {
    let mut restored = 0;
    for target in [Target::Portable, Target::CortexM4, Target::CortexM55] {
        let (traces, _) = trace(model, inputs, packed, target);
        for (run, (pruned, whole)) in traces.iter().zip(whole).enumerate() {
            assert!(pruned.keys().eq(whole.keys()), "{}: other tensors", model.display());
            for (name, tensor) in pruned {
                let differs = first_difference(tensor, &whole[name]);
                assert_eq!(
                    differs,
                    None,
                    "{}: {}, run {run}, `{name}`",
                    model.display(),
                    target.name()
                );
                if tensor.known.len() > 1 {
                    restored += (0..tensor.bytes.len()).filter(|&at| tensor.is_known(at)).count();
                }
            }
        }
    }
    restored
}

/// Names of the results of fully connected layers.
fn fully_connected(model: &Path) -> Vec<String> {
    let content = std::fs::read(model).unwrap();
    let imported = import(model, &content, &ImportOptions::default()).unwrap();
    let graph = imported.graph;
    let layers = graph.nodes.iter().filter(|n| n.kind == "FULLY_CONNECTED");
    layers
        .flat_map(|n| &n.outputs)
        .map(|&id| graph.tensor(id).name.clone())
        .collect()
}

fn rows(archive: &mut Archive, set: &str) -> Vec<Vec<Vec<u8>>> {
    archive
        .runs(&format!("in_{set}_0"))
        .0
        .into_iter()
        .map(|row| vec![row])
        .collect()
}

#[test]
fn every_activation_of_every_input() {
    let Some(shared) = shared() else {
        return skip("every_activation_of_every_input", "no shared data");
    };
    let models = shared.join("data/models");
    for name in [
        "kws_ref_model",
        "pretrainedResnet_quant",
        "str_ww_ref_model",
        "vww_96_int8",
        "pretrainedResnet_large_int8",
    ] {
        let path = models.join(format!("{name}.tflite"));
        let names = tensor_names(&std::fs::read(&path).unwrap()).unwrap();
        let text = std::fs::read_to_string(models.join(format!("golden/{name}.crc.json"))).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut archive = Archive::open(&models.join(format!("golden/{name}.npz")));
        let (mut compared, mut restored) = (0, 0);
        for (set, expected) in json["crc"].as_object().expect("sets") {
            let inputs = rows(&mut archive, set);
            let (traces, _) = trace(&path, &inputs, packed_whole, Target::Portable);
            restored += restored_as_they_were(&path, &inputs, &traces);
            let layers = fully_connected(&path);
            for (run, (trace, expected)) in traces.iter().zip(expected.as_array().expect("inputs")).enumerate() {
                for (key, crc) in expected.as_object().expect("tensors") {
                    let tensor = &names[key[1..].parse::<usize>().expect("tINDEX")];
                    // The network's input is completed by nothing.
                    if !trace.contains_key(tensor) {
                        assert_eq!(key, "t0", "{name}: nothing completes {key} `{tensor}`");
                        continue;
                    }
                    // LiteRT's fully connected kernels round once; `logits_before_the_last_softmax` has their truth.
                    if layers.contains(tensor) {
                        continue;
                    }
                    let found = format!("{:08x}", crc32fast::hash(&trace[tensor].bytes));
                    assert_eq!(
                        found,
                        crc.as_str().unwrap(),
                        "{name}: {set}, run {run}, {key} `{tensor}`"
                    );
                    compared += 1;
                }
            }
        }
        println!("{name}: {compared} activations, {restored} values of removed channels put back");
        assert!(compared > 100, "{name}: {compared} activations were compared");
        assert_eq!(
            restored > 0,
            HAS_DEAD_CHANNELS.contains(&name),
            "{name}: {restored} values"
        );
    }
}

#[test]
fn every_activation_of_the_anomaly_detector() {
    let Some(shared) = shared() else {
        return skip("every_activation_of_the_anomaly_detector", "no shared data");
    };
    let models = shared.join("data/models");
    let path = models.join("ad01_int8.tflite");
    let names = tensor_names(&std::fs::read(&path).unwrap()).unwrap();
    let mut archive = Archive::open(&models.join("intermediates/ad01_int8.tflm.npz"));
    let whole = |archive: &mut Archive, key: &str| archive.runs(key).0.concat();
    let input = whole(&mut archive, "t0");
    let (traces, _) = trace(&path, &[vec![input]], packed, Target::Portable);
    let mut compared = 0;
    for key in archive.names().iter().filter(|k| k.starts_with('t') && *k != "t0") {
        let expected = whole(&mut archive, key);
        let tensor = &names[key[1..].parse::<usize>().unwrap()];
        assert_eq!(traces[0][tensor].bytes, expected, "{key}");
        compared += 1;
    }
    assert_eq!(compared, 10);
}

#[test]
fn logits_before_the_last_softmax() {
    let Some(shared) = shared() else {
        return skip("logits_before_the_last_softmax", "no shared data");
    };
    let models = shared.join("data/models");
    // By TensorFlow Lite Micro: tests/oracle/make_logits.py.
    let text = include_str!("../../models/tflm_logits.json");
    let json: BTreeMap<String, BTreeMap<String, Vec<String>>> = serde_json::from_str(text).unwrap();
    assert!(json.len() >= 8);
    for (name, sets) in json {
        let mut archive = Archive::open(&models.join(format!("golden/{name}.npz")));
        for (set, expected) in sets {
            let inputs = rows(&mut archive, &set);
            let (_, logits) = trace(
                &models.join(format!("{name}.tflite")),
                &inputs,
                packed,
                Target::Portable,
            );
            assert_eq!(logits.len(), expected.len());
            for (run, (found, expected)) in logits.iter().zip(&expected).enumerate() {
                let found = found.as_ref().map(|bytes| format!("{:08x}", crc32fast::hash(bytes)));
                assert_eq!(found.as_ref(), Some(expected), "{name}: {set}, run {run}");
            }
        }
    }
}
