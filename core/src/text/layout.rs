//! The tokenizer's section of a model file, for those who write it: docs/format.md, "Tokenizer".
//!
//! Of scores: a head of [`HEAD`] bytes, then for each piece the end of its bytes (4 bytes), its rank (2 bytes), then the pieces' numbers in the order of their
//! bytes (2 bytes each), then the bytes of all pieces.
//!
//! Of merges: a head of [`MERGES_HEAD`] bytes, the ends (4 bytes each), the order (2 bytes each), the merges ([`MERGE`] bytes each), the tokens without a
//! text, those in front of a turn of a talk and those behind it (2 bytes each), then the bytes of all pieces.

/// Bytes of the head of a tokenizer of scores.
pub const HEAD: usize = 32;
/// Bytes of the head of a tokenizer of merges.
pub const MERGES_HEAD: usize = 48;
/// The kind of tokenizer: pairs of pieces are joined by the rank of what they make, the least first, the leftmost of equal ones.
pub const SCORES: u8 = 1;
/// The kind of tokenizer: a text is split into words, and in each the pairs of the merges are joined, the least rank first, the leftmost of equal ones.
pub const MERGES: u8 = 2;
/// A flag of a tokenizer of scores: a space is put in front of a text.
pub const SPACE: u8 = 1;
/// A flag of a tokenizer of merges: each number of a text is a word of its own.
pub const DIGITS: u8 = 2;
/// Bytes of a merge: its first token, its second, its rank, 2 bytes each, in the order of the tokens.
pub const MERGE: usize = 6;
/// No token.
pub const NONE: u32 = u32::MAX;
/// The rank of pieces that pairs are not joined to.
pub const NO_RANK: u16 = u16::MAX;
/// Pieces at most.
pub const MOST_PIECES: usize = 65_535;

/// Offsets in the head.
pub mod field {
    /// The kind, a byte.
    pub const KIND: usize = 0;
    /// Flags, a byte.
    pub const FLAGS: usize = 1;
    /// Number of pieces; the others are words as well.
    pub const COUNT: usize = 4;
    /// The token that begins a text.
    pub const BEGIN: usize = 8;
    /// The token that ends a text.
    pub const END: usize = 12;
    /// The token of what has no other.
    pub const UNKNOWN: usize = 16;
    /// The token of byte 0, which those of the other bytes follow.
    pub const BYTES: usize = 20;
    /// Bytes of the longest piece.
    pub const LONGEST: usize = 24;
    /// Bytes of all pieces.
    pub const TEXT: usize = 28;
    /// Of a tokenizer of merges: how many there are.
    pub const MERGES: usize = 32;
    /// Of a tokenizer of merges: how many tokens have no text.
    pub const SILENT: usize = 36;
    /// Of a tokenizer of merges: how many tokens stand in front of a turn of a talk.
    pub const FRONT: usize = 40;
    /// Of a tokenizer of merges: how many stand behind it.
    pub const BEHIND: usize = 44;
}
