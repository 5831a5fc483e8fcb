//! Reads flatbuffers that may be corrupt.
//!
//! The `flatbuffers` crate trusts its buffer unless generated code has verified it first. The importer touches about forty fields
//! of the schema, so this reader checks each access instead: every offset is bounds-checked where it is followed, and a bad one is
//! an error that says where it stands. Nothing is copied. Format: "FlatBuffer Internals" of the FlatBuffers documentation.

use crate::error::{Error, Result};

/// A table: fields found through its vtable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'a> {
    file: &'a [u8],
    /// Where it starts.
    at: usize,
    /// Where its vtable starts, and how many bytes that has.
    vtable: usize,
    vtable_len: usize,
}

/// A vector of scalars.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scalars<'a, T> {
    bytes: &'a [u8],
    element: std::marker::PhantomData<T>,
}

/// A vector of tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tables<'a> {
    file: &'a [u8],
    /// Where its first offset stands.
    at: usize,
    len: usize,
}

/// A little-endian number.
pub(super) trait Scalar: Copy + Default {
    const BYTES: usize;
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! scalar {
    ($($t:ty)*) => {$(
        impl Scalar for $t {
            const BYTES: usize = size_of::<$t>();
            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|chunk| <$t>::from_le_bytes(*chunk))
            }
        }
    )*};
}
scalar!(u8 i8 u16 i32 u32 i64 u64 f32);

/// The root table of a file with this identifier.
pub(super) fn root<'a>(file: &'a [u8], identifier: &[u8; 4]) -> Result<Table<'a>> {
    if file.get(4..8) != Some(identifier) {
        return Err(Error::input("the file identifier is missing")
            .at("offset 4")
            .expected(format!("`{}`", identifier.escape_ascii())));
    }
    Table::follow(file, 0)
}

impl<'a> Table<'a> {
    /// Field `index` of type `T`, or `default` where the file leaves it out.
    pub(super) fn scalar<T: Scalar>(&self, index: usize, default: T) -> Result<T> {
        match self.field(index)? {
            None => Ok(default),
            Some(at) => read(self.file, at),
        }
    }

    /// A boolean field, false where absent.
    pub(super) fn flag(&self, index: usize) -> Result<bool> {
        Ok(self.scalar::<u8>(index, 0)? != 0)
    }

    /// A table field.
    pub(super) fn table(&self, index: usize) -> Result<Option<Table<'a>>> {
        self.field(index)?.map(|at| Table::follow(self.file, at)).transpose()
    }

    /// A vector of scalars; empty where absent.
    pub(super) fn scalars<T: Scalar>(&self, index: usize) -> Result<Scalars<'a, T>> {
        let bytes = match self.field(index)? {
            None => &[][..],
            Some(at) => {
                let (start, len) = vector(self.file, at, T::BYTES)?;
                &self.file[start..start + len * T::BYTES]
            }
        };
        Ok(Scalars {
            bytes,
            element: std::marker::PhantomData,
        })
    }

    /// A vector of tables; empty where absent.
    pub(super) fn tables(&self, index: usize) -> Result<Tables<'a>> {
        let (at, len) = match self.field(index)? {
            None => (0, 0),
            Some(at) => vector(self.file, at, 4)?,
        };
        Ok(Tables {
            file: self.file,
            at,
            len,
        })
    }

    /// A string; empty where absent. Bytes that are no UTF-8 are replaced.
    pub(super) fn string(&self, index: usize) -> Result<String> {
        Ok(String::from_utf8_lossy(self.scalars::<u8>(index)?.bytes()).into_owned())
    }

    /// Where field `index` stands; `None` where it is absent.
    fn field(&self, index: usize) -> Result<Option<usize>> {
        let entry = 4 + 2 * index;
        if entry + 2 > self.vtable_len {
            return Ok(None);
        }
        match read::<u16>(self.file, self.vtable + entry)? {
            0 => Ok(None),
            offset => Ok(Some(self.at + usize::from(offset))),
        }
    }

    /// The table that the offset at `at` points to.
    fn follow(file: &'a [u8], at: usize) -> Result<Self> {
        let table = at + read::<u32>(file, at)? as usize;
        let back = i64::from(read::<i32>(file, table)?);
        let vtable = usize::try_from(table as i64 - back).map_err(|_| outside(file, table))?;
        let vtable_len = usize::from(read::<u16>(file, vtable)?);
        if vtable_len < 4 || file.len() - vtable < vtable_len {
            return Err(outside(file, vtable));
        }
        Ok(Self {
            file,
            at: table,
            vtable,
            vtable_len,
        })
    }
}

impl<'a> Tables<'a> {
    /// Number of tables.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Table `index`.
    pub(super) fn get(&self, index: usize) -> Result<Table<'a>> {
        Table::follow(self.file, self.at + 4 * index)
    }
}

impl<'a, T: Scalar> Scalars<'a, T> {
    /// Number of elements.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() / T::BYTES
    }

    /// All elements.
    pub(super) fn to_vec(self) -> Vec<T> {
        self.bytes.chunks_exact(T::BYTES).filter_map(T::read).collect()
    }
}

impl<'a> Scalars<'a, u8> {
    /// The bytes themselves.
    pub(super) fn bytes(self) -> &'a [u8] {
        self.bytes
    }
}

fn read<T: Scalar>(file: &[u8], at: usize) -> Result<T> {
    file.get(at..).and_then(T::read).ok_or_else(|| outside(file, at))
}

/// First element and length of the vector that the offset at `at` points to.
fn vector(file: &[u8], at: usize, element: usize) -> Result<(usize, usize)> {
    let start = at + read::<u32>(file, at)? as usize;
    let len = read::<u32>(file, start)? as usize;
    let room = file.len() - start - 4;
    match len.checked_mul(element) {
        Some(bytes) if bytes <= room => Ok((start + 4, len)),
        _ => Err(Error::input(format!(
            "a vector of {len} elements of {element} bytes reaches beyond the file's end"
        ))
        .at(format_args!("offset {start}"))
        .help("the file is truncated or corrupt")),
    }
}

fn outside(file: &[u8], at: usize) -> Error {
    Error::input(format!("an offset points to {at}, the file has {} bytes", file.len()))
        .help("the file is truncated or corrupt")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root table with one u8 field (7) and one vector of two u16 (3, 9).
    const FILE: &[u8] = &[
        16, 0, 0, 0, b'T', b'E', b'S', b'T', // root offset, identifier
        8, 0, 12, 0, 4, 0, 8, 0, // vtable: two fields
        8, 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0, // table
        2, 0, 0, 0, 3, 0, 9, 0, // vector
    ];

    #[test]
    fn fields_and_defaults() {
        let table = root(FILE, b"TEST").unwrap();
        assert_eq!(table.scalar::<u8>(0, 1).unwrap(), 7);
        assert_eq!(table.scalars::<u16>(1).unwrap().to_vec(), [3, 9]);
        assert_eq!(table.scalar::<i32>(2, -5).unwrap(), -5);
        assert_eq!(table.string(3).unwrap(), "");
        assert!(root(FILE, b"OOPS").is_err());
    }

    #[test]
    fn no_change_of_a_byte_panics() {
        for at in 0..FILE.len() {
            for value in [0, 1, 4, 127, 128, 255] {
                let mut file = FILE.to_vec();
                file[at] = value;
                if let Ok(table) = root(&file, b"TEST") {
                    let _ = table.scalar::<u8>(0, 0);
                    let _ = table.scalars::<u16>(1).map(Scalars::to_vec);
                    let _ = table.table(1);
                    let _ = table.tables(1).and_then(|t| t.get(0));
                }
            }
        }
        for len in 0..FILE.len() {
            if let Ok(table) = root(&FILE[..len], b"TEST") {
                let _ = table.scalars::<u16>(1).map(Scalars::to_vec);
            }
        }
    }
}
