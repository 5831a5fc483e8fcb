//! Permitted imports: the pictures of `ARCHITECTURE.md` are the rule.
//!
//! A line of a picture names files and folders of a crate, then says what they are. A file imports files of its own entry and of those on lines below.
//! A picture of several crates names theirs by the crate's folder: `plan/lower` is in `host-tools/plan/src`.
//! `a/*` stands for every file and folder of `a` without a line of its own, each an entry by itself.

use std::fs;
use std::path::{Path, PathBuf};

use crate::structure::imports::{Graph, imports, imports_of};
use crate::structure::{HOST, root, shown};

/// Entries of the picture below the line that starts with `heading`, the upper lines first.
fn picture(text: &str, heading: &str) -> Vec<Vec<String>> {
    text.lines()
        .skip_while(|line| !line.starts_with(heading))
        .skip_while(|line| !line.starts_with("    "))
        .take_while(|line| line.starts_with("    "))
        .map(|line| {
            let entries = line.trim_start().split("   ").next().unwrap_or_default();
            entries.split_whitespace().map(str::to_owned).collect()
        })
        .collect()
}

/// Returns the part of `entry` that names the file `path`: the entry itself, or the text that its `*` stands for.
fn named(entry: &str, path: &str) -> Option<String> {
    let entry = match entry.strip_suffix('*') {
        Some(folder) => {
            let inside = path.strip_prefix(folder)?;
            format!("{folder}{}", inside.split(['/', '.']).next()?)
        }
        None => entry.trim_end_matches('/').to_owned(),
    };
    let rest = path.strip_prefix(&entry)?;
    (rest == ".rs" || rest.starts_with('/')).then_some(entry)
}

/// The line and the entry of a file: the longest entry that names it.
fn place(layers: &[Vec<String>], path: &str) -> Option<(usize, String)> {
    let all = layers.iter().enumerate();
    all.flat_map(|(line, entries)| entries.iter().map(move |entry| (line, entry)))
        .filter_map(|(line, entry)| Some((line, entry.len(), named(entry, path)?)))
        .max_by_key(|(_, length, _)| *length)
        .map(|(line, _, entry)| (line, entry))
}

/// Returns the imports that a picture does not allow; `folder` holds a crate's sources, or several crates.
fn broken(graph: &Graph, layers: &[Vec<String>], folder: &Path) -> Vec<String> {
    let shown = |path: &Path, folder: &Path| {
        let words = shown(path, folder);
        let words: Vec<&str> = words.split('/').filter(|word| *word != "src").collect();
        words.join("/")
    };
    let mut found = Vec::new();
    for (file, imported) in graph {
        let file = shown(file, folder);
        let Some((line, entry)) = place(layers, &file) else {
            found.push(format!("{file}: in no layer"));
            continue;
        };
        for other in imported {
            let other = shown(other, folder);
            match place(layers, &other) {
                Some((below, at)) if below <= line && at != entry => {
                    found.push(format!(
                        "{file} ({entry}) imports {other} ({at}), which is not below it"
                    ));
                }
                _ => {}
            }
        }
    }
    for entry in layers.iter().flatten() {
        let entry = entry.trim_end_matches(['/', '*']);
        let (first, rest) = entry.split_once('/').unwrap_or((entry, ""));
        let places = [
            folder.join(entry),
            folder.join("src").join(entry),
            folder.join(first).join("src").join(rest),
        ];
        let is_there = |place: &PathBuf| place.is_dir() || place.with_extension("rs").is_file();
        if !places.iter().any(is_there) {
            found.push(format!("{entry}: no such file or folder"));
        }
    }
    found
}

fn holds(heading: &str, graph: &Graph, folder: &str) {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let layers = picture(&text, heading);
    assert!(layers.len() > 8, "{heading}: {layers:?}");
    let folder = root().join(folder);
    let broken = broken(graph, &layers, &folder);
    assert!(broken.is_empty(), "ARCHITECTURE.md, {heading}\n{}", broken.join("\n"));
}

#[test]
fn the_runtime_imports_downwards() {
    let graph = imports(&root().join("core/src/lib.rs"));
    holds("**The runtime's layers.**", &graph, "core/src");
}

#[test]
fn the_host_tools_import_downwards() {
    let graph = imports_of(&HOST.map(|(name, folder)| (name, root().join(folder).join("lib.rs"))));
    holds("**The host's layers.**", &graph, "host-tools");
}

/// The test of the test: a crate whose files import upwards, sideways, and stand in no layer.
#[test]
fn every_breach_of_the_layers_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [
        ("lib.rs", "mod a; mod b; mod c; mod d; mod f;"),
        ("a.rs", "use crate::b::x;"),
        ("b/mod.rs", "mod e; use crate::c::x;"),
        ("b/e.rs", "use super::y; use crate::a::z;"),
        ("c.rs", "use crate::f::g::x;"),
        ("d.rs", ""),
        ("f/mod.rs", "pub mod g; pub mod h;"),
        ("f/g.rs", "use super::h::x;"),
        ("f/h.rs", ""),
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    let layers = picture(
        "**Layers.** Of a crate.\n\n    lib  gone  what is first\n    a          what uses\n    b/  c      what is used\n    f/*        each apart\n\nText.\n",
        "**Layers.**",
    );
    assert_eq!(layers[2], ["b/", "c"]);
    let layers = [
        vec!["lib".to_owned(), "gone".to_owned()],
        layers[1].clone(),
        layers[2].clone(),
        layers[3].clone(),
    ];
    let graph = imports(&folder.path().join("lib.rs"));
    assert_eq!(
        broken(&graph, &layers, folder.path()),
        [
            "b/e.rs (b) imports a.rs (a), which is not below it",
            "b/mod.rs (b) imports c.rs (c), which is not below it",
            "d.rs: in no layer",
            "f/g.rs (f/g) imports f/h.rs (f/h), which is not below it",
            "gone: no such file or folder",
        ]
    );
}
