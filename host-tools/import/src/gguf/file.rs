//! The container: keys with values, and tensors. Every length and offset is checked against the bytes that there are before anything is made of it.

use std::collections::HashMap;

use crate::error::{Error, Result};

/// A file's contents.
#[derive(Debug)]
pub(super) struct File<'a> {
    keys: HashMap<&'a str, Value<'a>>,
    pub(super) tensors: Vec<Tensor<'a>>,
    index: HashMap<&'a str, usize>,
}

/// A tensor.
#[derive(Debug)]
pub(super) struct Tensor<'a> {
    pub(super) name: &'a str,
    /// Outermost first.
    pub(super) shape: Vec<usize>,
    pub(super) kind: Type,
    pub(super) data: &'a [u8],
    /// Of its bytes, behind the head.
    offset: u64,
}

/// A type of elements, or of blocks of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    F32,
    F16,
    Q4_0,
    Q4_1,
    Q8_0,
    Q4K,
}

impl Type {
    /// Elements and bytes of a block.
    pub(super) const fn block(self) -> (usize, usize) {
        match self {
            Type::F32 => (1, 4),
            Type::F16 => (1, 2),
            Type::Q4_0 => (32, 18),
            Type::Q4_1 => (32, 20),
            Type::Q8_0 => (32, 34),
            Type::Q4K => (256, 144),
        }
    }
}

#[derive(Debug, Clone)]
enum Value<'a> {
    Integer(i64),
    /// Of more than 63 bits.
    Large(u64),
    Float(f64),
    Flag(bool),
    Text(&'a [u8]),
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Vec<&'a [u8]>),
    /// An array of another type.
    Other,
}

const ALIGNMENT: &str = "general.alignment";

impl<'a> File<'a> {
    /// Reads all but the tensors' values.
    pub(super) fn read(content: &'a [u8]) -> Result<Self> {
        let mut reader = Reader { content, at: 4 };
        let version = reader.word()?;
        if !(2..=3).contains(&version) {
            return Err(Error::unsupported(format!("version {version} of GGUF")).expected("2 or 3"));
        }
        let (tensor_count, key_count) = (reader.long()?, reader.long()?);
        let mut keys = HashMap::new();
        for _ in 0..key_count {
            let key = reader.name("a key")?;
            let kind = reader.word()?;
            let value = reader.value(kind).map_err(|e| e.at(format!("key `{key}`")))?;
            if keys.insert(key, value).is_some() {
                return Err(Error::input(format!("key `{key}` stands twice")));
            }
        }
        let mut file = Self {
            keys,
            tensors: Vec::new(),
            index: HashMap::new(),
        };
        let mut stated = Vec::new();
        for _ in 0..tensor_count {
            stated.push(reader.tensor()?);
        }
        let alignment = file.count(ALIGNMENT)?.unwrap_or(32);
        if !alignment.is_power_of_two() || alignment > 1 << 20 {
            return Err(Error::input(format!("{ALIGNMENT} is {alignment}")).expected("a power of two up to 1048576"));
        }
        let base = reader.at.next_multiple_of(alignment);
        for (name, shape, kind, offset) in stated {
            let data = span(content, base, (&shape, kind, offset)).map_err(|e| e.at(format!("tensor `{name}`")))?;
            if file.index.insert(name, file.tensors.len()).is_some() {
                return Err(Error::input(format!("tensor `{name}` stands twice")));
            }
            file.tensors.push(Tensor {
                name,
                shape,
                kind,
                data,
                offset,
            });
        }
        file.refuse_overlaps()?;
        Ok(file)
    }

    /// Refuses tensors with bytes in common: what they become would be larger than any multiple of the file.
    fn refuse_overlaps(&self) -> Result<()> {
        let mut order: Vec<&Tensor<'_>> = self.tensors.iter().collect();
        order.sort_by_key(|tensor| tensor.offset);
        for (before, behind) in order.iter().zip(order.iter().skip(1)) {
            if before.offset + before.data.len() as u64 > behind.offset {
                return Err(Error::input(format!(
                    "tensors `{}` and `{}` overlap, at byte {} behind the head",
                    before.name, behind.name, behind.offset
                ))
                .expected("bytes of its own for each tensor"));
            }
        }
        Ok(())
    }

    /// The keys that begin with `prefix`, without it, in the order of their names.
    pub(super) fn keys_of(&self, prefix: &str) -> Vec<&'a str> {
        let mut found: Vec<&str> = self.keys.keys().filter_map(|key| key.strip_prefix(prefix)).collect();
        found.sort_unstable();
        found
    }

    pub(super) fn tensor(&self, name: &str) -> Option<&Tensor<'a>> {
        self.index.get(name).and_then(|&index| self.tensors.get(index))
    }

    /// A number that is not below zero.
    pub(super) fn count(&self, key: &str) -> Result<Option<usize>> {
        match self.keys.get(key) {
            None => Ok(None),
            Some(Value::Integer(n)) => match usize::try_from(*n) {
                Ok(n) => Ok(Some(n)),
                Err(_) => Err(wrong(key, "a number that is not below zero")),
            },
            Some(Value::Large(n)) => Err(Error::input(format!("key `{key}` is {n}"))),
            Some(_) => Err(wrong(key, "a whole number")),
        }
    }

    pub(super) fn float(&self, key: &str) -> Result<Option<f32>> {
        match self.keys.get(key) {
            None => Ok(None),
            Some(Value::Float(x)) => Ok(Some(*x as f32)),
            Some(Value::Integer(n)) => Ok(Some(*n as f32)),
            Some(_) => Err(wrong(key, "a number")),
        }
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>> {
        match self.keys.get(key) {
            None => Ok(None),
            Some(Value::Flag(flag)) => Ok(Some(*flag)),
            Some(_) => Err(wrong(key, "true or false")),
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>> {
        match self.keys.get(key) {
            None => Ok(None),
            Some(Value::Text(text)) => match std::str::from_utf8(text) {
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(wrong(key, "UTF-8 text")),
            },
            Some(_) => Err(wrong(key, "a text")),
        }
    }

    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<&'a [u8]>>> {
        match self.keys.get(key) {
            None => Ok(None),
            Some(Value::Texts(texts)) => Ok(Some(texts.clone())),
            Some(_) => Err(wrong(key, "an array of texts")),
        }
    }

    pub(super) fn floats(&self, key: &str) -> Result<Option<Vec<f32>>> {
        match self.keys.get(key) {
            None => Ok(None),
            Some(Value::Floats(numbers)) => Ok(Some(numbers.iter().map(|x| *x as f32).collect())),
            Some(_) => Err(wrong(key, "an array of numbers")),
        }
    }

    pub(super) fn integers(&self, key: &str) -> Result<Option<Vec<i64>>> {
        match self.keys.get(key) {
            None => Ok(None),
            Some(Value::Integers(numbers)) => Ok(Some(numbers.clone())),
            Some(_) => Err(wrong(key, "an array of whole numbers")),
        }
    }
}

fn wrong(key: &str, expected: &str) -> Error {
    Error::input(format!("key `{key}` has a value of another kind")).expected(expected)
}

/// The bytes of a tensor.
fn span<'a>(content: &'a [u8], base: usize, (shape, kind, offset): (&[usize], Type, u64)) -> Result<&'a [u8]> {
    let (elements, bytes) = kind.block();
    let row = shape.last().copied().unwrap_or(1);
    if !row.is_multiple_of(elements) {
        return Err(Error::input(format!("rows of {row} elements in blocks of {elements}")));
    }
    let all = shape.iter().try_fold(1_usize, |all, &extent| all.checked_mul(extent));
    let len = all.and_then(|all| (all / elements).checked_mul(bytes));
    let found = len.zip(usize::try_from(offset).ok()).and_then(|(len, offset)| {
        let from = base.checked_add(offset)?;
        content.get(from..from.checked_add(len)?)
    });
    found.ok_or_else(|| {
        Error::input(format!(
            "its values, of shape {shape:?} from byte {offset} on, end behind the file"
        ))
        .help("the file is cut, or a length in it is wrong: take it from its source anew")
    })
}

/// A tensor as it is stated: name, shape, type, offset.
type Stated<'a> = (&'a str, Vec<usize>, Type, u64);

struct Reader<'a> {
    content: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, len: u64) -> Result<&'a [u8]> {
        let found = usize::try_from(len)
            .ok()
            .and_then(|len| self.content.get(self.at..self.at.checked_add(len)?));
        let bytes = found.ok_or_else(|| {
            Error::input(format!("the file ends inside of {len} bytes at byte {}", self.at))
                .help("the file is cut, or a length in it is wrong: take it from its source anew")
        })?;
        self.at += bytes.len();
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.bytes(N as u64)?;
        bytes
            .first_chunk()
            .copied()
            .ok_or_else(|| Error::internal("a slice of another length"))
    }

    fn word(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Result<&'a [u8]> {
        let len = self.long()?;
        self.bytes(len)
    }

    fn name(&mut self, what: &str) -> Result<&'a str> {
        let at = self.at;
        std::str::from_utf8(self.text()?).map_err(|_| Error::input(format!("{what} at byte {at} is no UTF-8 text")))
    }

    /// A value that is none of several.
    fn scalar(&mut self, kind: u32) -> Result<Value<'a>> {
        let large = |n: u64| i64::try_from(n).map_or(Value::Large(n), Value::Integer);
        Ok(match kind {
            0 => Value::Integer(self.array().map(u8::from_le_bytes)?.into()),
            1 => Value::Integer(self.array().map(i8::from_le_bytes)?.into()),
            2 => Value::Integer(self.array().map(u16::from_le_bytes)?.into()),
            3 => Value::Integer(self.array().map(i16::from_le_bytes)?.into()),
            4 => Value::Integer(self.word()?.into()),
            5 => Value::Integer(self.array().map(i32::from_le_bytes)?.into()),
            6 => Value::Float(self.array().map(f32::from_le_bytes)?.into()),
            7 => Value::Flag(self.array().map(u8::from_le_bytes)? != 0),
            8 => Value::Text(self.text()?),
            10 => large(self.long()?),
            11 => Value::Integer(self.array().map(i64::from_le_bytes)?),
            12 => Value::Float(self.array().map(f64::from_le_bytes)?),
            other => return Err(Error::unsupported(format!("a value of type number {other}")).expected("0 to 12")),
        })
    }

    fn value(&mut self, kind: u32) -> Result<Value<'a>> {
        if kind != 9 {
            return self.scalar(kind);
        }
        let (of, count) = (self.word()?, self.long()?);
        let least = match of {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            8 | 10..=12 => 8,
            other => {
                return Err(Error::unsupported(format!("an array of type number {other}"))
                    .expected("one of 0 to 8 and 10 to 12"));
            }
        };
        let left = (self.content.len() - self.at) as u64;
        if count.checked_mul(least).is_none_or(|bytes| bytes > left) {
            return Err(Error::input(format!(
                "an array of {count} values, with {left} bytes left"
            )));
        }
        let (mut integers, mut floats, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..count {
            match self.scalar(of)? {
                Value::Integer(n) => integers.push(n),
                Value::Float(x) => floats.push(x),
                Value::Text(text) => texts.push(text),
                _ => {}
            }
        }
        let whole = |len: usize| len as u64 == count;
        Ok(match of {
            6 | 12 => Value::Floats(floats),
            8 => Value::Texts(texts),
            _ if whole(integers.len()) => Value::Integers(integers),
            _ => Value::Other,
        })
    }

    fn tensor(&mut self) -> Result<Stated<'a>> {
        let name = self.name("the name of a tensor")?;
        let at = |e: Error| e.at(format!("tensor `{name}`"));
        let axes = self.word().map_err(at)?;
        if !(1..=4).contains(&axes) {
            return Err(at(Error::input(format!("{axes} axes")).expected("1 to 4")));
        }
        let mut shape = Vec::new();
        for _ in 0..axes {
            let extent = self.long().map_err(at)?;
            let known = usize::try_from(extent)
                .ok()
                .filter(|&n| n > 0 && n <= crate::llama::LARGEST);
            shape.push(known.ok_or_else(|| at(Error::input(format!("an axis of {extent}"))))?);
        }
        // The file has the innermost axis first.
        shape.reverse();
        let kind = Type::of(self.word().map_err(at)?, name)?;
        let offset = self.long().map_err(at)?;
        Ok((name, shape, kind, offset))
    }
}
