//! Files of an archive, and what the places have in common.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use super::cores::{CORES, Core};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Files of an archive by their paths, without the folder that all of them are in.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Libraries by the names of their cores.
pub type Libraries = BTreeMap<&'static str, Vec<u8>>;

/// The folder that this is compiled in.
pub(super) fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Adds a file of the checkout.
pub(super) fn add(files: &mut Files, path: &str, from: &str) -> Result<()> {
    let bytes = fs::read(checkout().join(from)).map_err(|error| format!("{from}: {error}"))?;
    files.insert(path.to_owned(), bytes);
    Ok(())
}

/// The texts of a place, which lie in `firmware/c/places` as they lie in the archive, with licences and the header.
/// `@VERSION@` and what `replaced` names is replaced.
pub(super) fn texts(place: &str, header: &str, replaced: &[(&str, String)]) -> Result<Files> {
    let mut files = Files::new();
    let root = checkout().join("firmware/c/places").join(place);
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mut text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            text = text.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
            for (name, value) in replaced {
                text = text.replace(name, value);
            }
            let parts = path.strip_prefix(&root)?.components();
            let parts: Vec<_> = parts.map(|part| part.as_os_str().to_string_lossy()).collect();
            files.insert(parts.join("/"), text.into_bytes());
        }
    }
    for text in ["LICENSE-APACHE", "LICENSE-MIT"] {
        add(&mut files, text, text)?;
    }
    add(&mut files, header, "firmware/c/include/arenite.h")?;
    Ok(files)
}

/// Adds the libraries as `lib/<core>/libarenite_c.a`, and the file that finds and embeds models, for places with CMake.
pub(super) fn with_cmake(files: &mut Files, libraries: &Libraries, wanted: impl Fn(&Core) -> bool) -> Result<()> {
    for file in ["core.cmake", "cores.cmake"] {
        add(files, &format!("cmake/{file}"), &format!("firmware/c/cmake/{file}"))?;
    }
    for core in CORES.iter().filter(|core| wanted(core)) {
        if let Some(library) = libraries.get(core.name) {
            files.insert(format!("lib/{}/libarenite_c.a", core.name), library.clone());
        }
    }
    Ok(())
}
