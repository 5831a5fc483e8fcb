//! CRC-32 (IEEE 802.3, reflected polynomial 0xEDB88320), the checksum of a blob.
//!
//! Instructions a byte and bytes of table, by core: `docs/footprint.md`.

#[cfg(any(test, kernel_isa = "armv7m"))]
mod window;

use crate::cells::cast_slice;

/// Whether most of a file is divided without a table.
const WINDOWED: bool = cfg!(kernel_isa = "armv7m");

/// On 64-bit cores a blob may hold a gigabyte: eight tables for whole bytes, one for each byte of a word.
const WIDE: bool = cfg!(target_pointer_width = "64");

/// Bits that a table is asked for at a time. Where little is left for the table, half bytes: 16 words.
const BITS: u32 = if WINDOWED { 4 } else { 8 };
const TABLES: usize = if WIDE { 8 } else { 1 };

static TABLE: [[u32; 1 << BITS]; TABLES] = tables();

/// A running CRC-32.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crc32(u32);

impl Crc32 {
    pub(crate) const fn new() -> Self {
        Self(!0)
    }

    /// Takes in `bytes`. A function of its own, so that a trace can tell the checksum from the rest of a load.
    #[inline(never)]
    pub(crate) fn update(self, bytes: &[u8]) -> Self {
        #[cfg(kernel_isa = "armv7m")]
        {
            let mut crc = 0;
            if let Some(rest) = window::divide(self.0, bytes, |word| crc = by_table(crc, &word)) {
                return Self(by_table(crc, rest));
            }
        }
        Self(by_table(self.0, bytes))
    }

    pub(crate) const fn finish(self) -> u32 {
        !self.0
    }
}

/// Takes in `bytes` by the table: the fewest instructions where that is all there is, else little code.
#[inline(never)]
fn by_table(mut crc: u32, bytes: &[u8]) -> u32 {
    let rest = if WIDE {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            let x = u64::from_le_bytes(*word) ^ u64::from(crc);
            crc = TABLE
                .iter()
                .rev()
                .zip(x.to_le_bytes())
                .fold(0, |crc, (table, byte)| crc ^ entry(table, byte.into()));
        }
        rest
    } else if !WINDOWED
        && let (whole, rest) = bytes.split_at(bytes.len() & !3)
        && let Some(words) = cast_slice::<u32>(whole)
    {
        for &word in words {
            crc = byte(byte(byte(byte(crc ^ word))));
        }
        rest
    } else {
        bytes
    };
    for &last in rest {
        crc = byte(crc ^ u32::from(last));
        if WINDOWED {
            // Nothing, but no loop that holds it is unrolled.
            core::hint::black_box(());
        }
    }
    crc
}

/// Divides the dividend's lowest byte away. Written out, for builds that unroll no loop.
#[inline(always)]
fn byte(crc: u32) -> u32 {
    let shift = |crc: u32| (crc >> BITS) ^ entry(&TABLE[0], crc);
    if BITS == 8 { shift(crc) } else { shift(shift(crc)) }
}

#[inline(always)]
fn entry(table: &[u32; 1 << BITS], low: u32) -> u32 {
    table[low as usize % table.len()]
}

const fn tables() -> [[u32; 1 << BITS]; TABLES] {
    let mut tables = [[0; 1 << BITS]; TABLES];
    let mut low = 0;
    while low < 1 << BITS {
        let mut crc = low as u32;
        let mut bit = 0;
        while bit < BITS {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (!(crc & 1)).wrapping_add(1));
            bit += 1;
        }
        tables[0][low] = crc;
        low += 1;
    }
    let mut table = 1;
    while table < TABLES {
        let mut low = 0;
        while low < 1 << BITS {
            let before = tables[table - 1][low];
            tables[table][low] = (before >> BITS) ^ tables[0][before as usize % (1 << BITS)];
            low += 1;
        }
        table += 1;
    }
    tables
}

/// The CRC-32 of a file without the four bytes at `hole`, for constants: eight bytes a turn, without a call, because the compiler counts both.
pub(crate) const fn at_compile_time(file: &[u8], hole: usize) -> u32 {
    let table = &BYTES;
    let (mut crc, mut at) = (!0u32, 0);
    macro_rules! bytes {
        ($($index:literal)*) => {
            $(crc = (crc >> 8) ^ table[((crc ^ file[at + $index] as u32) & 0xFF) as usize];)*
        };
    }
    while at < file.len() {
        if at == hole {
            at += 4;
        } else if at + 8 <= file.len() && (at >= hole || at + 8 <= hole) {
            bytes!(0 1 2 3 4 5 6 7);
            at += 8;
        } else {
            bytes!(0);
            at += 1;
        }
    }
    !crc
}

/// The table of whole bytes on every core; of what is linked nothing reads it.
const BYTES: [u32; 256] = {
    let mut table = [0; 256];
    let mut low = 0;
    while low < 256 {
        let (mut crc, mut bit) = (low as u32, 0);
        while bit < 8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (!(crc & 1)).wrapping_add(1));
            bit += 1;
        }
        table[low] = crc;
        low += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_have_the_same_sum() {
        let bytes: [u8; 61] = core::array::from_fn(|i| (i * 37 + 11) as u8);
        for hole in 0..=bytes.len() {
            let rest = bytes.get(hole + 4..).unwrap_or_default();
            let whole = Crc32::new().update(&bytes[..hole]).update(rest).finish();
            assert_eq!(at_compile_time(&bytes, hole), whole, "{hole}");
        }
    }

    /// As [`Crc32::update`] does it on cores that load words at any address.
    fn windowed(crc: u32, bytes: &[u8]) -> u32 {
        let mut sum = 0;
        match window::divide(crc, bytes, |word| sum = by_table(sum, &word)) {
            Some(rest) => by_table(sum, rest),
            None => by_table(crc, bytes),
        }
    }

    #[test]
    fn the_window_gives_the_same_sum() {
        let mut state = 1u32;
        let bytes: [u8; 3000] = core::array::from_fn(|_| {
            state = state.wrapping_mul(0x9E37_79B1).rotate_left(7) ^ 0x55;
            (state >> 11) as u8
        });
        for len in 0..bytes.len() {
            for crc in [0, !0, state] {
                let bytes = &bytes[len % 5..len.max(len % 5)];
                assert_eq!(windowed(crc, bytes), by_table(crc, bytes), "{len} {crc:x}");
            }
        }
    }

    /// One bit anywhere in three windows changes the sum as the table says, so no distance is wrong.
    #[test]
    fn the_window_divides_every_bit() {
        for bit in 0..8 * 3 * window::WINDOW {
            let mut bytes = [0; 3 * window::WINDOW + 7];
            bytes[bit / 8] = 1 << (bit % 8);
            assert_eq!(windowed(0, &bytes), by_table(0, &bytes), "{bit}");
        }
    }

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
