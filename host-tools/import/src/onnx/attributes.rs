//! Attributes of a node (`AttributeProto`), read by name and type.

use super::proto::{MOST_AXES, Node, Tensor};
use super::wire::{Field, Message};
use crate::error::{Error, Result};

/// Most entries of a list in an attribute.
const MOST_IN_ATTRIBUTE: usize = 1 << 20;

/// Names of `AttributeProto.AttributeType` by number, each with the field that holds its value.
const TYPES: [(&str, u32); 15] = [
    ("UNDEFINED", 0),
    ("FLOAT", 2),
    ("INT", 3),
    ("STRING", 4),
    ("TENSOR", 5),
    ("GRAPH", 6),
    ("FLOATS", 7),
    ("INTS", 8),
    ("STRINGS", 9),
    ("TENSORS", 10),
    ("GRAPHS", 11),
    ("SPARSE_TENSOR", 22),
    ("SPARSE_TENSORS", 23),
    ("TYPE_PROTO", 14),
    ("TYPE_PROTOS", 15),
];

/// A type of attributes: its number.
#[derive(Clone, Copy, PartialEq)]
struct Type(usize);

impl Type {
    const FLOAT: Self = Self(1);
    const INT: Self = Self(2);
    const STRING: Self = Self(3);
    const TENSOR: Self = Self(4);
    const FLOATS: Self = Self(6);
    const INTS: Self = Self(7);
    const STRINGS: Self = Self(8);

    fn name(self) -> String {
        match TYPES.get(self.0) {
            Some((name, _)) => (*name).to_string(),
            None => format!("number {}", self.0),
        }
    }

    /// Number of the field that holds its value.
    fn field(self) -> u32 {
        TYPES.get(self.0).map_or(0, |(_, field)| *field)
    }

    /// The type whose value stands in the field `number`.
    fn of_field(number: u32) -> Option<Self> {
        let holds = |(_, field): &(&str, u32)| *field == number;
        (number > 0).then(|| TYPES.iter().position(holds).map(Self)).flatten()
    }
}

impl<'a> Node<'a> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.attributes.iter().any(|(n, _)| *n == name)
    }

    /// Refuses a node that states an attribute twice.
    pub(super) fn each_attribute_once(&self) -> Result<()> {
        let mut names: Vec<&str> = self.attributes.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Error::input(format!("attribute `{}` is stated twice", pair[0]))
                .expected("one value of each attribute")
                .help("the file is damaged: export the model again")),
            None => Ok(()),
        }
    }

    pub(super) fn int(&self, name: &str) -> Result<Option<i64>> {
        // A field of the default value need not be written.
        self.single(name, Type::INT, 0, |field| field.integer(name))
    }

    pub(super) fn float(&self, name: &str) -> Result<Option<f32>> {
        self.single(name, Type::FLOAT, 0.0, |field| field.float(name))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>> {
        let text = self.single(name, Type::STRING, None, |field| field.text(name).map(Some))?;
        Ok(text.flatten())
    }

    pub(super) fn tensor(&self, name: &str) -> Result<Option<Tensor<'a>>> {
        let field = self.single(name, Type::TENSOR, None, |field| field.bytes(name).map(Some))?;
        field.flatten().map(Tensor::read).transpose()
    }

    pub(super) fn ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        self.list(name, Type::INTS, |field, list| {
            field.integers(list, MOST_IN_ATTRIBUTE, name)
        })
    }

    pub(super) fn floats(&self, name: &str) -> Result<Option<Vec<f32>>> {
        self.list(name, Type::FLOATS, |field, list| {
            field.floats(list, MOST_IN_ATTRIBUTE, name)
        })
    }

    pub(super) fn texts(&self, name: &str) -> Result<Option<Vec<&'a str>>> {
        self.list(name, Type::STRINGS, |field, list| {
            if list.len() > MOST_AXES {
                return Err(Error::input(format!("more than {MOST_AXES} strings of `{name}`")));
            }
            list.push(field.text(name)?);
            Ok(())
        })
    }

    /// The value of an attribute of one field; the last where the file repeats the field.
    fn single<T>(
        &self,
        name: &str,
        wanted: Type,
        default: T,
        read: impl FnOnce(Field<'a>) -> Result<T>,
    ) -> Result<Option<T>> {
        let fields = self.fields(name, wanted)?;
        let last = fields.map(|mut fields| fields.pop());
        last.map(|field| field.map_or(Ok(default), read)).transpose()
    }

    fn list<T>(
        &self,
        name: &str,
        wanted: Type,
        add: impl Fn(Field<'a>, &mut Vec<T>) -> Result<()>,
    ) -> Result<Option<Vec<T>>> {
        let Some(fields) = self.fields(name, wanted)? else {
            return Ok(None);
        };
        let mut list = Vec::new();
        for field in fields {
            add(field, &mut list)?;
        }
        Ok(Some(list))
    }

    /// The fields that hold the value of the attribute `name`; an attribute of another type than `wanted` is refused. Of one whose type is not stated, as in
    /// files before version 3 of the format, the field tells.
    fn fields(&self, name: &str, wanted: Type) -> Result<Option<Vec<Field<'a>>>> {
        let Some((_, content)) = self.attributes.iter().find(|(n, _)| *n == name) else {
            return Ok(None);
        };
        let (mut fields, mut stated, mut held) = (Vec::new(), None, None);
        let mut message = Message::new(content, "attribute");
        while let Some((number, field)) = message.next()? {
            if number == wanted.field() {
                fields.push(field);
            } else if number == 20 {
                stated = usize::try_from(field.integer("attribute's type")?).ok().map(Type);
            } else if let Some(other) = Type::of_field(number) {
                held = Some(other);
            }
        }
        let found = [stated.filter(|stated| stated.0 != 0), held];
        match found.into_iter().flatten().find(|found| *found != wanted) {
            Some(other) => Err(Error::input(format!("attribute `{name}` is of type {}", other.name()))
                .expected(wanted.name())
                .help("write the attribute with the type that ONNX gives it, or export the model again")),
            None => Ok(Some(fields)),
        }
    }
}
