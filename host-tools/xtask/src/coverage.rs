//! `cargo xtask coverage`: lines of the runtime and of the host tools that the tests run on the host, and branches of what load checks.
//!
//! rustc's own instrumentation counts, in a build of its own; programs that tests start count as well. Programs on boards do not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::suite::watched;
use super::{Result, branches, cargo, on_host, root, run, setup};

/// Areas that are counted, by the beginning of their paths; the first that fits.
const AREAS: [(&str, &str); 23] = [
    ("core/src/blob", "load: file, sections, ports"),
    ("core/src/kernels", "kernels, portable code"),
    ("core/src/ops", "operators and their checks"),
    ("core/src/quant", "fixed point"),
    ("core/src", "sessions, bundles, signatures, the rest of the runtime"),
    ("host-tools/board/src/board", "boards in qemu"),
    ("host-tools/src/cli", "commands"),
    ("host-tools/graph/src/files", "files"),
    ("host-tools/graph/src/graph", "graph"),
    ("host-tools/import/src", "importers"),
    ("host-tools/plan/src/lower", "lowering"),
    (
        "host-tools/plan/src/memory",
        "memory: schedule, in place, plan, fit, proof",
    ),
    ("host-tools/plan/src/passes", "passes"),
    ("host-tools/graph/src/weights", "weights"),
    ("host-tools/board/src", "chips, bounds of steps"),
    ("host-tools/graph/src", "model files, programs, the summary"),
    ("host-tools/plan/src", "dead channels, the model file's bytes"),
    ("host-tools/quantise/src", "quantisation, samples"),
    ("host-tools/src", "pack, pages, the rest of the host tools"),
    ("firmware/protocol/src", "protocol of boards"),
    ("firmware/sensors/src", "sources of samples"),
    ("firmware/serial/src", "models over a serial port"),
    ("firmware/stream/src", "models in pieces"),
];

/// Lines of one area, and those of them that ran.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Lines {
    count: u64,
    covered: u64,
}

impl Lines {
    fn percent(self) -> f64 {
        100.0 * self.covered as f64 / self.count.max(1) as f64
    }
}

/// Builds and runs the tests, and prints the table of `docs/testing.md` and the branches of checks that were seen one way only; with `files`, these
/// with how often each line ran.
pub(super) fn measure(files: &[PathBuf]) -> Result<()> {
    if tool("llvm-cov").is_err() {
        setup::component("llvm-tools")?;
    }
    let triple = setup::host_triple().ok_or("rustc does not name its host")?;
    let folder = root().join("target/coverage");
    let profiles = folder.join("profiles");
    if profiles.is_dir() {
        fs::remove_dir_all(&profiles)?;
    }
    fs::create_dir_all(&profiles)?;
    let (targets, filters) = on_host::chosen()?;
    let instrumented = |arguments: &[&str]| {
        let mut command = cargo(&["test", "--target", &triple, "--target-dir"]);
        command.arg(&folder);
        for package in on_host::PACKAGES {
            command.args(["--package", package]);
        }
        command.args(&targets);
        command.args(arguments);
        // Of this target alone: what tests build for boards has no runtime that counts.
        let flags = format!("CARGO_TARGET_{}_RUSTFLAGS", triple.to_uppercase().replace('-', "_"));
        command.env(flags, "-C instrument-coverage -Z coverage-options=branch");
        // For the option, which stable compilers take from those who ask for it.
        command.env("RUSTC_BOOTSTRAP", "1");
        command.env("LLVM_PROFILE_FILE", profiles.join("%8m.profraw"));
        command
    };
    let programs = programs(instrumented(&["--no-run", "--message-format=json"]))?;
    let mut tests = instrumented(&["--no-fail-fast", "--", "--show-output"]);
    tests.args(filters);
    watched(tests)?.finish(std::time::Instant::now(), "")?;
    let merged = folder.join("tests.profdata");
    let raw = fs::read_dir(&profiles)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    run(Command::new(tool("llvm-profdata")?)
        .args(["merge", "--sparse", "--output"])
        .arg(&merged)
        .args(raw))?;
    let cov = |task: &str| -> Result<Command> {
        let mut command = Command::new(tool("llvm-cov")?);
        command.arg(task).arg("--instr-profile").arg(&merged);
        let mut objects = programs.iter();
        command.args(objects.next());
        command.args(objects.flat_map(|object| [Path::new("--object"), object]));
        Ok(command)
    };
    if files.is_empty() {
        let options = ["--skip-functions", "--skip-expansions"];
        let output = cov("export")?.args(options).stderr(Stdio::inherit()).output()?;
        let export = serde_json::from_slice(&output.stdout)?;
        print!(
            "{}\n{}",
            table(&areas(&export, &root())?),
            branches::report(&export, &root())?
        );
        return Ok(());
    }
    let mut show = cov("show")?;
    run(show.arg("--sources").args(files.iter().map(|file| root().join(file))))
}

/// All programs that the tests are and start.
fn programs(mut build: Command) -> Result<Vec<PathBuf>> {
    eprintln!("$ {build:?}");
    let output = build.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("the build ended with {}", output.status).into());
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let messages = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(messages
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .collect())
}

/// A program of the component `llvm-tools`.
fn tool(name: &str) -> Result<PathBuf> {
    let output = Command::new("rustc").args(["--print", "target-libdir"]).output()?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let path = libraries.with_file_name("bin").join(name);
    if path.is_file() {
        Ok(path)
    } else {
        Err(format!("{} is missing: `rustup component add llvm-tools`", path.display()).into())
    }
}

/// Returns the lines of `llvm-cov export`, added up by area.
fn areas(export: &Value, root: &Path) -> Result<BTreeMap<usize, Lines>> {
    let files = export["data"][0]["files"]
        .as_array()
        .ok_or("llvm-cov exported no files")?;
    let mut areas: BTreeMap<usize, Lines> = BTreeMap::new();
    for file in files {
        let name = Path::new(file["filename"].as_str().unwrap_or_default());
        let Ok(path) = name.strip_prefix(root) else { continue };
        let of_tests = |part: &std::ffi::OsStr| part == "tests" || part == "tests.rs" || part == "testkit";
        if path.iter().any(of_tests) {
            continue;
        }
        let Some(area) = AREAS.iter().position(|(start, _)| path.starts_with(start)) else {
            continue;
        };
        let lines = &file["summary"]["lines"];
        let number = |what: &str| lines[what].as_u64().unwrap_or(0);
        let sum = areas.entry(area).or_default();
        sum.count += number("count");
        sum.covered += number("covered");
    }
    Ok(areas)
}

fn table(areas: &BTreeMap<usize, Lines>) -> String {
    let mut text = String::from("| files | what | lines | run | % |\n| --- | --- | --: | --: | --: |\n");
    let mut row = |start: &str, about: &str, lines: Lines| {
        let Lines { count, covered } = lines;
        text += &format!("| {start} | {about} | {count} | {covered} | {:.1} |\n", lines.percent());
    };
    let total = |start: &str| {
        areas
            .iter()
            .filter(|(area, _)| AREAS[**area].0.starts_with(start))
            .fold(Lines::default(), |sum, (_, lines)| Lines {
                count: sum.count + lines.count,
                covered: sum.covered + lines.covered,
            })
    };
    for (&area, &lines) in areas {
        let (start, about) = AREAS[area];
        row(&format!("`{start}`"), about, lines);
    }
    for start in ["core", "host-tools"] {
        row(&format!("**`{start}`**"), "all of it", total(start));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_up_by_area_without_those_of_tests() {
        let file = |name: &str, count: u64, covered: u64| serde_json::json!({"filename": name, "summary": {"lines": {"count": count, "covered": covered}}});
        let files = [
            file("/r/core/src/blob/load.rs", 80, 79),
            file("/r/core/src/blob/port.rs", 20, 20),
            file("/r/core/src/session.rs", 100, 50),
            file("/r/core/src/testkit/cases.rs", 1000, 0),
            file("/r/core/src/kernels/dsp/tests.rs", 1000, 0),
            file("/r/host-tools/plan/src/memory/plan/tests/check.rs", 1000, 0),
            file("/r/host-tools/plan/src/memory/plan/check.rs", 8, 2),
            file("/elsewhere/core/src/lib.rs", 1000, 0),
            file("/r/tests/src/lib.rs", 1000, 0),
        ];
        let export = serde_json::json!({"data": [{"files": files}]});
        let areas = areas(&export, Path::new("/r")).unwrap();
        let text = table(&areas);
        for row in [
            "| `core/src/blob` | load: file, sections, ports | 100 | 99 | 99.0 |",
            "| **`core`** | all of it | 200 | 149 | 74.5 |",
            "| **`host-tools`** | all of it | 8 | 2 | 25.0 |",
        ] {
            assert!(text.contains(row), "{text}");
        }
        assert_eq!(text.lines().count(), 2 + 3 + 2);
        assert!(super::areas(&serde_json::json!({}), Path::new("/r")).is_err());
    }

    #[test]
    fn every_area_exists() {
        for (start, _) in AREAS {
            assert!(root().join(start).is_dir(), "{start}");
        }
    }
}
