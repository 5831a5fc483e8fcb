//! Reads the fields of steps and ports: the decoding half of postcard's wire format, in little code.
//!
//! A derived `Deserialize` asks for one field after the other and looks at each answer for an error, which on a device is most of
//! its code. A [`Fields`] never answers with one where it can go on: after a failure every further field reads as 0, and
//! [`Fields::finish`] tells at the end. For each field a call and a store are left. Only what cannot be made up (the variant of
//! an enum) is an error at once.
//!
//! The format: `u8` and `i8` are a byte, `bool` and the tag of an `Option` 0 or 1, other unsigned integers varints of seven bits, low
//! ones first, signed ones zigzag; `f32` four bytes; strings and sequences their length, then their elements; an enum its variant's index.

use core::slice::Iter;

use serde::Deserialize;
use serde::de::value::U32Deserializer;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, SeqAccess, VariantAccess, Visitor};

/// Fields that are still to be read.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    /// An iterator holds two pointers of which a byte moves one; of a slice it would move both pointer and length.
    rest: Iter<'a, u8>,
    failed: bool,
}

/// Why a value cannot be read. The field that failed is of no use to a device: load names the step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Malformed;

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("malformed")
    }
}

impl core::error::Error for Malformed {}

impl serde::de::Error for Malformed {
    fn custom<T: core::fmt::Display>(_: T) -> Self {
        Malformed
    }
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes.iter(),
            failed: false,
        }
    }

    /// All bytes as one value.
    #[inline(always)]
    pub(crate) fn only<T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Malformed> {
        let mut fields = Self::new(bytes);
        let mut value = T::deserialize(&mut fields);
        if !fields.finish() {
            value = Err(Malformed);
        }
        value
    }

    /// The next value. Missing bytes read as 0, until [`Fields::finish`] tells.
    pub(crate) fn value<T: Deserialize<'a>>(&mut self) -> Option<T> {
        let value = T::deserialize(&mut *self).ok();
        self.failed |= value.is_none();
        value
    }

    /// Whether nothing was missing or wrong so far.
    pub(crate) fn intact(&self) -> bool {
        !self.failed
    }

    /// Whether all bytes were read, and none was missing or wrong.
    pub(crate) fn finish(&self) -> bool {
        self.rest.as_slice().is_empty() && !self.failed
    }

    /// Reads a string and throws it away.
    pub(crate) fn skip_str(&mut self) {
        self.failed |= !is_utf8(self.bytes());
    }

    /// Reads a sequence of `u32`, of at most `most`, and gives the product of its elements with `first`; `None` beyond 32 bits.
    pub(crate) fn product(&mut self, most: u32, first: u32) -> Option<u32> {
        let len = self.varint(u32::BITS);
        self.failed |= len > most;
        let mut product = Some(first);
        for _ in 0..len.min(most) {
            let extent = self.varint(u32::BITS);
            product = product.and_then(|product| product.checked_mul(extent));
        }
        product
    }

    /// A kernel's number, and the bytes of its parameters behind their length.
    pub(crate) fn record(&mut self) -> Option<(u8, &'a [u8])> {
        let record = (self.byte(), self.bytes());
        if self.failed { None } else { Some(record) }
    }

    /// The bytes not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest.as_slice()
    }

    // Inlined, a step's fields take a third fewer instructions and three times the code, of which cores of ARMv8-M with an FPU have room. Where steps roll they
    // are decoded for every row.
    #[cfg_attr(
        any(feature = "rolling", all(kernel_isa = "armv8m", kernel_isa = "fpu")),
        inline(always)
    )]
    #[cfg_attr(
        not(any(feature = "rolling", all(kernel_isa = "armv8m", kernel_isa = "fpu"))),
        inline(never)
    )]
    pub(crate) fn byte(&mut self) -> u8 {
        match self.rest.next() {
            Some(&byte) => byte,
            None => self.missing(),
        }
    }

    #[cold]
    #[inline(never)]
    fn missing(&mut self) -> u8 {
        self.failed = true;
        0
    }

    /// A varint of at most `bits` bits.
    #[cfg_attr(
        any(feature = "rolling", all(kernel_isa = "armv8m", kernel_isa = "fpu")),
        inline(always)
    )]
    #[cfg_attr(
        not(any(feature = "rolling", all(kernel_isa = "armv8m", kernel_isa = "fpu"))),
        inline(never)
    )]
    pub(crate) fn varint(&mut self, bits: u32) -> u32 {
        match self.rest.next() {
            // Most fields: a step is decoded anew in every run, and this takes a quarter of the general loop's instructions.
            Some(&byte) if byte < 0x80 => u32::from(byte),
            Some(&byte) => self.long_varint(u32::from(byte & 0x7F), bits),
            None => u32::from(self.missing()),
        }
    }

    /// The rest of a varint that begins with these seven bits.
    #[inline(never)]
    fn long_varint(&mut self, first: u32, bits: u32) -> u32 {
        // Most are of two bytes, which fit any field, or of three, which fit a word.
        match *self.rest.as_slice() {
            [second @ ..0x80, ref rest @ ..] => {
                self.rest = rest.iter();
                first | u32::from(second) << 7
            }
            [second, third @ ..0x80, ref rest @ ..] if bits == u32::BITS => {
                self.rest = rest.iter();
                first | u32::from(second & 0x7F) << 7 | u32::from(third) << 14
            }
            _ => self.any_varint(first, bits),
        }
    }

    /// The same of any length.
    #[inline(never)]
    fn any_varint(&mut self, first: u32, bits: u32) -> u32 {
        let (mut value, mut shift) = (first, 7);
        while shift < bits {
            let byte = match self.rest.next() {
                Some(&byte) => byte,
                None => return u32::from(self.missing()),
            };
            let low = u32::from(byte & 0x7F);
            // The last byte holds what is left of the bits.
            self.failed |= bits - shift < 7 && low >> (bits - shift) != 0;
            value |= low << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
        self.failed = true;
        0
    }

    #[inline(never)]
    fn zigzag(&mut self, bits: u32) -> i32 {
        let n = self.varint(bits);
        (n >> 1) as i32 ^ -((n & 1) as i32)
    }

    fn flag(&mut self) -> bool {
        let byte = self.byte();
        self.failed |= byte > 1;
        byte == 1
    }

    /// A length and as many bytes.
    #[inline(never)]
    fn bytes(&mut self) -> &'a [u8] {
        let len = self.varint(u32::BITS) as usize;
        let Some((bytes, rest)) = self.rest.as_slice().split_at_checked(len) else {
            self.failed = true;
            return &[];
        };
        self.rest = rest.iter();
        bytes
    }
}

/// Whether `bytes` are UTF-8, in a fifth of the code of the fast check of the core library.
#[inline(never)]
fn is_utf8(bytes: &[u8]) -> bool {
    let mut bytes = bytes.iter();
    while let Some(&lead) = bytes.next() {
        let (more, least) = match lead.leading_ones() {
            0 => continue,
            2 => (1, 0x80),
            3 => (2, 0x800),
            4 => (3, 0x1_0000),
            _ => return false,
        };
        let mut code = u32::from(lead) & (0x3F >> more);
        for _ in 0..more {
            match bytes.next() {
                Some(&byte) if byte & 0xC0 == 0x80 => code = code << 6 | u32::from(byte & 0x3F),
                _ => return false,
            }
        }
        if code < least || char::from_u32(code).is_none() {
            return false;
        }
    }
    true
}

/// The elements of a tuple, an array or a struct: as many as are asked for.
struct Tuple<'f, 'a>(&'f mut Fields<'a>);

impl<'a> SeqAccess<'a> for Tuple<'_, 'a> {
    type Error = Malformed;

    #[inline(always)]
    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, Malformed> {
        seed.deserialize(&mut *self.0).map(Some)
    }

    /// The provided one is not always inlined.
    #[inline(always)]
    fn next_element<T: Deserialize<'a>>(&mut self) -> Result<Option<T>, Malformed> {
        T::deserialize(&mut *self.0).map(Some)
    }
}

/// The elements of a sequence that states its length.
struct Sequence<'f, 'a> {
    fields: &'f mut Fields<'a>,
    left: u32,
}

impl<'a> SeqAccess<'a> for Sequence<'_, 'a> {
    type Error = Malformed;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, Malformed> {
        // Elements that are missing would go on for as long as the length says.
        if self.left == 0 || self.fields.failed {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.fields).map(Some)
    }
}

impl<'f, 'a> EnumAccess<'a> for &'f mut Fields<'a> {
    type Error = Malformed;
    type Variant = &'f mut Fields<'a>;

    #[inline(always)]
    fn variant_seed<V: DeserializeSeed<'a>>(self, seed: V) -> Result<(V::Value, Self), Malformed> {
        let index: U32Deserializer<Malformed> = self.varint(u32::BITS).into_deserializer();
        Ok((seed.deserialize(index)?, self))
    }
}

impl<'a> VariantAccess<'a> for &mut Fields<'a> {
    type Error = Malformed;

    #[inline(always)]
    fn unit_variant(self) -> Result<(), Malformed> {
        Ok(())
    }

    #[inline(always)]
    fn newtype_variant_seed<T: DeserializeSeed<'a>>(self, seed: T) -> Result<T::Value, Malformed> {
        seed.deserialize(self)
    }

    #[inline(always)]
    fn tuple_variant<V: Visitor<'a>>(self, _: usize, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_seq(Tuple(self))
    }

    #[inline(always)]
    fn struct_variant<V: Visitor<'a>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_seq(Tuple(self))
    }
}

/// Methods of `Deserializer` that read one number.
macro_rules! numbers {
    ($($method:ident $visit:ident $fields:ident => $value:expr;)*) => {$(
        #[inline(always)]
        fn $method<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Malformed> {
            let $fields = self;
            visitor.$visit($value)
        }
    )*};
}

impl<'a> Deserializer<'a> for &mut Fields<'a> {
    type Error = Malformed;

    numbers! {
        deserialize_bool visit_bool fields => fields.flag();
        deserialize_u8 visit_u8 fields => fields.byte();
        deserialize_i8 visit_i8 fields => fields.byte() as i8;
        deserialize_u16 visit_u16 fields => fields.varint(u16::BITS) as u16;
        deserialize_i16 visit_i16 fields => fields.zigzag(i16::BITS) as i16;
        deserialize_u32 visit_u32 fields => fields.varint(u32::BITS);
        deserialize_i32 visit_i32 fields => fields.zigzag(i32::BITS);
        deserialize_f32 visit_f32 fields => f32::from_le_bytes([fields.byte(), fields.byte(), fields.byte(), fields.byte()]);
    }

    fn deserialize_str<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Malformed> {
        let text = core::str::from_utf8(self.bytes());
        self.failed |= text.is_err();
        visitor.visit_borrowed_str(text.unwrap_or_default())
    }

    fn deserialize_bytes<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_borrowed_bytes(self.bytes())
    }

    #[inline(always)]
    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Malformed> {
        if self.flag() {
            visitor.visit_some(self)
        } else {
            visitor.visit_none()
        }
    }

    #[inline(always)]
    fn deserialize_newtype_struct<V: Visitor<'a>>(self, _: &'static str, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Malformed> {
        let left = self.varint(u32::BITS);
        visitor.visit_seq(Sequence { fields: self, left })
    }

    #[inline(always)]
    fn deserialize_tuple<V: Visitor<'a>>(self, _: usize, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_seq(Tuple(self))
    }

    #[inline(always)]
    fn deserialize_struct<V: Visitor<'a>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        visitor.visit_seq(Tuple(self))
    }

    #[inline(always)]
    fn deserialize_enum<V: Visitor<'a>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        visitor.visit_enum(self)
    }

    /// The format does not describe itself, and no operator has a field of the types below.
    fn deserialize_any<V: Visitor<'a>>(self, _: V) -> Result<V::Value, Malformed> {
        Err(Malformed)
    }

    serde::forward_to_deserialize_any! {
        <V: Visitor<'a>>
        u64 i64 f64 char string byte_buf unit unit_struct tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests;
