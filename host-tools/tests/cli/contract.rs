//! The outside contract, walked: everything in it exists or is refused by name, and everything beyond it stands in `docs/cli.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{ARENITE, Bench, PACK, done, json, refused, run};

/// The contract's text; `None` where the shared data is not there.
fn contract() -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/design/CONTRACT.md");
    let text = fs::read_to_string(path).ok();
    if text.is_none() {
        eprintln!("skipped: the outside contract: no shared data");
    }
    text
}

fn document() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md")).expect("committed")
}

/// The part under a heading.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("\n## {heading}\n")).expect(heading);
    rest.split_once("\n## ").map_or(rest, |(section, _)| section)
}

/// The options that a line names.
fn options(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("--") {
        let rest = &line[at + 2..];
        let end = rest
            .find(|c: char| !c.is_ascii_lowercase() && c != '-' && !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let name = rest[..end].trim_end_matches('-');
        if !name.is_empty() && !line[..at].ends_with('-') {
            found.push(format!("--{name}"));
        }
    }
    found
}

/// The options that `--help` shows.
fn shown(program: &str, arguments: &[&str]) -> BTreeSet<String> {
    let help = done(run(program, arguments));
    // Lines that go on with a description begin further to the right.
    let lines = help.lines().filter(|line| !line.starts_with("          "));
    let lines = lines.map(str::trim_start).filter(|line| line.starts_with('-'));
    // The text two spaces behind an option describes it, and may name others.
    let names = lines.flat_map(|line| options(line.split("  ").next().unwrap_or_default()));
    names.collect()
}

/// Options that every command has, and that no contract needs to state.
const EVERYWHERE: [&str; 2] = ["--help", "--version"];

#[test]
fn every_option_of_pack_exists_or_is_refused_by_name() {
    let Some(text) = contract() else { return };
    let bench = Bench::new();
    let known = shown(PACK, &["--help"]);
    let usage = section(&text, "`pack`");
    let lines = usage.lines().filter(|line| line.starts_with("      --"));
    let stated: BTreeSet<String> = lines.flat_map(options).collect();
    assert!(stated.len() > 35, "{stated:?}");
    for option in stated.difference(&known) {
        // To an option without a value this is one more input.
        let mut command = Command::new(PACK);
        command.args(["t.json", "-o"]).arg(bench.path("m")).args([option, "8"]);
        let message = refused(command.output().expect("it starts"), 1);
        assert!(
            message.contains(&format!("{option} is not built yet: it comes with ")),
            "{option}: {message}"
        );
    }
    beyond("pack", &known, &stated);
}

/// Checks that options beyond the contract are documented.
fn beyond(command: &str, known: &BTreeSet<String>, stated: &BTreeSet<String>) {
    let document = document();
    let added = section(&document, "Beyond the contract");
    for option in known
        .difference(stated)
        .filter(|option| !EVERYWHERE.contains(&option.as_str()))
    {
        let line = added
            .lines()
            .any(|line| line.contains(&format!("`{command}`")) && line.contains(&format!("`{option}`")));
        assert!(
            line,
            "{command} {option} stands neither in the contract nor in docs/cli.md"
        );
    }
}

#[test]
fn every_command_of_arenite_exists_or_is_refused_by_name() {
    let Some(text) = contract() else { return };
    let usage = section(&text, "`arenite`");
    let mut stated: Vec<(String, Vec<String>)> = Vec::new();
    for line in usage.lines().filter(|line| line.starts_with("    arenite ")) {
        // Several commands may stand in one line.
        for part in line.split("arenite ").skip(1) {
            let part = part.split("   ").next().unwrap_or_default();
            let name = part.split_whitespace().next().unwrap_or_default().trim_end_matches(',');
            stated.push((name.to_string(), options(part)));
        }
    }
    assert!(stated.len() > 15, "{stated:?}");
    let help = done(run(ARENITE, &["--help"]));
    let exists = |name: &str| help.lines().any(|line| line.split_whitespace().next() == Some(name));
    for (name, options) in &stated {
        if !exists(name) {
            let message = refused(run(ARENITE, &[name, "x", "--y"]), 1);
            assert!(
                message.contains(&format!("arenite {name} is not built yet: it comes with ")),
                "{name}: {message}"
            );
            continue;
        }
        let known = shown(ARENITE, &[name, "--help"]);
        for option in options.iter().filter(|&option| !known.contains(option)) {
            let mut command = Command::new(ARENITE);
            command.args([name, "m.bin", option, "8"]);
            let message = refused(command.output().expect("it starts"), 1);
            assert!(
                message.contains(&format!("{option} is not built yet")),
                "{name} {option}: {message}"
            );
        }
    }
    for name in stated
        .iter()
        .map(|(name, _)| name)
        .filter(|name| exists(name))
        .collect::<BTreeSet<_>>()
    {
        let of_command = stated.iter().filter(|(other, _)| other == name);
        let stated = of_command.flat_map(|(_, options)| options.clone());
        beyond(name, &shown(ARENITE, &[name, "--help"]), &stated.collect());
    }
}

#[test]
fn every_field_of_the_summary_exists_and_others_are_documented() {
    let Some(text) = contract() else { return };
    let bench = Bench::new();
    let model = bench.packed("digits");
    let summary = json(&done(run(
        ARENITE,
        &[Path::new("inspect"), &model, Path::new("--json")],
    )));
    let (_, table) = section(&text, "`pack`")
        .split_once("| field | meaning |")
        .expect("a table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let stated: BTreeSet<&str> = rows
        .flat_map(|row| row.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2))
        .collect();
    assert!(stated.len() > 20, "{stated:?}");
    let document = document();
    let added = section(&document, "Beyond the contract");
    let fields = summary.as_object().expect("an object");
    for field in &stated {
        assert!(fields.contains_key(*field), "{field}");
    }
    for field in fields.keys().filter(|field| !stated.contains(field.as_str())) {
        assert!(
            added.contains(&format!("`{field}`")),
            "{field} stands neither in the contract nor in docs/cli.md"
        );
    }
}

#[test]
fn weights_lists_what_a_network_needs() {
    let trace = crate::common::digits("mlp.trace.json");
    let list = done(run(ARENITE, &[Path::new("weights"), &trace, Path::new("--list")]));
    assert_eq!(
        list,
        "fc1.bias\t[32]\nfc1.weight\t[32, 64]\nfc2.bias\t[10]\nfc2.weight\t[10, 32]\n"
    );
    refused(run(ARENITE, &[Path::new("weights"), &trace]), 2);
}
