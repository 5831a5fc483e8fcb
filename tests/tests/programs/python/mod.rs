//! The Python package: its wheel is built, installed into an empty folder, and used there beside the programs, by the tests in this folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use arenite_host::board::{Board, ready};
use arenite_tests::oracle::compared;
use arenite_tests::{programs, skip};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn python() -> Command {
    let own = root().join(".venv/bin/python");
    let python = std::env::var_os("ARENITE_PYTHON").map(PathBuf::from);
    Command::new(python.unwrap_or(if own.exists() { own } else { "python3".into() }))
}

fn has(modules: &str) -> bool {
    let imported = python().args(["-c", &format!("import {modules}")]).output();
    imported.is_ok_and(|output| output.status.success())
}

/// The output of a command that ends well.
fn done(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let said = [stdout, stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(status.success(), "{command:?}: {status}\n{said}");
    said
}

/// Builds the wheel with what the tests have compiled already, and installs it without what it depends on.
fn installed(programs: &Path, folder: &Path) -> PathBuf {
    let (wheels, site) = (folder.join("wheels"), folder.join("site"));
    let mut build = python();
    build.args([
        "-m",
        "maturin",
        "build",
        "--quiet",
        "--manifest-path",
        "host-tools/python/Cargo.toml",
    ]);
    build.args([
        "--features",
        "suite",
        "--profile",
        if cfg!(debug_assertions) { "dev" } else { "release" },
    ]);
    build.arg("--out").arg(&wheels);
    build
        .arg("--target-dir")
        .arg(programs.parent().expect("a target folder"));
    done(build.current_dir(root()));
    let names: Vec<PathBuf> = std::fs::read_dir(&wheels)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    let [wheel] = &names[..] else {
        panic!("one wheel: {names:?}")
    };
    let name = wheel.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(name.starts_with("arenite-") && name.contains("-cp310-abi3-"), "{name}");
    let mut install = python();
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--disable-pip-version-check",
    ]);
    done(install.arg("--target").arg(&site).arg(wheel));
    site
}

/// Packages that a build of `selection` compiles, with their versions and features.
fn compiled(selection: &[&str]) -> BTreeSet<String> {
    let mut tree = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    tree.args([
        "tree",
        "--edges",
        "normal,build",
        "--no-dedupe",
        "--prefix",
        "none",
        "--format",
        "{p} [{f}]",
    ]);
    let output = tree.args(selection).current_dir(root()).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .map(|line| line.replace(" (proc-macro)", "").replace(" (*)", ""))
        .collect()
}

/// With other features than the suite's, a wheel would compile nearly everything once more.
#[test]
fn a_wheel_compiles_what_the_suite_compiles() {
    let suite = compiled(&["--package", "arenite-tests", "--package", "arenite-host"]);
    let wheel = compiled(&["--package", "arenite-python", "--features", "suite"]);
    let own = ["arenite-python", "pyo3", "self_cell", "target-lexicon"];
    let is_own = |line: &&String| own.iter().any(|name| line.starts_with(name));
    let others: Vec<&String> = wheel.difference(&suite).filter(|line| !is_own(line)).collect();
    assert!(
        others.is_empty(),
        "the feature `suite` of host-tools/python lacks some of: {others:#?}"
    );
    assert!(wheel.len() > 50, "{wheel:#?}");
}

#[test]
fn the_wheel_does_what_the_programs_do() {
    let name = "the_wheel_does_what_the_programs_do";
    if !has("numpy, safetensors, maturin") {
        return skip(
            name,
            "no Python with NumPy, safetensors and maturin (`cargo xtask setup --all`)",
        );
    }
    let (folder, programs) = (tempfile::tempdir().expect("a folder"), programs());
    let site = installed(&programs, folder.path());
    let mut tests = python();
    tests.args(["-m", "unittest", "discover", "--verbose", "-s"]);
    tests.arg(root().join("tests/tests/programs/python"));
    tests.env("PYTHONPATH", &site).env("PYTHONDONTWRITEBYTECODE", "1");
    tests.env("ARENITE_ROOT", root()).env("ARENITE_PROGRAMS", &programs);
    match Board::find("mps2-an386").map(ready) {
        Some(Ok(())) => drop(tests.env("ARENITE_BOARD", "mps2-an386")),
        _ => skip(&format!("{name}, on a board"), "qemu for mps2-an386 is not installed"),
    }
    if !has("torch") {
        skip(&format!("{name}, with PyTorch"), "no PyTorch");
    } else if !has("sklearn") {
        skip(&format!("{name}, the notebook"), "no scikit-learn");
    }
    if !has("mypy") {
        skip(&format!("{name}, the types"), "no Python with mypy");
    }
    match arenite_tests::shared() {
        Some(shared) => drop(tests.env("ARENITE_SHARED", shared)),
        None => skip(&format!("{name}, a language model"), "no shared data"),
    }
    let said = done(tests.current_dir(folder.path()));
    let passed = said.lines().filter(|line| line.ends_with("... ok")).count();
    let skipped = said.lines().filter(|line| line.contains("... skipped")).count();
    assert!(
        passed + skipped >= 30 && skipped <= 6,
        "{passed} passed, {skipped} skipped:\n{said}"
    );
    compared("the programs", passed, 28);
}
