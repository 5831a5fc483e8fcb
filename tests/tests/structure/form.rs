//! The form of the sources: lines within the limit, assembly that states what it needs, dependencies that are used.

use std::fs;
use std::path::PathBuf;

use crate::{root, sources};

/// Columns of a comment; what the formatter lays out has its own limit of 120.
const COLUMNS: usize = 160;

#[test]
fn no_line_is_longer_than_its_limit() {
    let mut long = Vec::new();
    for folder in ["core", "host-tools", "firmware", "tests/src", "tests/tests"] {
        for path in sources(&root().join(folder), "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            let lines = text
                .lines()
                .enumerate()
                .filter(|(_, line)| line.chars().count() > COLUMNS);
            long.extend(lines.map(|(at, line)| format!("{}:{}: {}", path.display(), at + 1, line.chars().count())));
        }
    }
    assert!(long.is_empty(), "over {COLUMNS} columns:\n{}", long.join("\n"));
}

/// One block's `.cpu` reaches the next of the same module, and hides that it lacks its own.
#[test]
fn every_block_of_assembly_names_its_core() {
    let mut blocks = 0;
    for path in sources(&root().join("core/src"), "rs") {
        let text = fs::read_to_string(&path).expect("a source");
        for (at, _) in text.match_indices("asm!(") {
            blocks += 1;
            let block: String = text[at..].chars().take(800).collect();
            let named = [".cpu ", ".option push", "prologue!", "rv!(", "head!"];
            let line = text[..at].lines().count();
            assert!(
                named.iter().any(|directive| block.contains(directive)),
                "{}:{line}: the assembly names no core: `.cpu`, or `.option push` and `.option arch`",
                path.display()
            );
        }
    }
    assert!(blocks > 20, "{blocks}");
}

/// A dependency that no source names is none. Cargo's spelling has dashes.
#[test]
fn every_dependency_is_used() {
    for folder in [
        "core",
        "host-tools",
        "host-tools/xtask",
        "firmware",
        "firmware/protocol",
        "tests",
    ] {
        let folder = root().join(folder);
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let mut own: Vec<PathBuf> = Vec::new();
        for part in ["src", "tests", "examples"] {
            if folder.join(part).is_dir() {
                own.extend(sources(&folder.join(part), "rs"));
            }
        }
        let text: String = own
            .iter()
            .map(|path| fs::read_to_string(path).expect("a source"))
            .collect();
        let mut within = false;
        for line in manifest.lines() {
            if let Some(section) = line.strip_prefix('[') {
                within = section.trim_end_matches(']').ends_with("dependencies") && !section.starts_with("workspace");
                continue;
            }
            let Some((name, _)) = line.split_once(['=', '.', ' ']) else {
                continue;
            };
            if !within || name.is_empty() || line.starts_with('#') {
                continue;
            }
            let name = name.replace('-', "_");
            let used = [
                format!("{name}::"),
                format!("use {name};"),
                format!("use {name} as"),
                format!("derive({name}"),
            ];
            assert!(
                used.iter().any(|used| text.contains(used)),
                "{}: {name} is used nowhere",
                folder.display()
            );
        }
    }
}
