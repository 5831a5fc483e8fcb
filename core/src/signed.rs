//! The envelope of a signed file: a header of fixed offsets before the model or the bundle, which it leaves as it is. Specified in `docs/format.md`.
//!
//! This module trusts nothing and verifies nothing; that is `verify()`, behind the feature `verify`.

/// Bytes of the envelope; the model or the bundle follows.
pub const SIGNED_HEADER: usize = 128;

/// The version of the envelope.
pub const SIGNED_VERSION: u16 = 1;

pub(crate) const MAGIC: [u8; 8] = *b"ARENSIG\n";

/// Offset of each field of the envelope, in bytes. Everything from [`field::SIGNED`] on is signed. Before that is verified, nothing may be read but the magic,
/// version, lengths and key that stand here.
#[allow(dead_code, reason = "some are for those alone who verify or pack")]
pub(crate) mod field {
    pub(crate) const SIGNATURE: usize = 8;
    pub(crate) const SIGNED: usize = 72;
    pub(crate) const VERSION: usize = 72;
    pub(crate) const HEADER_LEN: usize = 74;
    pub(crate) const TOTAL: usize = 76;
    pub(crate) const KEY: usize = 80;
    pub(crate) const COUNTER: usize = 88;
    pub(crate) const RESERVED: usize = 96;
}

/// Contents of an envelope, decoded and not verified: whoever wrote the file wrote them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Envelope {
    /// The version of the envelope.
    pub version: u16,
    /// Its own length.
    pub header_len: u16,
    /// The length of the file, envelope and content.
    pub total: u32,
    /// The key that signed it.
    pub key: u64,
    /// The counter that protects from older files.
    pub counter: u64,
    /// Whether what no version uses yet is 0.
    pub(crate) rest_is_zero: bool,
}

impl Envelope {
    /// Reads the envelope of a signed file; `None` for other files, and for one that ends within it.
    pub fn of(file: &[u8]) -> Option<Self> {
        let (head, _) = file.split_first_chunk::<SIGNED_HEADER>()?;
        if !is_signed(head) {
            return None;
        }
        Some(Self {
            version: u16::from_le_bytes(bytes_at(head, field::VERSION)?),
            header_len: u16::from_le_bytes(bytes_at(head, field::HEADER_LEN)?),
            total: u32::from_le_bytes(bytes_at(head, field::TOTAL)?),
            key: u64::from_le_bytes(bytes_at(head, field::KEY)?),
            counter: u64::from_le_bytes(bytes_at(head, field::COUNTER)?),
            rest_is_zero: head.get(field::RESERVED..)?.iter().all(|&byte| byte == 0),
        })
    }

    /// The envelope's bytes, for the packer: with a signature of zeros, which [`signature_place`] says where to put.
    #[cfg(feature = "pack")]
    pub fn unsigned(content: u32, key: u64, counter: u64) -> Option<[u8; SIGNED_HEADER]> {
        let total = content.checked_add(SIGNED_HEADER as u32)?;
        let mut head = [0; SIGNED_HEADER];
        let mut put = |at: usize, value: &[u8]| {
            if let Some(place) = head.get_mut(at..at + value.len()) {
                place.copy_from_slice(value);
            }
        };
        put(0, &MAGIC);
        put(field::VERSION, &SIGNED_VERSION.to_le_bytes());
        put(field::HEADER_LEN, &(SIGNED_HEADER as u16).to_le_bytes());
        put(field::TOTAL, &total.to_le_bytes());
        put(field::KEY, &key.to_le_bytes());
        put(field::COUNTER, &counter.to_le_bytes());
        Some(head)
    }
}

/// Whether a file starts as a signed one does.
pub const fn is_signed(file: &[u8]) -> bool {
    let Some((magic, _)) = file.split_first_chunk::<8>() else {
        return false;
    };
    u64::from_le_bytes(*magic) == u64::from_le_bytes(MAGIC)
}

/// The model or the bundle in a file: of a signed one what follows its envelope, **whose signature nobody has verified here**, of any other all of it.
pub const fn content(file: &[u8]) -> &[u8] {
    if !is_signed(file) {
        return file;
    }
    let Some((_, content)) = file.split_at_checked(SIGNED_HEADER) else {
        return &[];
    };
    let at = field::TOTAL;
    let total = u32::from_le_bytes([file[at], file[at + 1], file[at + 2], file[at + 3]]) as usize;
    // A file that is cut ends before it states: who loads it finds out.
    match content.split_at_checked(total.saturating_sub(SIGNED_HEADER)) {
        Some((content, _)) => content,
        None => content,
    }
}

/// Position of the signature in a signed file; everything behind it is signed.
#[cfg(feature = "pack")]
pub const fn signature_place() -> core::ops::Range<usize> {
    field::SIGNATURE..field::SIGNED
}

pub(crate) fn bytes_at<const N: usize>(head: &[u8], at: usize) -> Option<[u8; N]> {
    head.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_follow_each_other() {
        use field::*;
        assert_eq!((SIGNATURE, SIGNED), (MAGIC.len(), SIGNATURE + 64));
        let ends = [VERSION + 2, HEADER_LEN + 2, TOTAL + 4, KEY + 8, COUNTER + 8];
        assert_eq!(ends, [HEADER_LEN, TOTAL, KEY, COUNTER, RESERVED]);
    }

    #[test]
    fn content_is_what_follows_the_envelope_and_nothing_of_what_follows_that() {
        let mut file = [7; SIGNED_HEADER + 20];
        assert_eq!(content(&file), file);
        file[..8].copy_from_slice(&MAGIC);
        for (total, len) in [
            (SIGNED_HEADER + 5, 5),
            (SIGNED_HEADER + 20, 20),
            (SIGNED_HEADER + 21, 20),
            (3, 0),
        ] {
            file[field::TOTAL..field::TOTAL + 4].copy_from_slice(&(total as u32).to_le_bytes());
            assert_eq!(content(&file), &file[SIGNED_HEADER..][..len], "{total}");
        }
        assert_eq!(content(&file[..SIGNED_HEADER - 1]), []);
        assert_eq!(Envelope::of(&file[..SIGNED_HEADER - 1]), None);
    }
}
