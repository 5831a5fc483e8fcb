//! Facts of a pointwise operator, a dialect and a board stand in the files that `CONTRIBUTING.md` names, and nowhere else: the files of one that is there are
//! those that another one would touch.

use std::fs;
use std::path::Path;

use crate::structure::{HOST, root, shown, sources};

/// Written by tests with `ARENITE_BLESS=1`.
const GENERATED: [&str; 8] = [
    "docs/format.md",
    "docs/onnx.md",
    "docs/operators.md",
    "docs/pt2.md",
    "docs/trace-schema.md",
    "docs/trace.schema.json",
    "host-tools/python/arenite_trace/_pointwise.py",
    "tests/reference/pointwise.json",
];

/// Files below `folders` with these endings that have the word, whatever its case.
fn files_with(word: &str, folders: &[&str], endings: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (folder, ending) in folders.iter().flat_map(|f| endings.iter().map(move |e| (f, e))) {
        for path in sources(&root().join(folder), ending) {
            let name = shown(&path, &root());
            let text = fs::read_to_string(&path).unwrap_or_default().to_lowercase();
            let whole = |at: usize| {
                let beside = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
                beside(text[..at].chars().next_back()) && beside(text[at + word.len()..].chars().next())
            };
            let generated = GENERATED.contains(&name.as_str()) || name.starts_with("tests/models/");
            if !generated && text.match_indices(word).any(|(at, _)| whole(at)) {
                found.push(name);
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// These folders and those of the host tools' sources.
fn with_host<'f>(folders: &[&'f str]) -> Vec<&'f str> {
    folders.iter().copied().chain(HOST.map(|(_, folder)| folder)).collect()
}

/// Its row, the changelog, and what NumPy has no function for in the references.
#[test]
fn a_pointwise_operator_is_in_at_most_four_files() {
    let folders = ["core", "docs", "firmware", "host-tools", "tests"];
    for word in [
        ["soft", "sign"],
        ["soft", "plus"],
        ["hard", "sigmoid"],
        ["squared_", "difference"],
    ] {
        let word = word.concat();
        let found = files_with(&word, &folders, &["rs", "py", "md", "json", "toml"]);
        // Beside these, CHANGELOG.md. ONNX has names of its own for what its nodes and its recurrent operators call: one place, whatever the file.
        let onnx = "host-tools/import/src/onnx/";
        let of_onnx = found.iter().find(|name| name.starts_with(onnx)).into_iter();
        let models = [
            // Measured, by name.
            "host-tools/board/src/worst/instructions.json",
            // A pass takes it apart between two layers.
            "host-tools/plan/src/passes/affine_chain.rs",
            // Derivatives.
            "host-tools/plan/src/gradient/pointwise.rs",
            "tests/oracle/",
            "tests/tests/",
            "tests/src/",
            "host-tools/python/tests/",
        ];
        let others = found.iter().filter(|name| !name.starts_with(onnx));
        let written: Vec<_> = others
            .chain(of_onnx)
            .filter(|name| !models.iter().any(|folder| name.starts_with(folder)))
            .collect();
        assert!((1..4).contains(&written.len()), "{word}: {found:?}");
        assert!(
            written.iter().any(|name| name.starts_with("core/src/ops/")),
            "{word}: {found:?}"
        );
    }
}

#[test]
fn a_dialect_is_in_its_file_and_its_row() {
    for (name, module) in [
        ("keras-order", "keras_order"),
        ("megengine", "megengine"),
        ("tf-shapes", "tf_shapes"),
    ] {
        for word in [name, module] {
            for file in files_with(word, &with_host(&["core/src", "host-tools/xtask/src"]), &["rs"]) {
                let own = [
                    format!("host-tools/import/src/{module}.rs"),
                    "host-tools/import/src/lib.rs".to_owned(),
                ];
                assert!(
                    own.contains(&file) || Path::new(&file).starts_with(format!("host-tools/import/src/{module}")),
                    "{file} speaks of {name}"
                );
            }
        }
    }
}

#[test]
fn a_board_is_its_row_and_its_feature() {
    let both = ["firmware/Cargo.toml", "host-tools/board/src/board/table.rs"];
    // A chip's program runs on qemu's machine of that name as well.
    let machine = "host-tools/board/src/chips/emulated.rs";
    for (name, wanted) in [
        ("microbit", [&both[..], &[machine]].concat()),
        ("mps2-an505", both.to_vec()),
    ] {
        let found = files_with(name, &with_host(&["core", "firmware"]), &["rs", "toml", "x"]);
        assert_eq!(found, wanted, "{name}");
    }
}

/// Programs are linked into one folder and kept by their names, whatever package they are of: of two that share one, a test would measure the other.
#[test]
fn programs_of_boards_have_names_of_their_own() {
    let mut names = Vec::new();
    for package in ["firmware", "firmware/c", "firmware/footprint"] {
        let manifest = fs::read_to_string(root().join(package).join("Cargo.toml")).expect("a manifest");
        let programs = manifest.split("[[bin]]").skip(1);
        names.extend(
            programs.filter_map(|program| Some(program.split("name = \"").nth(1)?.split('"').next()?.to_owned())),
        );
    }
    assert!(names.len() > 10, "{names:?}");
    names.sort();
    let found = names.clone();
    names.dedup();
    assert_eq!(found, names);
}

/// A build script that waits for changes of a file that is not there runs at every call of cargo, and all that depends on its package is built anew.
#[test]
fn build_scripts_wait_for_files_that_are_there() {
    let mut seen = 0;
    for manifest in sources(&root(), "toml") {
        let package = manifest.parent().expect("a folder");
        let text = fs::read_to_string(&manifest).expect("a manifest");
        let named = text
            .lines()
            .find_map(|line| line.strip_prefix("build = \"")?.strip_suffix('"'));
        let script = package.join(named.unwrap_or("build.rs"));
        if !manifest.ends_with("Cargo.toml") || !script.is_file() {
            continue;
        }
        let script = fs::read_to_string(script).expect("a build script");
        for told in script.split("rerun-if-changed=").skip(1) {
            let file = told.split(['"', '\\']).next().expect("a part");
            if !file.contains('{') {
                assert!(
                    package.join(file).exists(),
                    "{}: {file} is not there",
                    shown(&manifest, &root())
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 8, "{seen} files");
}
