//! Which kernels the library has: with `ARENITE_MODELS`, files as the system's search path separates them, those of these models; else all of the build.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The first bytes of a model file: docs/format.md.
const MAGIC: &[u8] = b"ARENITE\n";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=ARENITE_MODELS");
    let named = env::var_os("ARENITE_MODELS").unwrap_or_default();
    let mut sets = Vec::new();
    for path in env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()) {
        match set(&path) {
            Ok(set) => sets.push(set),
            Err(error) => {
                println!("cargo::error=ARENITE_MODELS: {}: {error}", path.display());
                return;
            }
        }
    }
    let set = if sets.is_empty() {
        "arenite::KernelSet::ALL".to_owned()
    } else {
        format!("arenite::KernelSet::EMPTY{}", sets.concat())
    };
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    fs::write(out.join("kernels.rs"), format!("{set}\n")).expect("OUT_DIR is writable");
}

/// The end of an expression that adds the kernels of a model.
fn set(path: &Path) -> Result<String, String> {
    let path = path.canonicalize().map_err(|error| error.to_string())?;
    println!("cargo:rerun-if-changed={}", path.display());
    let bytes = fs::read(&path).map_err(|error| error.to_string())?;
    if !bytes.starts_with(MAGIC) {
        return Err("it is no model file; of a signed one or a bundle give the models themselves".to_owned());
    }
    Ok(format!(".union(arenite::kernel_set(include_bytes!({path:?})))"))
}
