//! Packs the sources of the firmware, so that the programs can build it where there is no checkout: `board/sources.rs` unpacks them.
//!
//! They are taken from the checkout; a package that has none carries `sources.archive`, which `cargo xtask test package` puts there.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Files and folders of the checkout that a build for a board reads, and the plugin that counts for qemu.
const SOURCES: [&str; 24] = [
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "core/Cargo.toml",
    "core/build.rs",
    "core/checks",
    "core/include",
    "core/src",
    "firmware/.cargo/config.toml",
    "firmware/Cargo.lock",
    "firmware/Cargo.toml",
    "firmware/build.rs",
    "firmware/c/Cargo.toml",
    "firmware/c/build.rs",
    "firmware/c/src",
    "firmware/footprint",
    "firmware/link",
    "firmware/protocol",
    "firmware/second",
    "firmware/serial",
    "firmware/src",
    "firmware/stream",
    "host-tools/board/src/board/layout.rs",
    "host-tools/board/src/board/parts.rs",
    "host-tools/board/src/board/table.rs",
];
const PLUGIN: [&str; 3] = [
    "host-tools/qemu-plugin/Cargo.lock",
    "host-tools/qemu-plugin/Cargo.toml",
    "host-tools/qemu-plugin/src",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo names no folder")?);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no folder for output")?);
    let checkout = package.join("../..");
    let archive = if checkout.join("firmware/Cargo.toml").is_file() {
        of_checkout(&checkout)?
    } else {
        let packed = package.join("sources.archive");
        println!("cargo:rerun-if-changed={}", packed.display());
        // Without both the programs say, when a board is asked for, that they have no sources.
        if packed.is_file() {
            fs::read(packed)?
        } else {
            Vec::new()
        }
    };
    Ok(fs::write(out.join("sources.archive"), archive)?)
}

fn of_checkout(checkout: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut files = Vec::new();
    for name in SOURCES.iter().chain(&PLUGIN) {
        println!("cargo:rerun-if-changed={}", checkout.join(name).display());
        list(checkout, name, &mut files)?;
    }
    println!("cargo:rerun-if-changed={}", checkout.join("Cargo.toml").display());
    files.sort();
    let mut archive = ZlibEncoder::new(Vec::new(), Compression::best());
    let workspace = workspace(&fs::read_to_string(checkout.join("Cargo.toml"))?)?;
    entry(&mut archive, "Cargo.toml", workspace.as_bytes())?;
    for name in &files {
        entry(&mut archive, name, &fs::read(checkout.join(name))?)?;
    }
    Ok(archive.finish()?)
}

/// The files of an entry, which is one or a folder of them.
fn list(checkout: &Path, name: &str, files: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    if checkout.join(name).is_file() {
        files.push(name.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(checkout.join(name))? {
        let entry = entry?.file_name();
        let inner = entry
            .to_str()
            .ok_or_else(|| format!("{name}: a file's name is no text"))?;
        // Files that cargo or an editor left there are no sources.
        if inner != "target" && !inner.starts_with('.') {
            list(checkout, &format!("{name}/{inner}"), files)?;
        }
    }
    Ok(())
}

/// The workspace with the members that are packed.
fn workspace(manifest: &str) -> Result<String, Box<dyn Error>> {
    let is_members = |line: &&str| line.starts_with("members = [") && line.ends_with(']');
    let line = manifest
        .lines()
        .find(is_members)
        .ok_or("Cargo.toml: no line `members = […]`")?;
    let packed = "members = [\"core\", \"firmware/protocol\", \"firmware/serial\", \"firmware/stream\"]";
    Ok(manifest.replacen(line, packed, 1))
}

/// A file: the lengths of its name and of its content, four bytes each, the lowest first; then both.
fn entry(archive: &mut impl Write, name: &str, content: &[u8]) -> Result<(), Box<dyn Error>> {
    for part in [name.as_bytes(), content] {
        archive.write_all(&u32::try_from(part.len())?.to_le_bytes())?;
    }
    archive.write_all(name.as_bytes())?;
    Ok(archive.write_all(content)?)
}
