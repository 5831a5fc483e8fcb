//! The oracle stands alone: `core/src/kernels/reference` imports what operators mean and how they round, and nothing of another kernel.

use std::fs;

use crate::structure::imports::imports;
use crate::structure::{root, shown, sources};

/// Folder of the oracle, and what its files may import beside each other.
const REFERENCE: &str = "kernels/reference/";
const BELOW: [&str; 6] = ["arena.rs", "cells.rs", "ops/", "quant.rs", "quant/", "tensor.rs"];

#[test]
fn the_reference_imports_no_kernel() {
    let source = root().join("core/src");
    let graph = imports(&source.join("lib.rs"));
    let mut files = 0;
    for (file, imported) in &graph {
        let file = shown(file, &source);
        if !file.starts_with(REFERENCE) {
            continue;
        }
        files += 1;
        for other in imported {
            let other = shown(other, &source);
            let allowed = BELOW.iter().chain([&REFERENCE]).any(|below| other.starts_with(below));
            assert!(allowed, "{file} imports {other}");
        }
    }
    assert!(files > 20, "{files} files of the reference");
}

/// One form for all cores, in safe Rust: no attribute chooses among instruction sets, and no word is `unsafe`.
#[test]
fn the_reference_is_the_same_on_every_core() {
    for path in sources(&root().join("core/src").join(REFERENCE), "rs") {
        let text = fs::read_to_string(&path).expect("a source");
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            let free = ["cfg", "asm!", "unsafe {", "unsafe fn", "unsafe impl"];
            assert!(
                free.iter().all(|word| !line.contains(word)),
                "{}: {line}",
                path.display()
            );
        }
    }
}

/// Every portable kernel has the oracle under its own name; a fully connected layer of int8 is a convolution of one pixel.
#[test]
fn the_reference_is_named_as_the_portable_kernels() {
    let names = |folder: &str| {
        let files = sources(&root().join("core/src/kernels").join(folder), "rs");
        let name = |path: &std::path::PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        files.iter().filter_map(name).collect::<Vec<_>>()
    };
    let reference = names("reference");
    // Rows of a tensor that rolls are no kernel.
    let same = ["conv2d_s16", "integers", "linear_s8", "mod", "rows"];
    let missing: Vec<String> = names("portable")
        .into_iter()
        .filter(|name| !reference.contains(name) && !same.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "no reference of {missing:?}");
}
