//! The firmware's sources as they travel in these programs, and the folder where they are unpacked and built.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::error::BoardError;

/// Made by `build.rs`: files with their names, deflated.
static ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sources.archive"));

/// The archive as packages carry it.
pub fn archive() -> &'static [u8] {
    ARCHIVE
}

/// All of the archive; `None` where these programs were built without.
fn inflated() -> Option<Vec<u8>> {
    if ARCHIVE.is_empty() {
        return None;
    }
    let mut bytes = Vec::new();
    flate2::read::ZlibDecoder::new(ARCHIVE).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// SHA-256 of the sources in hexadecimal digits; `None` where there are none.
pub fn digest() -> Option<&'static str> {
    static DIGEST: OnceLock<Option<String>> = OnceLock::new();
    let digest = DIGEST.get_or_init(|| inflated().map(|bytes| hash(&bytes)));
    digest.as_deref()
}

/// SHA-256 in hexadecimal digits.
pub(super) fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes the sources into `folder`, all or nothing; what is there already stays. For one process at a time.
pub(super) fn unpack(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let damaged = || io::Error::other("the sources that these programs hold are damaged");
    let bytes = inflated().ok_or_else(damaged)?;
    let part = folder.with_extension("part");
    match fs::remove_dir_all(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let (name, content, behind) = entry(rest).ok_or_else(damaged)?;
        let path = part.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&part))?;
        fs::write(path, content)?;
        rest = behind;
    }
    fs::rename(part, folder)
}

/// The files of the runtime's crate and of a workspace around it, by their paths, for a project that brings them along; `None` where these programs were built
/// without.
pub fn runtime() -> Option<Vec<(String, Vec<u8>)>> {
    let bytes = inflated()?;
    let (mut files, mut rest) = (Vec::new(), &bytes[..]);
    while !rest.is_empty() {
        let (name, content, behind) = entry(rest)?;
        if name == "Cargo.toml" {
            files.push((name.to_owned(), alone(str::from_utf8(content).ok()?).into_bytes()));
        } else if name.starts_with("core/") || name.starts_with("LICENSE") {
            files.push((name.to_owned(), content.to_vec()));
        }
        rest = behind;
    }
    Some(files)
}

/// The workspace with the runtime as its only member.
fn alone(manifest: &str) -> String {
    let lines = manifest.lines().filter(|line| !line.starts_with("exclude = ["));
    let lines = lines.map(|line| {
        if line.starts_with("members = [") {
            "members = [\"core\"]\n".to_owned()
        } else {
            format!("{line}\n")
        }
    });
    lines.collect()
}

/// The first file: its name, which stays below the folder, its content, and what is behind.
fn entry(bytes: &[u8]) -> Option<(&str, &[u8], &[u8])> {
    let (lengths, rest) = bytes.split_first_chunk::<8>()?;
    let [a, b, c, d, e, f, g, h] = *lengths;
    let (name, rest) = rest.split_at_checked(u32::from_le_bytes([a, b, c, d]) as usize)?;
    let (content, rest) = rest.split_at_checked(u32::from_le_bytes([e, f, g, h]) as usize)?;
    let name = str::from_utf8(name).ok()?;
    let inside = Path::new(name)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    inside.then_some((name, content, rest))
}

/// The folder that keeps what is built: `ARENITE_CACHE`, or `arenite` in the system's folder of that kind.
///
/// # Errors
/// [`BoardError::Cache`] where the system names none.
pub(super) fn cache() -> Result<PathBuf, BoardError> {
    let named = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let of_system = || {
        let home = || named("HOME");
        let folder = if cfg!(windows) {
            named("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            home().map(|home| home.join("Library/Caches"))
        } else {
            // The XDG specification: what is not absolute is ignored.
            let stated = named("XDG_CACHE_HOME").filter(|path| path.is_absolute());
            stated.or_else(|| home().map(|home| home.join(".cache")))
        };
        folder.map(|folder| folder.join("arenite"))
    };
    // cargo runs in another folder.
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    named("ARENITE_CACHE")
        .or_else(of_system)
        .map(absolute)
        .ok_or_else(|| BoardError::Cache {
            path: PathBuf::from("arenite"),
            source: io::Error::other("the system names no folder for caches"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packed_sources_are_those_of_the_checkout() {
        let folder = tempfile::tempdir().expect("a folder");
        let sources = folder.path().join("sources");
        unpack(&sources).expect("unpacked");
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for file in [
            "core/src/lib.rs",
            "core/src/kernels/table.rs",
            "firmware/Cargo.lock",
            "firmware/.cargo/config.toml",
            "firmware/src/bin/infer.rs",
            "firmware/footprint/src/main.rs",
            "host-tools/board/src/board/layout.rs",
            "host-tools/board/src/board/parts.rs",
            "host-tools/board/src/board/table.rs",
            "host-tools/qemu-plugin/src/lib.rs",
        ] {
            let of = |folder: &Path| fs::read(folder.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
            assert_eq!(of(&sources), of(&checkout), "{file}");
        }
        let manifest = fs::read_to_string(sources.join("Cargo.toml")).expect("packed");
        assert!(!manifest.contains("\"tests\"]"), "{manifest}");
        assert!(!sources.with_extension("part").exists());
        // Files that are there are not written again.
        fs::write(sources.join("core/Cargo.toml"), "kept").expect("written");
        unpack(&sources).expect("there");
        assert_eq!(
            fs::read_to_string(sources.join("core/Cargo.toml")).expect("there"),
            "kept"
        );
    }

    #[test]
    fn names_that_lead_out_of_the_folder_are_damage() {
        let file = |name: &str| {
            let mut bytes = (name.len() as u32).to_le_bytes().to_vec();
            bytes.extend([1, 0, 0, 0]);
            bytes.extend(name.bytes());
            bytes.push(b'x');
            bytes
        };
        assert_eq!(entry(&file("a/b")), Some(("a/b", &b"x"[..], &b""[..])));
        for name in ["../a", "/a", "a/../b"] {
            assert_eq!(entry(&file(name)), None, "{name}");
        }
        let whole = file("a/b");
        for cut in 1..whole.len() {
            assert_eq!(entry(&whole[..cut]), None, "{cut}");
        }
    }
}
