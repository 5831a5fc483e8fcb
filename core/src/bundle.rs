//! Several models in one file. They run in turn in one arena, as large as the largest needs; each has a state of its own.
//!
//! A header of 32 bytes, an entry of 32 bytes for each model, then the models, each a file of its own at a multiple of 64 bytes.
//! Specified in `docs/format.md`.

use crate::align::MODEL_ALIGN;
use crate::arena::MAX_REGIONS;
use crate::blob::{CrcUnit, Header, Model, Receipt, half, word};
use crate::crc::Crc32;
use crate::error::LoadError;

/// The version of the bundle's format.
pub const BUNDLE_VERSION: u16 = 1;

/// Bytes of a bundle's header, and of each entry.
pub const BUNDLE_ENTRY: usize = 32;

/// Bytes of a model's name in a bundle, UTF-8, filled up with zeros.
pub const BUNDLE_NAME: usize = 24;

const MAGIC: [u8; 8] = *b"ARENBND\n";

/// A bundle whose directory was checked; its models are checked when they are loaded.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Bundle<'a> {
    bytes: &'a [u8],
    count: usize,
}

/// A model in a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Entry<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its file.
    pub bytes: &'a [u8],
}

impl<'a> Bundle<'a> {
    /// Whether a file starts as a bundle does.
    pub fn is_bundle(file: &[u8]) -> bool {
        starts(file)
    }

    /// Checks the directory of a bundle: alignment, version, checksum, and that every model lies inside the file.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn open(file: &'a [u8]) -> Result<Self, LoadError> {
        let bundle = Self::directory(file)?;
        let whole = (0..bundle.count).all(|index| {
            bundle
                .entry(index)
                .is_some_and(|entry| Header::parse(entry.bytes).is_ok())
        });
        if whole { Ok(bundle) } else { Err(LoadError::Header) }
    }

    /// As [`Bundle::open`], whatever its models are: they may be of another version.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn directory(file: &'a [u8]) -> Result<Self, LoadError> {
        let found = u32::try_from(file.len()).unwrap_or(u32::MAX);
        if !file.as_ptr().addr().is_multiple_of(MODEL_ALIGN) {
            return Err(LoadError::Misaligned);
        }
        let Some((head, _)) = file.split_first_chunk::<BUNDLE_ENTRY>() else {
            return Err(LoadError::Truncated {
                expected: BUNDLE_ENTRY as u32,
                found,
            });
        };
        let Directory {
            count, total, expected, ..
        } = Directory::begin(head)?;
        let count = usize::from(count);
        let Some(bytes) = file.get(..total as usize) else {
            return Err(LoadError::Truncated { expected: total, found });
        };
        let Some(directory) = bytes.get(..BUNDLE_ENTRY * (count + 1)) else {
            return Err(LoadError::Header);
        };
        let found = directory_checksum(directory);
        if found != expected {
            return Err(LoadError::Checksum { expected, found });
        }
        Ok(Self { bytes, count })
    }

    /// Number of models.
    #[expect(clippy::len_without_is_empty, reason = "a bundle has at least one model")]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Model `index`, unchecked.
    pub fn entry(&self, index: usize) -> Option<Entry<'a>> {
        if index >= self.count {
            return None;
        }
        let entry = self
            .bytes
            .get(BUNDLE_ENTRY * (index + 1)..)?
            .first_chunk::<BUNDLE_ENTRY>()?;
        let Located { offset, bytes, .. } = Located::of(entry);
        let (offset, len) = (offset as usize, bytes as usize);
        let name = entry.get(field::NAME..)?;
        if !offset.is_multiple_of(MODEL_ALIGN) {
            return None;
        }
        let used = name.iter().position(|&b| b == 0).unwrap_or(name.len());
        Some(Entry {
            name: core::str::from_utf8(name.get(..used)?).ok()?,
            bytes: self.bytes.get(offset..)?.get(..len)?,
        })
    }

    /// Checks and loads model `index`.
    ///
    /// # Errors
    /// See [`Model::load`]; [`LoadError::Header`] where there is no such model.
    pub fn load(&self, index: usize) -> Result<Model<'a>, LoadError> {
        Model::load(self.entry(index).ok_or(LoadError::Header)?.bytes)
    }

    /// As [`Bundle::load`], with a receipt of the model (of its [`Entry::bytes`]) for its checksum: see [`Model::load_with_receipt`].
    ///
    /// # Errors
    /// Those of [`Bundle::load`]; [`LoadError::Receipt`].
    pub fn load_with_receipt(&self, index: usize, receipt: &Receipt) -> Result<Model<'a>, LoadError> {
        Model::load_with_receipt(self.entry(index).ok_or(LoadError::Header)?.bytes, receipt)
    }

    /// As [`Bundle::load`], the model's checksum by a unit of the chip: see [`Model::load_with_crc`].
    ///
    /// # Errors
    /// Those of [`Bundle::load`].
    pub fn load_with_crc(&self, index: usize, unit: &mut impl CrcUnit) -> Result<Model<'a>, LoadError> {
        Model::load_with_crc(self.entry(index).ok_or(LoadError::Header)?.bytes, unit)
    }

    /// Bytes of arena in `region` that serve every model in turn.
    pub fn arena_bytes(&self, region: usize) -> usize {
        let of = |index| {
            self.entry(index)
                .map_or(0, |entry| crate::blob::arena_bytes(entry.bytes, region))
        };
        if region < MAX_REGIONS {
            (0..self.count).map(of).max().unwrap_or(0)
        } else {
            0
        }
    }
}

/// Position of a model in a bundle, from its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Located {
    /// From the bundle's start.
    pub offset: u32,
    /// Length, in bytes.
    pub bytes: u32,
    /// Its name, filled up with zeros.
    pub name: [u8; BUNDLE_NAME],
}

impl Located {
    /// Takes an entry apart, of which nothing is checked.
    pub fn of(entry: &[u8; BUNDLE_ENTRY]) -> Self {
        let mut name = [0; BUNDLE_NAME];
        let from = entry.iter().skip(field::NAME);
        name.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        Self {
            offset: word(entry, field::OFFSET),
            bytes: word(entry, field::LEN),
            name,
        }
    }
}

/// The directory of a bundle that is no memory: it is read entry by entry, and checked in the end.
#[derive(Debug, Clone, Copy)]
pub struct Directory {
    count: u16,
    total: u32,
    expected: u32,
    sum: Crc32,
}

impl Directory {
    /// Begins with a file's first bytes.
    ///
    /// # Errors
    /// [`LoadError::NotABlob`] where it is no bundle, [`LoadError::Version`].
    pub fn begin(head: &[u8; BUNDLE_ENTRY]) -> Result<Self, LoadError> {
        if !starts(head) {
            return Err(LoadError::NotABlob);
        }
        let version = half(head, field::VERSION);
        if version != BUNDLE_VERSION {
            return Err(LoadError::Version {
                found: version,
                supported: BUNDLE_VERSION,
            });
        }
        Ok(Self {
            count: half(head, field::COUNT),
            total: word(head, field::TOTAL),
            expected: word(head, field::CRC),
            sum: summed(head),
        })
    }

    /// Entries that follow.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Takes the next entry.
    ///
    /// # Errors
    /// [`LoadError::Header`] for a model that does not lie in the file, at a multiple of [`MODEL_ALIGN`].
    pub fn entry(&mut self, entry: &[u8; BUNDLE_ENTRY]) -> Result<Located, LoadError> {
        self.sum = self.sum.update(entry);
        let found = Located::of(entry);
        let end = found.offset.checked_add(found.bytes);
        let inside = end.is_some_and(|end| end <= self.total);
        if inside && found.offset.is_multiple_of(MODEL_ALIGN as u32) {
            Ok(found)
        } else {
            Err(LoadError::Header)
        }
    }

    /// Behind the last entry.
    ///
    /// # Errors
    /// [`LoadError::Checksum`].
    pub fn finish(&self) -> Result<(), LoadError> {
        let (found, expected) = (self.sum.finish(), self.expected);
        if found == expected {
            Ok(())
        } else {
            Err(LoadError::Checksum { expected, found })
        }
    }
}

/// Whether a file starts as a bundle does.
pub(crate) const fn starts(file: &[u8]) -> bool {
    match file.first_chunk() {
        Some(magic) => u64::from_le_bytes(*magic) == u64::from_le_bytes(MAGIC),
        None => false,
    }
}

/// The model of this name in a bundle of which nothing else is checked, for constants.
pub(crate) const fn named<'a>(file: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut index = half(file, field::COUNT) as usize;
    while index > 0 {
        let entry = BUNDLE_ENTRY * index;
        if file.len() < entry + BUNDLE_ENTRY {
            return None;
        }
        let mut at = 0;
        while at < BUNDLE_NAME {
            let expected = if at < name.len() { name.as_bytes()[at] } else { 0 };
            if file[entry + field::NAME + at] != expected {
                break;
            }
            at += 1;
        }
        if at == BUNDLE_NAME && name.len() <= BUNDLE_NAME {
            let (offset, len) = (
                word(file, entry + field::OFFSET) as usize,
                word(file, entry + field::LEN) as usize,
            );
            let Some((_, from)) = file.split_at_checked(offset) else {
                return None;
            };
            return match from.split_at_checked(len) {
                Some((model, _)) => Some(model),
                None => None,
            };
        }
        index -= 1;
    }
    None
}

/// A bundle's header with the entries of its models (name, offset, length), for the packer.
pub fn write_directory<'n>(
    total: u32,
    entries: impl ExactSizeIterator<Item = (&'n str, u32, u32)>,
    directory: &mut [u8],
) -> Option<()> {
    let count = u16::try_from(entries.len()).ok()?;
    directory.fill(0);
    put(directory, 0, &MAGIC)?;
    put(directory, field::VERSION, &BUNDLE_VERSION.to_le_bytes())?;
    put(directory, field::COUNT, &count.to_le_bytes())?;
    put(directory, field::TOTAL, &total.to_le_bytes())?;
    for (entry, (name, offset, len)) in directory
        .get_mut(BUNDLE_ENTRY..)?
        .chunks_exact_mut(BUNDLE_ENTRY)
        .zip(entries)
    {
        put(entry, field::OFFSET, &offset.to_le_bytes())?;
        put(entry, field::LEN, &len.to_le_bytes())?;
        put(entry, field::NAME, name.as_bytes())?;
    }
    let checksum = directory_checksum(directory);
    put(directory, field::CRC, &checksum.to_le_bytes())?;
    Some(())
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) -> Option<()> {
    bytes.get_mut(at..at + value.len())?.copy_from_slice(value);
    Some(())
}

/// Offset of each field of the header and of an entry, in bytes from its start.
mod field {
    pub(super) const VERSION: usize = 8;
    pub(super) const COUNT: usize = 10;
    pub(super) const TOTAL: usize = 12;
    pub(super) const CRC: usize = 16;
    /// Of an entry.
    pub(super) const OFFSET: usize = 0;
    pub(super) const LEN: usize = 4;
    pub(super) const NAME: usize = 8;
}

/// The CRC-32 of a directory without the checksum's own four bytes.
fn directory_checksum(directory: &[u8]) -> u32 {
    summed(directory).finish()
}

fn summed(directory: &[u8]) -> Crc32 {
    let (before, rest) = directory.split_at_checked(field::CRC).unwrap_or((directory, &[]));
    Crc32::new().update(before).update(rest.get(4..).unwrap_or_default())
}
