//! `arenite new`: a project for a chip.

use std::fs;
use std::path::{Path, PathBuf};

use super::program::Verdict;
use crate::board::{checkout, runtime_sources};
use crate::chips::{self, Chip, Crates};
use crate::files::print;
use crate::{Error, ErrorKind, Result};

/// Arguments of `arenite new`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The chip, by its whole name or part number, or an emulated board.
    #[arg(long, value_name = "NAME")]
    chip: String,
    /// A library for programs in C instead: one archive with the network, which cargo builds (Rust is needed for that, and not for what links it).
    #[arg(long)]
    c: bool,
    /// The folder to make, the chip's name by default; it must not exist, or be empty.
    dir: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let chip = chips::named(&args.chip)?;
    let folder = args.dir.clone().unwrap_or_else(|| PathBuf::from(chip.name));
    let name = package(&folder)?;
    write(&chip, &folder, &name, args.c)?;
    let wants = match pack_beside() {
        Some(_) if checkout()?.is_some() => "",
        _ => "    # its build wants `pack` of this tool in the path\n",
    };
    let (what, then) = match (args.c, chip.probe) {
        (true, _) => (
            "a library for C",
            "makes the archive, which example/main.c links; Rust is needed here alone",
        ),
        (false, Some(_)) if chip.emulation.is_some() => (
            "a project",
            "`cargo run --release` flashes it with probe-rs, `cargo emulate` runs it in qemu",
        ),
        (false, Some(_)) => ("a project", "`cargo run --release` flashes it with probe-rs"),
        (false, None) => ("a project", "`cargo run --release` runs it in qemu"),
    };
    print::out(&format!(
        "{}: {what} for {} ({})\n    rustup target add {}\n    cd {0} && cargo build --release    # {then}\n{wants}",
        folder.display(),
        chip.name,
        chip.core,
        chip.triple
    ))?;
    Ok(Verdict::Good)
}

/// The package's name: the folder's, as cargo wants it.
fn package(folder: &Path) -> Result<String> {
    let name = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(allowed) {
        return Ok(name);
    }
    Err(Error::new(
        ErrorKind::Usage,
        format!("{}: cargo takes no package of this name", folder.display()),
    )
    .expected("a folder's name of letters, digits, - and _ that begins with a letter"))
}

/// Writes all files into a folder of another name first, so that what fails leaves nothing.
fn write(chip: &Chip, folder: &Path, name: &str, for_c: bool) -> Result<()> {
    let io = |doing: &'static str| move |e: std::io::Error| Error::io(folder, doing, &e);
    if let Ok(mut entries) = fs::read_dir(folder)
        && entries.next().is_some()
    {
        return Err(Error::new(ErrorKind::Usage, "the folder is not empty")
            .in_file(folder)
            .help("name another one: `arenite new` replaces nothing"));
    }
    if fs::metadata(folder).is_ok_and(|found| !found.is_dir()) {
        return Err(Error::new(ErrorKind::Usage, "it is there, and no folder")
            .in_file(folder)
            .help("name another one: `arenite new` replaces nothing"));
    }
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let draft = tempfile::Builder::new()
        .prefix(".arenite-")
        .suffix(".draft")
        .tempdir_in(parent)
        .map_err(io("make the project"))?;
    let (crates, brought) = crates()?;
    let files = if for_c {
        chips::library(chip, name, &crates)
    } else {
        chips::project(chip, name, &crates)
    };
    let files = files.into_iter().map(|file| (file.path.to_owned(), file.bytes));
    for (path, bytes) in files.chain(brought) {
        let path = draft.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(draft.path()))
            .and_then(|()| fs::write(&path, &bytes))
            .map_err(io("write the project"))?;
    }
    readable(draft.path()).map_err(io("write the project"))?;
    // An empty folder of that name makes room.
    let _ = fs::remove_dir(folder);
    fs::rename(draft.path(), folder).map_err(io("make the project"))?;
    let _ = draft.keep();
    Ok(())
}

/// A temporary folder is its owner's alone; a project has the mode of any new folder.
fn readable(draft: &Path) -> std::io::Result<()> {
    let probe = draft.join(".mode");
    fs::create_dir(&probe)?;
    let mode = fs::metadata(&probe)?.permissions();
    fs::remove_dir(&probe)?;
    fs::set_permissions(draft, mode)
}

/// Files by their paths in a project.
type Files = Vec<(String, Vec<u8>)>;

/// Where a project finds the runtime: in the checkout that this tool is built in; an installed tool writes the runtime's sources, which are in it, beside the
/// project's own. Second, these files.
fn crates() -> Result<(Crates, Files)> {
    let in_the_path = || "pack".to_owned();
    let Some(root) = checkout()? else {
        let files = runtime_sources().ok_or_else(|| {
            Error::new(ErrorKind::Io, "this program was built without the runtime's sources")
                .help("install it from a checkout: cargo install --path host-tools")
        })?;
        let inside = |(path, bytes)| (format!("{}/{path}", chips::RUNTIME), bytes);
        let crates = Crates {
            arenite: None,
            pack: in_the_path(),
        };
        return Ok((crates, files.into_iter().map(inside).collect()));
    };
    let crates = Crates {
        arenite: Some(format!("path = {:?}", root.join("core").display().to_string())),
        pack: pack_beside().unwrap_or_else(in_the_path),
    };
    Ok((crates, Vec::new()))
}

/// The path of `pack` in the folder of the running program, where it is there.
fn pack_beside() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let pack = program.with_file_name(format!("pack{}", std::env::consts::EXE_SUFFIX));
    pack.is_file().then(|| pack.display().to_string())
}
