//! The tokenizer's section of a model file, for those who write it: docs/format.md, "Tokenizer".
//!
//! A head of [`HEAD`] bytes, then for each piece the end of its bytes (4 bytes), its rank (2 bytes), then the pieces' numbers in the order of their bytes (2
//! bytes each), then the bytes of all pieces.

/// Bytes of the head.
pub const HEAD: usize = 32;
/// Bytes for each piece beside its own.
pub const PIECE: usize = 8;
/// The kind of tokenizer: pairs of pieces are joined by the rank of what they make, the least first, the leftmost of equal ones.
pub const SCORES: u8 = 1;
/// A space is put in front of a text.
pub const SPACE: u8 = 1;
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
}
