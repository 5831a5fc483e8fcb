//! Where the firmware is built: in the checkout that these programs belong to, or, once they are installed, in a folder of their own.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use super::error::BoardError;
use super::sources;
use super::toolchain;
use crate::files;

/// Sources and the folder where they are built.
#[derive(Debug, Clone)]
pub(super) struct Workshop {
    /// The checkout; `None` for the sources that travel in these programs.
    checkout: Option<PathBuf>,
    /// Folder that builds go to.
    folder: PathBuf,
}

impl Workshop {
    /// That of this process.
    ///
    /// # Errors
    /// [`BoardError::NoSources`], [`BoardError::Cache`]; [`BoardError::ToolMissing`] without a compiler, whose version the folder is named after.
    pub(super) fn here() -> Result<Self, BoardError> {
        if let Some(root) = checkout()? {
            return Ok(Self {
                folder: root.join("target/boards"),
                checkout: Some(root),
            });
        }
        let folder = packed_folder()?.join(toolchain::compiler()?);
        Ok(Self { checkout: None, folder })
    }

    /// The sources; those of an installed program are unpacked the first time.
    ///
    /// # Errors
    /// [`BoardError::Cache`].
    pub(super) fn sources(&self) -> Result<PathBuf, BoardError> {
        if let Some(root) = &self.checkout {
            return Ok(root.clone());
        }
        let folder = packed_folder()?;
        toolchain::exclusively(&folder, || {
            let sources = folder.join("sources");
            sources::unpack(&sources).map_err(cannot_keep(&folder))?;
            Ok(sources)
        })
    }

    /// Where builds go.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether sources never change, so that what was built once stays right.
    pub(super) fn is_kept(&self) -> bool {
        self.checkout.is_none()
    }
}

/// The folder of the packed sources and of all that compilers made of them: their version and digest name it.
fn packed_folder() -> Result<PathBuf, BoardError> {
    let digest = sources::digest().ok_or_else(|| BoardError::NoSources { path: compiled_in() })?;
    let digest = digest.get(..16).unwrap_or(digest);
    Ok(sources::cache()?.join(format!("{}-{digest}", env!("CARGO_PKG_VERSION"))))
}

/// That a folder of the cache cannot be written, or read.
pub(super) fn cannot_keep(folder: &Path) -> impl Fn(io::Error) -> BoardError {
    let path = folder.to_owned();
    move |source| BoardError::Cache {
        path: path.clone(),
        source,
    }
}

fn compiled_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The checkout that the firmware is built from: `ARENITE_ROOT`, or that of these programs while they are where cargo built them.
///
/// # Errors
/// [`BoardError::NoSources`] where `ARENITE_ROOT` names something else.
pub fn checkout() -> Result<Option<PathBuf>, BoardError> {
    let of = |path: PathBuf| match path.canonicalize() {
        Ok(root) if root.join("firmware/Cargo.toml").is_file() => Ok(root),
        _ => Err(BoardError::NoSources { path }),
    };
    match std::env::var_os("ARENITE_ROOT") {
        Some(root) => of(PathBuf::from(root)).map(Some),
        None => Ok(of(compiled_in()).ok().filter(|root| is_built_here(root))),
    }
}

/// Whether this program runs from cargo's folder: one that was copied or installed elsewhere does not read a checkout which goes on changing.
fn is_built_here(root: &Path) -> bool {
    // TARGET/PROFILE/build/NAME/out.
    let target = Path::new(env!("OUT_DIR")).ancestors().nth(4).map(Path::to_owned);
    let folders = [Some(root.join("target")), target].into_iter().flatten();
    let mut folders = folders.filter_map(|folder| folder.canonicalize().ok());
    let program = std::env::current_exe().and_then(|path| path.canonicalize());
    program.is_ok_and(|program| folders.any(|folder| program.starts_with(folder)))
}

/// Where the firmware comes from, for people.
///
/// # Errors
/// [`BoardError::NoSources`], [`BoardError::Cache`].
pub(super) fn place() -> Result<String, BoardError> {
    Ok(match (checkout()?, brought()) {
        (Some(root), _) => root.display().to_string(),
        (None, Some((folder, list))) => format!("{} files built before, in {}", list.files.len(), folder.display()),
        (None, None) => format!("in this program; built in {}", packed_folder()?.display()),
    })
}

/// The folder of the checkout for a qemu that may not be installed.
pub const QEMU_FOLDER: &str = ".qemu";

/// Where a qemu goes that may not be installed: [`QEMU_FOLDER`], or, without a checkout, the cache.
///
/// # Errors
/// As [`checkout`], and [`BoardError::Cache`].
pub(super) fn qemu_folder() -> Result<PathBuf, BoardError> {
    Ok(match checkout()? {
        Some(root) => root.join(QEMU_FOLDER),
        None => sources::cache()?.join("qemu"),
    })
}

/// Folders beside the path where programs are looked for: unpacked ones of the checkout, and of the cache.
pub(super) fn beside_the_path() -> Vec<PathBuf> {
    let checkout = checkout().ok().flatten().or_else(|| compiled_in().canonicalize().ok());
    let unpacked = checkout.map(|root| root.join(QEMU_FOLDER).join("bin"));
    let cached = sources::cache().ok().map(|cache| cache.join("qemu/bin"));
    unpacked.into_iter().chain(cached).collect()
}

/// Keeps a built file with its SHA-256 beside it. By renaming, so that a qemu which reads the file of before goes on reading that.
pub(super) fn keep(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(Path::new(".")))?;
    let fresh = fs::read(from)?;
    if fs::read(to).is_ok_and(|kept| kept == fresh) && kept(to).is_some() {
        return Ok(());
    }
    files::write(to, &fresh).map_err(io::Error::other)?;
    keep_in_place(to)
}

/// Writes a file's SHA-256 beside it.
pub(super) fn keep_in_place(path: &Path) -> io::Result<()> {
    let line = format!("{}\n", sources::hash(&fs::read(path)?));
    files::write(&sum(path), line.as_bytes()).map_err(io::Error::other)
}

/// The file where the SHA-256 of another stands.
fn sum(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".sha256");
    name.into()
}

/// A file that [`keep`] wrote, unless it is damaged.
pub(super) fn kept(path: &Path) -> Option<PathBuf> {
    let stated = fs::read_to_string(sum(path)).ok()?;
    (sources::hash(&fs::read(path).ok()?) == stated.trim()).then(|| path.to_owned())
}

/// Files in an archive of these programs that were built from the sources in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prebuilt {
    /// SHA-256 of the sources.
    pub sources: String,
    /// The compiler.
    pub compiler: String,
    /// SHA-256 by file: `BOARD/PROGRAM`, or the name of the plugin's library.
    pub files: BTreeMap<String, String>,
}

/// The list of [`Prebuilt`] in its folder.
pub const PREBUILT_LIST: &str = "firmware.json";
/// The folder of [`Prebuilt`] below the prefix whose `bin` holds the programs.
pub const PREBUILT_FOLDER: &str = "share/arenite/firmware";

/// A file that came with an installed program, where its hash is the listed one and its sources are this program's.
pub(super) fn prebuilt(name: &str) -> Option<PathBuf> {
    let (folder, list) = brought()?;
    let path = folder.join(name);
    let stated = list.files.get(name)?;
    let found = sources::hash(&fs::read(&path).ok()?);
    if found == *stated {
        return Some(path);
    }
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        files::print::note(format_args!(
            "warning: {}: its SHA-256 is not the one in {PREBUILT_LIST}; it is built here instead",
            path.display()
        ));
    }
    None
}

/// The list that came with this program, with its folder; `None` in a checkout, and where it is of other sources.
pub(super) fn brought() -> Option<&'static (PathBuf, Prebuilt)> {
    static BROUGHT: OnceLock<Option<(PathBuf, Prebuilt)>> = OnceLock::new();
    let read = || {
        let program = std::env::current_exe().ok()?.canonicalize().ok()?;
        let folder = program.parent()?.parent()?.join(PREBUILT_FOLDER);
        let list: Prebuilt = serde_json::from_slice(&fs::read(folder.join(PREBUILT_LIST)).ok()?).ok()?;
        (Some(list.sources.as_str()) == sources::digest()).then_some((folder, list))
    };
    let brought = BROUGHT.get_or_init(read).as_ref();
    if checkout().ok()?.is_some() { None } else { brought }
}

/// A program for any model that needs no build: it came along, or it was built before.
pub(super) fn at_hand(board: &str, program: &str) -> Option<PathBuf> {
    if checkout().ok()?.is_some() {
        return None;
    }
    let built = || kept(&Workshop::here().ok()?.folder().join("elf").join(board).join(program));
    prebuilt(&format!("{board}/{program}")).or_else(built)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_not_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let (made, to) = (folder.path().join("made"), folder.path().join("elf/board/infer"));
        fs::write(&made, "a program").expect("written");
        assert_eq!(kept(&to), None);
        keep(&made, &to).expect("kept");
        assert_eq!(kept(&to), Some(to.clone()));
        fs::write(&to, "a progra").expect("cut");
        assert_eq!(kept(&to), None);
        keep(&made, &to).expect("kept again");
        assert_eq!(
            fs::read_to_string(kept(&to).expect("whole")).expect("read"),
            "a program"
        );
        fs::remove_file(sum(&to)).expect("removed");
        assert_eq!(kept(&to), None);
        keep(&made, &to).expect("kept again");
        assert!(kept(&to).is_some());
    }
}
