//! Values that are known when importing.

use std::borrow::Cow;

use crate::graph::DType;

/// A value known when importing.
#[derive(Debug, Clone)]
pub(super) struct Constant<'a> {
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    /// Little-endian, row-major.
    pub(super) bytes: Cow<'a, [u8]>,
}

impl Constant<'_> {
    /// The elements of an integer tensor.
    pub(super) fn integers(&self) -> Option<Vec<i64>> {
        let read = |chunk: &[u8]| {
            let mut wide = [if chunk.last()? & 0x80 == 0 { 0 } else { 0xFF }; 8];
            wide.get_mut(..chunk.len())?.copy_from_slice(chunk);
            Some(i64::from_le_bytes(wide))
        };
        match self.dtype {
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
                self.bytes.chunks_exact(self.dtype.bytes()).map(read).collect()
            }
            _ => None,
        }
    }

    /// Returns the operands of comparisons and logical operators: integers as they are, of BOOL 0 and 1.
    pub(super) fn compared(&self) -> Option<Vec<i64>> {
        match self.dtype {
            DType::Bool => Some(self.bytes.iter().map(|&byte| i64::from(byte != 0)).collect()),
            DType::I32 | DType::I64 => self.integers(),
            _ => None,
        }
    }

    /// Whether it holds, where it is one BOOL.
    pub(super) fn truth(&self) -> Option<bool> {
        match (self.dtype, self.bytes.as_ref()) {
            (DType::Bool, &[byte]) => Some(byte != 0),
            _ => None,
        }
    }

    /// An integer tensor of these elements, or a BOOL one of those that are not 0; `None` where one does not fit the type.
    pub(super) fn of_integers(dtype: DType, shape: Vec<usize>, values: &[i64]) -> Option<Constant<'static>> {
        let bytes: Vec<u8> = match dtype {
            DType::I32 => {
                let values: Option<Vec<i32>> = values.iter().map(|&v| i32::try_from(v).ok()).collect();
                values?.iter().flat_map(|v| v.to_le_bytes()).collect()
            }
            DType::I64 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            DType::Bool => values.iter().map(|&v| u8::from(v != 0)).collect(),
            _ => return None,
        };
        Some(Constant {
            dtype,
            shape,
            bytes: Cow::Owned(bytes),
        })
    }
}

/// So many numbers from -8 to 7, of which the first of a byte is in its lower half, as bytes.
pub(super) fn unpacked(data: &[u8], elements: usize) -> Vec<u8> {
    let number = |nibble: u8| (nibble ^ 8).wrapping_sub(8);
    let both = data.iter().flat_map(|byte| [number(byte & 15), number(byte >> 4)]);
    both.take(elements).collect()
}

#[cfg(test)]
mod tests {
    use super::unpacked;

    #[test]
    fn the_lower_half_of_a_byte_comes_first() {
        let signed = |data: &[u8], elements| -> Vec<i8> { unpacked(data, elements).iter().map(|&b| b as i8).collect() };
        assert_eq!(signed(&[0x80, 0x7f], 4), [0, -8, -1, 7]);
        assert_eq!(signed(&[0x21, 0x93], 3), [1, 2, 3]);
    }
}
