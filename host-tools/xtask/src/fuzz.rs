//! `cargo xtask long fuzz`: what load and runs are attacked with, in builds that see more than the tests do. docs/safety.md holds the figures.

use std::process::Command;

use arenite_xtask::suites;

use super::suite::{Results, watched};
use super::{Result, cargo, root, run, setup};

/// Tests that load and run hostile files, on the host.
const ATTACKS: [&str; 5] = ["kernels", "operands", "loads_runs", "blob_damage", "corpus"];

/// 32-bit hosts: C library and start files come with the Rust target, and the linker with the toolchain.
const NARROW: &str = "i686-unknown-linux-musl";

/// One way to look; `Some` says why it was skipped.
type Stage = fn(&Options, &mut Results) -> Result<Option<String>>;

const STAGES: [(&str, &str, Stage); 5] = [
    ("host", "ten million changed records, five million hostile files", host),
    (
        "address",
        "the attacks of the test command under AddressSanitizer",
        address,
    ),
    ("narrow", "the same on a 32-bit host, with overflow checks", narrow),
    ("miri", "the same on Miri, in part", miri),
    ("guided", "each target of host-tools/fuzz, guided by coverage", guided),
];

/// Options of the command.
pub(super) struct Options {
    /// For each guided target.
    pub(super) seconds: u32,
    /// The stages; all where there are none.
    pub(super) stages: Vec<String>,
}

/// Runs the stages, names those that could not run, and fails where one found something.
pub(super) fn attack(options: &Options) -> Result<()> {
    let known = STAGES.map(|(name, about, _)| format!("  {name:8} {about}"));
    if let Some(unknown) = options
        .stages
        .iter()
        .find(|stage| STAGES.iter().all(|(name, ..)| name != stage))
    {
        return Err(format!("no stage is called `{unknown}`; there are:\n{}", known.join("\n")).into());
    }
    let start = std::time::Instant::now();
    let mut results = Results::none();
    for (name, about, stage) in STAGES {
        if !options.stages.is_empty() && options.stages.iter().all(|wanted| wanted != name) {
            continue;
        }
        eprintln!("{name}: {about}");
        if let Some(reason) = stage(options, &mut results)? {
            results.skip(format!("skipped: {name}: {reason}"));
        }
    }
    results.finish(start, "").map(drop)
}

/// Runs files of tests; what is added to the command is for the programs.
fn tests(arguments: &[&str], files: &[&str]) -> Command {
    let mut command = cargo(&["test", "--package", "arenite-tests", "--no-fail-fast"]);
    command.args(arguments);
    command.args(suites::targets(&root(), files));
    command.arg("--").args(suites::filters(files));
    command
}

fn host(_: &Options, results: &mut Results) -> Result<Option<String>> {
    let mut command = tests(&["--release"], &["kernels", "operands", "loads_runs"]);
    command.args(["--ignored", "--nocapture"]);
    results.add(watched(command)?);
    Ok(None)
}

fn address(_: &Options, results: &mut Results) -> Result<Option<String>> {
    let Some(triple) = setup::host_triple() else {
        return Ok(Some("rustc does not name its host".into()));
    };
    // The sanitiser comes with stable toolchains and its flag does not: this lets the flag through. With a target, build scripts are built without it.
    let mut command = tests(&["--target", &triple, "--target-dir", "target/address"], &ATTACKS);
    command
        .args(["--skip", "board", "--show-output"])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("ASAN_OPTIONS", "detect_leaks=0");
    results.add(watched(command)?);
    Ok(None)
}

fn narrow(_: &Options, results: &mut Results) -> Result<Option<String>> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Ok(Some(format!("programs for {NARROW} run on 64-bit x86 under Linux")));
    }
    setup::rust_target(NARROW)?;
    let mut command = tests(&["--target", NARROW], &ATTACKS);
    command
        .args(["--skip", "board", "--show-output"])
        .env("CARGO_TARGET_I686_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld");
    results.add(watched(command)?);
    Ok(None)
}

/// Tests of the runtime that Miri runs: those of whatever has or guards a pointer. The others compute every value of some range, for hours.
const INTERPRETED: [&str; 5] = [
    "testkit::",
    "blob::",
    "once::",
    "trusted::",
    "kernels::primitives::strided_copy",
];

/// Both models of borrows: kernels and damaged steps of the test kit, the corpus of model files, and what else has a pointer.
fn miri(_: &Options, results: &mut Results) -> Result<Option<String>> {
    let installed = cargo(&["miri", "--version"]).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        return Ok(Some(
            "Miri comes with nightly toolchains alone: `rustup component add miri rust-src` there, and `cargo +nightly xtask`".into(),
        ));
    }
    for model in ["", "-Zmiri-tree-borrows"] {
        let mut command = cargo(&[
            "miri",
            "test",
            "--package",
            "arenite",
            "--features",
            "pack,testkit",
            "--lib",
        ]);
        command.args(["--test", "corpus", "--"]);
        command.args(INTERPRETED).args(["corpus", "bundle"]);
        // The corpus and the failures of property tests are files.
        command.env("MIRIFLAGS", format!("-Zmiri-disable-isolation {model}"));
        command.env("PROPTEST_CASES", "2");
        results.add(watched(command)?);
    }
    Ok(None)
}

fn guided(options: &Options, _: &mut Results) -> Result<Option<String>> {
    let installed = cargo(&["fuzz", "--version"]).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        return Ok(Some(
            "cargo-fuzz is not installed: `cargo install --locked cargo-fuzz`".into(),
        ));
    }
    let folder = root().join("host-tools/fuzz");
    let targets = Command::new("cargo")
        .args(["fuzz", "list"])
        .current_dir(&folder)
        .output()?;
    for target in String::from_utf8_lossy(&targets.stdout).lines() {
        let seconds = format!("-max_total_time={}", options.seconds);
        // New findings go into the first folder, which is not kept.
        let found = root().join("target/fuzz/corpus").join(target);
        std::fs::create_dir_all(&found)?;
        run(Command::new("cargo")
            .args(["fuzz", "run", target])
            .args([found, root().join("tests/corpus").join(target)])
            .args(["--", &seconds, "-rss_limit_mb=2048", "-timeout=30"])
            .env("RUSTC_BOOTSTRAP", "1")
            .current_dir(&folder))?;
    }
    Ok(None)
}
