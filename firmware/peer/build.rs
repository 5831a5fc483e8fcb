//! Hands the linker the board's layout with more stack, and the compiler the model that `ARENITE_MODEL` names: microflow's macro wants its path as a literal.

use std::{env, fs, path::PathBuf};

#[path = "../../host-tools/board/src/board/parts.rs"]
#[allow(dead_code, reason = "the build wants a part of each row")]
mod parts;
#[path = "../../host-tools/board/src/board/table.rs"]
#[allow(dead_code, reason = "the build wants a part of each row")]
mod table;

fn main() {
    println!("cargo:rerun-if-env-changed=ARENITE_MODEL");
    println!("cargo:rerun-if-changed=../../host-tools/board/src/board/parts.rs");
    println!("cargo:rerun-if-changed=../../host-tools/board/src/board/table.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    let board = table::BOARDS.iter().find(|board| board.feature == "mps2-an386").expect("a board of the table");
    let layout = board.memory_x();
    // Its tensors live on the stack.
    let layout = layout.replace("_stack_size = 64K;", "_stack_size = 2M;");
    fs::write(out.join("memory.x"), layout).expect("OUT_DIR is writable");
    println!("cargo:rustc-link-search={}", out.display());
    for argument in ["-Tlink.x", "-Tdefmt.x", "--nmagic"] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
    let model = env::var("ARENITE_MODEL").expect("ARENITE_MODEL names a .tflite file");
    println!("cargo:rerun-if-changed={model}");
    let code = format!("/// The model.\n#[microflow::model({model:?})]\nstruct Model;\n");
    fs::write(out.join("model.rs"), code).expect("OUT_DIR is writable");
}
