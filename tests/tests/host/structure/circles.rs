//! No files of a crate, or of the Python package, import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::structure::imports::{Graph, imports, imports_of};
use crate::structure::{HOST, root, shown, sources};

/// Files that all import each other, each group in one circle or several; the shortest way round of the first is printed.
fn circles(graph: &Graph) -> Vec<Vec<PathBuf>> {
    let reach = |from: &PathBuf| -> BTreeMap<PathBuf, PathBuf> {
        let mut before = BTreeMap::new();
        let mut open = std::collections::VecDeque::from([from.clone()]);
        while let Some(at) = open.pop_front() {
            for next in &graph[&at] {
                if !before.contains_key(next) {
                    before.insert(next.clone(), at.clone());
                    open.push_back(next.clone());
                }
            }
        }
        before
    };
    let mut shortest: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for file in graph.keys() {
        let before = reach(file);
        if !before.contains_key(file) {
            continue;
        }
        let mut way = vec![file.clone()];
        let mut at = &before[file];
        while at != file {
            way.push(at.clone());
            at = &before[at];
        }
        way.reverse();
        shortest.insert(file.clone(), way);
    }
    let mut ways: Vec<_> = shortest.into_values().collect();
    ways.sort_by_key(Vec::len);
    let mut seen = BTreeSet::new();
    ways.retain(|way| {
        let mut members = way.clone();
        members.sort();
        seen.insert(members)
    });
    ways
}

/// Fails with every circle of a crate, shortest first.
fn has_no_circles(folder: &str) {
    let folder = root().join(folder);
    hold(&imports(&folder.join("lib.rs")), &folder);
}

fn hold(graph: &Graph, folder: &Path) {
    let inside = graph.keys().all(|path| path.starts_with(folder));
    assert!(inside && !graph.is_empty(), "{}: {graph:?}", folder.display());
    let circles = circles(graph);
    let lines: Vec<String> = circles
        .iter()
        .map(|way| {
            let names: Vec<_> = way.iter().map(|path| shown(path, folder)).collect();
            format!("{} -> {}", names.join(" -> "), names[0])
        })
        .collect();
    let files: BTreeSet<_> = circles.iter().flatten().collect();
    assert!(
        circles.is_empty(),
        "{} files import each other in circles:\n{}",
        files.len(),
        lines.join("\n")
    );
}

#[test]
fn no_file_of_the_runtime_imports_itself_by_way_of_others() {
    has_no_circles("core/src");
}

#[test]
fn no_file_of_the_host_tools_imports_itself_by_way_of_others() {
    let folder = root().join("host-tools");
    hold(
        &imports_of(&HOST.map(|(name, folder)| (name, root().join(folder).join("lib.rs")))),
        &folder,
    );
}

/// Lines of Python, what stands in parentheses on one.
fn statements(text: &str) -> Vec<String> {
    let (mut whole, mut open) = (vec![String::new()], 0_usize);
    for line in text.lines() {
        let last = whole.last_mut().expect("one at least");
        last.push_str(line);
        last.push(' ');
        open += line.matches('(').count();
        open = open.saturating_sub(line.matches(')').count());
        if open == 0 {
            whole.push(String::new());
        }
    }
    whole
}

#[test]
fn no_file_of_the_other_crates_imports_itself_by_way_of_others() {
    for folder in [
        "host-tools/xtask/src",
        "host-tools/qemu-plugin/src",
        "firmware/src",
        "firmware/protocol/src",
        "firmware/sensors/src",
        "firmware/serial/src",
        "firmware/stream/src",
        "firmware/tasks/src",
        "firmware/c/src",
        "tests/src",
    ] {
        has_no_circles(folder);
    }
}

/// `from . import a`, `from ._b import c`, `import arenite_trace.d`, wherever they stand.
#[test]
fn no_file_of_the_python_packages_imports_itself_by_way_of_others() {
    let graphs = ["arenite", "arenite_trace"].map(imports_of_package);
    for graph in graphs {
        assert!(graph.values().map(BTreeSet::len).sum::<usize>() > 3, "{graph:?}");
        let circles = circles(&graph);
        assert!(circles.is_empty(), "{circles:#?}");
    }
}

fn imports_of_package(package: &str) -> Graph {
    let folder = root().join("host-tools/python").join(package);
    let files: Vec<PathBuf> = sources(&folder, "py");
    let by_name = |name: &str| {
        let file = folder.join(if name.is_empty() {
            "__init__.py".to_owned()
        } else {
            format!("{name}.py")
        });
        files.contains(&file).then_some(file)
    };
    let is_within =
        |module: &str| module == package || module.strip_prefix(package).is_some_and(|rest| rest.starts_with('.'));
    let mut graph = Graph::new();
    for file in &files {
        let text = fs::read_to_string(file).expect("a source");
        let into = graph.entry(file.clone()).or_default();
        for line in statements(&text).iter().map(|line| line.trim_start()) {
            let words: Vec<&str> = line
                .split([' ', ',', '(', ')'])
                .filter(|word| !word.is_empty())
                .collect();
            let names: Vec<&str> = match words.as_slice() {
                ["from", ".", "import", names @ ..] => names.to_vec(),
                ["from", module, "import", ..] if module.starts_with('.') => vec![&module[1..]],
                ["from" | "import", module, ..] if is_within(module) => {
                    vec![module.trim_start_matches(package).trim_start_matches('.')]
                }
                _ => continue,
            };
            into.extend(names.into_iter().filter_map(by_name).filter(|other| other != file));
        }
    }
    graph
}

/// The test of the test: crates written here, with a circle of each kind.
#[test]
fn every_kind_of_circle_is_found() {
    let circle_of = |files: &[(&str, &str)]| {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        let names: Vec<String> = circles(&imports(&folder.path().join("lib.rs")))
            .first()
            .map(|way| way.iter().map(|path| shown(path, folder.path())).collect())
            .unwrap_or_default();
        names.into_iter().collect::<BTreeSet<_>>()
    };
    let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    let lib = ("lib.rs", "mod a; mod b;");
    let a_and_b = set(&["a.rs", "b.rs"]);
    for (name, b) in [
        ("use", "use crate::a::x;"),
        ("a group", "use crate::{a::{x, y}};"),
        ("relative", "use super::a::x;"),
        ("an expression", "fn f() { crate::a::x() }"),
        ("a type", "struct S(crate::a::X);"),
        ("a macro's words", "fn f() { println!(\"{}\", crate::a::X) }"),
        ("a macro's rules", "macro_rules! m { () => { $crate::a::x() } }"),
        ("a re-export", "pub use crate::a::x;"),
        ("a renamed import", "use super::a as c;"),
        ("a path by an imported name", "use super as up; fn f() { up::a::x() }"),
        ("a path by a glob", "use super::*; fn f() { a::x() }"),
    ] {
        assert_eq!(
            circle_of(&[lib, ("a.rs", "use crate::b::z;"), ("b.rs", b)]),
            a_and_b,
            "{name}"
        );
    }
    assert_eq!(
        circle_of(&[("lib.rs", "mod a; pub use a::x;"), ("a.rs", "use crate::x;")]),
        set(&["a.rs", "lib.rs"]),
        "what the root hands on"
    );
    for call in ["m!();", "fn f() { m!() }", "fn f() { println!(\"{}\", m!()) }"] {
        assert_eq!(
            circle_of(&[
                ("lib.rs", "mod a;"),
                ("a/mod.rs", "macro_rules! m { () => {} } mod b; use b::x;"),
                ("a/b.rs", call)
            ]),
            set(&["a/b.rs", "a/mod.rs"]),
            "a macro of a module above: {call}"
        );
    }
    assert_eq!(
        circle_of(&[
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b; use b::x;"),
            ("a/b.rs", "use super::y;")
        ]),
        set(&["a/b.rs", "a/mod.rs"]),
        "a folder's own file"
    );
    assert_eq!(
        circle_of(&[
            lib,
            ("a.rs", "use crate::b::z;"),
            ("b.rs", "#[cfg(test)] mod tests { use crate::a::x; }")
        ]),
        set(&[]),
        "tests may import what they test"
    );
}

/// A name that a crate's root has from another crate, itself or handed on, leads into that crate's file.
#[test]
fn imports_lead_from_crate_to_crate() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [
        ("low/lib.rs", "pub mod a; pub mod b;"),
        ("low/a.rs", ""),
        ("low/b.rs", ""),
        (
            "high/lib.rs",
            "mod x; mod y; mod z; use low::{a, b as c}; pub use low as all;",
        ),
        ("high/x.rs", "use crate::a::T;"),
        ("high/y.rs", "fn f() { crate::c::g() }"),
        ("high/z.rs", "use crate::all::b::T; use low::a::T as U;"),
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    let crates = ["low", "high"].map(|name| (name, folder.path().join(name).join("lib.rs")));
    let graph = imports_of(&crates);
    for (name, into) in [
        ("high/x.rs", &["low/a.rs"][..]),
        ("high/y.rs", &["low/b.rs"]),
        ("high/z.rs", &["low/a.rs", "low/b.rs"]),
        ("high/lib.rs", &["low/a.rs", "low/b.rs", "low/lib.rs"]),
        ("low/a.rs", &[]),
    ] {
        let found = graph[&folder.path().join(name)].iter();
        let found: Vec<_> = found.map(|path| shown(path, folder.path())).collect();
        assert_eq!(found, into, "{name}");
    }
}
