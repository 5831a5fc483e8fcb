//! Values of the runtime's types as Rust: the text of a constant expression, in which `rt` is the runtime's module `compiled`.

use std::fmt::{self, Display, Write as _};

use serde::ser::{self, Serialize};

/// The constant expression of a value: an operator's parameters.
///
/// # Errors
/// [`Unwritable`] for a type that no operator has.
pub(crate) fn expression(value: &impl Serialize) -> Result<String, Unwritable> {
    let mut text = Text(String::new());
    value.serialize(&mut text)?;
    Ok(text.0)
}

/// A value of a type that has no text here.
#[derive(Debug)]
pub(crate) struct Unwritable(String);

impl Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unwritable {}

impl ser::Error for Unwritable {
    fn custom<T: Display>(reason: T) -> Self {
        Self(reason.to_string())
    }
}

/// Text so far.
struct Text(String);

impl Text {
    fn put(&mut self, text: impl Display) {
        // Writing to a string does not fail.
        let _ = write!(self.0, "{text}");
    }

    fn refused(&self, what: &str) -> Unwritable {
        Unwritable(format!(
            "a step has parameters of the type `{what}`, which include_model! does not write"
        ))
    }
}

/// Elements, each followed by a comma, and what closes them.
struct Elements<'t> {
    text: &'t mut Text,
    end: &'static str,
}

impl Elements<'_> {
    fn add<T: Serialize + ?Sized>(&mut self, name: Option<&str>, value: &T) -> Result<(), Unwritable> {
        if let Some(name) = name {
            self.text.put(format_args!("{name}: "));
        }
        value.serialize(&mut *self.text)?;
        self.text.put(", ");
        Ok(())
    }

    fn close(self) {
        self.text.put(self.end);
    }
}

/// Methods that write a number.
macro_rules! numbers {
    ($($method:ident $type:ident;)*) => {$(
        fn $method(self, value: $type) -> Result<(), Unwritable> {
            self.put(format_args!("{value}"));
            Ok(())
        }
    )*};
}

/// Methods of types that no operator has.
macro_rules! refused {
    ($($method:ident $type:ty;)*) => {$(
        fn $method(self, _: $type) -> Result<(), Unwritable> {
            Err(self.refused(stringify!($type)))
        }
    )*};
}

impl<'t> ser::Serializer for &'t mut Text {
    type Ok = ();
    type Error = Unwritable;
    type SerializeSeq = Elements<'t>;
    type SerializeTuple = Elements<'t>;
    type SerializeTupleStruct = ser::Impossible<(), Unwritable>;
    type SerializeTupleVariant = Elements<'t>;
    type SerializeMap = ser::Impossible<(), Unwritable>;
    type SerializeStruct = Elements<'t>;
    type SerializeStructVariant = Elements<'t>;

    numbers! {
        serialize_bool bool;
        serialize_i8 i8;
        serialize_i16 i16;
        serialize_i32 i32;
        serialize_i64 i64;
        serialize_u8 u8;
        serialize_u16 u16;
        serialize_u32 u32;
        serialize_u64 u64;
    }

    refused! {
        serialize_f64 f64;
        serialize_char char;
        serialize_str &str;
        serialize_bytes &[u8];
    }

    fn serialize_f32(self, value: f32) -> Result<(), Unwritable> {
        self.put(format_args!("f32::from_bits({})", value.to_bits()));
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Unwritable> {
        self.put("::core::option::Option::None");
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unwritable> {
        self.put("::core::option::Option::Some(");
        value.serialize(&mut *self)?;
        self.put(")");
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), Unwritable> {
        Err(self.refused("()"))
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<(), Unwritable> {
        Err(self.refused(name))
    }

    fn serialize_unit_variant(self, name: &'static str, _: u32, variant: &'static str) -> Result<(), Unwritable> {
        self.put(format_args!("rt::op::{name}::{variant}"));
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, _: &T) -> Result<(), Unwritable> {
        Err(self.refused(name))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Unwritable> {
        self.put(format_args!("rt::op::{name}::{variant}("));
        value.serialize(&mut *self)?;
        self.put(")");
        Ok(())
    }

    /// The only sequences are those of `heapless`.
    fn serialize_seq(self, _: Option<usize>) -> Result<Elements<'t>, Unwritable> {
        self.put("rt::Vec::from_array([");
        Ok(Elements { text: self, end: "])" })
    }

    /// Arrays are tuples to serde; no operator has a tuple.
    fn serialize_tuple(self, _: usize) -> Result<Elements<'t>, Unwritable> {
        self.put("[");
        Ok(Elements { text: self, end: "]" })
    }

    fn serialize_tuple_struct(self, name: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Unwritable> {
        Err(self.refused(name))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Elements<'t>, Unwritable> {
        self.put(format_args!("rt::op::{name}::{variant}("));
        Ok(Elements { text: self, end: ")" })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Unwritable> {
        Err(self.refused("map"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Elements<'t>, Unwritable> {
        self.put(format_args!("rt::op::{name} {{ "));
        Ok(Elements { text: self, end: "}" })
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Elements<'t>, Unwritable> {
        self.put(format_args!("rt::op::{name}::{variant} {{ "));
        Ok(Elements { text: self, end: "}" })
    }
}

/// Traits of elements without names.
macro_rules! unnamed {
    ($($trait:ident $method:ident;)*) => {$(
        impl ser::$trait for Elements<'_> {
            type Ok = ();
            type Error = Unwritable;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwritable> {
                self.add(None, value)
            }

            fn end(self) -> Result<(), Unwritable> {
                self.close();
                Ok(())
            }
        }
    )*};
}

unnamed! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleVariant serialize_field;
}

/// Traits of fields with names.
macro_rules! named {
    ($($trait:ident;)*) => {$(
        impl ser::$trait for Elements<'_> {
            type Ok = ();
            type Error = Unwritable;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Unwritable> {
                self.add(Some(name), value)
            }

            fn end(self) -> Result<(), Unwritable> {
                self.close();
                Ok(())
            }
        }
    )*};
}

named! {
    SerializeStruct;
    SerializeStructVariant;
}
