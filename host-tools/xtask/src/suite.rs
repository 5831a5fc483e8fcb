//! `cargo xtask test` and `cargo xtask long`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use arenite_host::board::{BOARDS, Firmware};

use super::{Result, cargo, root, run, setup};

/// Everything that must hold, cheapest first; the tests last, so that their results close the output.
pub(super) fn test() -> Result<()> {
    let start = Instant::now();
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    for manifest in ["firmware/Cargo.toml", "host-tools/qemu-plugin/Cargo.toml"] {
        run(&mut cargo(&["fmt", "--all", "--check", "--manifest-path", manifest]))?;
    }
    run(&mut cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    run(cargo(&["doc", "--workspace", "--no-deps", "--lib"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    for board in &BOARDS {
        for program in ["infer", "kernels", "selfcheck"] {
            eprintln!("firmware: {program} for {}", board.name);
            Firmware::build(board, program)?;
        }
    }
    references()?;
    let results = tests(&["test", "--workspace", "--no-fail-fast", "--", "--show-output"])?;
    results.finish(start)
}

/// Tests that take minutes: they are marked `ignore = "long: …"`.
pub(super) fn long(filter: Option<&str>) -> Result<()> {
    let start = Instant::now();
    let mut arguments = vec![
        "test",
        "--release",
        "--package",
        "arenite-tests",
        "--no-fail-fast",
        "--",
    ];
    arguments.extend(["--ignored", "--nocapture", "--test-threads", "1"]);
    arguments.extend(filter);
    let python = setup::python().ok_or("the references need Python with NumPy and safetensors")?;
    let mut command = cargo(&arguments);
    command.env("ARENITE_PYTHON", python);
    watched(command)?.finish(start)
}

/// The references' own tests, where Python has what they need.
fn references() -> Result<()> {
    let Some(python) = setup::python() else {
        eprintln!("skipped: tests/reference: no Python with NumPy and safetensors (`cargo xtask setup --python`)");
        return Ok(());
    };
    let arguments = ["-m", "unittest", "discover", "--quiet", "-s", "tests/reference"];
    run(Command::new(python).args(arguments).current_dir(root()))
}

#[derive(Default)]
struct Results {
    passed: u64,
    failed: u64,
    ignored: u64,
    skipped: Vec<String>,
    failures: Vec<String>,
    good: bool,
}

impl Results {
    /// The closing lines.
    fn finish(mut self, start: Instant) -> Result<()> {
        self.skipped.sort();
        self.skipped.dedup();
        self.skipped.iter().for_each(|line| println!("{line}"));
        self.failures.iter().for_each(|name| println!("failed: {name}"));
        let verdict = if self.good && self.failed == 0 { "ok" } else { "FAILED" };
        println!(
            "test result: {verdict}. {} passed; {} failed; {} ignored; {} skipped; finished in {:.0}s",
            self.passed,
            self.failed,
            self.ignored,
            self.skipped.len(),
            start.elapsed().as_secs_f64()
        );
        match verdict {
            "ok" => Ok(()),
            _ => Err("tests failed".into()),
        }
    }
}

fn tests(arguments: &[&str]) -> Result<Results> {
    watched(cargo(arguments))
}

/// Runs cargo test and passes its output on, but for what passing tests print: of that the `skipped:` lines are collected.
fn watched(mut command: Command) -> Result<Results> {
    eprintln!("$ {command:?}");
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut results = Results::default();
    let mut in_successes = false;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            if line.starts_with("skipped: ") {
                results.skipped.push(line.clone());
            }
            if line.starts_with("test result: ") {
                let count = |what: &str| {
                    let words: Vec<_> = line.split_whitespace().collect();
                    let at = words.iter().position(|word| word.trim_end_matches(';') == what);
                    at.and_then(|at| words.get(at.wrapping_sub(1))?.parse::<u64>().ok())
                        .unwrap_or(0)
                };
                results.passed += count("passed");
                results.failed += count("failed");
                results.ignored += count("ignored");
            }
            if let Some(name) = line.strip_prefix("test ").and_then(|l| l.strip_suffix(" ... FAILED")) {
                results.failures.push(name.to_owned());
            }
            match line.as_str() {
                "successes:" => in_successes = true,
                "failures:" => in_successes = false,
                _ if line.starts_with("test result: ") => in_successes = false,
                _ => {}
            }
            if !in_successes && !line.is_empty() {
                println!("{line}");
            }
        }
    }
    results.good = child.wait()?.success();
    Ok(results)
}
