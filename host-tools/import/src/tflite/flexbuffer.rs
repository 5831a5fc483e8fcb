//! Reads the options of a custom operator: a flexbuffer that is a map of numbers.
//!
//! Format: "FlexBuffers" of the FlatBuffers documentation. Values lie behind their vector's length, all of one width; the types of a map's values lie
//! behind them, one byte each, in which the two low bits are the width of what an offset points to. Offsets point backwards. As in
//! [`flatbuffer`](super::flatbuffer), each access is checked.

use crate::error::{Error, Result};

/// The type numbers that are read.
const NULL: u8 = 0;
const INT: u8 = 1;
const UINT: u8 = 2;
const FLOAT: u8 = 3;
const INDIRECT_INT: u8 = 6;
const INDIRECT_UINT: u8 = 7;
const INDIRECT_FLOAT: u8 = 8;
const MAP: u8 = 9;
const BOOL: u8 = 26;

/// A map of options.
pub(super) struct Options<'a> {
    file: &'a [u8],
    /// Where its first value stands, the bytes of each, and how many there are.
    values: usize,
    width: usize,
    len: usize,
    /// Where the offset of its first key stands, and the bytes of each.
    keys: usize,
    key_width: usize,
}

impl<'a> Options<'a> {
    /// The root map.
    pub(super) fn read(file: &'a [u8]) -> Result<Self> {
        // From the end: the root's width, its type, the root itself.
        let (root, &[packed, width]) = file.split_last_chunk::<2>().ok_or_else(corrupt)?;
        let at = root.len().checked_sub(usize::from(width)).ok_or_else(corrupt)?;
        if packed >> 2 != MAP {
            return Err(Error::input(format!("options of type {}", packed >> 2)).expected(format!("{MAP}, a map")));
        }
        let options = Self {
            file,
            values: 0,
            width: 1 << (packed & 3),
            len: 0,
            keys: 0,
            key_width: 0,
        };
        let values = options.follow(at, usize::from(width))?;
        let back = |fields: usize| values.checked_sub(fields * options.width).ok_or_else(corrupt);
        let len = options.unsigned(back(1)?, options.width)?;
        let key_width = options.unsigned(back(2)?, options.width)?;
        let keys = options.follow(back(3)?, options.width)?;
        // Values and their types.
        let end = len
            .checked_mul(options.width + 1)
            .and_then(|bytes| values.checked_add(bytes));
        if !matches!(key_width, 1 | 2 | 4 | 8) || end.is_none_or(|end| end > file.len()) {
            return Err(corrupt());
        }
        Ok(Self {
            values,
            len,
            keys,
            key_width,
            ..options
        })
    }

    /// The integer `name`, which may be given as a boolean.
    pub(super) fn integer(&self, name: &str) -> Result<i64> {
        self.optional_integer(name)?.ok_or_else(|| missing(name))
    }

    /// [`Options::integer`], where there is one.
    pub(super) fn optional_integer(&self, name: &str) -> Result<Option<i64>> {
        let Some((kind, at, width)) = self.value(name)? else {
            return Ok(None);
        };
        match kind {
            INT | INDIRECT_INT => self.signed(at, width).map(Some),
            UINT | INDIRECT_UINT | BOOL => i64::try_from(self.unsigned(at, width)?)
                .map(Some)
                .map_err(|_| corrupt()),
            FLOAT | INDIRECT_FLOAT => Err(Error::input(format!("option `{name}` is a float")).expected("an integer")),
            other => Err(Error::input(format!("option `{name}` has type {other}")).expected("an integer")),
        }
    }

    /// The number `name`.
    pub(super) fn float(&self, name: &str) -> Result<f32> {
        let (kind, at, width) = self.value(name)?.ok_or_else(|| missing(name))?;
        match (kind, self.bytes(at, width)?) {
            (FLOAT | INDIRECT_FLOAT, &[a, b, c, d]) => Ok(f32::from_le_bytes([a, b, c, d])),
            (FLOAT | INDIRECT_FLOAT, &[a, b, c, d, e, f, g, h]) => {
                Ok(f64::from_le_bytes([a, b, c, d, e, f, g, h]) as f32)
            }
            (INT | INDIRECT_INT | UINT | INDIRECT_UINT, _) => Ok(self.integer(name)? as f32),
            (other, _) => Err(Error::input(format!("option `{name}` has type {other}")).expected("a number")),
        }
    }

    /// The type of the value `name`, where it lies and its bytes.
    fn value(&self, name: &str) -> Result<Option<(u8, usize, usize)>> {
        let index = (0..self.len).find(|&i| self.key(i).is_ok_and(|key| key == name.as_bytes()));
        let Some(index) = index else { return Ok(None) };
        let at = self.values + index * self.width;
        let packed = *self
            .file
            .get(self.values + self.len * self.width + index)
            .ok_or_else(corrupt)?;
        Ok(match packed >> 2 {
            NULL => None,
            kind @ (INDIRECT_INT | INDIRECT_UINT | INDIRECT_FLOAT) => {
                Some((kind, self.follow(at, self.width)?, 1 << (packed & 3)))
            }
            kind => Some((kind, at, self.width)),
        })
    }

    fn key(&self, index: usize) -> Result<&'a [u8]> {
        let at = self.follow(self.keys + index * self.key_width, self.key_width)?;
        let rest = self.file.get(at..).ok_or_else(corrupt)?;
        rest.split(|&byte| byte == 0).next().ok_or_else(corrupt)
    }

    /// Where the offset at `at` points.
    fn follow(&self, at: usize, width: usize) -> Result<usize> {
        at.checked_sub(self.unsigned(at, width)?).ok_or_else(corrupt)
    }

    fn bytes(&self, at: usize, width: usize) -> Result<&'a [u8]> {
        self.file
            .get(at..)
            .and_then(|rest| rest.get(..width))
            .ok_or_else(corrupt)
    }

    fn unsigned(&self, at: usize, width: usize) -> Result<usize> {
        if !matches!(width, 1 | 2 | 4 | 8) {
            return Err(corrupt());
        }
        let bytes = self.bytes(at, width)?;
        let value = bytes
            .iter()
            .rev()
            .fold(0u64, |value, &byte| value << 8 | u64::from(byte));
        usize::try_from(value).map_err(|_| corrupt())
    }

    fn signed(&self, at: usize, width: usize) -> Result<i64> {
        let bytes = self.bytes(at, width)?;
        let fill = match bytes.last() {
            Some(0x80..) => -1,
            _ => 0,
        };
        Ok(bytes
            .iter()
            .rev()
            .fold(fill, |value, &byte| value << 8 | i64::from(byte)))
    }
}

fn missing(name: &str) -> Error {
    Error::input(format!("no option `{name}`"))
        .help("the custom operator is of another version than its TensorFlow Lite Micro one")
}

fn corrupt() -> Error {
    Error::input("its options are no flexbuffer").help("the file is truncated or corrupt")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{"bits": -3, "far": 1000, "on": true}` as TensorFlow writes it: keys, their offsets, then the map with values of two bytes.
    fn file() -> Vec<u8> {
        let mut file = b"bits\0far\0on\0".to_vec();
        // Length, then the keys' offsets.
        file.extend([3, 13, 9, 6]);
        // Offset of the keys, bytes of each of their offsets, length.
        let keys = file.len() - 3;
        file.extend(((file.len() - keys) as u16).to_le_bytes());
        file.extend([1, 0, 3, 0]);
        let values = file.len();
        for value in [-3i16, 1000, 1] {
            file.extend(value.to_le_bytes());
        }
        file.extend([INT << 2 | 1, INT << 2 | 1, BOOL << 2]);
        let back = (file.len() - values) as u8;
        file.extend([back, MAP << 2 | 1, 1]);
        file
    }

    #[test]
    fn options_are_found_by_name() {
        let file = file();
        let options = Options::read(&file).unwrap();
        assert_eq!(options.integer("bits").unwrap(), -3);
        assert_eq!(options.integer("far").unwrap(), 1000);
        assert_eq!(options.integer("on").unwrap(), 1);
        assert!(
            options
                .integer("off")
                .unwrap_err()
                .to_string()
                .contains("no option `off`")
        );
    }

    #[test]
    fn no_change_of_bytes_panics() {
        let whole = file();
        for at in 0..whole.len() {
            for value in 0..=255 {
                let mut file = whole.clone();
                file[at] = value;
                if let Ok(options) = Options::read(&file) {
                    for name in ["bits", "far", "on", ""] {
                        let _ = options.integer(name);
                    }
                }
            }
            assert!(Options::read(&whole[at + 1..]).is_err() || Options::read(&whole[..at]).is_err());
        }
    }
}
