//! Folders for the work alone: gone when it is done, when it fails, when a signal ends it; and where the process was killed, when the
//! next one needs such a folder.

use std::fs::File;
use std::io;
use std::path::Path;

use tempfile::TempDir;

use super::signals;

const PREFIX: &str = "arenite-";
const SUFFIX: &str = ".scratch";
/// Locked while the folder is in use.
const LOCK: &str = ".lock";

/// A folder that goes when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    // In this order: the folder goes, then nothing holds its name, then nothing its lock.
    folder: TempDir,
    _held: signals::Name,
    _lock: File,
}

impl Scratch {
    /// A new folder among the system's temporary files.
    ///
    /// # Errors
    /// I/O errors of the system.
    pub fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(place: &Path) -> io::Result<Self> {
        remove_abandoned(place);
        loop {
            let make = || tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).tempdir_in(place);
            let (folder, held) = signals::Name::of_new(make, |folder| folder.path().to_path_buf())?;
            let name = folder.path().join(LOCK);
            let lock = File::create_new(&name)?;
            // Where there are no locks, nobody takes the folder for abandoned either.
            let _ = lock.lock();
            // Between the file's birth and its lock another process may have done so.
            if name.exists() {
                return Ok(Self {
                    folder,
                    _held: held,
                    _lock: lock,
                });
            }
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes folders whose process is gone: nobody holds their lock. One without a lock is being made.
fn remove_abandoned(place: &Path) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let scratch = name
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        // A folder that cannot be opened, locked or removed belongs to somebody else.
        if scratch
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(lock) = File::open(entry.path().join(LOCK))
            && lock.metadata().is_ok_and(|found| found.is_file())
            && lock.try_lock().is_ok()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandoned_folders_go_and_those_in_use_stay() {
        let place = tempfile::tempdir().unwrap();
        let used = Scratch::new_in(place.path()).unwrap();
        let abandoned = place.path().join("arenite-x.scratch");
        let young = place.path().join("arenite-y.scratch");
        std::fs::create_dir_all(abandoned.join("deep")).unwrap();
        std::fs::write(abandoned.join(LOCK), "").unwrap();
        std::fs::create_dir(&young).unwrap();
        let other = Scratch::new_in(place.path()).unwrap();
        assert!(used.path().exists() && !abandoned.exists() && young.exists());
        drop((used, other));
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
