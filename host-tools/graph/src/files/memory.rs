//! Files where there is no file system, as in a browser: given by name, held in memory, taken by name.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Deref;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Models want their bytes aligned as a device's linker aligns them.
const ALIGN: usize = 16;

type Bytes = Arc<Vec<u8>>;

static HELD: Mutex<BTreeMap<PathBuf, Bytes>> = Mutex::new(BTreeMap::new());

fn held() -> MutexGuard<'static, BTreeMap<PathBuf, Bytes>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every file has one name, from the root of this memory.
fn plain(path: &Path) -> PathBuf {
    let parts = path.components();
    parts.filter(|part| matches!(part, Component::Normal(_))).collect()
}

/// Holds a file from now on, in place of one of this name.
pub fn give(path: &Path, bytes: Vec<u8>) {
    held().insert(plain(path), Arc::new(bytes));
}

/// Hands a file out and forgets it.
pub fn take(path: &Path) -> Option<Vec<u8>> {
    let bytes = held().remove(&plain(path))?;
    Some(Arc::unwrap_or_clone(bytes))
}

/// Forgets all files.
pub fn forget() {
    held().clear();
}

/// An open file. Bytes written to it are seen through its clones alone.
#[derive(Debug)]
pub struct File(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    bytes: Bytes,
    at: u64,
}

/// Metadata of an open file: its length.
#[derive(Debug, Clone, Copy)]
pub struct Metadata(u64);

impl Metadata {
    /// Its bytes.
    #[allow(clippy::len_without_is_empty, reason = "as std::fs::Metadata")]
    pub fn len(&self) -> u64 {
        self.0
    }

    /// Never: there are no folders.
    pub fn is_dir(&self) -> bool {
        false
    }

    /// Always.
    pub fn is_file(&self) -> bool {
        true
    }
}

impl File {
    /// Opens a file that was given.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`].
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let bytes = held().get(&plain(path.as_ref())).cloned().ok_or_else(absent)?;
        Ok(Self(Arc::new(Mutex::new(Open { bytes, at: 0 }))))
    }

    /// Returns the metadata of the file.
    ///
    /// # Errors
    /// None.
    pub fn metadata(&self) -> io::Result<Metadata> {
        Ok(Metadata(self.lock().bytes.len() as u64))
    }

    /// The same file at the same place, as a system's descriptors share it.
    ///
    /// # Errors
    /// None.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(Arc::clone(&self.0)))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn absent() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "no file of this name was given")
}

impl Read for &File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut open = self.lock();
        let at = usize::try_from(open.at).unwrap_or(usize::MAX);
        let mut rest = open.bytes.get(at..).unwrap_or_default();
        let read = rest.read(buffer)?;
        open.at += read as u64;
        Ok(read)
    }
}

impl Write for &File {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let open = &mut *self.lock();
        let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        let at = usize::try_from(open.at).map_err(too_large)?;
        let bytes = Arc::make_mut(&mut open.bytes);
        if bytes.len() < at {
            bytes.resize(at, 0);
        }
        let (over, behind) = buffer.split_at(buffer.len().min(bytes.len() - at));
        bytes[at..at + over.len()].copy_from_slice(over);
        bytes.extend_from_slice(behind);
        open.at += buffer.len() as u64;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let mut open = self.lock();
        let (from, by) = match to {
            SeekFrom::Start(at) => (at, 0),
            SeekFrom::End(by) => (open.bytes.len() as u64, by),
            SeekFrom::Current(by) => (open.at, by),
        };
        open.at = from.checked_add_signed(by).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(open.at)
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for File {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        (&*self).write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&*self).seek(to)
    }
}

/// A file's bytes where they can be read in place.
pub(crate) struct Map {
    bytes: Vec<u8>,
    from: usize,
}

impl Deref for Map {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes.get(self.from..).unwrap_or_default()
    }
}

/// The bytes of a file as they are now, aligned.
///
/// # Errors
/// None.
pub(crate) fn map(file: &File) -> io::Result<Map> {
    let content = Arc::clone(&file.lock().bytes);
    let mut bytes: Vec<u8> = Vec::with_capacity(content.len() + ALIGN);
    let from = bytes.as_ptr().align_offset(ALIGN).min(ALIGN);
    bytes.resize(from, 0);
    bytes.extend_from_slice(&content);
    Ok(Map { bytes, from })
}

/// An empty file without a name.
///
/// # Errors
/// None.
pub fn unnamed() -> io::Result<File> {
    Ok(File(Arc::default()))
}

/// The one path of a file that was given, or of a folder.
///
/// # Errors
/// [`io::ErrorKind::NotFound`].
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    let path = plain(path);
    let there = held().keys().any(|file| file.starts_with(&path));
    if there { Ok(path) } else { Err(absent()) }
}

/// Whether it was given.
pub fn is_file(path: &Path) -> bool {
    held().contains_key(&plain(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_written_and_taken_by_name() {
        give(Path::new("./folder/a.bin"), vec![1, 2, 3, 4]);
        let path = Path::new("folder/a.bin");
        assert!(is_file(path) && !is_file(Path::new("folder")) && !is_file(Path::new("b.bin")));
        assert_eq!(canonical(Path::new("folder/./a.bin")).unwrap(), path);
        assert_eq!(canonical(Path::new("folder")).unwrap(), Path::new("folder"));
        assert_eq!(canonical(Path::new("b")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(File::open("b").unwrap_err().kind(), io::ErrorKind::NotFound);
        let mut file = File::open(path).unwrap();
        let found = file.metadata().unwrap();
        assert!(found.len() == 4 && found.is_file() && !found.is_dir());
        // A clone is at the same place.
        let (mut two, mut rest) = ([0; 2], Vec::new());
        file.read_exact(&mut two).unwrap();
        file.try_clone().unwrap().read_to_end(&mut rest).unwrap();
        assert_eq!((two, &rest[..]), ([1, 2], &[3, 4][..]));
        // Bytes written over it and behind it are not in the file that was given.
        assert_eq!(file.seek(SeekFrom::End(-1)).unwrap(), 3);
        file.write_all(&[9, 8]).unwrap();
        assert_eq!(file.seek(SeekFrom::Current(2)).unwrap(), 7);
        file.write_all(&[7]).unwrap();
        file.flush().unwrap();
        assert!(file.seek(SeekFrom::Current(-9)).is_err());
        let map = map(&file).unwrap();
        assert_eq!(&map[..], [1, 2, 3, 9, 8, 0, 0, 7]);
        assert!(map.as_ptr().addr().is_multiple_of(ALIGN));
        assert_eq!(take(path).unwrap(), [1, 2, 3, 4]);
        assert!(take(path).is_none());
        assert_eq!(unnamed().unwrap().metadata().unwrap().len(), 0);
        give(path, Vec::new());
        forget();
        assert!(!is_file(path));
    }
}
