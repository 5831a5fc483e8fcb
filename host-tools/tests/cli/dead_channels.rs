//! Channels that cannot change the output, in the commands: packed with and without them, and put back for `arenite diff`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{ARENITE, Bench, PACK, done, json, run};

/// The folder of the shared models; `None` where the shared data is not there.
fn shared_models() -> Option<PathBuf> {
    let given = std::env::var_os("ARENITE_SHARED").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let models = given.unwrap_or_else(beside).join("data/models");
    if !models.exists() {
        eprintln!("skipped: dead channels in the commands: no shared data");
    }
    models.exists().then_some(models)
}

fn packed(network: &Path, model: &Path, more: &[&str]) -> Value {
    let mut arguments = vec![network.as_os_str(), "-o".as_ref(), model.as_os_str(), "--json".as_ref()];
    arguments.extend(more.iter().map(std::ffi::OsStr::new));
    json(&done(run(PACK, &arguments)))
}

#[test]
fn dead_channels_go_unless_they_are_kept() {
    let Some(models) = shared_models() else { return };
    let bench = Bench::new();
    let network = models.join("vww_96_int8.tflite");
    let (small, whole) = (bench.path("small.bin"), bench.path("whole.bin"));
    let pruned = packed(&network, &small, &["--target", "cortex-m4"]);
    let kept = packed(&network, &whole, &["--target", "cortex-m4", "--keep-dead-channels"]);
    let removed = |summary: &Value, field: &str| summary["dead_channels"][field].as_u64().expect("a number");
    assert_eq!(
        [
            removed(&kept, "channels"),
            removed(&kept, "bytes"),
            removed(&kept, "macs")
        ],
        [0; 3]
    );
    assert!(removed(&pruned, "channels") > 1500, "{}", pruned["dead_channels"]);
    for field in ["params", "macs", "inputs", "outputs"] {
        assert_eq!(pruned[field], kept[field], "{field}: as traced");
    }
    let macs = pruned["macs"].as_u64().expect("a number");
    let left = macs - removed(&pruned, "macs");
    assert!(
        100 * left < 51 * macs && 100 * left > 49 * macs,
        "{left} of {macs} products are left"
    );
    let size = |summary: &Value| summary["model_bytes"].as_u64().expect("a number");
    assert!(4 * size(&pruned) < size(&kept));

    let text = done(run(PACK, &[&network, Path::new("-o"), &small]));
    assert!(text.contains(" dead channels, "), "{text}");
    let inspected = |model: &Path| json(&done(run(ARENITE, &[Path::new("inspect"), model, Path::new("--json")])));
    assert_eq!(inspected(&whole)["dead_channels"], kept["dead_channels"]);
    done(run(ARENITE, &[Path::new("verify"), &small]));
}

#[test]
fn diff_puts_removed_channels_back() {
    let Some(models) = shared_models() else { return };
    let bench = Bench::new();
    for name in ["vww_96_int8", "pretrainedResnet_large_int8"] {
        let network = models.join(format!("{name}.tflite"));
        let reference = models.join(format!("intermediates/{name}.npz"));
        let layers = |more: &[&str]| -> Vec<Value> {
            let model = bench.path("m.bin");
            packed(&network, &model, more);
            let output = run(ARENITE, &[Path::new("diff"), &model, &reference, Path::new("--json")]);
            let report = json(&String::from_utf8(output.stdout).expect("UTF-8"));
            report["layers"].as_array().expect("layers").clone()
        };
        let (whole, pruned) = (layers(&["--keep-dead-channels"]), layers(&[]));
        assert_eq!(whole.len(), pruned.len());
        let mut unread = 0;
        for (whole, pruned) in whole.iter().zip(&pruned) {
            assert_eq!(
                (&pruned["name"], &pruned["error"]),
                (&whole["name"], &whole["error"]),
                "{name}"
            );
            assert_eq!(whole["unread"], 0);
            unread += pruned["unread"].as_u64().expect("a number");
        }
        // Of the large network all are constants.
        assert_eq!(unread > 0, name == "vww_96_int8", "{name}: {unread}");
        let equal = pruned.iter().filter(|layer| layer["equal"] == true).count();
        assert!(
            equal + 3 > pruned.len() && equal > 10,
            "{name}: {equal} of {} layers",
            pruned.len()
        );
    }
}
