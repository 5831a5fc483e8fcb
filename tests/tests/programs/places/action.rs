//! The GitHub Action: its own script on a network, with limits that hold and limits that do not.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use arenite_host::board::{Board, ready};
use arenite_tests::{programs, skip};
use serde_json::Value;

use super::bare::{root, said};
use super::yaml::parsed;

/// The step that packs and measures, with its inputs.
struct Step {
    script: String,
    /// Variables and the inputs that they are.
    environment: Vec<(String, String)>,
    /// Inputs with their defaults.
    defaults: Vec<(String, String)>,
}

fn step() -> Step {
    let action = parsed(&fs::read_to_string(root().join("action.yml")).expect("readable"));
    let steps = action["runs"]["steps"].as_vec().expect("steps");
    let check = steps
        .iter()
        .find(|step| step["id"].as_str() == Some("check"))
        .expect("a step");
    let text = |value: &yaml_rust2::Yaml| value.as_str().unwrap_or_default().to_owned();
    let environment = check["env"].as_hash().expect("variables").iter();
    let inputs = action["inputs"].as_hash().expect("inputs").iter();
    Step {
        script: text(&check["run"]),
        environment: environment.map(|(name, value)| (text(name), text(value))).collect(),
        defaults: inputs
            .map(|(name, input)| (text(name), text(&input["default"])))
            .collect(),
    }
}

/// Runs the step as a runner does: bash with `-e` and `pipefail`, in a folder with a network.
fn ran(step: &Step, folder: &Path, inputs: &[(&str, &str)]) -> Output {
    ran_with(step, folder, inputs, &programs())
}

/// Likewise with the programs of a folder.
fn ran_with(step: &Step, folder: &Path, inputs: &[(&str, &str)], of: &Path) -> Output {
    let runner = folder.join("runner");
    fs::create_dir_all(&runner).expect("made");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(of.to_path_buf()).chain(std::env::split_paths(&path));
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &step.script])
        .current_dir(folder)
        .env("PATH", std::env::join_paths(folders).expect("a path"))
        .env("RUNNER_TEMP", &runner);
    for file in ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"] {
        fs::write(runner.join(file), "").expect("written");
        bash.env(file, runner.join(file));
    }
    for (name, value) in &step.environment {
        let input = value.trim_start_matches("${{ inputs.").trim_end_matches(" }}");
        let default = step.defaults.iter().find(|(known, _)| known == input);
        let given = inputs
            .iter()
            .find(|(known, _)| *known == input)
            .map(|(_, value)| (*value).to_owned());
        bash.env(name, given.unwrap_or_else(|| default.expect("an input").1.clone()));
    }
    bash.output().expect("bash starts")
}

#[test]
fn the_action_fails_where_a_model_grows_or_does_not_fit() {
    const TEST: &str = "the_action_fails_where_a_model_grows_or_does_not_fit";
    let board = Board::find("mps2-an386").expect("a board");
    if let Err(reason) = ready(board) {
        return skip(TEST, &reason.to_string());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for kind in ["trace.json", "safetensors", "samples.safetensors"] {
        let name = format!("mlp.{kind}");
        fs::copy(root().join("tests/models/digits").join(&name), folder.join(name)).expect("copied");
    }
    let step = step();
    let models = "mlp.trace.json --target cortex-m4\n\n";
    let with = |more: &[(&'static str, &'static str)]| {
        let given = [("models", models), ("boards", "qemu:mps2-an386")];
        ran(&step, folder, &[&given[..], more].concat())
    };
    let summary = || fs::read_to_string(folder.join("runner/GITHUB_STEP_SUMMARY")).expect("written");
    let limits = folder.join("arenite-limits.json");

    // Nothing is recorded: that is no pass.
    let none = with(&[]);
    assert!(!none.status.success() && !limits.exists(), "{}", said(&none));

    let recorded = with(&[("record", "true")]);
    assert!(recorded.status.success(), "{}", said(&recorded));
    let mut file: Value = serde_json::from_slice(&fs::read(&limits).expect("written")).expect("JSON");
    let figures = &file["models"]["mlp"]["mps2-an386"];
    for name in [
        "instructions",
        "cycles",
        "arena_bytes",
        "stack_bytes",
        "code_bytes",
        "model_bytes",
    ] {
        assert!(
            figures[name].as_u64().is_some_and(|figure| figure > 0),
            "{name}: {figures}"
        );
    }

    let good = with(&[("chip", "nrf52840")]);
    assert!(good.status.success(), "{}", said(&good));
    assert!(summary().contains("| mps2-an386 | instructions | "), "{}", summary());
    assert!(!summary().contains("exceeded"), "{}", summary());
    let told = fs::read_to_string(folder.join("runner/GITHUB_OUTPUT")).expect("written");
    let table = told.trim().strip_prefix("table=").expect("an output");
    assert_eq!(fs::read_to_string(table).expect("a table"), summary());

    // A tenth less is allowed than it takes, and one percent more than that.
    let instructions = file["models"]["mlp"]["mps2-an386"]["instructions"]
        .as_u64()
        .expect("a figure");
    file["growth_percent"] = 1.into();
    file["models"]["mlp"]["mps2-an386"]["instructions"] = (instructions * 9 / 10).into();
    fs::write(&limits, file.to_string()).expect("written");
    let grown = with(&[]);
    assert!(!grown.status.success(), "{}", said(&grown));
    assert!(said(&grown).contains("above its limit"), "{}", said(&grown));
    assert_eq!(summary().matches("**exceeded**").count(), 1, "{}", summary());
    file["growth_percent"] = 12.into();
    fs::write(&limits, file.to_string()).expect("written");
    assert!(with(&[]).status.success());

    // A model that does not fit, and a file that is no network, fail by name; the others are measured all the same.
    let two = [
        ("models", "none.tflite\nmlp.trace.json --target cortex-m4 --batch 64"),
        ("boards", "qemu:mps2-an386"),
        ("chip", "microbit"),
    ];
    let unfit = ran(&step, folder, &two);
    assert!(!unfit.status.success(), "{}", said(&unfit));
    assert!(summary().contains("**none.tflite cannot be packed.**"), "{}", summary());
    assert!(summary().contains("| mps2-an386 | instructions | "), "{}", summary());
    assert!(summary().contains("**mlp does not fit microbit.**"), "{}", summary());

    // A board that has limits and was not measured.
    file["models"]["mlp"]["microbit"] = file["models"]["mlp"]["mps2-an386"].clone();
    fs::write(&limits, file.to_string()).expect("written");
    let unmeasured = with(&[]);
    assert!(!unmeasured.status.success(), "{}", said(&unmeasured));
    assert!(summary().contains("| microbit | instructions | - |"), "{}", summary());
}

/// Programs that say what they are given in place of `pack` and `arenite`.
fn echoing(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    for name in ["pack", "arenite"] {
        let script =
            "#!/bin/sh\nprintf '<%s>' \"${0##*/}\" \"$@\" >> \"$RUNNER_TEMP/said\"\necho >> \"$RUNNER_TEMP/said\"\n";
        let path = folder.join(name);
        fs::write(&path, script).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made a program");
    }
}

#[test]
fn lines_of_the_action_are_words_with_quotes_and_have_names_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    echoing(folder);
    let models = "a/net.tflite --preprocess 'u8 mean=127.5' --name \"$HOME *\"\n   \n'my net.onnx' --size\nb/net.onnx\nlast.onnx 'open\n";
    let output = ran_with(&step(), folder, &[("models", models)], folder);
    let read = |name: &str| fs::read_to_string(folder.join("runner").join(name)).unwrap_or_default();
    let (said_to, summary) = (read("said"), read("GITHUB_STEP_SUMMARY"));
    assert!(!output.status.success(), "{said_to}{summary}");
    let packed: Vec<&str> = said_to.lines().filter(|line| line.starts_with("<pack>")).collect();
    let runner = folder.join("runner/arenite-models");
    let expected = [
        format!(
            "<pack><a/net.tflite><--preprocess><u8 mean=127.5><--name><$HOME *><-o><{}>",
            runner.join("net.bin").display()
        ),
        format!(
            "<pack><my net.onnx><--size><-o><{}>",
            runner.join("my net.bin").display()
        ),
    ];
    assert_eq!(packed, expected, "{said_to}");
    assert!(
        summary.contains("**b/net.onnx: another line has the name net."),
        "{summary}"
    );
    assert!(summary.contains("**`last.onnx 'open` cannot be read.**"), "{summary}");
}
