//! The archive that people install from: programs, boards' firmware with its hashes, the library for C as a CMake package, manuals, completions; and the
//! archives of [`PLACES`].

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use arenite_host::board::{
    self, Board, BoardError, Firmware, PLUGIN, PREBUILT_FOLDER, PREBUILT_LIST, Prebuilt, sources_digest,
};
use clap_complete::Shell;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::places::{self, Libraries, PLACES, Result};

/// The program that runs any model: what `run`, `bench` and others start on a board.
const PROGRAM: &str = "infer";

/// The most bytes of a program in an archive: one with its debug information has five times as many.
const LARGEST_PROGRAM: u64 = 32 << 20;

/// Contents of an archive.
pub struct Parts<'a> {
    /// The folder with the programs, built for `triple`.
    pub programs: &'a Path,
    /// Platform that they run on.
    pub triple: &'a str,
    /// Boards whose firmware goes along.
    pub boards: &'a [&'static Board],
    /// Libraries for C that go along.
    pub libraries: &'a Libraries,
}

/// A file of the archive, by its path in it, with whether it is a program.
type Files = BTreeMap<String, (Vec<u8>, bool)>;

/// Name of the archive without its ending, and of the folder in it: `package.metadata.binstall` says the same.
pub fn name(triple: &str) -> String {
    format!("arenite-{}-{triple}", env!("CARGO_PKG_VERSION"))
}

/// Writes the archive into `folder`, and its SHA-256 beside it. Of the same parts it is the same, bit by bit.
///
/// # Errors
/// Errors of a build for a board, and files that cannot be read or written.
pub fn archive(parts: &Parts<'_>, folder: &Path) -> Result<PathBuf> {
    let mut files = Files::new();
    programs(parts, &mut files)?;
    firmware(parts.boards, &mut files)?;
    let package = cmake_package(parts.libraries)?.into_iter();
    files.extend(package.map(|(path, bytes)| (path, (bytes, false))));
    manuals(&mut files)?;
    completions(&mut files);
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for text in ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md", "docs/cli.md"] {
        let name = text.rsplit('/').next().unwrap_or(text);
        files.insert(
            format!("share/doc/arenite/{name}"),
            (fs::read(checkout.join(text))?, false),
        );
    }

    let name = name(parts.triple);
    written(folder, &format!("{name}.tgz"), &packed(&name, &files)?)
}

/// Both programs, stripped.
fn programs(parts: &Parts<'_>, files: &mut Files) -> Result<()> {
    for program in ["pack", "arenite"] {
        let suffix = if parts.triple.contains("windows") { ".exe" } else { "" };
        let path = parts.programs.join(format!("{program}{suffix}"));
        let wrong = |error| format!("{}: {error}", path.display());
        let size = fs::metadata(&path).map_err(wrong)?.len();
        if size > LARGEST_PROGRAM {
            return Err(format!(
                "{}: {size} bytes; a program of an archive has at most {LARGEST_PROGRAM}: build it with `--profile shipped`, which strips it",
                path.display()
            )
            .into());
        }
        files.insert(
            format!("bin/{program}{suffix}"),
            (fs::read(&path).map_err(wrong)?, true),
        );
    }
    Ok(())
}

/// Writes the archives of the [`PLACES`] into `folder`, with these libraries.
///
/// # Errors
/// Files that cannot be read or written.
pub fn archives_of_places(libraries: &Libraries, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for place in &PLACES {
        let files = (place.files)(libraries)?;
        let files: Files = files.into_iter().map(|(path, bytes)| (path, (bytes, false))).collect();
        let bytes = if place.is_zip {
            zipped(place.folder, &files)?
        } else {
            packed(place.folder, &files)?
        };
        paths.push(written(folder, &place.archive(), &bytes)?);
    }
    Ok(paths)
}

/// Writes an archive, and its SHA-256 as `sha256sum --check` reads it.
fn written(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let path = folder.join(name);
    fs::write(&path, bytes)?;
    fs::write(
        folder.join(format!("{name}.sha256")),
        format!("{}  {name}\n", hash(bytes)),
    )?;
    Ok(path)
}

/// Returns the files for `find_package`, by paths below a prefix.
///
/// # Errors
/// Files that cannot be read.
pub fn cmake_package(libraries: &Libraries) -> Result<places::Files> {
    let mut files = places::Files::new();
    if libraries.is_empty() {
        return Ok(files);
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../firmware/c");
    for name in [
        "arenite-config.cmake",
        "arenite-config-version.cmake",
        "core.cmake",
        "cores.cmake",
    ] {
        let text = fs::read_to_string(sources.join("cmake").join(name))?;
        let text = text.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        files.insert(format!("lib/cmake/arenite/{name}"), text.into_bytes());
    }
    let header = fs::read(sources.join("include/arenite.h"))?;
    files.insert("include/arenite.h".to_owned(), header);
    for (core, library) in libraries {
        files.insert(format!("lib/arenite/{core}/libarenite_c.a"), library.clone());
    }
    Ok(files)
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// ELF files, qemu's plugin, and the list of both.
fn firmware(boards: &[&'static Board], files: &mut Files) -> Result<()> {
    let mut list = Prebuilt {
        sources: sources_digest().ok_or("these tools hold no sources")?.to_owned(),
        compiler: board::compiler()?,
        files: BTreeMap::new(),
    };
    let built = boards.iter().map(|board| {
        let elf = Firmware::build(board, PROGRAM)?.elf().to_vec();
        Ok::<_, BoardError>((format!("{}/{PROGRAM}", board.slug()), elf))
    });
    let mut built = built.collect::<std::result::Result<Vec<_>, _>>()?;
    built.push((PLUGIN.to_owned(), fs::read(board::plugin()?)?));
    for (name, bytes) in built {
        list.files.insert(name.clone(), hash(&bytes));
        files.insert(format!("{PREBUILT_FOLDER}/{name}"), (bytes, false));
    }
    let text = format!("{}\n", serde_json::to_string_pretty(&list)?);
    files.insert(format!("{PREBUILT_FOLDER}/{PREBUILT_LIST}"), (text.into_bytes(), false));
    Ok(())
}

/// A page of the manual for each program and each command.
fn manuals(files: &mut Files) -> Result<()> {
    let folder = tempfile::tempdir()?;
    for command in arenite_host::cli::commands() {
        clap_mangen::generate_to(command, folder.path())?;
    }
    for entry in fs::read_dir(folder.path())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.insert(format!("share/man/man1/{name}"), (fs::read(entry.path())?, false));
    }
    Ok(())
}

/// Where each shell looks below a prefix.
fn completions(files: &mut Files) {
    for mut command in arenite_host::cli::commands() {
        let name = command.get_name().to_owned();
        for (shell, path) in [
            (Shell::Bash, format!("share/bash-completion/completions/{name}")),
            (Shell::Zsh, format!("share/zsh/site-functions/_{name}")),
            (Shell::Fish, format!("share/fish/vendor_completions.d/{name}.fish")),
        ] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command, name.clone(), &mut text);
            files.insert(path, (text, false));
        }
    }
}

/// The files below a folder of that name, of no owner and no time.
fn packed(name: &str, files: &Files) -> Result<Vec<u8>> {
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    for (path, (bytes, is_program)) in files {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_size(bytes.len() as u64);
        header.set_mode(if *is_program { 0o755 } else { 0o644 });
        header.set_mtime(1);
        archive.append_data(&mut header, format!("{name}/{path}"), &bytes[..])?;
    }
    let mut compressed = archive.into_inner()?;
    compressed.flush()?;
    Ok(compressed.finish()?)
}

/// The same as `.zip`.
fn zipped(name: &str, files: &Files) -> Result<Vec<u8>> {
    let mut archive = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (path, (bytes, is_program)) in files {
        let mode = if *is_program { 0o755 } else { 0o644 };
        archive.start_file(
            format!("{name}/{path}"),
            SimpleFileOptions::default().unix_permissions(mode),
        )?;
        archive.write_all(bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_its_debug_information_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let parts = Parts {
            programs: folder.path(),
            triple: "x86_64-unknown-linux-gnu",
            boards: &[],
            libraries: &Libraries::new(),
        };
        let write = |name: &str, size| {
            let file = fs::File::create(folder.path().join(name)).expect("made");
            file.set_len(size).expect("grown");
        };
        write("pack", LARGEST_PROGRAM);
        write("arenite", LARGEST_PROGRAM + 1);
        let error = programs(&parts, &mut Files::new()).expect_err("refused").to_string();
        assert!(
            error.contains("arenite: 33554433 bytes") && error.contains("--profile shipped"),
            "{error}"
        );
        write("arenite", 1);
        let mut files = Files::new();
        programs(&parts, &mut files).expect("both");
        assert_eq!(files.keys().collect::<Vec<_>>(), ["bin/arenite", "bin/pack"]);
    }
}
