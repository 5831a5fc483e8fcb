//! The names of the document's objects and their words, for the reader and for the JSON Schema.

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::files::json::{Json, Object};
use crate::graph::DType;

/// The names that an object has, and whether it must have them.
pub(super) struct Fields(&'static [(&'static str, bool)]);

pub(super) const TRACE: Fields = Fields(&[
    ("arenite_trace", true),
    ("producer", false),
    ("name", true),
    ("inputs", true),
    ("outputs", true),
    ("state", false),
    ("tensors", true),
    ("ops", true),
    ("parameters", false),
    ("samples", false),
]);

pub(super) const TENSOR: Fields = Fields(&[
    ("shape", true),
    ("dtype", true),
    ("role", true),
    ("layout", false),
    ("quant", false),
]);

pub(super) const STATE: Fields = Fields(&[("input", true), ("output", true)]);

pub(super) const OPERATOR: Fields = Fields(&[
    ("name", true),
    ("op", true),
    ("inputs", true),
    ("outputs", true),
    ("attrs", false),
    ("source", false),
]);

pub(super) const SAMPLES: Fields = Fields(&[
    ("file", true),
    ("runs", true),
    ("inputs", true),
    ("outputs", true),
    ("rtol", false),
]);

impl Fields {
    pub(super) const fn new(fields: &'static [(&'static str, bool)]) -> Self {
        Self(fields)
    }

    /// Refuses other names, and the absence of those that must be there.
    pub(super) fn check(&self, object: &Object<'_>) -> Result<()> {
        let names: Vec<_> = self.0.iter().map(|(name, _)| *name).collect();
        object.only(&names)?;
        self.required().try_for_each(|name| object.need(name).map(drop))
    }

    fn required(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().filter(|(_, required)| *required).map(|(name, _)| *name)
    }

    /// The object as JSON Schema; `form` has that of each value.
    pub(super) fn schema(&self, form: impl Fn(&str) -> Value) -> Value {
        let properties: Map<_, _> = self.0.iter().map(|(name, _)| ((*name).into(), form(name))).collect();
        let required: Vec<_> = self.required().collect();
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }
}

/// Role of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Input,
    Activation,
    Parameter,
    Constant,
    State,
}

pub(super) const ROLES: &[(&str, Role)] = &[
    ("input", Role::Input),
    ("activation", Role::Activation),
    ("parameter", Role::Parameter),
    ("constant", Role::Constant),
    ("state", Role::State),
];

pub(super) const DTYPES: &[(&str, DType)] = &[
    ("f32", DType::F32),
    ("i8", DType::I8),
    ("i16", DType::I16),
    ("i32", DType::I32),
    ("i64", DType::I64),
    ("u8", DType::U8),
    ("bool", DType::Bool),
];

/// Layouts with the version that added them. A layout has a letter for each axis.
pub(super) const LAYOUTS: &[(&str, i64)] = &[("NCHW", 1), ("NHWC", 1), ("OIHW", 1), ("IOHW", 2), ("OI", 1)];

/// Returns the value that stands for the word in `json`.
pub(super) fn word<T: Copy>(what: &str, json: &Json<'_>, words: &[(&str, T)]) -> Result<T> {
    let found = json.string()?;
    let known = words.iter().find(|(word, _)| *word == found);
    known.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        json.error(format!("{what} `{found}`"))
            .expected(match words.split_last() {
                Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
                _ => words.concat(),
            })
    })
}

/// An addition of a later version in a trace that states an earlier one.
pub(super) fn newer(at: &Json<'_>, what: &str, since: i64, version: i64) -> Error {
    at.error(format!("{what} is of version {since}, the trace of version {version}"))
        .help(format!("state `\"arenite_trace\": {since}`"))
}
