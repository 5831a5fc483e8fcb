//! `cargo xtask long mutants`: one-line changes to the product, of which the tests must notice each.
//!
//! The changes are those of cargo-mutants. `.cargo/mutants.toml` says what is changed and whose tests look; `tests/mutants.txt` lists what
//! survives, each with the reason why nothing can notice it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Result, cargo, root};

/// Shards of a whole run: each is some hours on two cores, and can be run alone.
const SHARDS: usize = 32;

/// What `cargo mutants` ends with where every mutant was tried.
const TRIED: [i32; 3] = [0, 2, 3];

/// Runs one shard (`K/N`, K from 0), or all in turn; with `files` only the mutants in them.
pub(super) fn run(shard: Option<&str>, files: &[PathBuf]) -> Result<()> {
    let installed = cargo(&["mutants", "--version"]).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        return Err("cargo-mutants is not installed: `cargo install --locked cargo-mutants`".into());
    }
    let shards = match shard {
        Some(shard) => vec![shard.to_string()],
        None if !files.is_empty() => vec!["0/1".to_string()],
        None => (0..SHARDS).map(|shard| format!("{shard}/{SHARDS}")).collect(),
    };
    let mut survivors = Vec::new();
    for shard in shards {
        survivors.extend(one(&shard, files)?);
    }
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

/// The mutants of a shard that no test noticed.
fn one(shard: &str, files: &[PathBuf]) -> Result<Vec<String>> {
    let output = root().join("target/mutants").join(shard.replace('/', "-of-"));
    fs::create_dir_all(&output)?;
    let mut command = cargo(&["mutants", "--no-shuffle", "--shard", shard, "--output"]);
    command.arg(&output);
    for file in files {
        command.arg("--file").arg(file);
    }
    // The copy that is changed lies elsewhere: the shared data is not beside it.
    let shared = root().join("../shared");
    if std::env::var_os("ARENITE_SHARED").is_none() && shared.is_dir() {
        command.env("ARENITE_SHARED", shared.canonicalize()?);
    }
    eprintln!("$ {command:?}");
    let status = command.status()?;
    if !status.code().is_some_and(|code| TRIED.contains(&code)) {
        return Err(format!("`cargo mutants` ended with {status}").into());
    }
    let results = output.join("mutants.out");
    let read = |name: &str| read_lines(&results.join(name));
    Ok([read("missed.txt")?, read("timeout.txt")?]
        .concat()
        .iter()
        .map(|line| placeless(line))
        .collect())
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
    fn every_survivor_states_its_reason() {
        let known = reasons("# remark\n\na.rs: replace f -> u8 with 0 in b # the same bits\n").unwrap();
        assert_eq!(known["a.rs: replace f -> u8 with 0 in b"], "the same bits");
        assert!(reasons("a.rs: replace f with g").is_err());
        assert!(reasons("a.rs: replace f with g # ").is_err());
        let tracked = fs::read_to_string(root().join("tests/mutants.txt")).unwrap();
        assert!(reasons(&tracked).is_ok());
    }
}
