//! The form of the code itself: which file imports which, without a circle; lines within the limit; assembly that states what it needs.
//!
//! An import is any path in a file that resolves into another file of the crate: in a `use`, in an expression, a type or an attribute's neighbour, or
//! among the words of a macro. Re-exports count. What does not count is a `mod` declaration, which only says where a file is, and what is compiled for
//! tests alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A module by its path from the crate's root.
type Module = Vec<String>;

/// A crate's modules: the file that each is written in, and what it is there.
#[derive(Default)]
struct Crate {
    /// Modules written out in a file belong to it.
    files: BTreeMap<Module, PathBuf>,
    /// Macros exported to the crate's root, by name, and their files.
    macros: BTreeMap<String, PathBuf>,
    parsed: Vec<(Module, PathBuf, Vec<syn::Item>)>,
    /// What names that a module imports stand for.
    names: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

fn tests_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let words = |tokens: &TokenStream| tokens.to_string();
        match &attribute.meta {
            syn::Meta::List(list) if list.path.is_ident("cfg") => words(&list.tokens) == "test",
            syn::Meta::Path(path) => path.is_ident("test"),
            _ => false,
        }
    })
}

/// The files of `#[path = "…"]` and of `#[cfg_attr(…, path = "…")]`.
fn named_files(attributes: &[syn::Attribute]) -> Vec<String> {
    let mut found = Vec::new();
    for attribute in attributes {
        match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("path") => {
                if let syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(file),
                    ..
                }) = &pair.value
                {
                    found.push(file.value());
                }
            }
            syn::Meta::List(list) if list.path.is_ident("cfg_attr") => {
                let tokens: Vec<_> = list.tokens.clone().into_iter().collect();
                for window in tokens.windows(3) {
                    if let [TokenTree::Ident(name), TokenTree::Punct(_), TokenTree::Literal(file)] = window
                        && name == "path"
                    {
                        found.push(file.to_string().trim_matches('"').to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    found
}

impl Crate {
    fn read(entry: &Path) -> Self {
        let mut it = Self::default();
        it.file(Vec::new(), entry, entry.parent().expect("a folder"));
        it
    }

    /// Parses a module's file; `folder` is where files of its modules are.
    fn file(&mut self, module: Module, path: &Path, folder: &Path) {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.module(module, path, folder, parsed.items);
    }

    fn module(&mut self, module: Module, path: &Path, folder: &Path, items: Vec<syn::Item>) {
        self.files.entry(module.clone()).or_insert_with(|| path.to_owned());
        for item in &items {
            match item {
                syn::Item::Mod(inner) if !tests_only(&inner.attrs) => {
                    let name = inner.ident.to_string();
                    let mut deeper = module.clone();
                    deeper.push(name.clone());
                    if let Some((_, items)) = &inner.content {
                        self.module(deeper, path, &folder.join(name), items.clone());
                        continue;
                    }
                    let named = named_files(&inner.attrs);
                    for file in &named {
                        // Beside the file that names it.
                        let file = path.parent().expect("a folder").join(file);
                        let inside = match file.file_name().is_some_and(|name| name == "mod.rs") {
                            true => file.parent().expect("a folder").to_owned(),
                            false => file.with_extension(""),
                        };
                        self.file(deeper.clone(), &file, &inside);
                    }
                    if named.is_empty() {
                        let (flat, inside) = (folder.join(format!("{name}.rs")), folder.join(&name));
                        let file = if flat.is_file() { flat } else { inside.join("mod.rs") };
                        self.file(deeper, &file, &inside);
                    }
                }
                syn::Item::Macro(rules) if rules.attrs.iter().any(|a| a.path().is_ident("macro_export")) => {
                    if let Some(name) = &rules.ident {
                        self.macros.insert(name.to_string(), path.to_owned());
                    }
                }
                syn::Item::Use(import) => {
                    let names = self.names.entry(module.clone()).or_default();
                    names.extend(leaves(&import.tree));
                }
                _ => {}
            }
        }
        self.parsed.push((module, path.to_owned(), items));
    }

    /// The file that `path`, written in `module`, leads into: of the longest run of its words that are modules.
    fn resolve(&self, module: &Module, path: &[String], hops: usize) -> Option<&PathBuf> {
        let mut at = match path.first().map(String::as_str)? {
            "crate" | "$crate" => Vec::new(),
            "self" => module.clone(),
            "super" => module.get(..module.len().checked_sub(1)?)?.to_vec(),
            first => {
                let mut child = module.clone();
                child.push(first.to_owned());
                if !self.files.contains_key(&child) {
                    // An imported name; `use a::b as a` would go round for ever.
                    let meant = self.names.get(module)?.get(first).filter(|_| hops < 4)?;
                    let whole: Vec<String> = meant.iter().chain(&path[1..]).cloned().collect();
                    return self.resolve(module, &whole, hops + 1);
                }
                child
            }
        };
        for word in path.iter().skip(1) {
            if word == "super" {
                at.pop()?;
                continue;
            }
            let mut child = at.clone();
            child.push(word.clone());
            if self.files.contains_key(&child) {
                at = child;
                continue;
            }
            if at.is_empty() && self.macros.contains_key(word) {
                return self.macros.get(word);
            }
            // A name of this module, its own or one that it hands on: to import it is to import this file.
            return self.files.get(&at);
        }
        self.files.get(&at)
    }
}

/// The names that a `use` brings in, each with its whole path; a glob's name is `*`.
fn leaves(tree: &syn::UseTree) -> Vec<(String, Vec<String>)> {
    fn walk(tree: &syn::UseTree, before: &[String], out: &mut Vec<(String, Vec<String>)>) {
        let with = |name: String| before.iter().cloned().chain([name]).collect::<Vec<_>>();
        match tree {
            syn::UseTree::Path(path) => walk(&path.tree, &with(path.ident.to_string()), out),
            syn::UseTree::Name(name) if name.ident == "self" => {
                out.push((before.last().cloned().unwrap_or_default(), before.to_vec()));
            }
            syn::UseTree::Name(name) => out.push((name.ident.to_string(), with(name.ident.to_string()))),
            syn::UseTree::Rename(name) => out.push((name.rename.to_string(), with(name.ident.to_string()))),
            syn::UseTree::Glob(_) => out.push(("*".to_owned(), before.to_vec())),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| walk(tree, before, out)),
        }
    }
    let mut out = Vec::new();
    walk(tree, &[], &mut out);
    out
}

/// Collects the paths of a file's items.
#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
}

impl Paths {
    /// Paths among the words of a macro: `a::b::c`, and `$crate` as `crate`.
    fn words(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(word) if colons == 2 => path.push(word.to_string()),
                TokenTree::Ident(word) => {
                    self.end(&mut path);
                    path.push(word.to_string());
                }
                TokenTree::Group(group) => {
                    // `use a::{b, c}` within a macro.
                    let before = std::mem::take(&mut path);
                    if colons == 2 && !before.is_empty() {
                        let mut inner = Paths::default();
                        inner.words(group.stream());
                        let with = |after: Vec<String>| before.iter().cloned().chain(after).collect();
                        self.found.extend(inner.found.into_iter().map(with));
                    } else {
                        self.end(&mut before.clone());
                        self.words(group.stream());
                    }
                }
                _ => self.end(&mut path),
            }
            colons = 0;
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Vec<String>) {
        // One word alone leads nowhere else; `super` alone says who may see an item.
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.found.push(path);
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Const(item) => &item.attrs,
            syn::Item::Static(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            syn::Item::Macro(item) => &item.attrs,
            // Modules are files of their own, or are read as such.
            syn::Item::Mod(_) => return,
            _ => return visit::visit_item(self, item),
        };
        if !tests_only(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        self.found
            .extend(leaves(&import.tree).into_iter().map(|(_, path)| path));
    }

    /// `pub(super)` imports nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.found
            .push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.words(call.tokens.clone());
    }
}

type Graph = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// Which file of the crate imports which others.
fn imports(entry: &Path) -> Graph {
    let it = Crate::read(entry);
    let mut graph = Graph::new();
    for (module, file, items) in &it.parsed {
        let mut paths = Paths::default();
        items.iter().for_each(|item| paths.visit_item(item));
        let into = graph.entry(file.clone()).or_default();
        let found = paths.found.iter().filter_map(|path| it.resolve(module, path, 0));
        into.extend(found.filter(|other| *other != file).cloned());
    }
    graph
}

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

fn shown(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}

/// Fails with every circle of a crate, shortest first.
fn has_no_circles(folder: &str) {
    let folder = root().join(folder);
    let graph = imports(&folder.join("lib.rs"));
    assert!(graph.len() > 1, "{}: {} files", folder.display(), graph.len());
    let circles = circles(&graph);
    let lines: Vec<String> = circles
        .iter()
        .map(|way| {
            let names: Vec<_> = way.iter().map(|path| shown(path, &folder)).collect();
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
#[ignore = "circles: not all are broken up yet"]
fn no_file_of_the_runtime_imports_itself_by_way_of_others() {
    has_no_circles("core/src");
}

#[test]
fn no_file_of_the_host_tools_imports_itself_by_way_of_others() {
    has_no_circles("host-tools/src");
}

/// `from . import a`, `from ._b import c`, `import arenite_trace.d`, wherever they stand.
#[test]
fn no_file_of_the_python_package_imports_itself_by_way_of_others() {
    let folder = root().join("host-tools/python/arenite_trace");
    let files: Vec<PathBuf> = sources(&folder, "py");
    let by_name = |name: &str| {
        let file = folder.join(if name.is_empty() {
            "__init__.py".to_owned()
        } else {
            format!("{name}.py")
        });
        files.contains(&file).then_some(file)
    };
    let mut graph = Graph::new();
    for file in &files {
        let text = fs::read_to_string(file).expect("a source");
        let into = graph.entry(file.clone()).or_default();
        for line in text.lines().map(str::trim_start) {
            let words: Vec<&str> = line
                .split([' ', ',', '(', ')'])
                .filter(|word| !word.is_empty())
                .collect();
            let names: Vec<&str> = match words.as_slice() {
                ["from", ".", "import", names @ ..] => names.to_vec(),
                ["from", module, "import", ..] if module.starts_with('.') => vec![&module[1..]],
                ["from" | "import", module, ..] if module.starts_with("arenite_trace") => {
                    vec![module.trim_start_matches("arenite_trace").trim_start_matches('.')]
                }
                _ => continue,
            };
            into.extend(names.into_iter().filter_map(by_name).filter(|other| other != file));
        }
    }
    assert!(graph.values().map(BTreeSet::len).sum::<usize>() > 3, "{graph:?}");
    let circles = circles(&graph);
    assert!(circles.is_empty(), "{circles:#?}");
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

fn sources(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        match path.is_dir() {
            true if !hidden && !path.ends_with("target") => found.extend(sources(&path, extension)),
            true => {}
            false if path.extension().is_some_and(|found| found == extension) => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

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
