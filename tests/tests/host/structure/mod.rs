//! The form of the code itself: which file imports which, without a circle and downwards only; what its lines look like.

mod circles;
mod form;
mod imports;
mod layers;
mod once;
mod reference;
mod sentences;

use std::fs;
use std::path::{Path, PathBuf};

/// The crates of the host tools, whose sources are one picture and may have no circle: names, and folders of sources.
const HOST: [(&str, &str); 6] = [
    ("arenite_host", "host-tools/src"),
    ("arenite_board", "host-tools/board/src"),
    ("arenite_graph", "host-tools/graph/src"),
    ("arenite_import", "host-tools/import/src"),
    ("arenite_plan", "host-tools/plan/src"),
    ("arenite_quantise", "host-tools/quantise/src"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn shown(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}

fn sources(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() {
            // Folders that builds leave: Cargo's, pip's.
            if !hidden && !path.ends_with("target") && !path.ends_with("python/build") {
                found.extend(sources(&path, extension));
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}
