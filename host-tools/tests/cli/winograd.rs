//! Winograd convolutions in the commands: the same bits for more flash, where there is room for them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{ARENITE, Bench, PACK, digits, done, json, run};

/// Packs the digits as int8.
fn pack(model: &Path, more: &[&str]) -> Output {
    let mut pack = Command::new(PACK);
    pack.arg(digits("digits.trace.json"))
        .args(["--dtype", "int8", "--json", "--calibrate"])
        .arg(digits("test_images.npy"))
        .arg("-o")
        .arg(model)
        .args(more);
    pack.output().expect("it starts")
}

fn packed(model: &Path, more: &[&str]) -> Value {
    json(&done(pack(model, more)))
}

fn field(summary: &Value, name: &str) -> u64 {
    summary[name].as_u64().unwrap_or_else(|| panic!("{name}: {summary}"))
}

/// Runs a model on the digits; returns its outputs.
fn outputs(bench: &Bench, model: &Path) -> Vec<u8> {
    let file = bench.path("outputs.npy");
    let mut run = Command::new(ARENITE);
    run.arg("run").arg(model).arg("--input").arg(digits("test_images.npy"));
    done(run.arg("--output").arg(&file).output().expect("it starts"));
    fs::read(file).expect("written")
}

#[test]
fn outputs_and_arena_stay_and_flash_is_stated() {
    let bench = Bench::new();
    let (plain, fast) = (bench.path("plain.bin"), bench.path("fast.bin"));
    for target in ["cortex-m0", "cortex-m3", "riscv32imac"] {
        let before = packed(&plain, &["--target", target]);
        let after = packed(&fast, &["--target", target, "--winograd"]);
        assert!(before.get("winograd").is_none());
        assert_eq!(after["winograd"]["layers"], 1, "{target}");
        // Of 16 channels 24: 3456 bytes become 12288; the names of kernels are numbers of one byte.
        let grown = field(&after, "model_bytes") - field(&before, "model_bytes");
        assert_eq!(after["winograd"]["extra_bytes"].as_u64(), Some(grown), "{target}");
        assert_eq!(grown, 12_288 - 3_456, "{target}");
        assert_eq!(field(&after, "arena_bytes"), field(&before, "arena_bytes"), "{target}");
        assert!(
            outputs(&bench, &plain) == outputs(&bench, &fast),
            "{target}: other outputs"
        );
        done(run(ARENITE, &[Path::new("verify"), &fast]));
        let inspected = json(&done(run(ARENITE, &[Path::new("inspect"), &fast, Path::new("--json")])));
        assert_eq!(inspected["winograd"], after["winograd"], "{target}");
    }
}

#[test]
fn flash_that_has_room_is_spent_to_the_byte() {
    let bench = Bench::new();
    let model = bench.path("m.bin");
    let target = ["--target", "cortex-m3"];
    let fast = field(&packed(&model, &[&target[..], &["--winograd"]].concat()), "model_bytes");
    let within = |limit: u64, more: &[&str]| {
        let limit = limit.to_string();
        pack(&model, &[&target[..], &["--max-flash", &limit], more].concat())
    };
    let summary = |output: Output| json(&done(output));
    assert_eq!(field(&summary(within(fast, &[])), "model_bytes"), fast);
    let plain = summary(within(fast - 1, &[]));
    assert!(plain.get("winograd").is_none() && field(&plain, "model_bytes") < fast);
    // Asked for, what cannot be is said.
    let output = within(fast - 1, &["--winograd"]);
    let warning = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(summary(output).get("winograd").is_none());
    assert!(
        warning.contains("--winograd changes nothing: no convolution"),
        "{warning}"
    );
    let output = pack(&model, &["--target", "cortex-m4", "--winograd"]);
    let warning = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        warning.contains("--winograd changes nothing for cortex-m4: it is for cortex-m0, cortex-m3, riscv32imac"),
        "{warning}"
    );
    assert!(summary(output).get("winograd").is_none());
}

#[test]
fn a_layer_that_would_raise_the_arena_is_left_as_it_is() {
    let given = std::env::var_os("ARENITE_SHARED").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let network = given
        .unwrap_or_else(beside)
        .join("data/models/pretrainedResnet_quant.tflite");
    if !network.exists() {
        eprintln!("skipped: Winograd convolutions of a real network: no shared data");
        return;
    }
    let bench = Bench::new();
    let packed = |more: &[&str]| {
        let mut pack = Command::new(PACK);
        pack.arg(&network).arg("-o").arg(bench.path("m.bin"));
        let output = pack.args(["--target", "cortex-m3", "--json"]).args(more).output();
        json(&done(output.expect("it starts")))
    };
    let (before, after) = (packed(&[]), packed(&["--winograd"]));
    // Of the four that would gain, one is where the arena is fullest.
    assert_eq!(after["winograd"]["layers"], 3);
    assert_eq!(field(&after, "arena_bytes"), field(&before, "arena_bytes"));
    for limit in [100_000, 120_000, 200_000] {
        let limit = limit.to_string();
        let some = packed(&["--max-flash", &limit]);
        let layers = some["winograd"]["layers"].as_u64().expect("a number");
        assert!((1..3).contains(&layers), "{limit}: {}", some["winograd"]);
        assert!(field(&some, "model_bytes") <= limit.parse().expect("a number"));
    }
}
