//! Fields of a model file that no version moves. For tools that name or convert files which this runtime does not read.

use super::header::{MAGIC, Section, checksum, field};

/// Fields of a model file whose version need not be this runtime's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Stated {
    /// The format's version.
    pub version: u16,
    /// The target that the file was packed for.
    pub target: u8,
    /// The file's length.
    pub total: u32,
    /// The checksum.
    pub crc: u32,
    /// The metadata: it says what packed the file, and from what.
    pub meta: Section,
}

impl Stated {
    /// Reads them; `None` for what is no model file. Nothing is checked but the magic.
    pub fn of(file: &[u8]) -> Option<Self> {
        // The metadata's place is the last that no version moves.
        if file.len() < field::META + 8 || !file.starts_with(&MAGIC) {
            return None;
        }
        let word = |at: usize| file.get(at..)?.first_chunk().copied().map(u32::from_le_bytes);
        Some(Self {
            version: word(field::VERSION)? as u16,
            target: word(field::TARGET)? as u8,
            total: word(field::TOTAL)?,
            crc: word(field::CRC)?,
            meta: Section {
                offset: word(field::META)?,
                len: word(field::META + 4)?,
            },
        })
    }

    /// The file without what follows it, where it is as long as it says and not damaged.
    pub fn intact<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        let file = file.get(..self.total as usize)?;
        (checksum(file) == self.crc).then_some(file)
    }

    /// The metadata's bytes in the file.
    pub fn metadata<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        let from = file.get(self.meta.offset as usize..);
        from.and_then(|bytes| bytes.get(..self.meta.len as usize))
            .unwrap_or_default()
    }
}
