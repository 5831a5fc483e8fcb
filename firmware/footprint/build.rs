//! Hands the linker the memory layout of the board whose feature `ARENITE_BOARD` names, from the host tools' table.

use std::{env, fs, path::PathBuf};

#[path = "../../host-tools/board/src/board/parts.rs"]
#[allow(dead_code, reason = "the build wants a part of each row")]
mod parts;
#[path = "../../host-tools/board/src/board/table.rs"]
#[allow(dead_code, reason = "the build wants a part of each row")]
mod table;

/// Bytes that memories are larger than the board's.
const NEVER_FULL: u64 = 256 << 20;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=ARENITE_BOARD");
    println!("cargo:rerun-if-changed=../../host-tools/board/src/board/parts.rs");
    println!("cargo:rerun-if-changed=../../host-tools/board/src/board/table.rs");
    let Ok(name) = env::var("ARENITE_BOARD") else { return };
    let Some(board) = table::BOARDS.iter().find(|board| board.feature == name) else {
        println!("cargo::error=ARENITE_BOARD={name}: the table of boards has no such feature");
        return;
    };
    // The program is measured and never run: however large the model and its arena are, they fit.
    let mut board = board.clone();
    board.flash.size += NEVER_FULL;
    board.ram.size += NEVER_FULL;
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    fs::write(out.join("memory.x"), board.memory_x()).expect("OUT_DIR is writable");
    println!("cargo:rustc-link-search={}", out.display());
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("arm") {
        return;
    }
    // The gate is never loaded and takes what layout the linker gives it.
    for program in ["footprint", "compiled", "two", "every_kernel", "printing", "start"] {
        println!("cargo:rustc-link-arg-bin={program}=-Tlink.x");
        println!("cargo:rustc-link-arg-bin={program}=--nmagic");
    }
}
