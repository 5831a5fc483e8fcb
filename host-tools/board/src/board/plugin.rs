//! Builds the plugin that counts for qemu.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::error::BoardError;
use super::toolchain;
use super::workshop::{Workshop, cannot_keep, keep_in_place, kept, prebuilt};

/// The plugin's file.
pub const PLUGIN: &str = "libarenite_qemu_plugin.so";

/// The plugin, built once a process.
///
/// # Errors
/// Those of a build.
pub fn plugin() -> Result<PathBuf, BoardError> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = BUILT.get() {
        return Ok(path.clone());
    }
    if let Some(path) = prebuilt(PLUGIN) {
        return Ok(BUILT.get_or_init(|| path).clone());
    }
    let workshop = Workshop::here()?;
    let target = workshop.folder().join("plugin");
    let library = target.join("release").join(PLUGIN);
    toolchain::exclusively(&target, || {
        if workshop.is_kept() && kept(&library).is_some() {
            return Ok(());
        }
        let output = toolchain::cargo(&workshop.sources()?.join("host-tools/qemu-plugin"))
            .args(["build", "--quiet", "--release", "--target-dir"])
            .arg(&target)
            .output()
            .map_err(|error| toolchain::cargo_missing(&error))?;
        if output.status.success() {
            return keep_in_place(&library).map_err(cannot_keep(&target));
        }
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(toolchain::not_built("qemu's plugin", "arenite-qemu-plugin", output))
    })?;
    Ok(BUILT.get_or_init(|| library).clone())
}
