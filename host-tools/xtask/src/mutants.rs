//! `cargo xtask long mutants`: one-line changes to the product, of which the tests must notice each. `cargo xtask test` tries some of those in the lines that
//! differ from the main branch.
//!
//! The changes are those of cargo-mutants. `.cargo/mutants.toml` says what is changed and whose tests look; `tests/mutants.txt` lists what
//! survives, each with the reason why nothing can notice it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use arenite_xtask::suites;

use super::suite::Outcome;
use super::{Result, cargo, on_host, root, run as execute};

/// Shards of a whole run: each is days on two cores, and can be run alone, as can a smaller one (`--shard 3/3200`).
const SHARDS: usize = 32;

/// Exit statuses of `cargo mutants` where every mutant was tried.
const TRIED: [i32; 3] = [0, 2, 3];

/// A mutant whose tests take so many times as long as without it, and so many seconds more, is endless.
const TIMES: u64 = 3;
const LEAST_SECONDS: u64 = 600;

/// The most mutants of changed lines that the test command tries: each is a build and the tests of [`NARROW`], about a minute on two cores.
const CHANGED: usize = 4;

/// Files of tests that judge changed lines, with all unit tests: those whose oracle is the narrowest, and no board.
const NARROW: [&str; 4] = ["guards", "judges", "rewrites", "tflite_run"];

/// Runs one shard (`K/N`, K from 0), or all in turn; with `files` only the mutants in them.
pub(super) fn run(shard: Option<&str>, files: &[PathBuf]) -> Result<()> {
    if !installed() {
        return Err("cargo-mutants is not installed: `cargo install --locked cargo-mutants`".into());
    }
    let shards = match shard {
        Some(shard) => vec![shard.to_string()],
        None if !files.is_empty() => vec!["0/1".to_string()],
        None => (0..SHARDS).map(|shard| format!("{shard}/{SHARDS}")).collect(),
    };
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let only: Vec<&str> = files.iter().flat_map(|file| ["--file", file.as_str()]).collect();
    let (targets, filters) = on_host::chosen()?;
    let tree = Tree::new(targets, filters)?;
    let mut survivors = Vec::new();
    for shard in shards {
        survivors.extend(tree.mutate(&shard, &only)?);
    }
    judge(&survivors)
}

/// Tries some mutants of the lines that differ from the main branch, where there is one.
pub(super) fn changed() -> Result<Outcome> {
    const NAME: &str = "mutants-changed";
    let Some(base) = ["main", "origin/main"].into_iter().find_map(merge_base) else {
        return Ok(Outcome::skipped(NAME, "no main branch to compare with"));
    };
    let diff = git(&[
        "diff",
        "--no-color",
        "--no-ext-diff",
        &base,
        "--",
        "core/src",
        "host-tools/src",
        "host-tools/board/src",
        "host-tools/graph/src",
        "host-tools/import/src",
        "host-tools/plan/src",
        "host-tools/quantise/src",
    ])
    .unwrap_or_default();
    if diff.trim().is_empty() {
        // This is the main branch: there is nothing to try.
        return Ok(Outcome::Held);
    }
    if !installed() {
        return Ok(Outcome::skipped(NAME, "cargo-mutants is missing"));
    }
    let folder = root().join("target/mutants");
    fs::create_dir_all(&folder)?;
    let file = folder.join("changed.diff");
    fs::write(&file, diff)?;
    let file = file.display().to_string();
    let listed = cargo(&["mutants", "--list", "--in-diff", &file]).output()?;
    if !listed.status.success() {
        return Err(format!("`cargo mutants --list` ended with {}", listed.status).into());
    }
    let count = String::from_utf8_lossy(&listed.stdout).lines().count();
    if count == 0 {
        return Ok(Outcome::skipped(NAME, "no changed line has a mutant"));
    }
    let shards = count.div_ceil(CHANGED);
    let targets = ["--lib", "--test", "host"].map(String::from);
    let mut filters = suites::filters(&NARROW);
    // Where unit tests stand in libraries.
    filters.push("tests::".into());
    let survivors = Tree::new(targets.into(), filters)?.mutate(&format!("0/{shards}"), &["--in-diff", &file])?;
    judge(&survivors)?;
    match shards {
        1 => Ok(Outcome::Held),
        _ => Ok(Outcome::skipped(
            NAME,
            &format!(
                "all but one in {shards} of {count} mutants; `cargo xtask long mutants --file FILE` tries the rest"
            ),
        )),
    }
}

fn installed() -> bool {
    let version = cargo(&["mutants", "--version"]).output();
    version.is_ok_and(|output| output.status.success())
}

/// Where this branch left another one.
fn merge_base(branch: &str) -> Option<String> {
    git(&["merge-base", "HEAD", branch]).map(|base| base.trim().to_string())
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(root()).output().ok()?;
    let said = output.status.success().then_some(output.stdout)?;
    Some(String::from_utf8_lossy(&said).into_owned())
}

/// Every survivor must have its reason.
fn judge(survivors: &[String]) -> Result<()> {
    let list = root().join("tests/mutants.txt");
    let known = reasons(&fs::read_to_string(&list)?)?;
    let new: Vec<&String> = survivors.iter().filter(|mutant| !known.contains_key(*mutant)).collect();
    new.iter().for_each(|mutant| println!("survives: {mutant}"));
    println!(
        "{} survive, {} of them with a reason",
        survivors.len(),
        survivors.len() - new.len()
    );
    if new.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "{} mutants survive: kill them, or state in {} why nothing can",
            new.len(),
            list.display()
        )
        .into())
    }
}

/// A copy of the sources, in which they are changed. cargo-mutants copies them itself as well, but then tests without a change no package but the changed
/// one: tests of another package that fail for a reason of their own would notice every mutant.
struct Tree {
    folder: PathBuf,
    /// Arguments that choose the tests, for cargo and for their programs.
    targets: Vec<String>,
    filters: Vec<String>,
    /// How long they take without a change, their build included.
    time: Duration,
}

impl Tree {
    /// Copies the sources, and runs these tests on them as they are.
    fn new(targets: Vec<String>, filters: Vec<String>) -> Result<Self> {
        let mut tree = Self {
            folder: root().join("target/mutants/tree"),
            targets,
            filters,
            time: Duration::ZERO,
        };
        let listed = git(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .ok_or("the sources are no git repository: nothing says which files they are")?;
        copy(
            &root(),
            &tree.folder,
            listed.split('\0').filter(|name| !name.is_empty()),
        )?;
        let mut command = cargo(&["test", "--quiet"]);
        for package in on_host::PACKAGES {
            command.args(["--package", package]);
        }
        let begin = Instant::now();
        command.args(&tree.targets).arg("--").args(&tree.filters);
        execute(tree.prepare(&mut command)?)
            .map_err(|error| format!("{error}: the tests must pass before anything is changed"))?;
        tree.time = begin.elapsed();
        Ok(tree)
    }

    /// Lets a command run in the copy, which the shared data is not beside.
    fn prepare<'c>(&self, command: &'c mut Command) -> Result<&'c mut Command> {
        let shared = root().join("../shared");
        if std::env::var_os("ARENITE_SHARED").is_none() && shared.is_dir() {
            command.env("ARENITE_SHARED", shared.canonicalize()?);
        }
        Ok(command.env_remove("CARGO_TARGET_DIR").current_dir(&self.folder))
    }

    /// The mutants of a shard that no test noticed; `only` chooses among all.
    fn mutate(&self, shard: &str, only: &[&str]) -> Result<Vec<String>> {
        let output = root().join("target/mutants").join(shard.replace('/', "-of-"));
        fs::create_dir_all(&output)?;
        let mut command = cargo(&["mutants", "--in-place", "--baseline", "skip", "--no-shuffle"]);
        let limit = TIMES * self.time.as_secs() + LEAST_SECONDS;
        command.args(["--timeout", &limit.to_string(), "--build-timeout", &limit.to_string()]);
        command.args(["--shard", shard, "--output"]).arg(&output).args(only);
        for package in on_host::PACKAGES {
            command.args(["--test-package", package]);
        }
        command.arg("--").args(&self.targets).arg("--").args(&self.filters);
        self.prepare(&mut command)?;
        eprintln!("$ {command:?}");
        let status = command.status()?;
        if !status.code().is_some_and(|code| TRIED.contains(&code)) {
            return Err(format!("`cargo mutants` ended with {status}").into());
        }
        let results = output.join("mutants.out");
        let read = |name: &str| read_lines(&results.join(name));
        // A mutant that makes a test endless is noticed, as by the guard of the test command.
        println!(
            "{} caught, {} endless, {} do not compile",
            read("caught.txt")?.len(),
            read("timeout.txt")?.len(),
            read("unviable.txt")?.len()
        );
        Ok(read("missed.txt")?.iter().map(|line| placeless(line)).collect())
    }
}

/// Makes `to` hold these files of `from` and no others but those of builds. An equal file stays as it is, so that little is built again.
fn copy<'n>(from: &Path, to: &Path, names: impl Iterator<Item = &'n str>) -> Result<()> {
    let mut wanted = BTreeSet::new();
    for name in names {
        let (source, copy) = (from.join(name), to.join(name));
        // A file that was deleted is listed until that is committed, and a link may lead to a folder.
        let Ok(content) = fs::read(&source) else { continue };
        if fs::read(&copy).ok().as_ref() != Some(&content) {
            fs::create_dir_all(copy.parent().unwrap_or(to))?;
            fs::write(&copy, content)?;
            fs::set_permissions(&copy, fs::metadata(&source)?.permissions())?;
        }
        wanted.insert(copy);
    }
    let mut folders = vec![to.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                if !path.ends_with("target") {
                    folders.push(path);
                }
            } else if !wanted.contains(&path) {
                fs::remove_file(path)?;
            }
        }
    }
    Ok(())
}

fn read_lines(path: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(text.lines().map(str::to_string).collect())
}

/// A mutant without its line and column, which every edit above it would change: `FILE:LINE:COLUMN: WHAT` is `FILE: WHAT`.
fn placeless(mutant: &str) -> String {
    let Some((place, what)) = mutant.split_once(": ") else {
        return mutant.to_string();
    };
    let file = place.split(':').next().unwrap_or(place);
    format!("{file}: {what}")
}

/// Survivors with their reasons: lines of `MUTANT # REASON`; those that start with `#` are remarks.
fn reasons(text: &str) -> Result<BTreeMap<String, String>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parsed = lines.map(|line| match line.split_once(" # ") {
        Some((mutant, reason)) if !reason.trim().is_empty() => {
            Ok((mutant.trim().to_string(), reason.trim().to_string()))
        }
        _ => Err(format!("tests/mutants.txt: `{line}` states no reason").into()),
    });
    parsed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_are_known_by_file_and_change() {
        let mutant = "core/src/session.rs:226:22: replace < with <= in Session::step";
        assert_eq!(
            placeless(mutant),
            "core/src/session.rs: replace < with <= in Session::step"
        );
        assert_eq!(placeless("no place"), "no place");
    }

    #[test]
    fn a_copy_has_the_files_that_are_listed_and_no_others_but_those_of_builds() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let put = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(from.join("a.rs"), "a");
        put(from.join("b/c.rs"), "c");
        put(from.join("unlisted"), "");
        put(to.join("a.rs"), "a changed one, which a run that was ended left behind");
        put(to.join("b/gone.rs"), "");
        put(to.join("target/debug/built"), "");
        copy(&from, &to, ["a.rs", "b/c.rs", "deleted.rs"].into_iter()).unwrap();
        let read = |name: &str| fs::read_to_string(to.join(name)).ok();
        assert_eq!(read("a.rs").as_deref(), Some("a"));
        assert_eq!(read("b/c.rs").as_deref(), Some("c"));
        assert_eq!((read("b/gone.rs"), read("unlisted")), (None, None));
        assert!(read("target/debug/built").is_some());
        // An equal file is not written again: its time says so.
        let written = || fs::metadata(to.join("a.rs")).unwrap().modified().unwrap();
        let before = written();
        copy(&from, &to, ["a.rs"].into_iter()).unwrap();
        assert_eq!((before, read("b/c.rs")), (written(), None));
    }

    #[test]
    fn every_survivor_states_its_reason() {
        let known = reasons("# remark\n\na.rs: replace f -> u8 with 0 in b # the same bits\n").unwrap();
        assert_eq!(known["a.rs: replace f -> u8 with 0 in b"], "the same bits");
        assert!(reasons("a.rs: replace f with g").is_err());
        assert!(reasons("a.rs: replace f with g # ").is_err());
        let tracked = fs::read_to_string(root().join("tests/mutants.txt")).unwrap();
        assert!(reasons(&tracked).is_ok());
    }
}
