//! Protocol buffer messages, field by field, as slices of the file: nothing is copied, and nothing is as deep as a file says.

use std::cell::Cell;

use protobuf::CodedInputStream;

use crate::error::{Error, Result};

/// The most entries of lists (nodes, their operands, attributes, tensors, extents) that a file may have: 100,000 operators have a tenth.
const MOST_ENTRIES: usize = 4_000_000;

/// Entries of lists that a file may still make an import remember.
#[derive(Debug)]
pub(super) struct Budget(Cell<usize>);

impl Budget {
    pub(super) fn new() -> Self {
        Self(Cell::new(MOST_ENTRIES))
    }

    /// Pays for an entry of a list.
    pub(super) fn spend(&self) -> Result<()> {
        match self.0.get().checked_sub(1) {
            Some(left) => {
                self.0.set(left);
                Ok(())
            }
            None => Err(Error::unsupported(format!("more than {MOST_ENTRIES} entries of lists"))
                .help("the file is damaged, or no network for a microcontroller")),
        }
    }
}

/// A message under way.
pub(super) struct Message<'a> {
    data: &'a [u8],
    stream: CodedInputStream<'a>,
    /// Name of the message in errors.
    what: &'static str,
}

/// The value of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Field<'a> {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(&'a [u8]),
}

impl<'a> Message<'a> {
    pub(super) fn new(data: &'a [u8], what: &'static str) -> Self {
        Self {
            data,
            stream: CodedInputStream::from_bytes(data),
            what,
        }
    }

    /// The next field: its number and value.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Field<'a>)>> {
        let at = self.stream.pos();
        let what = self.what;
        let damaged = |e: &dyn std::fmt::Display| {
            Error::input(format!("byte {at} of a {what} is no protocol buffer: {e}"))
                .help("the file is damaged or cut off: fetch or export it again")
        };
        let Some(tag) = self.stream.read_raw_tag_or_eof().map_err(|e| damaged(&e))? else {
            return Ok(None);
        };
        let value = match tag & 7 {
            0 => self.stream.read_raw_varint64().map(Field::Varint),
            1 => self.stream.read_fixed64().map(Field::Fixed64),
            5 => self.stream.read_fixed32().map(Field::Fixed32),
            2 => {
                let length = self.stream.read_raw_varint32().map_err(|e| damaged(&e))?;
                let from = usize::try_from(self.stream.pos()).unwrap_or(usize::MAX);
                let bytes = from.checked_add(length as usize).and_then(|to| self.data.get(from..to));
                let Some(bytes) = bytes else {
                    return Err(damaged(&format_args!(
                        "a field of {length} bytes reaches beyond its end"
                    )));
                };
                self.stream.skip_raw_bytes(length).map(|()| Field::Bytes(bytes))
            }
            other => return Err(damaged(&format_args!("wire type {other}"))),
        };
        Ok(Some((tag >> 3, value.map_err(|e| damaged(&e))?)))
    }
}

impl<'a> Field<'a> {
    pub(super) fn bytes(self, what: &str) -> Result<&'a [u8]> {
        match self {
            Field::Bytes(bytes) => Ok(bytes),
            _ => Err(Error::input(format!("the {what} is a number")).expected("bytes")),
        }
    }

    pub(super) fn text(self, what: &str) -> Result<&'a str> {
        std::str::from_utf8(self.bytes(what)?).map_err(|_| Error::input(format!("the {what} is no UTF-8 text")))
    }

    pub(super) fn integer(self, what: &str) -> Result<i64> {
        match self {
            Field::Varint(value) => Ok(value as i64),
            _ => Err(Error::input(format!("the {what} is no integer"))),
        }
    }

    pub(super) fn float(self, what: &str) -> Result<f32> {
        match self {
            Field::Fixed32(bits) => Ok(f32::from_bits(bits)),
            _ => Err(Error::input(format!("the {what} is no float"))),
        }
    }

    /// Appends the integers of a repeated field, packed or not; `most` is how many there may be.
    pub(super) fn integers(self, into: &mut Vec<i64>, most: usize, what: &str) -> Result<()> {
        match self {
            Field::Varint(value) => into.push(value as i64),
            Field::Bytes(bytes) => {
                let mut stream = CodedInputStream::from_bytes(bytes);
                let damaged = |_| Error::input(format!("the {what} are cut off"));
                while !stream.eof().map_err(damaged)? {
                    into.push(stream.read_raw_varint64().map_err(damaged)? as i64);
                    if into.len() > most {
                        break;
                    }
                }
            }
            _ => return Err(Error::input(format!("the {what} are no integers"))),
        }
        at_most(into.len(), most, what)
    }

    /// Appends the floats of a repeated field, packed or not.
    pub(super) fn floats(self, into: &mut Vec<f32>, most: usize, what: &str) -> Result<()> {
        match self {
            Field::Fixed32(bits) => into.push(f32::from_bits(bits)),
            Field::Bytes(bytes) if bytes.len().is_multiple_of(4) => {
                at_most(bytes.len() / 4, most, what)?;
                into.extend(bytes.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word)));
            }
            _ => return Err(Error::input(format!("the {what} are no floats"))),
        }
        at_most(into.len(), most, what)
    }

    /// Appends the doubles of a repeated field, packed or not.
    pub(super) fn doubles(self, into: &mut Vec<f32>, most: usize, what: &str) -> Result<()> {
        match self {
            Field::Fixed64(bits) => into.push(f64::from_bits(bits) as f32),
            Field::Bytes(bytes) if bytes.len().is_multiple_of(8) => {
                at_most(bytes.len() / 8, most, what)?;
                into.extend(
                    bytes
                        .as_chunks::<8>()
                        .0
                        .iter()
                        .map(|word| f64::from_le_bytes(*word) as f32),
                );
            }
            _ => return Err(Error::input(format!("the {what} are no doubles"))),
        }
        at_most(into.len(), most, what)
    }
}

fn at_most(count: usize, most: usize, what: &str) -> Result<()> {
    if count > most {
        return Err(Error::input(format!("more than {most} {what}")).expected("as many as its shape says"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Field;

    #[test]
    fn integers_are_no_floats() {
        let text = |result: crate::error::Result<f32>| result.expect_err("no float").to_string();
        assert_eq!(text(Field::Varint(1).float("alpha")), "the alpha is no float");
        let listed = Field::Varint(1).floats(&mut Vec::new(), 4, "scales").map(|()| 0.0);
        assert_eq!(text(listed), "the scales are no floats");
        assert!(Field::Bytes(&[0; 6]).floats(&mut Vec::new(), 4, "scales").is_err());
    }
}
