//! The static library for a core.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use super::cores::Core;
use super::files::{Libraries, Result, checkout};

/// Libraries are built one after the other: cargo puts all of them in the same place.
static BUILDS: Mutex<()> = Mutex::new(());

/// Builds the library for a core, with the kernels of these models, or of all where there are none, `more` features than the core's, and without debug
/// information. `target/c` keeps what was compiled.
///
/// # Errors
/// Errors of cargo, and files that cannot be read.
pub fn library(core: &Core, models: &[PathBuf], more: &[&str]) -> Result<Vec<u8>> {
    // A panic elsewhere leaves nothing half-done.
    let _one = BUILDS.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = checkout().join("target/c");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for inherited in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "CARGO_TARGET_DIR",
    ] {
        cargo.env_remove(inherited);
    }
    cargo.args([
        "build",
        "--quiet",
        "--release",
        "--package",
        "arenite-c",
        "--lib",
        "--target",
        core.triple,
    ]);
    cargo
        .args(["--features", &[core.features, more].concat().join(","), "--target-dir"])
        .arg(&folder);
    cargo.env("ARENITE_MODELS", std::env::join_paths(models)?);
    cargo.env("CARGO_PROFILE_RELEASE_DEBUG", "false");
    let output = cargo.current_dir(checkout().join("firmware")).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the library for {} does not build:\n{said}", core.name).into());
    }
    let path = folder.join(core.triple).join("release/libarenite_c.a");
    Ok(fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?)
}

/// The libraries of these cores, with every kernel.
///
/// # Errors
/// As [`library`].
pub fn libraries(cores: &[&'static Core]) -> Result<Libraries> {
    let built = cores.iter().map(|core| Ok((core.name, library(core, &[], &[])?)));
    built.collect()
}
