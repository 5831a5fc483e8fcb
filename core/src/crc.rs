//! CRC-32 (IEEE 802.3, reflected polynomial 0xEDB88320), the checksum of a blob.

/// One table on 32-bit cores, where flash is short; eight on 64-bit ones, where a blob may hold a gigabyte.
const TABLES: usize = if cfg!(target_pointer_width = "64") { 8 } else { 1 };

static TABLE: [[u32; 256]; TABLES] = tables();

/// A running CRC-32.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crc32(u32);

impl Crc32 {
    pub(crate) const fn new() -> Self {
        Self(!0)
    }

    /// Takes in `bytes`. Costs about 6 instructions a byte on 32-bit cores. A function of its own, so that a trace can tell the checksum
    /// from the rest of a load.
    #[inline(never)]
    pub(crate) fn update(mut self, bytes: &[u8]) -> Self {
        let mut rest = bytes;
        if TABLES == 8 {
            let (words, tail) = bytes.as_chunks::<8>();
            for word in words {
                let x = u64::from_le_bytes(*word) ^ u64::from(self.0);
                self.0 = TABLE
                    .iter()
                    .rev()
                    .zip(x.to_le_bytes())
                    .fold(0, |crc, (table, byte)| crc ^ table[usize::from(byte)]);
            }
            rest = tail;
        }
        for &byte in rest {
            let [low, ..] = self.0.to_le_bytes();
            self.0 = (self.0 >> 8) ^ TABLE[0][usize::from(low ^ byte)];
        }
        self
    }

    pub(crate) const fn finish(self) -> u32 {
        !self.0
    }
}

const fn tables() -> [[u32; 256]; TABLES] {
    let mut tables = [[0; 256]; TABLES];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (!(crc & 1)).wrapping_add(1));
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < TABLES {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xFF) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_value_of_the_standard() {
        assert_eq!(Crc32::new().update(b"123456789").finish(), 0xCBF4_3926);
    }

    #[test]
    fn pieces_give_the_same_sum() {
        let bytes: [u8; 61] = core::array::from_fn(|i| (i * 37 + 11) as u8);
        let whole = Crc32::new().update(&bytes).finish();
        for cut in 0..bytes.len() {
            assert_eq!(Crc32::new().update(&bytes[..cut]).update(&bytes[cut..]).finish(), whole);
        }
    }
}
