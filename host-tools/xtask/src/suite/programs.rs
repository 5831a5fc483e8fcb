//! The programs of tests that cargo builds, each run by itself: starting cargo for each costs more than many of them take.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use arenite_xtask::suites::SUITES;
use arenite_xtask::turns;
use serde_json::Value;

use super::super::{cargo, root, setup};
use super::watch::wait;
use super::{Outcome, watch};
use super::{Result, jobs::Job};

/// A program of tests.
#[derive(Clone)]
pub(super) struct Program {
    /// `tflite_run` of a file of tests; `arenite-host` of a library's unit tests; `xtask (program)` of a program's.
    pub(super) name: String,
    file: PathBuf,
    package: PathBuf,
    /// The suite that it belongs to: unit tests and the command line's are the host's.
    pub(super) suite: &'static str,
    /// Where it is one file of a suite: the names of that file's tests.
    tests: Option<Vec<String>>,
}

/// Builds the tests that `arguments` of `cargo test` name.
pub(super) fn built(arguments: &[&str]) -> Result<Vec<Program>> {
    let mut build = cargo(&["test", "--no-run", "--message-format", "json-render-diagnostics"]);
    build.args(arguments);
    eprintln!("$ {build:?}");
    // A file takes it all, however long this process waits.
    let mut messages = tempfile::tempfile()?;
    let mut child = build.stdout(Stdio::from(messages.try_clone()?)).spawn()?;
    let status = wait(&mut child)?;
    if !status.success() {
        return Err(format!("`{build:?}` ended with {status}").into());
    }
    std::io::Seek::rewind(&mut messages)?;
    let text = std::io::read_to_string(messages)?;
    let built = text.lines().filter_map(program);
    let programs = built.map(files).collect::<Result<Vec<_>>>()?.concat();
    if programs.is_empty() {
        return Err(format!("`{build:?}` built no tests").into());
    }
    Ok(programs)
}

/// The program of which a message of cargo tells.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    let file = PathBuf::from(message["executable"].as_str()?);
    let target = &message["target"];
    if message["profile"]["test"] != true {
        return None;
    }
    let name = target["name"].as_str()?;
    let name = match target["kind"][0].as_str()? {
        "test" => name.to_owned(),
        "bin" => format!("{name} (program)"),
        "example" => format!("{name} (example)"),
        _ => name.replace('_', "-"),
    };
    let package = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_owned();
    Some(Program {
        name,
        file,
        package,
        suite: SUITES[0],
        tests: None,
    })
}

/// A suite as its files, each of which runs in a process of its own; any other program as it is.
fn files(program: Program) -> Result<Vec<Program>> {
    let Some(suite) = SUITES.into_iter().find(|suite| *suite == program.name) else {
        return Ok(vec![program]);
    };
    let listed = program.command(&["--list", "--format", "terse"]).output()?;
    if !listed.status.success() {
        return Err(format!("`{} --list` ended with {}", program.file.display(), listed.status).into());
    }
    let text = String::from_utf8_lossy(&listed.stdout);
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    let mut files: Vec<Program> = Vec::new();
    for name in names {
        let Some((file, _)) = name.split_once("::") else {
            return Err(
                format!("tests/tests/{suite}/main.rs has a test, `{name}`: move it into a file of its own").into(),
            );
        };
        match files.last_mut() {
            Some(last) if last.name == file => last.tests.get_or_insert_default().push(name.to_owned()),
            _ => files.push(Program {
                name: file.to_owned(),
                suite,
                tests: Some(vec![name.to_owned()]),
                ..program.clone()
            }),
        }
    }
    Ok(files)
}

/// The programs of which a run takes a part, by the commit: they build what users build, or runtimes with a feature that no other test wants, minutes each, and
/// compare little with oracles. Their own tests that go by turns count the runs that have their program.
const BY_TURNS: [&[&[&str]]; 2] = [
    &[
        &["new", "slots_killed"],
        &["panics", "serial"],
        &["signed_boards", "compiled"],
        &["installed", "embedded", "camera"],
        &["self_test_boards", "python"],
        &["include", "learner"],
        &["matrix", "c"],
        &["places", "tasks", "arena_boards"],
    ],
    &[&["cores", "footprint"], &["accelerators", "stream"]],
];

/// The number of the commit, by which tests that go by turns know theirs.
static TURN: OnceLock<usize> = OnceLock::new();

/// From now on tests that go by turns take theirs alone.
pub(super) fn take_turns(number: usize) {
    _ = TURN.set(number);
}

/// Whether the program is another run's turn.
pub(super) fn waits(name: &str) -> bool {
    let number = TURN.get().copied();
    number.is_some_and(|number| part(name).is_some_and(|(part, of)| part != number % of))
}

/// The part of [`BY_TURNS`] that has the program, and of how many.
fn part(name: &str) -> Option<(usize, usize)> {
    BY_TURNS.iter().find_map(|parts| {
        let part = parts.iter().position(|part| part.contains(&name))?;
        Some((part, parts.len()))
    })
}

/// Tells a process that one of so many runs has the run's number, in a run with turns.
pub(in super::super) fn tell(command: &mut Command, runs: usize) {
    if let Some(number) = TURN.get() {
        command.env(turns::VARIABLE, (number / runs).to_string());
    }
}

/// Those that are this run's turn, of so many turns, where one of `runs` runs has them; all of them in a run without turns.
pub(super) fn taken<T>(runs: usize, turns: usize, all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mine = |index: usize| TURN.get().is_none_or(|turn| index % turns == turn / runs % turns);
    let all = all.into_iter().enumerate().filter(|(index, _)| mine(*index));
    all.map(|(_, one)| one).collect()
}

impl Program {
    /// The command, as `cargo test` gives it.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.file);
        command.args(arguments).current_dir(&self.package);
        command.env("CARGO_MANIFEST_DIR", &self.package);
        // Python that the set-up put beside this checkout.
        static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
        if let Some(python) = PYTHON.get_or_init(setup::python) {
            command.env("ARENITE_PYTHON", python);
        }
        tell(&mut command, part(&self.name).map_or(1, |(_, of)| of));
        let vela = root().join(".venv/bin/vela");
        if std::env::var_os("ARENITE_VELA").is_none() && vela.is_file() {
            command.env("ARENITE_VELA", vela);
        }
        command
    }

    /// Returns the name of a test of this file in libtest.
    pub(super) fn test(&self, name: &str) -> String {
        match self.tests {
            Some(_) => format!("{}::{name}", self.name),
            None => name.to_owned(),
        }
    }

    /// All of its tests but those of the long tier, shown when they have ended.
    pub(super) fn job(&self) -> Job {
        let program = self.clone();
        Job::new(self.name.clone(), move || {
            let mut command = program.command(&["--show-output"]);
            if let Some(tests) = &program.tests {
                command.arg("--exact").args(tests);
            }
            let mut outcome = shown(command)?;
            if let Outcome::Tested(results) = &mut outcome {
                for (of, name) in &mut results.long {
                    of.clone_from(&program.name);
                    if let Some(short) = name.strip_prefix(&program.test("")) {
                        *name = short.to_owned();
                    }
                }
            }
            Ok(outcome)
        })
    }
}

/// Runs tests and shows what they say in one piece.
pub(super) fn shown(command: Command) -> Result<Outcome> {
    let mut text = format!("$ {command:?}\n");
    let results = watch::heard(command, |line| {
        text += line;
        text += "\n";
    });
    println!("{text}");
    let mut results = results?;
    if !results.good && results.failed == 0 {
        results.fail("it ended with an error".into());
    }
    Ok(Outcome::Tested(results))
}

#[cfg(test)]
mod tests {
    use arenite_xtask::suites;

    use super::*;

    #[test]
    fn programs_are_found_among_what_cargo_says() {
        let message = |kind: &str, name: &str, test: bool| {
            let said = serde_json::json!({
                "reason": "compiler-artifact",
                "manifest_path": "/a/tests/Cargo.toml",
                "target": {"kind": [kind], "name": name},
                "profile": {"test": test},
                "executable": "/a/target/debug/deps/x-1",
            });
            program(&said.to_string()).map(|program| program.name)
        };
        assert_eq!(message("test", "tflite_run", true).as_deref(), Some("tflite_run"));
        assert_eq!(message("lib", "arenite_host", true).as_deref(), Some("arenite-host"));
        assert_eq!(message("bin", "xtask", true).as_deref(), Some("xtask (program)"));
        assert_eq!(message("bin", "pack", false), None);
        assert!(program("{\"reason\": \"build-finished\"}").is_none());
    }

    #[test]
    fn programs_that_go_by_turns_are_there_and_in_one_part() {
        let mut all = BY_TURNS.concat().concat();
        for name in &all {
            assert!(suites::find(&root(), name).is_some(), "{name}");
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert_eq!(
            (part("serial"), part("stream"), part("guards")),
            (Some((1, 8)), Some((1, 2)), None)
        );
        // No run is under way in this process.
        assert!(!waits("new") && !waits("guards"));
    }
}
