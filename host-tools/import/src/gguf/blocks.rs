//! Quantised blocks as f32, by their published layout (ggml).

use super::file::Type;
use crate::error::{Error, Result};
use crate::half;

/// The values of whole blocks, little-endian f32.
///
/// # Errors
/// [`crate::error::ErrorKind::Input`] for a scale that is no finite number.
pub(super) fn floats(kind: Type, data: &[u8]) -> Result<Vec<u8>> {
    let (elements, bytes) = kind.block();
    let mut out = Vec::with_capacity(data.len() / bytes * elements * 4);
    let mut block = [0.0_f32; 256];
    for (index, from) in data.chunks_exact(bytes).enumerate() {
        let values = &mut block[..elements];
        match kind {
            Type::F32 => values[0] = f32::from_le_bytes([from[0], from[1], from[2], from[3]]),
            Type::F16 => values[0] = number(from, 0),
            Type::Q8_0 => q8_0(from, values),
            Type::Q4_0 => q4_0(from, values),
            Type::Q4_1 => q4_1(from, values),
            Type::Q4K => q4_k(from, values),
        }
        if let Some(value) = values.iter().find(|value| !value.is_finite()) {
            return Err(Error::input(format!("block {index} holds {value}")).expected("finite numbers"));
        }
        out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
    Ok(out)
}

/// The f16 at a byte.
fn number(block: &[u8], at: usize) -> f32 {
    half::to_f32(u16::from_le_bytes([block[at], block[at + 1]]))
}

/// A scale, 32 numbers of 8 bits.
fn q8_0(block: &[u8], values: &mut [f32]) {
    let scale = number(block, 0);
    for (value, q) in values.iter_mut().zip(&block[2..]) {
        *value = scale * f32::from(*q as i8);
    }
}

/// A scale, and 16 bytes of two numbers: the low halves first, then the high ones; less 8.
fn q4_0(block: &[u8], values: &mut [f32]) {
    let scale = number(block, 0);
    for (at, q) in block[2..].iter().enumerate() {
        values[at] = scale * (f32::from(q & 0xF) - 8.0);
        values[at + 16] = scale * (f32::from(q >> 4) - 8.0);
    }
}

/// A scale, the least value, and 16 bytes of two numbers likewise.
fn q4_1(block: &[u8], values: &mut [f32]) {
    let (scale, least) = (number(block, 0), number(block, 2));
    for (at, q) in block[4..].iter().enumerate() {
        values[at] = scale * f32::from(q & 0xF) + least;
        values[at + 16] = scale * f32::from(q >> 4) + least;
    }
}

/// Two scales, of the eight scales and of the eight least values, which have six bits each in 12 bytes; then four times 32 bytes of two numbers: 32 of the low
/// halves, 32 of the high ones.
fn q4_k(block: &[u8], values: &mut [f32]) {
    let (scale, least) = (number(block, 0), number(block, 2));
    let (packed, quants) = block[4..].split_at(12);
    let sixes = |part: usize| {
        let [q, m] = match part {
            0..4 => [packed[part] & 63, packed[part + 4] & 63],
            _ => [
                (packed[part + 4] & 0xF) | ((packed[part - 4] >> 6) << 4),
                (packed[part + 4] >> 4) | ((packed[part] >> 6) << 4),
            ],
        };
        (scale * f32::from(q), least * f32::from(m))
    };
    for (part, values) in values.chunks_exact_mut(32).enumerate() {
        let (scale, least) = sixes(part);
        let bytes = &quants[part / 2 * 32..][..32];
        for (value, q) in values.iter_mut().zip(bytes) {
            let q = if part % 2 == 0 { q & 0xF } else { q >> 4 };
            *value = scale * f32::from(q) - least;
        }
    }
}
