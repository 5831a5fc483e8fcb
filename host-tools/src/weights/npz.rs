//! Reading `.npz`: a zip archive of NumPy arrays, which may be compressed, so an array is read as a whole and the last one kept.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ndarray::{ArrayD, IxDyn, OwnedRepr};
use ndarray_npy::{NpzReader, ReadNpyError, ReadNpzError};

use super::missing;
use crate::error::{Error, ErrorKind, Result};

/// An open archive.
#[derive(Debug)]
pub(crate) struct File {
    path: PathBuf,
    keys: Vec<String>,
    last: Mutex<Option<Array>>,
}

/// Key, shape and elements.
type Array = (String, Vec<usize>, Vec<f32>);

/// Whether the file starts as a zip archive does.
pub(crate) fn recognises(path: &Path) -> Result<bool> {
    let mut magic = [0; 4];
    let mut file = std::fs::File::open(path).map_err(|e| Error::io(path, "read the weights", &e))?;
    Ok(file.read_exact(&mut magic).is_ok() && magic.starts_with(b"PK"))
}

impl File {
    /// Opens an archive and lists it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let keys = reader(path)?.names().map_err(|e| malformed(path, &e))?;
        let mut keys: Vec<String> = keys
            .into_iter()
            .map(|key| key.trim_end_matches(".npy").to_string())
            .collect();
        keys.sort();
        if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("`{}` is in the archive twice", pair[0]);
            return Err(Error::new(ErrorKind::Weights, message).in_file(path));
        }
        Ok(Self {
            path: path.to_path_buf(),
            keys,
            last: Mutex::new(None),
        })
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.keys.clone()
    }

    /// Shape and dtype of an entry, in the spelling of safetensors.
    pub(crate) fn entry(&self, key: &str) -> Result<Option<(Vec<usize>, String)>> {
        if self.keys.binary_search_by(|k| k.as_str().cmp(key)).is_err() {
            return Ok(None);
        }
        let mut shape = Vec::new();
        match self.with(key, |found, _| shape = found.to_vec()) {
            Ok(()) => Ok(Some((shape, "F32".to_string()))),
            Err(error) => Err(error),
        }
    }

    /// Elements of an f32 entry.
    pub(crate) fn read(&self, key: &str, start: usize, out: &mut [f32]) -> Result<()> {
        let mut found = false;
        self.with(key, |_, values| {
            if let Some(part) = values.get(start..start + out.len()) {
                out.copy_from_slice(part);
                found = true;
            }
        })?;
        match found {
            true => Ok(()),
            false => Err(Error::internal(format!("elements beyond the end of `{key}`"))),
        }
    }

    fn with(&self, key: &str, visit: impl FnOnce(&[usize], &[f32])) -> Result<()> {
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, shape, values)) = last.as_ref().filter(|(k, _, _)| k == key) {
            visit(shape, values);
            return Ok(());
        }
        // The previous array goes before the next one comes.
        *last = None;
        if self.keys.binary_search_by(|k| k.as_str().cmp(key)).is_err() {
            return Err(missing(key, &self.keys));
        }
        let array: ArrayD<f32> = reader(&self.path)?
            .by_name::<OwnedRepr<f32>, IxDyn>(key)
            .map_err(|e| match e {
                ReadNpzError::Npy(ReadNpyError::WrongDescriptor(found)) => {
                    Error::new(ErrorKind::Weights, format!("parameter `{key}` has dtype {found}"))
                        .in_file(&self.path)
                        .expected("'<f4' (float32)")
                }
                e => malformed(&self.path, &e).at(format!("`{key}`")),
            })?;
        let shape = array.shape().to_vec();
        let values = match array.is_standard_layout() {
            true => array.into_raw_vec_and_offset().0,
            false => array.iter().copied().collect(),
        };
        visit(&shape, &values);
        *last = Some((key.to_string(), shape, values));
        Ok(())
    }
}

fn reader(path: &Path) -> Result<NpzReader<std::fs::File>> {
    let file = std::fs::File::open(path).map_err(|e| Error::io(path, "read the weights", &e))?;
    NpzReader::new(file).map_err(|e| malformed(path, &e))
}

fn malformed(path: &Path, error: &ReadNpzError) -> Error {
    Error::new(ErrorKind::Weights, format!("malformed .npz: {error}")).in_file(path)
}
