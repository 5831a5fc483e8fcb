//! The form of the sources: lines within the limit, assembly that states what it needs, dependencies that are used.

use std::fs;
use std::path::Path;

use regex::Regex;

use crate::structure::{root, sources};

/// Columns of a comment and of Python; what the formatter lays out has its own limit of 120.
const COLUMNS: usize = 160;

fn too_long(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a source");
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.chars().count() > COLUMNS);
    lines
        .map(|(at, line)| format!("{}:{}: {}", path.display(), at + 1, line.chars().count()))
        .collect()
}

#[test]
fn no_line_is_longer_than_its_limit() {
    let mut long = Vec::new();
    for folder in ["core", "host-tools", "firmware", "tests/src", "tests/tests"] {
        for path in sources(&root().join(folder), "rs") {
            long.extend(too_long(&path));
        }
    }
    for folder in ["host-tools/python", "tests/oracle", "tests/reference"] {
        for path in sources(&root().join(folder), "py") {
            long.extend(too_long(&path));
        }
    }
    assert!(long.is_empty(), "over {COLUMNS} columns:\n{}", long.join("\n"));
}

/// A file is about one thing; what is longer is about two.
#[test]
fn no_file_is_longer_than_500_lines() {
    const LINES: usize = 500;
    let mut long = Vec::new();
    for (folder, ending) in [
        ("core", "rs"),
        ("host-tools", "rs"),
        ("host-tools", "py"),
        ("firmware", "rs"),
        ("tests/src", "rs"),
        ("tests/tests", "rs"),
        ("tests/oracle", "py"),
        ("tests/reference", "py"),
    ] {
        for path in sources(&root().join(folder), ending) {
            let lines = fs::read_to_string(&path).expect("a source").lines().count();
            // A kernel's loops stay together.
            if lines > LINES && !path.starts_with(root().join("core/src/kernels")) {
                long.push(format!("{}: {lines}", path.display()));
            }
        }
    }
    assert!(long.is_empty(), "over {LINES} lines:\n{}", long.join("\n"));
}

/// One block's `.cpu` or `.arch` reaches the next of the same module, and hides that it lacks its own.
#[test]
fn every_block_of_assembly_names_its_core() {
    let mut blocks = 0;
    for path in sources(&root().join("core/src"), "rs") {
        let text = fs::read_to_string(&path).expect("a source");
        for (at, _) in text.match_indices("asm!(").chain(text.match_indices("naked!(")) {
            let block: String = text[at..].chars().take(800).collect();
            // The macro itself.
            if block.contains("$template") {
                continue;
            }
            blocks += 1;
            let named = [".cpu ", ".arch ", ".option push", "prologue!", "rv!(", "head!"];
            let line = text[..at].lines().count();
            assert!(
                named.iter().any(|directive| block.contains(directive)),
                "{}:{line}: the assembly names no core: `.cpu`, `.arch`, or `.option push` and `.option arch`",
                path.display()
            );
        }
    }
    assert!(blocks > 20, "{blocks}");
}

/// Fields and words of frames have names: two that change places in their struct change places in the assembly. A number that a load or a store adds to its
/// register afterwards, or before, is no field; nor is a shift of another register.
#[test]
fn assembly_has_no_literal_offset() {
    let arm = r"\[\w+,\s*#-?[0-9]+\+|,\s*#-?[0-9]+\](?:[^!]|$)";
    let risc_v = r#"(?:^|[\s,"])-?[1-9][0-9]*\((?:ra|sp|gp|tp|[ast][0-9]+)\)"#;
    let literal = Regex::new(&format!("{arm}|{risc_v}")).expect("a pattern");
    let mut found = Vec::new();
    for path in sources(&root().join("core/src"), "rs") {
        let text = fs::read_to_string(&path).expect("a source");
        for (at, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if literal.is_match(code) {
                found.push(format!("{}:{}: {}", path.display(), at + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "offsets without a name:\n{}", found.join("\n"));
    for (code, is_literal) in [
        ("ldr r2, [r6, #44]", true),
        ("\"ldrsb r10, [\", $p, \", #-2]\\n\"", true),
        ("\"vldrw.u32 q4, [r3, #16+\", $at, \"]\\n\"", true),
        ("lw s0, 88(a7)", true),
        ("ldr r2, [r6, #{rest}]", false),
        ("ldr r2, [r6], #4", false),
        ("stp x19, x20, [sp, #-16]!", false),
        ("ldrb r2, [r6, r1, lsl #1]", false),
        ("lb t3, 0(a0)", false),
        ("lw s0, {rest}(a7)", false),
    ] {
        assert_eq!(literal.is_match(code), is_literal, "{code}");
    }
}

/// A SAFETY comment names what makes the block sound, where the block stands: a promise of another place is no reason.
#[test]
fn safety_comments_name_their_reason() {
    let promise =
        Regex::new(r"SAFETY: (as (the caller|above|before|promised)|see (above|the caller)|the caller promises\.)");
    let promise = promise.expect("an expression");
    let (mut unnamed, mut comments) = (Vec::new(), 0);
    for folder in ["core", "firmware", "host-tools", "tests"] {
        for path in sources(&root().join(folder), "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            comments += text.matches("// SAFETY: ").count();
            let lines = text.lines().enumerate().filter(|(_, line)| promise.is_match(line));
            unnamed.extend(lines.map(|(at, _)| format!("{}:{}", path.display(), at + 1)));
        }
    }
    println!("{comments} SAFETY comments");
    assert!(comments > 700, "{comments}");
    assert!(unnamed.is_empty(), "no reason:\n{}", unnamed.join("\n"));
}

/// A dependency that no source names is none; one that tests alone name is theirs. Cargo's spelling has dashes.
#[test]
fn every_dependency_is_used() {
    for folder in [
        "core",
        "host-tools",
        "host-tools/board",
        "host-tools/graph",
        "host-tools/import",
        "host-tools/plan",
        "host-tools/quantise",
        "host-tools/xtask",
        "firmware",
        "firmware/protocol",
        "firmware/sensors",
        "firmware/serial",
        "firmware/stream",
        "firmware/tasks",
        "tests",
    ] {
        let folder = root().join(folder);
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let of = |parts: &[&str], tests: bool| -> String {
            let folders = parts.iter().map(|part| folder.join(part)).filter(|part| part.is_dir());
            let files = folders.flat_map(|part| sources(&part, "rs"));
            let texts = files.map(|path| fs::read_to_string(path).expect("a source"));
            texts
                .map(|text| match text.split_once("#[cfg(test)]\nmod tests {") {
                    Some((product, _)) if !tests => product.to_owned(),
                    _ => text,
                })
                .collect()
        };
        // Dependencies of examples are dev-dependencies as well, but the packages that only test have no other sources.
        let product = of(&["src"], false);
        let all = of(&["src", "tests", "examples"], true);
        let only_tests = ["tests", "xtask"].iter().any(|name| folder.ends_with(name));
        let mut within = None;
        for line in manifest.lines() {
            if let Some(section) = line.strip_prefix('[') {
                let section = section.trim_end_matches(']');
                let dependencies = section.ends_with("dependencies") && !section.starts_with("workspace");
                within = dependencies.then_some(section.ends_with("dev-dependencies"));
                continue;
            }
            let (Some(dev), Some((name, _))) = (within, line.split_once(['=', '.', ' '])) else {
                continue;
            };
            if name.is_empty() || line.starts_with('#') {
                continue;
            }
            let name = name.replace('-', "_");
            let used = [
                format!("{name}::"),
                format!("use {name};"),
                format!("use {name} as"),
                format!("derive({name}"),
            ];
            let text = if dev || only_tests { &all } else { &product };
            assert!(
                used.iter().any(|used| text.contains(used)),
                "{}: {name} is used nowhere, or in tests alone",
                folder.display()
            );
        }
    }
}
