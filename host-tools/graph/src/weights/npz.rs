//! Reading `.npz`: a zip archive of NumPy arrays, which may be compressed, so an array is read as a whole and the last one kept.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::keys::missing;
use crate::error::{Error, ErrorKind, Result};
use crate::files::Input;
use crate::files::npy::{Element, Npy, Wrong};
use crate::files::zip::{self, Zip};

/// An open archive.
#[derive(Debug)]
pub(crate) struct File {
    path: PathBuf,
    zip: Zip,
    keys: Vec<String>,
    last: Mutex<Option<Array>>,
}

/// Key, shape and elements.
type Array = (String, Vec<usize>, Vec<f32>);

/// Whether a file starts as a zip archive does.
pub(crate) fn recognises(start: &[u8]) -> bool {
    start.starts_with(zip::MAGIC)
}

impl File {
    /// Opens an archive and lists it.
    pub(crate) fn open(input: &Input) -> Result<Self> {
        let path = input.path().to_path_buf();
        let file = input
            .file()
            .try_clone()
            .map_err(|e| Error::io(&path, "read the weights", &e))?;
        let zip = Zip::open(file).map_err(|e| malformed(&path, &e))?;
        let mut keys: Vec<String> = zip.names().map(|name| key(name).to_string()).collect();
        keys.sort();
        if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("`{}` is in the archive twice", pair[0]);
            return Err(Error::new(ErrorKind::Weights, message).in_file(&path));
        }
        Ok(Self {
            path,
            zip,
            keys,
            last: Mutex::new(None),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
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
        if found {
            Ok(())
        } else {
            Err(Error::internal(format!("elements beyond the end of `{key}`")))
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
        let content = self
            .zip
            .read(&format!("{key}.npy"))
            .or_else(|| self.zip.read(key))
            .ok_or_else(|| missing(key, &self.keys))?
            .map_err(|e| malformed(&self.path, &e))?;
        let of_type = |found: &str| {
            Error::new(ErrorKind::Weights, format!("parameter `{key}` has dtype {found}"))
                .in_file(&self.path)
                .expected("'<f4' (float32)")
        };
        let array = Npy::parse(&content).map_err(|wrong| match wrong {
            Wrong::Element(found) => of_type(&found),
            Wrong::Malformed(text) => Error::new(ErrorKind::Weights, format!("malformed .npy: {text}"))
                .in_file(&self.path)
                .at(format!("`{key}`")),
        })?;
        if array.element != Element::F32 {
            return Err(of_type(array.element.name()));
        }
        let values = array.elements(f32::from_le_bytes);
        visit(&array.shape, &values);
        *last = Some((key.to_string(), array.shape, values));
        Ok(())
    }
}

/// NumPy adds the ending to every name, once.
fn key(name: &str) -> &str {
    name.strip_suffix(".npy").unwrap_or(name)
}

fn malformed(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Weights, format!("malformed .npz: {error}")).in_file(path)
}
