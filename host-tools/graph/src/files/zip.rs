//! Zip archives, as far as `numpy.savez` and its kin write them: stored and deflated entries, 64-bit sizes. The archive's own claims
//! are checked against its length before anything is allocated.

use std::collections::HashSet;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::system::File;

/// An open archive: a file, or bytes that were read.
#[derive(Debug)]
pub struct Zip<S = File> {
    file: Mutex<S>,
    entries: Vec<Entry>,
}

/// Bytes in which an archive lies.
pub trait Source: Read + Seek + Sized {
    /// Another reader of the same bytes, at the same place.
    ///
    /// # Errors
    /// Of the system, where a file has no second descriptor.
    fn again(&self) -> io::Result<Self>;
}

impl Source for File {
    fn again(&self) -> io::Result<Self> {
        self.try_clone()
    }
}

impl Source for Cursor<&[u8]> {
    fn again(&self) -> io::Result<Self> {
        Ok(self.clone())
    }
}

#[derive(Debug)]
struct Entry {
    name: String,
    method: u16,
    crc: u32,
    /// Bytes in the archive.
    packed: u64,
    /// Bytes of the content.
    size: u64,
    /// Where the entry's own header starts.
    header: u64,
}

const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// Deflate makes at most 1,032 bytes of one.
const MOST_DEFLATED: u64 = 1032;

const END: &[u8] = b"PK\x05\x06";
const END_64: &[u8] = b"PK\x06\x06";
const LOCATOR_64: &[u8] = b"PK\x06\x07";
const DIRECTORY: &[u8] = b"PK\x01\x02";
const LOCAL: &[u8] = b"PK\x03\x04";

/// First bytes of every archive that holds anything.
pub const MAGIC: &[u8] = b"PK";

fn wrong<T>(text: impl Into<String>) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::InvalidData, text.into()))
}

impl<S: Source> Zip<S> {
    /// Reads the directory: every name once, every entry within the archive, none over another.
    pub fn open(mut file: S) -> io::Result<Self> {
        let length = file.seek(SeekFrom::End(0))?;
        let end = End::find(&mut file, length)?;
        let mut directory = vec![0; usize::try_from(end.bytes).unwrap_or(usize::MAX)];
        file.seek(SeekFrom::Start(end.start))?;
        file.read_exact(&mut directory)?;
        let (mut entries, mut names) = (Vec::<Entry>::new(), HashSet::new());
        let mut rest = &directory[..];
        while !rest.is_empty() {
            let (entry, others) = Entry::parse(rest)?;
            if !names.insert(entry.name.clone()) {
                return wrong(format!("`{}` is in it twice", entry.name));
            }
            entries.push(entry);
            rest = others;
        }
        if entries.len() as u64 != end.entries {
            return wrong(format!("it says {} entries and lists {}", end.entries, entries.len()));
        }
        let mut places = Vec::new();
        for entry in &entries {
            let data = entry.data(&mut file)?;
            match data.checked_add(entry.packed) {
                Some(after) if after <= end.start => places.push((entry.header, after, &entry.name)),
                _ => return wrong(format!("`{}` does not lie within it", entry.name)),
            }
            let most = match entry.method {
                STORED if entry.size == entry.packed => entry.size,
                STORED => return wrong(format!("`{}` is stored in another size than its own", entry.name)),
                _ => entry.packed.saturating_mul(MOST_DEFLATED),
            };
            if entry.size > most {
                return wrong(format!(
                    "`{}` claims {} bytes in {}",
                    entry.name, entry.size, entry.packed
                ));
            }
        }
        places.sort_unstable();
        for pair in places.windows(2) {
            if pair[0].1 > pair[1].0 {
                return wrong(format!("`{}` and `{}` overlap", pair[0].2, pair[1].2));
            }
        }
        let file = Mutex::new(file);
        Ok(Self { file, entries })
    }

    /// Names of the entries, in the archive's order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// Bytes of an entry's content.
    pub fn size(&self, name: &str) -> Option<u64> {
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        Some(entry.size)
    }

    /// The content of an entry as it is read: no other entry until it is dropped. Its last read fails where it is damaged; `None` where there is none of
    /// this name.
    pub fn content(&self, name: &str) -> Option<io::Result<Content<'_, S>>> {
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Some(entry.packed(&mut *file).map(|packed| Content {
            entry,
            packed,
            crc: crc32fast::Hasher::new(),
            read: 0,
            _file: file,
        }))
    }

    /// The content of an entry; `None` where there is none of this name.
    pub fn read(&self, name: &str) -> Option<io::Result<Vec<u8>>> {
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Some(entry.read(&mut *file))
    }
}

impl Entry {
    /// The first entry of a directory, and the others.
    fn parse(bytes: &[u8]) -> io::Result<(Self, &[u8])> {
        let short = || io::Error::new(io::ErrorKind::InvalidData, "its directory is damaged");
        let (head, rest) = bytes.split_at_checked(46).ok_or_else(short)?;
        if !head.starts_with(DIRECTORY) {
            return Err(short());
        }
        let (word, long) = (|at| u16_at(head, at), |at| u64::from(u32_at(head, at)));
        let (name, rest) = rest.split_at_checked(usize::from(word(28))).ok_or_else(short)?;
        let (mut extra, rest) = rest.split_at_checked(usize::from(word(30))).ok_or_else(short)?;
        let rest = rest.get(usize::from(word(32))..).ok_or_else(short)?;
        let name = String::from_utf8(name.to_vec()).or_else(|_| wrong("a name in it is no UTF-8"))?;
        let (mut size, mut packed, mut header) = (long(24), long(20), long(42));
        while let Some((head, after)) = extra.split_at_checked(4) {
            let (mut field, after) = after.split_at_checked(usize::from(u16_at(head, 2))).ok_or_else(short)?;
            if u16_at(head, 0) == 1 {
                // Those that do not fit 32 bits, in this order.
                for value in [&mut size, &mut packed, &mut header] {
                    if *value == u64::from(u32::MAX) {
                        let (wide, others) = field.split_first_chunk().ok_or_else(short)?;
                        (*value, field) = (u64::from_le_bytes(*wide), others);
                    }
                }
            }
            extra = after;
        }
        let method = word(10);
        if word(8) & 1 != 0 {
            return wrong(format!("`{name}` is encrypted"));
        }
        if !matches!(method, STORED | DEFLATED) {
            return wrong(format!(
                "`{name}` is compressed by method {method}, not stored or deflated"
            ));
        }
        let entry = Self {
            name,
            method,
            crc: u32_at(head, 16),
            packed,
            size,
            header,
        };
        Ok((entry, rest))
    }

    /// Where the content starts: after a header of the entry's own.
    fn data(&self, file: &mut impl Source) -> io::Result<u64> {
        let mut head = [0; 30];
        file.seek(SeekFrom::Start(self.header))?;
        if file.read_exact(&mut head).is_err() || !head.starts_with(LOCAL) {
            return wrong(format!("`{}` is not where the directory says", self.name));
        }
        Ok(self.header + 30 + u64::from(u16_at(&head, 26)) + u64::from(u16_at(&head, 28)))
    }

    /// Returns the reader of the unpacked content, limited to one byte more than the stated length, so that a longer content shows.
    fn packed<'s, S: Source + 's>(&self, file: &mut S) -> io::Result<Box<dyn Read + 's>> {
        let data = self.data(file)?;
        file.seek(SeekFrom::Start(data))?;
        let packed = io::BufReader::new(file.again()?.take(self.packed));
        Ok(match self.method {
            STORED => Box::new(packed.take(self.size + 1)),
            _ => Box::new(flate2::read::DeflateDecoder::new(packed).take(self.size + 1)),
        })
    }

    fn read(&self, file: &mut impl Source) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.packed(file)?.read_to_end(&mut content)?;
        if content.len() as u64 != self.size || crc32fast::hash(&content) != self.crc {
            return wrong(format!("`{}` is damaged", self.name));
        }
        Ok(content)
    }
}

/// An entry's content.
pub struct Content<'z, S = File> {
    entry: &'z Entry,
    packed: Box<dyn Read + 'z>,
    crc: crc32fast::Hasher,
    read: u64,
    /// Readers of one file share its position.
    _file: MutexGuard<'z, S>,
}

impl<S> Read for Content<'_, S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.packed.read(bytes)?;
        self.crc.update(bytes.get(..count).unwrap_or_default());
        self.read += count as u64;
        let ends = count == 0 && !bytes.is_empty();
        let damaged = self.read != self.entry.size || self.crc.clone().finalize() != self.entry.crc;
        if self.read > self.entry.size || (ends && damaged) {
            return wrong(format!("`{}` is damaged", self.entry.name));
        }
        Ok(count)
    }
}

/// Location of an archive's directory, from its end record.
struct End {
    start: u64,
    bytes: u64,
    entries: u64,
}

impl End {
    fn find(file: &mut impl Source, length: u64) -> io::Result<Self> {
        const HEAD: usize = 22;
        let tail = length.min((HEAD + usize::from(u16::MAX)) as u64);
        let mut bytes = vec![0; tail as usize];
        file.seek(SeekFrom::Start(length - tail))?;
        file.read_exact(&mut bytes)?;
        // A comment may follow; it reaches to the end of the file.
        let found = (0..=bytes.len().saturating_sub(HEAD)).rev().find(|&at| {
            let head = bytes.get(at..at + HEAD);
            head.is_some_and(|head| head.starts_with(END) && at + HEAD + usize::from(u16_at(head, 20)) == bytes.len())
        });
        let Some(at) = found else {
            return wrong("it has no directory: it is cut off, or no zip archive");
        };
        let head = &bytes[at..];
        let mut end = Self {
            start: u64::from(u32_at(head, 16)),
            bytes: u64::from(u32_at(head, 12)),
            entries: u64::from(u16_at(head, 10)),
        };
        let mut limit = length - tail + at as u64;
        let locator = at.checked_sub(20).and_then(|from| bytes.get(from..at));
        if let Some(locator) = locator.filter(|locator| locator.starts_with(LOCATOR_64)) {
            let mut wide = [0; 56];
            let place = u64_at(locator, 8);
            file.seek(SeekFrom::Start(place))?;
            if file.read_exact(&mut wide).is_err() || !wide.starts_with(END_64) {
                return wrong("the end of its directory is damaged");
            }
            end = Self {
                start: u64_at(&wide, 48),
                bytes: u64_at(&wide, 40),
                entries: u64_at(&wide, 32),
            };
            limit = place;
        }
        match end.start.checked_add(end.bytes) {
            Some(after) if after <= limit => Ok(end),
            _ => wrong("its directory does not lie within it"),
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    number(bytes, at).map_or(0, u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    number(bytes, at).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    number(bytes, at).map_or(0, u64::from_le_bytes)
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
