//! The header: fields at fixed offsets, so that constants can be read from a file at compile time, and behind them a table of sections that few files have.

use crate::arena::MAX_REGIONS;
use crate::crc::Crc32;
use crate::error::LoadError;
use crate::kernels::table::KernelSet;

/// The format version that this runtime reads and the packer writes.
pub const FORMAT_VERSION: u16 = 2;

/// The oldest format version that this runtime reads: until 1.0 the newest itself, from then on the one of 1.0 for ever.
pub const OLDEST_VERSION: u16 = FORMAT_VERSION;

/// Bytes of the header's fixed fields. The table of sections follows them.
pub const HEADER_BYTES: usize = 144;

/// Bytes of a row of the table of sections: kind and number (16 bits each), offset, length.
pub const ROW_BYTES: usize = 12;

/// Rows of the table of sections at most.
pub const MAX_ROWS: u32 = 32;

pub(super) const MAGIC: [u8; 8] = *b"ARENITE\n";

/// The header's fields, decoded. Offsets count from the file's start; sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[expect(missing_docs, reason = "described in docs/format.md, field by field")]
pub struct Header {
    pub target: u8,
    pub inputs: u8,
    pub outputs: u8,
    pub total: u32,
    pub crc: u32,
    pub ports: Section,
    pub steps: Section,
    pub step_count: u32,
    pub meta: Section,
    pub weights: Section,
    pub state_init: Section,
    pub state_runs: u8,
    pub arena: [u32; MAX_REGIONS],
    pub input_bytes: u32,
    pub output_bytes: u32,
    pub kernels: KernelSet,
    pub self_test: Section,
    pub labels: Section,
    pub cores: Section,
    pub tokenizer: Section,
    pub training: Section,
    pub rolling: Section,
}

/// A part of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Section {
    /// Bytes from the file's start.
    pub offset: u32,
    /// Bytes.
    pub len: u32,
}

impl Header {
    /// Reads the header's fields; checks magic, version and length, nothing else.
    ///
    /// # Errors
    /// [`LoadError::Truncated`], [`LoadError::NotABlob`], [`LoadError::Version`], [`LoadError::Header`].
    pub fn parse(bytes: &[u8]) -> Result<Self, LoadError> {
        check_head(bytes).map(|head| Self::of(head, bytes))
    }

    /// The fields as they stand; the table's rows are read from `whole`. Inlined: who looks at some of them reads no others.
    #[inline(always)]
    pub(super) fn of(file: &[u8; HEADER_BYTES], whole: &[u8]) -> Self {
        Self {
            target: byte(file, field::TARGET),
            inputs: byte(file, field::INPUTS),
            outputs: byte(file, field::OUTPUTS),
            total: word(file, field::TOTAL),
            crc: word(file, field::CRC),
            ports: section(file, field::PORTS),
            steps: section(file, field::STEPS),
            step_count: word(file, field::STEP_COUNT),
            meta: section(file, field::META),
            weights: section(file, field::WEIGHTS),
            state_init: section(file, field::STATE_INIT),
            state_runs: byte(file, field::STATE_RUNS),
            arena: [
                word(file, field::ARENA),
                word(file, field::ARENA + 4),
                word(file, field::ARENA + 8),
                word(file, field::ARENA + 12),
            ],
            input_bytes: word(file, field::INPUT_BYTES),
            output_bytes: word(file, field::OUTPUT_BYTES),
            kernels: kernel_set(file),
            self_test: section(file, field::SELF_TEST),
            labels: section(file, field::LABELS),
            cores: tabled(whole, Kind::Cores),
            tokenizer: tabled(whole, Kind::Tokenizer),
            training: tabled(whole, Kind::Training),
            rolling: tabled(whole, Kind::Rolling),
        }
    }
}

/// Checks magic, version and the header's length.
pub(super) fn check_head(bytes: &[u8]) -> Result<&[u8; HEADER_BYTES], LoadError> {
    let Some((head, _)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Err(LoadError::Truncated {
            expected: HEADER_BYTES as u32,
            found: bytes.len() as u32,
        });
    };
    if head.get(field::MAGIC..).and_then(|head| head.first_chunk()) != Some(&MAGIC) {
        return Err(LoadError::NotABlob);
    }
    let version = half(head, field::VERSION);
    if !(OLDEST_VERSION..=FORMAT_VERSION).contains(&version) {
        return Err(LoadError::Version {
            found: version,
            supported: FORMAT_VERSION,
        });
    }
    if is_length_right(head) {
        Ok(head)
    } else {
        Err(LoadError::Header)
    }
}

/// Whether the header's length is that of its fields and its table, and no longer than the file.
pub(crate) const fn is_length_right(file: &[u8]) -> bool {
    let (rows, len) = (word(file, field::ROWS), half(file, field::HEADER_LEN) as u32);
    rows <= MAX_ROWS && len == HEADER_BYTES as u32 + rows * ROW_BYTES as u32 && len <= word(file, field::TOTAL)
}

/// Whether a section lies inside a whole file and behind its header.
pub(crate) const fn is_inside(file: &[u8], Section { offset, len }: Section) -> bool {
    match offset.checked_add(len) {
        Some(end) => end as usize <= file.len() && (len == 0 || offset >= half(file, field::HEADER_LEN) as u32),
        None => false,
    }
}

/// The first kind in the table of a whole file that this version does not know.
// A number alone, as `is_table_right` says yes or no: through an error's memory the compiler loses what it knows of an embedded file.
pub(crate) const fn unknown_kind(file: &[u8]) -> Option<u32> {
    let mut at = HEADER_BYTES;
    while at < half(file, field::HEADER_LEN) as usize {
        let kind = word(file, at);
        let rolls = kind == Kind::Rolling as u32 && cfg!(feature = "rolling");
        if kind != Kind::Cores as u32 && kind != Kind::Tokenizer as u32 && kind != Kind::Training as u32 && !rolls {
            return Some(kind);
        }
        at += ROW_BYTES;
    }
    None
}

/// Whether the rows of a whole file's table stand in the order of their kinds, each kind once, and their sections inside the file.
pub(crate) const fn is_table_right(file: &[u8]) -> bool {
    let (mut at, mut before) = (HEADER_BYTES, 0);
    while at < half(file, field::HEADER_LEN) as usize {
        let kind = word(file, at);
        if kind <= before || !is_inside(file, section(file, at + 4)) {
            return false;
        }
        before = kind;
        at += ROW_BYTES;
    }
    true
}

/// A kind of sections that stand in the table, and in the upper half the section's number where a file may have several. Numbers are kept for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// The core of each step.
    Cores = 1,
    /// Rolled tensors.
    Rolling = 3,
    /// The pieces of a text, and how they are joined.
    Tokenizer = 4,
    /// List 1 of steps: those of training.
    Training = 0x1_0002,
}

/// The section of this kind; empty at 0 where the table has none.
pub(crate) fn tabled(file: &[u8], kind: Kind) -> Section {
    let table = file
        .get(HEADER_BYTES..half(file, field::HEADER_LEN).into())
        .unwrap_or_default();
    let (rows, _) = table.as_chunks::<ROW_BYTES>();
    let row = rows.iter().find(|row| word(&row[..], 0) == kind as u32);
    row.map_or(Section::default(), |row| section(row, 4))
}

/// The arena bytes of `region` from a file's header, for constants; 0 where this is no blob.
pub const fn arena_bytes(file: &[u8], region: usize) -> usize {
    if file.len() < HEADER_BYTES || region >= MAX_REGIONS {
        0
    } else {
        word(file, field::ARENA + 4 * region) as usize
    }
}

/// The state bytes from a file's header, for constants; 0 where this is no blob.
pub const fn state_bytes(file: &[u8]) -> usize {
    if file.len() < HEADER_BYTES {
        0
    } else {
        word(file, field::STATE_INIT + 4) as usize
    }
}

/// The set of kernels that the file's steps use, from its header.
pub const fn kernel_set(file: &[u8]) -> KernelSet {
    if file.len() < HEADER_BYTES {
        return KernelSet::EMPTY;
    }
    let mut words = [0; 8];
    let mut at = 0;
    while at < words.len() {
        words[at] = word(file, field::KERNELS + 4 * at);
        at += 1;
    }
    KernelSet(words)
}

/// The CRC-32 over all bytes of a file but the checksum's own four.
pub fn checksum(file: &[u8]) -> u32 {
    let [before, after] = checksummed(file);
    Crc32::new().update(before).update(after).finish()
}

/// The bytes of a file, or of its beginning, that the checksum covers: all but its own four.
pub fn checksummed(file: &[u8]) -> [&[u8]; 2] {
    let (before, rest) = file.split_at_checked(field::CRC).unwrap_or((file, &[]));
    [before, rest.get(4..).unwrap_or_default()]
}

/// Whether a file starts as a model does.
pub(crate) const fn starts(file: &[u8]) -> bool {
    match file.first_chunk() {
        Some(magic) => u64::from_le_bytes(*magic) == u64::from_le_bytes(MAGIC),
        None => false,
    }
}

/// Offsets of the header's fields, in bytes from the file's start: the one statement of them.
pub(crate) mod field {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const VERSION: usize = 8;
    pub(crate) const HEADER_LEN: usize = 10;
    pub(crate) const TARGET: usize = 12;
    pub(crate) const INPUTS: usize = 13;
    pub(crate) const OUTPUTS: usize = 14;
    pub(crate) const STATE_RUNS: usize = 15;
    pub(crate) const TOTAL: usize = 16;
    pub(crate) const CRC: usize = 20;
    pub(crate) const PORTS: usize = 24;
    pub(crate) const STEPS: usize = 32;
    pub(crate) const STEP_COUNT: usize = 40;
    pub(crate) const META: usize = 44;
    pub(crate) const WEIGHTS: usize = 52;
    pub(crate) const STATE_INIT: usize = 60;
    pub(crate) const ARENA: usize = 68;
    pub(crate) const INPUT_BYTES: usize = 84;
    pub(crate) const OUTPUT_BYTES: usize = 88;
    /// Rows of the table of sections.
    pub(crate) const ROWS: usize = 92;
    pub(crate) const KERNELS: usize = 96;
    pub(crate) const SELF_TEST: usize = 128;
    pub(crate) const LABELS: usize = 136;
    /// Those that are sections; the others stand in the table.
    pub(crate) const SECTIONS: [usize; 7] = [PORTS, STEPS, META, WEIGHTS, STATE_INIT, SELF_TEST, LABELS];
}

/// A byte; 0 out of bounds.
#[inline(always)]
pub(super) fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// Offset and length of a section.
#[inline(always)]
pub(crate) const fn section(bytes: &[u8], at: usize) -> Section {
    Section {
        offset: word(bytes, at),
        len: word(bytes, at + 4),
    }
}

/// A section as it is stored: the state's, where it is runs of bytes, takes less than its length says.
pub(crate) const fn stored(bytes: &[u8], at: usize) -> Section {
    let Section { offset, len } = section(bytes, at);
    let runs = word(bytes, field::TARGET) >> 24;
    let len = if at == field::STATE_INIT && runs > 0 {
        4 * runs
    } else {
        len
    };
    Section { offset, len }
}

/// A little-endian word; 0 out of bounds, which callers exclude.
#[inline(always)]
pub(crate) const fn word(bytes: &[u8], at: usize) -> u32 {
    // No indices: where this is a function of its own, the compiler does not see that they are in bounds, and links their panic.
    match bytes.split_at_checked(at) {
        Some((_, rest)) => match rest.first_chunk() {
            Some(&word) => u32::from_le_bytes(word),
            None => 0,
        },
        None => 0,
    }
}

/// A little-endian half word; 0 out of bounds.
pub(crate) const fn half(bytes: &[u8], at: usize) -> u16 {
    word(bytes, at) as u16
}
