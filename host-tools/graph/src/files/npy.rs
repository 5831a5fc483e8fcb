//! NumPy's `.npy` format, versions 1 to 3: a header that says type and shape, and the elements. Nothing is allocated that the bytes
//! do not hold.

use std::io::Read;

/// An array as its bytes say it.
#[derive(Debug, Clone, PartialEq)]
pub struct Npy<'a> {
    /// Type of the elements.
    pub element: Element,
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// Whether the elements lie with the first axis innermost.
    fortran: bool,
    big_endian: bool,
    data: &'a [u8],
}

/// Types of elements, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// f64.
    F64,
    /// f32.
    F32,
    /// int8.
    I8,
    /// uint8.
    U8,
    /// int16.
    I16,
    /// int32.
    I32,
    /// int64.
    I64,
    /// A byte, 0 or 1.
    Bool,
}

impl Element {
    /// NumPy's name of the type.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F64 => "float64",
            Self::F32 => "float32",
            Self::I8 => "int8",
            Self::U8 => "uint8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::Bool => "bool",
        }
    }
}

/// NumPy's letters, and how many bytes an element has.
const ELEMENTS: [(&str, Element, usize); 8] = [
    ("f8", Element::F64, 8),
    ("f4", Element::F32, 4),
    ("i1", Element::I8, 1),
    ("u1", Element::U8, 1),
    ("i2", Element::I16, 2),
    ("i4", Element::I32, 4),
    ("i8", Element::I64, 8),
    ("b1", Element::Bool, 1),
];

const MAGIC: &[u8] = b"\x93NUMPY";

/// Why bytes are no array that is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// They are no `.npy` file, or contradict themselves.
    Malformed(String),
    /// The element type, in NumPy's spelling.
    Element(String),
}

/// The header of an array, whose elements follow.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    element: Element,
    /// Bytes of an element.
    pub size: usize,
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// Whether the elements lie with the first axis innermost.
    pub fortran: bool,
    big_endian: bool,
}

impl Head {
    /// Reads a header up to the elements.
    pub fn read(from: &mut dyn Read) -> Result<Self, Wrong> {
        let malformed = |text: &str| Wrong::Malformed(text.to_string());
        let short = |_| malformed("it ends within its header");
        let mut magic = [0; 6];
        let read = from.read_exact(&mut magic);
        if read.is_err() || magic != *MAGIC {
            return Err(malformed("it does not start as such a file"));
        }
        let mut version = [0; 2];
        from.read_exact(&mut version).map_err(short)?;
        let mut length = [0; 4];
        let bytes = match version[0] {
            1 => 2,
            2 | 3 => 4,
            other => return Err(malformed(&format!("its version is {other}, not 1 to 3"))),
        };
        from.read_exact(&mut length[..bytes]).map_err(short)?;
        let length = u64::from(u32::from_le_bytes(length));
        let mut header = Vec::new();
        // No more is taken than is there.
        let read = from.take(length).read_to_end(&mut header).map_err(short)?;
        if read as u64 != length {
            return Err(malformed("it ends within its header"));
        }
        let header = std::str::from_utf8(&header).map_err(|_| malformed("its header is no text"))?;
        let header = Header::parse(header)?;
        let (order, letters) = header.descr.split_at_checked(1).unwrap_or_default();
        let known = ELEMENTS.iter().find(|(name, ..)| *name == letters);
        let (&(_, element, size), true) = (
            known.ok_or_else(|| Wrong::Element(header.descr.clone()))?,
            matches!(order, "<" | ">" | "|" | "="),
        ) else {
            return Err(Wrong::Element(header.descr));
        };
        Ok(Self {
            element,
            size,
            big_endian: order == ">",
            shape: header.shape,
            fortran: header.fortran,
        })
    }

    /// An array of this shape, of elements as the header says.
    pub fn of<'a>(&self, shape: Vec<usize>, data: &'a [u8]) -> Result<Npy<'a>, Wrong> {
        // Extents of 0 do not excuse the others.
        let mut real = shape.iter().filter(|&&extent| extent > 0);
        let most = real.try_fold(self.size, |bytes, &extent| bytes.checked_mul(extent));
        let claimed = if shape.contains(&0) { most.map(|_| 0) } else { most };
        if claimed != Some(data.len()) || most.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            let text = format!(
                "its header says {shape:?} of {} byte{}, and {} bytes follow",
                self.size,
                if self.size == 1 { "" } else { "s" },
                data.len()
            );
            return Err(Wrong::Malformed(text));
        }
        Ok(Npy {
            element: self.element,
            shape,
            fortran: self.fortran,
            big_endian: self.big_endian,
            data,
        })
    }
}

impl<'a> Npy<'a> {
    /// Reads the header and checks the length.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Wrong> {
        let mut rest = bytes;
        let head = Head::read(&mut rest)?;
        head.of(head.shape.clone(), rest)
    }

    /// The elements in C order, each made of its bytes in little-endian order.
    pub fn elements<const N: usize, T: Copy>(&self, of: fn([u8; N]) -> T) -> Vec<T> {
        let (big, words) = (self.big_endian, self.data.as_chunks::<N>().0);
        let word = |mut word: [u8; N]| {
            if big {
                word.reverse();
            }
            of(word)
        };
        if !self.fortran || self.shape.len() < 2 {
            return words.iter().map(|&bytes| word(bytes)).collect();
        }
        let mut elements = Vec::with_capacity(words.len());
        let mut index = vec![0; self.shape.len()];
        for _ in 0..words.len() {
            let at = index.iter().zip(&self.shape).rev().fold(0, |at, (i, n)| at * n + i);
            elements.extend(words.get(at).map(|&bytes| word(bytes)));
            for (i, &n) in index.iter_mut().zip(&self.shape).rev() {
                *i += 1;
                if *i < n {
                    break;
                }
                *i = 0;
            }
        }
        elements
    }
}

/// The header of a file of version 1, padded so that the elements start at a multiple of 64.
pub fn header(element: Element, shape: &[usize]) -> Vec<u8> {
    let name = ELEMENTS.iter().find(|(_, known, _)| *known == element);
    let (name, size) = name.map_or(("f4", 4), |(name, _, size)| (*name, *size));
    let order = if size == 1 { '|' } else { '<' };
    let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let extents = match shape.len() {
        0 | 1 => extents.trim_end(),
        _ => extents.trim_end_matches(", "),
    };
    let mut text = format!("{{'descr': '{order}{name}', 'fortran_order': False, 'shape': ({extents}), }}");
    let before = MAGIC.len() + 4;
    let padded = (before + text.len() + 1).next_multiple_of(64) - before;
    text.extend(std::iter::repeat_n(' ', padded - text.len() - 1));
    text.push('\n');
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes();
    [MAGIC, &[1, 0], &length, text.as_bytes()].concat()
}

/// Contents of the header: a Python dictionary of exactly three entries.
struct Header {
    descr: String,
    fortran: bool,
    shape: Vec<usize>,
}

impl Header {
    fn parse(text: &str) -> Result<Self, Wrong> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        let mut rest = Rest(text);
        rest.expect("{")?;
        while !rest.take("}") {
            let key = rest.string()?;
            rest.expect(":")?;
            let new = match key {
                "descr" if rest.0.trim_start().starts_with('[') => return Err(Wrong::Element("a record".to_string())),
                "descr" => descr.replace(rest.string()?.to_string()).is_none(),
                "fortran_order" => {
                    let value = rest.take("True");
                    if !value {
                        rest.expect("False")?;
                    }
                    fortran.replace(value).is_none()
                }
                "shape" => shape.replace(rest.extents()?).is_none(),
                other => return Err(Wrong::Malformed(format!("its header has an entry `{other}`"))),
            };
            if !new {
                return Err(Wrong::Malformed(format!("its header has `{key}` twice")));
            }
            if !rest.take(",") {
                rest.expect("}")?;
                break;
            }
        }
        match (descr, fortran, shape, rest.0.trim()) {
            (Some(descr), Some(fortran), Some(shape), "") => Ok(Self { descr, fortran, shape }),
            _ => Err(Wrong::Malformed(
                "its header is not `descr`, `fortran_order` and `shape`".to_string(),
            )),
        }
    }
}

/// Unread rest of a header.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn take(&mut self, token: &str) -> bool {
        self.0 = self.0.trim_start();
        let after = self.0.strip_prefix(token);
        self.0 = after.unwrap_or(self.0);
        after.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<(), Wrong> {
        if self.take(token) {
            Ok(())
        } else {
            let found: String = self.0.chars().take(20).collect();
            Err(Wrong::Malformed(format!(
                "its header has `{found}` where `{token}` is expected"
            )))
        }
    }

    fn string(&mut self) -> Result<&'a str, Wrong> {
        let quote = if self.take("\"") { '"' } else { '\'' };
        if quote == '\'' {
            self.expect("'")?;
        }
        let (text, rest) = self
            .0
            .split_once(quote)
            .ok_or_else(|| Wrong::Malformed("its header has a string without end".to_string()))?;
        self.0 = rest;
        Ok(text)
    }

    fn extents(&mut self) -> Result<Vec<usize>, Wrong> {
        let mut extents = Vec::new();
        self.expect("(")?;
        while !self.take(")") {
            self.0 = self.0.trim_start();
            let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
            let (digits, rest) = self.0.split_at(end);
            let extent = digits.parse().map_err(|_| {
                let found: String = self.0.chars().take(30).collect();
                Wrong::Malformed(format!("its header has `{found}` where an extent is expected"))
            })?;
            extents.push(extent);
            self.0 = rest;
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(extents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array, ArrayD, IxDyn, ShapeBuilder};
    use ndarray_npy::{ReadNpyExt, WriteNpyExt};

    #[test]
    fn arrays_of_another_writer_are_read_and_the_other_reads_ours() {
        for shape in [&[][..], &[5], &[2, 3], &[4, 1, 3, 2], &[3, 0, 2]] {
            for fortran in [false, true] {
                let count: usize = shape.iter().product();
                let data: Vec<i16> = (0..count as i16).map(|i| i * 7 - 300).collect();
                let array = ArrayD::from_shape_vec(IxDyn(shape).set_f(fortran), data).unwrap();
                let mut bytes = Vec::new();
                array.write_npy(&mut bytes).unwrap();
                let read = Npy::parse(&bytes).unwrap();
                assert_eq!((read.element, &read.shape[..]), (Element::I16, shape));
                let elements = read.elements(i16::from_le_bytes);
                assert!(elements.iter().eq(array.iter()), "{shape:?} {fortran}");

                let mut ours = header(Element::I16, shape);
                assert_eq!(ours.len() % 64, 0);
                ours.extend(elements.iter().flat_map(|v| v.to_le_bytes()));
                let back = ArrayD::<i16>::read_npy(&ours[..]).unwrap();
                assert_eq!(back, array);
            }
        }
    }

    #[test]
    fn elements_of_the_other_byte_order_are_turned() {
        let mut bytes = header(Element::F32, &[2]);
        let at = bytes.iter().position(|&byte| byte == b'<').unwrap();
        bytes[at] = b'>';
        bytes.extend([1.5f32, -2.0].iter().flat_map(|v| v.to_be_bytes()));
        assert_eq!(Npy::parse(&bytes).unwrap().elements(f32::from_le_bytes), [1.5, -2.0]);
    }

    #[test]
    fn what_is_no_array_is_refused_in_words() {
        let mut good = Vec::new();
        Array::from(vec![1f32, 2.0]).write_npy(&mut good).unwrap();
        let text = String::from_utf8_lossy(&good[10..128]).into_owned();
        let with = |from: &str, to: &str| {
            assert!(text.contains(from), "{from} in {text}");
            let mut bytes = good.clone();
            let at = bytes
                .windows(from.len())
                .position(|part| part == from.as_bytes())
                .unwrap();
            bytes.splice(at..at + from.len(), to.bytes());
            let length = u16::from_le_bytes([good[8], good[9]]) as usize + to.len() - from.len();
            bytes[8..10].copy_from_slice(&(length as u16).to_le_bytes());
            Npy::parse(&bytes).unwrap_err()
        };
        assert_eq!(with("<f4", "<c8"), Wrong::Element("<c8".to_string()));
        assert_eq!(with("'<f4'", "[('a', '<f4')]"), Wrong::Element("a record".to_string()));
        for (from, to) in [
            ("(2,)", "(1099511627776,)"),
            ("(2,)", "(0, 18446744073709551615)"),
            ("(2,)", "(4294967296, 4294967296)"),
            ("(2,)", "(18446744073709551616,)"),
            ("(2,)", "(-2,)"),
            ("(2,)", "(3,)"),
            ("False", "Maybe"),
            ("fortran_order", "fortran_ordex"),
            ("fortran_order", "shape"),
            ("}", "]"),
        ] {
            assert!(matches!(with(from, to), Wrong::Malformed(_)), "{to}");
        }
        for length in 0..good.len() {
            assert!(
                matches!(Npy::parse(&good[..length]), Err(Wrong::Malformed(_))),
                "{length}"
            );
        }
    }
}
