//! Substitutes of this crate's own checksum of a file: a receipt of when it was taken, or a unit of the chip that takes it.

/// A program's record of a file whose checksum was right when it was written to its place, which the file's header must repeat from then on:
/// [`Model::load_with_receipt`](super::Model::load_with_receipt).
///
/// Keep it where the file's own memory is not: a file that was changed together with its receipt has the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Receipt {
    /// The file's length in bytes.
    pub length: u32,
    /// Its CRC-32.
    pub crc: u32,
    /// Its format version.
    pub version: u16,
}

impl Receipt {
    /// Bytes of a receipt in the caller's memory.
    pub const BYTES: usize = 12;

    /// The receipt as bytes: length, checksum and version, each a little-endian word.
    pub const fn to_bytes(self) -> [u8; Self::BYTES] {
        let ([a, b, c, d], [e, f, g, h]) = (self.length.to_le_bytes(), self.crc.to_le_bytes());
        let [i, j] = self.version.to_le_bytes();
        [a, b, c, d, e, f, g, h, i, j, 0, 0]
    }

    /// The receipt in these bytes; `None` where they are none, as those of erased flash.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let [a, b, c, d, e, f, g, h, i, j, 0, 0] = bytes else {
            return None;
        };
        Some(Self {
            length: u32::from_le_bytes([a, b, c, d]),
            crc: u32::from_le_bytes([e, f, g, h]),
            version: u16::from_le_bytes([i, j]),
        })
    }
}

/// The CRC unit of a chip, or whatever else computes CRC-32: [`Model::load_with_crc`](super::Model::load_with_crc).
///
/// ```
/// use arenite::CrcUnit;
///
/// # struct Registers; struct Word; struct Byte;
/// # impl Word { fn write(&self, _: u32) {} fn read(&self) -> u32 { 0 } }
/// # impl Byte { fn write(&self, _: u8) {} }
/// # impl Registers { fn reset(&self) {} fn dr(&self) -> Word { Word } fn dr8(&self) -> Byte { Byte } }
/// /// That of an STM32 (F0, F3, F7, G0, G4, H7, L4, …) with its reset values (polynomial 0x04C11DB7, initial value 0xFFFF_FFFF), the input reversed by
/// /// bytes (`REV_IN` = 1) and the output reversed (`REV_OUT` = 1). Units that take words alone and reverse nothing, as that of an F1 or F4, want
/// /// `u32::from_le_bytes(*word).reverse_bits()`, their result reversed likewise, and the last bytes taken in by software.
/// struct Unit(Registers);
///
/// impl CrcUnit for Unit {
///     fn crc32(&mut self, pieces: [&[u8]; 2]) -> u32 {
///         self.0.reset();
///         for piece in pieces {
///             let (words, rest) = piece.as_chunks::<4>();
///             for word in words {
///                 // Most significant byte first: the unit takes a word from there.
///                 self.0.dr().write(u32::from_be_bytes(*word));
///             }
///             for byte in rest {
///                 self.0.dr8().write(*byte);
///             }
///         }
///         !self.0.dr().read()
///     }
/// }
/// ```
pub trait CrcUnit {
    /// The CRC-32 (IEEE 802.3, that of zlib: 0xCBF4_3926 for `123456789`) of the pieces, one behind the other. Their lengths are any.
    fn crc32(&mut self, pieces: [&[u8]; 2]) -> u32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_come_back_from_their_bytes() {
        let receipt = Receipt {
            length: 0x0102_0304,
            crc: 0xA1A2_A3A4,
            version: 0x0708,
        };
        let bytes = receipt.to_bytes();
        assert_eq!(bytes, [4, 3, 2, 1, 0xA4, 0xA3, 0xA2, 0xA1, 8, 7, 0, 0]);
        assert_eq!(Receipt::from_bytes(bytes), Some(receipt));
        for reserved in [10, 11] {
            let mut other = bytes;
            other[reserved] = 1;
            assert_eq!(Receipt::from_bytes(other), None);
        }
        assert_eq!(Receipt::from_bytes([0xFF; Receipt::BYTES]), None);
    }
}
