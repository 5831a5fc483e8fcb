//! Hands the linker the memory layout that `ARENITE_BOARD` names, a file stem of `firmware/memory`.

use std::{env, fs, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-env-changed=ARENITE_BOARD");
    println!("cargo:rerun-if-changed=../memory");
    let Ok(board) = env::var("ARENITE_BOARD") else { return };
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    let layout = root.join("../memory").join(format!("{board}.x"));
    fs::copy(&layout, out.join("memory.x")).unwrap_or_else(|error| panic!("{}: {error}", layout.display()));
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rustc-link-arg-bins=--nmagic");
}
