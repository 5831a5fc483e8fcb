//! The import graph of a crate, or of several that are one picture, read from their sources.
//!
//! An import is any path in a file that resolves into another file of them: in a `use`, in an expression, a type or an attribute's neighbour, or
//! among the words of a macro; so is the call of a macro that a file further up defines. Re-exports count. A `mod` declaration,
//! which only says where a file is, does not count, nor does code that is compiled for tests alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// A module by its path from the crate's root, the crate's name first.
type Module = Vec<String>;

/// The modules of crates: the file that each is written in, and what it is there.
#[derive(Default)]
struct Crates {
    /// Modules written out in a file belong to it.
    files: BTreeMap<Module, PathBuf>,
    /// Macros exported to a crate's root, by the path there, and their files.
    macros: BTreeMap<Module, PathBuf>,
    /// Macros of a module, which modules declared below them may call without a path.
    inherited: BTreeMap<(Module, String), PathBuf>,
    parsed: Vec<(Module, PathBuf, Vec<syn::Item>)>,
    /// Meanings of names that a module imports.
    names: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
    /// Modules of which a module imports all.
    globs: BTreeMap<Module, Vec<Vec<String>>>,
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

impl Crates {
    fn read(entries: &[(&str, PathBuf)]) -> Self {
        let mut it = Self::default();
        for (name, entry) in entries {
            it.file(vec![(*name).to_owned()], entry, entry.parent().expect("a folder"));
        }
        it
    }

    fn is_crate(&self, name: &str) -> bool {
        self.files.contains_key(&[name.to_owned()][..])
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
                        let inside = if file.file_name().is_some_and(|name| name == "mod.rs") {
                            file.parent().expect("a folder").to_owned()
                        } else {
                            file.with_extension("")
                        };
                        self.file(deeper.clone(), &file, &inside);
                    }
                    if named.is_empty() {
                        let (flat, inside) = (folder.join(format!("{name}.rs")), folder.join(&name));
                        let file = if flat.is_file() { flat } else { inside.join("mod.rs") };
                        self.file(deeper, &file, &inside);
                    }
                }
                syn::Item::Macro(rules) => {
                    let Some(name) = &rules.ident else { continue };
                    if rules.attrs.iter().any(|a| a.path().is_ident("macro_export")) {
                        self.macros
                            .insert(vec![module[0].clone(), name.to_string()], path.to_owned());
                    }
                    self.inherited
                        .insert((module.clone(), name.to_string()), path.to_owned());
                }
                syn::Item::Use(import) => {
                    for (name, whole) in leaves(&import.tree) {
                        if name == "*" {
                            self.globs.entry(module.clone()).or_default().push(whole);
                        } else {
                            self.names.entry(module.clone()).or_default().insert(name, whole);
                        }
                    }
                }
                _ => {}
            }
        }
        self.parsed.push((module, path.to_owned(), items));
    }

    /// The file that `path`, written in `module`, leads into: of the longest run of its words that are modules.
    fn resolve(&self, module: &Module, path: &[String], hops: usize) -> Option<&PathBuf> {
        let mut at = match path.first().map(String::as_str)? {
            CALL => {
                // The nearest module that has it.
                let name = path.get(1)?;
                let above = (1..=module.len())
                    .rev()
                    .map(|len| (module[..len].to_vec(), name.clone()));
                return above.into_iter().find_map(|key| self.inherited.get(&key));
            }
            "crate" | "$crate" => vec![module[0].clone()],
            "self" => module.clone(),
            "super" => module
                .get(..module.len().checked_sub(1)?)
                .filter(|above| !above.is_empty())?
                .to_vec(),
            first => {
                let mut child = module.clone();
                child.push(first.to_owned());
                if self.files.contains_key(&child) {
                    child
                } else if self.is_crate(first) {
                    vec![first.to_owned()]
                } else {
                    // An imported name; `use a::b as a` would go round for ever.
                    if hops >= 4 {
                        return None;
                    }
                    if let Some(meant) = self.names.get(module).and_then(|names| names.get(first)) {
                        let whole: Vec<String> = meant.iter().chain(&path[1..]).cloned().collect();
                        return self.resolve(module, &whole, hops + 1);
                    }
                    // A module among all that is imported; a lone name's file is the one that the glob leads to.
                    return self
                        .globs
                        .get(module)?
                        .iter()
                        .filter(|_| path.len() > 1)
                        .find_map(|glob| {
                            let whole: Vec<String> = glob.iter().chain(path).cloned().collect();
                            let of_glob = self.resolve(module, glob, hops + 1)?;
                            self.resolve(module, &whole, hops + 1).filter(|found| *found != of_glob)
                        });
                }
            }
        };
        for (index, word) in path.iter().enumerate().skip(1) {
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
            if let Some(file) = self.macros.get(&child) {
                return Some(file);
            }
            // A name that this module has from another crate leads there.
            let meant = self.names.get(&at).and_then(|names| names.get(word));
            if let Some(meant) = meant.filter(|meant| hops < 4 && self.is_crate(&meant[0])) {
                let whole: Vec<String> = meant.iter().chain(&path[index + 1..]).cloned().collect();
                return self.resolve(&at, &whole, hops + 1);
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

/// Before a macro's name that is called without a path.
const CALL: &str = "!";

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
                TokenTree::Punct(punct) if punct.as_char() == '!' && path.len() == 1 => self.call(&path[0]),
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

    fn call(&mut self, name: &str) {
        self.found.push(vec![CALL.to_owned(), name.to_owned()]);
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
        match call.path.get_ident() {
            Some(name) => self.call(&name.to_string()),
            None => self.visit_path(&call.path),
        }
        self.words(call.tokens.clone());
    }
}

pub(crate) type Graph = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// Which file of the crate imports which others.
pub(crate) fn imports(entry: &Path) -> Graph {
    imports_of(&[("this crate", entry.to_owned())])
}

/// Which file of these crates, by name and first file, imports which others.
pub(crate) fn imports_of(entries: &[(&str, PathBuf)]) -> Graph {
    let it = Crates::read(entries);
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
