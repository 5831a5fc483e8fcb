//! Data outside the model's file: in files of its folder, and nowhere else.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use super::proto::Tensor;
use crate::error::{Error, Result};
use crate::files::File;
use crate::files::system::{canonical, is_file};

/// Completes "cannot …".
const READING: &str = "read the model's external data";

/// The ranges of a file that tensors have: of each its begin, its end and the first tensor that it belongs to. They do not overlap.
type Ranges = BTreeMap<u64, (u64, String)>;

/// The folder of a model, and what has been read of the files in it.
pub(super) struct Folder<'m> {
    folder: &'m Path,
    /// Ranges in use by file.
    ranges: RefCell<HashMap<PathBuf, Ranges>>,
}

impl<'m> Folder<'m> {
    pub(super) fn of(model: &'m Path) -> Self {
        let folder = model.parent().filter(|p| !p.as_os_str().is_empty());
        Self {
            folder: folder.unwrap_or(Path::new(".")),
            ranges: RefCell::default(),
        }
    }

    /// The files that were read.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = self.ranges.borrow().keys().cloned().collect();
        files.sort();
        files
    }

    /// The data of `tensor`, which lies where `pairs` say, and whether it is the first tensor that has them.
    pub(super) fn read(&self, tensor: &Tensor<'_>, pairs: &[(&str, &str)]) -> Result<(Vec<u8>, bool)> {
        let at = |e: Error| e.at(format_args!("tensor `{}`", tensor.name));
        let value = |key: &str| pairs.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
        let location = value("location").ok_or_else(|| at(Error::input("external data without a location")))?;
        let number = |key: &str| match value(key).map(str::parse::<u64>) {
            None => Ok(None),
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => Err(at(
                Error::input(format!("the {key} of external data is no number")).expected("a number of bytes")
            )),
        };
        let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
        let path = self.inside(location).map_err(at)?;
        let mut file = File::open(&path).map_err(|e| at(Error::io(&path, READING, &e)))?;
        let size = file.metadata().map_err(|e| at(Error::io(&path, READING, &e)))?.len();
        let length = length.unwrap_or(size.saturating_sub(offset));
        let end = offset.checked_add(length).filter(|&end| end <= size).ok_or_else(|| {
            at(Error::input(format!("{length} bytes from {offset} of `{location}`"))
                .expected(format!("at most {size}, the file's size"))
                .help("the file of external data is cut off, or belongs to another model"))
        })?;
        let first = self.claim(&path, (offset, end), tensor.name).map_err(at)?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.take(length).read_to_end(&mut bytes))
            .map_err(|e| at(Error::io(&path, READING, &e)))?;
        Ok((bytes, first))
    }

    /// The path of a file of the model's folder.
    fn inside(&self, location: &str) -> Result<PathBuf> {
        let relative = Path::new(location);
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        let outside = || {
            Error::input(format!("external data in `{location}`"))
                .expected("a file inside the model's folder")
                .help("put the file beside the model, and export the model with a relative path")
        };
        if location.is_empty() || location.contains(['\\', '\0']) || !relative.components().all(plain) {
            return Err(outside());
        }
        let path = self.folder.join(relative);
        // Symbolic links may lead out of it.
        let found = canonical(&path).map_err(|e| {
            Error::io(&path, READING, &e).help(format!(
                "a model's external data are looked for in its own folder, `{}`: put the file there, by the name that the model has for it",
                self.folder.display()
            ))
        })?;
        let folder = canonical(self.folder).map_err(|e| Error::io(self.folder, READING, &e))?;
        if !found.starts_with(&folder) || !is_file(&found) {
            return Err(outside());
        }
        Ok(found)
    }

    /// Notes that `tensor` has a range of a file, which no other tensor may share in part: whether it is the first one.
    fn claim(&self, path: &Path, (from, to): (u64, u64), tensor: &str) -> Result<bool> {
        let mut ranges = self.ranges.borrow_mut();
        let ranges = ranges.entry(path.to_path_buf()).or_default();
        if ranges.get(&from).is_some_and(|&(end, _)| end == to) || from == to {
            return Ok(false);
        }
        // Of those that begin before its end the last one ends last.
        if let Some((&begin, (end, other))) = ranges.range(..to).next_back()
            && from < *end
        {
            return Err(Error::input(format!(
                "its external data, bytes {from} to {to}, overlaps that of `{other}`, bytes {begin} to {end}"
            ))
            .help("the model is damaged: export it again"));
        }
        ranges.insert(from, (to, tensor.to_string()));
        Ok(true)
    }
}
