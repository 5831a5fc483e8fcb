//! Reading `.safetensors`: eight bytes of header length, a JSON header, the data.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::keys::missing;
use crate::error::{Error, ErrorKind, Result};
use crate::files::json::Json;
use crate::files::{self, Input};

/// The largest header that the format allows.
const LARGEST_HEADER: u64 = 100_000_000;

/// An open file whose header has been checked.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    file: Mutex<files::File>,
    entries: HashMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    /// Offset in the file.
    start: u64,
    bytes: u64,
}

impl File {
    /// Opens a file and reads its header; `doing` completes "cannot …" in messages.
    pub fn open(path: &Path, doing: &str) -> Result<Self> {
        Self::of(&Input::open(path, doing)?)
    }

    /// Reads the header of an open file.
    pub(crate) fn of(input: &Input) -> Result<Self> {
        let path = input.path();
        let io = |e: std::io::Error| Error::io(path, "read the weights", &e);
        let malformed = |message: String| {
            Error::new(ErrorKind::Weights, message)
                .in_file(path)
                .expected("a .safetensors or .npz file")
        };
        let mut file = input.file().try_clone().map_err(io)?;
        let length = file.seek(SeekFrom::End(0)).map_err(io)?;
        file.rewind().map_err(io)?;
        let mut size = [0; 8];
        if length < 8 {
            return Err(malformed(format!("a file of {length} bytes")));
        }
        file.read_exact(&mut size).map_err(io)?;
        let size = u64::from_le_bytes(size);
        if size > LARGEST_HEADER || size > length - 8 {
            return Err(malformed(format!("a header of {size} bytes in a file of {length}")));
        }
        let mut header = String::new();
        (&mut file)
            .take(size)
            .read_to_string(&mut header)
            .map_err(|e| malformed(format!("the header is no text: {e}")))?;
        let entries = entries(&header, 8 + size, length)
            .map_err(|e| Error::new(ErrorKind::Weights, format!("the header: {e}")).in_file(path))?;
        Ok(Self {
            path: path.to_path_buf(),
            file: Mutex::new(file),
            entries,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Names of the tensors.
    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<_> = self.entries.keys().cloned().collect();
        keys.sort();
        keys
    }

    /// Shape and dtype (`F32`, `I8` …) of an entry.
    pub fn entry(&self, key: &str) -> Option<(Vec<usize>, String)> {
        self.entries.get(key).map(|e| (e.shape.clone(), e.dtype.clone()))
    }

    /// The bytes of an entry, which must be small.
    pub fn bytes(&self, key: &str) -> Result<Vec<u8>> {
        let entry = self.entries.get(key).ok_or_else(|| missing(key, &self.keys()))?;
        let mut bytes = vec![0; usize::try_from(entry.bytes).unwrap_or(0)];
        self.read_at(entry.start, &mut bytes)?;
        Ok(bytes)
    }

    /// Elements of an f32 entry.
    pub(crate) fn read(&self, key: &str, start: usize, out: &mut [f32]) -> Result<()> {
        let entry = self.entries.get(key).ok_or_else(|| missing(key, &self.keys()))?;
        if (start + out.len()) as u64 * 4 > entry.bytes {
            return Err(Error::internal(format!("elements beyond the end of `{key}`")));
        }
        let mut bytes = [0; 1 << 16];
        for (index, part) in out.chunks_mut(bytes.len() / 4).enumerate() {
            let bytes = &mut bytes[..part.len() * 4];
            let at = start + index * ((1 << 16) / 4);
            self.read_at(entry.start + at as u64 * 4, bytes)?;
            for (value, raw) in part.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *value = f32::from_le_bytes(*raw);
            }
        }
        Ok(())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let io = |e: std::io::Error| Error::io(&self.path, "read the weights", &e);
        // A poisoned lock only means that another reader panicked; the file itself is position-independent for us.
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset)).map_err(io)?;
        file.read_exact(out).map_err(io)
    }
}

fn entries(header: &str, data: u64, length: u64) -> Result<HashMap<String, Entry>> {
    let mut entries = HashMap::new();
    for (name, json) in Json::parse(header)?.object()?.fields() {
        if name == "__metadata__" {
            continue;
        }
        let object = json.object()?;
        object.only(&["dtype", "shape", "data_offsets"])?;
        let dtype = object.need("dtype")?.string()?;
        let shape = object.need("shape")?.sizes(0..=usize::MAX >> 1)?;
        let offsets = object.need("data_offsets")?.sizes(0..=usize::MAX >> 1)?;
        let [start, end] = *offsets.as_slice() else {
            return Err(json.error("data_offsets").expected("[start, end]"));
        };
        let bytes = (end as u64).checked_sub(start as u64);
        let in_file = data.checked_add(end as u64).is_some_and(|end| end <= length);
        let width = match dtype.as_str() {
            "F64" | "I64" | "U64" => 8,
            "F32" | "I32" | "U32" => 4,
            "F16" | "BF16" | "I16" | "U16" => 2,
            "I8" | "U8" | "BOOL" => 1,
            other => {
                return Err(json
                    .error(format!("`{name}` is {other}"))
                    .expected("a dtype that pack knows"));
            }
        };
        let needed = shape
            .iter()
            .try_fold(width, |n: u64, &extent| n.checked_mul(extent as u64));
        match bytes {
            Some(bytes) if in_file && needed == Some(bytes) => {
                let start = data + start as u64;
                let entry = Entry {
                    dtype,
                    shape,
                    start,
                    bytes,
                };
                entries.insert(name.clone(), entry);
            }
            _ => {
                return Err(json.error(format!(
                    "`{name}` {dtype} {shape:?} does not fit its offsets {offsets:?} in a file of {length} bytes"
                )));
            }
        }
    }
    check_places(&entries, data, length)?;
    Ok(entries)
}

/// Every byte of the data is one entry's: none over another, none that nobody names.
fn check_places(entries: &HashMap<String, Entry>, data: u64, length: u64) -> Result<()> {
    let mut places: Vec<_> = entries
        .iter()
        .map(|(name, entry)| (entry.start, entry.start + entry.bytes, name.as_str()))
        .collect();
    places.sort_unstable();
    let (mut end, mut before) = (data, "");
    for (start, after, name) in places {
        if start < end {
            return Err(Error::input(format!(
                "`{before}` and `{name}` overlap by {} bytes",
                end - start
            )));
        }
        if start > end {
            return Err(unnamed(start - end, format!("before `{name}`")));
        }
        (end, before) = (after, name);
    }
    match length - end {
        0 => Ok(()),
        bytes => Err(unnamed(bytes, "at the end".to_string())),
    }
}

fn unnamed(bytes: u64, place: String) -> Error {
    Error::input(format!("{bytes} bytes {place} belong to no entry"))
}
