//! Outputs: checked before the work, drafted out of sight, in place when all is well.
//!
//! A draft has no name where the file system allows that (`O_TMPFILE`), so nothing can be left behind, whatever ends the process.
//! Elsewhere it has a hidden name beside the output, locked while its process lives; a failure or a signal removes it, and what a
//! killed process leaves is removed by the next one that writes into the folder.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::paths::STDIN;
use super::{print, signals, system};
use crate::error::{Error, ErrorKind, Result};

/// The path that stands for standard output.
pub const STDOUT: &str = "-";

/// If set, drafts have hidden names even where they need none: what a file system without unnamed files would do.
#[cfg(target_os = "linux")]
const NAMED: &str = "ARENITE_NAMED_DRAFTS";

const PREFIX: &str = ".arenite-";
const SUFFIX: &str = ".draft";

/// Links that are followed from an output, as many as Linux follows.
const MOST_LINKS: usize = 40;

/// Where a file is to appear.
#[derive(Debug, Clone)]
pub struct Output {
    /// Path as the user gave it.
    asked: PathBuf,
    /// Where it really is, links followed; `None` is standard output.
    place: Option<PathBuf>,
}

/// A file that is being written and that nobody sees yet. Dropping it leaves nothing behind.
#[derive(Debug)]
pub struct Draft {
    file: File,
    /// Its name, where it needs one.
    name: Option<Hidden>,
    /// Where it is to appear, if anywhere.
    output: Option<Output>,
}

impl Output {
    /// Checks a path that was asked for: a new name in a folder that exists, a file, a link to one of these, or `-`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] for an absent folder, a folder, a link without end; [`ErrorKind::Usage`] for devices, pipes and sockets.
    pub fn to(asked: &Path) -> Result<Self> {
        let asked = asked.to_path_buf();
        if asked.as_os_str() == STDOUT {
            let asked = PathBuf::from("stdout");
            return Ok(Self { asked, place: None });
        }
        // Looked at before links are followed: /dev/stdout leads to names that are none.
        match std::fs::metadata(&asked) {
            Ok(found) if found.is_dir() => {
                return Err(Error::new(ErrorKind::Io, "it is a directory")
                    .in_file(&asked)
                    .expected("a file name"));
            }
            Ok(found) if !found.is_file() => {
                return Err(Error::new(ErrorKind::Usage, "it is a device, a pipe or a socket")
                    .in_file(&asked)
                    .expected("a file to write")
                    .help("for standard output pass `-o -`"));
            }
            // An absent file will be new; a path that cannot be looked at cannot be written either, and writing says why.
            _ => {}
        }
        let place = followed(&asked)?;
        let folder = folder(&place);
        if !folder.is_dir() {
            return Err(Error::new(
                ErrorKind::Io,
                format!("the directory {} does not exist", folder.display()),
            )
            .in_file(&asked)
            .help("create it, or choose another output"));
        }
        let name = place.file_name().ok_or_else(|| {
            Error::internal("it ends in no file's name")
                .in_file(&asked)
                .expected("a file name")
        })?;
        // One place has one path, so that two outputs can be compared.
        let place = Some(
            folder
                .canonicalize()
                .unwrap_or_else(|_| folder.to_path_buf())
                .join(name),
        );
        Ok(Self { asked, place })
    }

    /// The path as it was asked for; standard output has a name that says so.
    pub fn path(&self) -> &Path {
        &self.asked
    }

    /// Whether this is standard output.
    pub fn is_stdout(&self) -> bool {
        self.place.is_none()
    }

    /// Refuses to write over a file that is read, whatever it is called there.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] naming both.
    pub fn differs_from(&self, input: &Path) -> Result<()> {
        let Some(place) = &self.place else { return Ok(()) };
        // Standard input may be a file, too.
        let input = if input.as_os_str() == STDIN {
            Path::new("/dev/stdin")
        } else {
            input
        };
        let same = match (std::fs::metadata(place), std::fs::metadata(input)) {
            (Ok(output), Ok(found)) => same_file((place, &output), (input, &found)),
            _ => false,
        };
        if same {
            Err(
                Error::new(ErrorKind::Usage, format!("the output is the input {}", input.display()))
                    .in_file(&self.asked)
                    .help("choose another output: nothing was written"),
            )
        } else {
            Ok(())
        }
    }

    /// Refuses two outputs in one place.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] naming the second.
    pub fn all_differ<'a>(outputs: impl IntoIterator<Item = &'a Self>) -> Result<()> {
        let mut seen: Vec<&Self> = Vec::new();
        for output in outputs {
            let twice = seen.iter().any(|other| match (&other.place, &output.place) {
                (None, None) => true,
                (Some(a), Some(b)) => a == b || other.differs_from(b).is_err(),
                _ => false,
            });
            if twice {
                return Err(Error::new(ErrorKind::Usage, "two outputs are to go there")
                    .in_file(&output.asked)
                    .expected("a file for each output"));
            }
            seen.push(output);
        }
        Ok(())
    }

    /// An empty draft of the file.
    ///
    /// # Errors
    /// I/O errors of the system.
    pub fn draft(&self) -> io::Result<Draft> {
        let Some(place) = &self.place else {
            return Ok(Draft {
                output: Some(self.clone()),
                ..Draft::scratch()?
            });
        };
        let folder = folder(place);
        remove_abandoned(folder);
        let (file, name) = match unnamed(folder) {
            Some(file) => (file, None),
            None => {
                let (file, name) = Hidden::create(folder)?;
                (file, Some(name))
            }
        };
        Ok(Draft {
            file,
            name,
            output: Some(self.clone()),
        })
    }

    /// A draft that holds `bytes`.
    ///
    /// # Errors
    /// I/O errors of the system.
    pub fn draft_of(&self, bytes: &[u8]) -> io::Result<Draft> {
        let mut draft = self.draft()?;
        draft.file.write_all(bytes)?;
        Ok(draft)
    }
}

impl Draft {
    /// A file for the work alone, which never appears.
    ///
    /// # Errors
    /// I/O errors of the system.
    pub fn scratch() -> io::Result<Self> {
        Ok(Self {
            file: system::unnamed()?,
            name: None,
            output: None,
        })
    }

    /// The file, for reading and writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// All that was written.
    ///
    /// # Errors
    /// I/O errors of the system.
    pub fn bytes(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.rewind()?;
        self.file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Puts the complete file in its place, for those who go on working: a signal still ends the process.
    ///
    /// # Errors
    /// As [`publish`].
    pub fn publish(self) -> Result<()> {
        put(vec![self], false)
    }

    /// Gives the file its name, in place of what had it.
    fn appear(&self, place: &Path) -> io::Result<()> {
        if let Ok(before) = std::fs::metadata(place) {
            self.file.set_permissions(before.permissions())?;
        }
        if let Some(name) = &self.name {
            return std::fs::rename(name.path(), place);
        }
        match link(&self.file, place) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                // Only renaming replaces a file. The lock says that the name between is in use.
                self.file.lock()?;
                let name = hidden_name(folder(place));
                link(&self.file, &name)?;
                std::fs::rename(&name, place).inspect_err(|_| drop(std::fs::remove_file(&name)))
            }
            done => done,
        }
    }
}

/// Puts complete files in their places, in one go, as a program's last act: a signal comes before all of them, or is too late. A file that was
/// there is replaced and keeps its mode.
///
/// # Errors
/// [`ErrorKind::Io`]; [`ErrorKind::Closed`] where a reader of standard output went away before it had everything.
pub fn publish(drafts: Vec<Draft>) -> Result<()> {
    put(drafts, true)
}

/// Writes a file whole or not at all.
///
/// # Errors
/// As [`Output::to`] and [`publish`].
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let draft = Output::to(path)?.draft_of(bytes);
    draft.map_err(|e| Error::io(path, "write it", &e))?.publish()
}

fn put(mut drafts: Vec<Draft>, last: bool) -> Result<()> {
    for draft in &mut drafts {
        if draft.output.as_ref().is_some_and(Output::is_stdout) {
            let mut stdout = io::stdout().lock();
            let copied = draft
                .file
                .rewind()
                .and_then(|()| io::copy(&mut draft.file, &mut stdout))
                .and_then(|_| stdout.flush());
            copied.map_err(|e| match e.kind() {
                io::ErrorKind::BrokenPipe => {
                    Error::new(ErrorKind::Closed, "the reader of the standard output went away")
                }
                _ => print::refused(&e),
            })?;
        }
    }
    signals::complete(last, || {
        for draft in &drafts {
            if let Some(Output {
                asked,
                place: Some(place),
            }) = &draft.output
            {
                draft.appear(place).map_err(|e| Error::io(asked, "write it", &e))?;
            }
        }
        Ok(())
    })
}

/// A hidden name beside an output; dropping it removes the file, unless it has got its own name.
#[derive(Debug)]
struct Hidden(signals::Name);

impl Hidden {
    /// A new file of such a name, locked.
    fn create(folder: &Path) -> io::Result<(File, Self)> {
        loop {
            let path = hidden_name(folder);
            let open = || OpenOptions::new().read(true).write(true).create_new(true).open(&path);
            let (file, name) = match signals::Name::of_new(open, |_| path.clone()) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            };
            // Where there are no locks, nobody takes the file for abandoned either.
            let _ = file.lock();
            // Between its birth and the lock another process may have done so.
            let mine = file.metadata()?;
            if std::fs::metadata(&path).is_ok_and(|found| same_file((&path, &found), (&path, &mine))) {
                return Ok((file, Self(name)));
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // After a rename there is nothing of this name.
        let _ = std::fs::remove_file(self.path());
    }
}

/// A name that no other process and no other draft of this one takes.
fn hidden_name(folder: &Path) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    folder.join(format!("{PREFIX}{process:x}-{count:x}-{now:x}{SUFFIX}"))
}

/// Removes drafts whose process is gone: nobody holds their lock.
fn remove_abandoned(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let draft = name
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if !draft || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        // A file that cannot be opened, locked or removed belongs to somebody else.
        if let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A file without a name, where the system and the file system have such files and can name them later.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    if std::env::var_os(NAMED).is_some() {
        return None;
    }
    let flags = i32::try_from(rustix::fs::OFlags::TMPFILE.bits()).ok()?;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags)
        .open(folder)
        .ok()?;
    descriptor(&file).exists().then_some(file)
}

/// Names an unnamed file; fails where the name is taken.
#[cfg(target_os = "linux")]
fn link(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(CWD, descriptor(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The end of a chain of links; what it names need not exist.
fn followed(asked: &Path) -> Result<PathBuf> {
    let mut place = asked.to_path_buf();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&place) {
            Ok(target) => place = folder(&place).join(target),
            Err(_) => return Ok(place),
        }
    }
    Err(Error::new(ErrorKind::Io, "it is a link that leads back to itself").in_file(asked))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Whether two paths, each with what the system says of it, are one file.
fn same_file(a: (&Path, &Metadata), b: (&Path, &Metadata)) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (a.1.dev(), a.1.ino()) == (b.1.dev(), b.1.ino())
    }
    #[cfg(not(unix))]
    {
        let real = |path: &Path| path.canonicalize().ok();
        real(a.0).is_some_and(|path| Some(path) == real(b.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_draft_that_is_dropped_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let output = Output::to(&folder.path().join("x")).unwrap();
        drop(output.draft_of(b"new").unwrap());
        let (file, name) = Hidden::create(folder.path()).unwrap();
        assert_eq!(names(folder.path()).len(), 1);
        drop((file, name));
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    fn a_draft_replaces_a_file_whether_it_has_a_name_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let output = Output::to(&path).unwrap();
        for text in ["one", "two"] {
            output.draft_of(text.as_bytes()).unwrap().publish().unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        let (mut file, name) = Hidden::create(folder.path()).unwrap();
        file.write_all(b"three").unwrap();
        let draft = Draft {
            file,
            name: Some(name),
            output: Some(output),
        };
        draft.publish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three");
        assert_eq!(names(folder.path()), ["x"]);
    }

    #[test]
    fn abandoned_drafts_go_and_those_in_use_stay() {
        let folder = tempfile::tempdir().unwrap();
        let output = Output::to(&folder.path().join("x")).unwrap();
        let (file, name) = Hidden::create(folder.path()).unwrap();
        let (abandoned, foreign) = (hidden_name(folder.path()), folder.path().join(".arenite-notes"));
        std::fs::write(&abandoned, "half").unwrap();
        std::fs::write(&foreign, "mine").unwrap();
        output.draft().unwrap();
        assert!(!abandoned.exists() && name.path().exists() && foreign.exists());
        drop(file);
        output.draft().unwrap();
        assert!(!name.path().exists(), "nobody holds its lock any more");
    }
}
