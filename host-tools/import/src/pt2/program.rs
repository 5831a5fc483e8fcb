//! The program of a file: `ExportedProgram` of PyTorch's schema, versions 5 to 8, as far as an import reads it.

use std::borrow::Cow;
use std::collections::HashMap;

use super::elements::Meta;
use crate::error::{Error, Result};
use crate::files::json::{Json, Object};

/// Major versions of the schema that are read; PyTorch 2.15 writes 8.
const VERSIONS: std::ops::RangeInclusive<i64> = 5..=8;

/// A program.
pub(super) struct Program {
    pub(super) inputs: Vec<Input>,
    pub(super) outputs: Vec<Arg>,
    pub(super) nodes: Vec<Node>,
    /// Metadata of tensors, by their names.
    pub(super) tensors: HashMap<String, Meta>,
    /// Buffers, parameters and inputs that the program writes.
    pub(super) written: Vec<String>,
}

/// An input of the graph.
pub(super) struct Input {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// Kind of an input of the graph; parameters and constants have the names that the module gives them.
pub(super) enum Kind {
    User,
    Weight(String),
    Constant(String),
}

/// A call.
pub(super) struct Node {
    /// Without `torch.ops.`.
    pub(super) target: String,
    pub(super) arguments: Vec<(String, Arg)>,
    pub(super) outputs: Vec<Arg>,
}

/// An argument of a call.
#[derive(Debug, Clone)]
pub(super) enum Arg {
    None,
    Tensor(String),
    /// A list of tensors, of which some may be missing.
    Tensors(Vec<Option<String>>),
    Int(i64),
    Float(f64),
    Floats(Vec<f64>),
    Text(String),
    Bool(bool),
    /// An integer that the program computes.
    Symbol(String),
    /// Integers, of which the program may compute some.
    Ints(Vec<Whole>),
    /// A type of elements, by its number.
    Type(i64),
    /// Of another kind, by its name in the schema.
    Other(String),
}

/// An integer, or the name of one that the program computes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Whole {
    Known(i64),
    Symbol(String),
}

impl Node {
    pub(super) fn argument(&self, name: &str) -> Option<&Arg> {
        let found = self.arguments.iter().find(|(own, _)| own == name);
        found.map(|(_, arg)| arg).filter(|arg| !matches!(arg, Arg::None))
    }
}

impl Arg {
    /// Visits the names that it reads.
    pub(super) fn each_name<'a>(&'a self, visit: &mut dyn FnMut(&'a str)) {
        match self {
            Self::Tensor(name) | Self::Symbol(name) => visit(name),
            Self::Tensors(names) => names.iter().flatten().for_each(|name| visit(name)),
            Self::Ints(values) => values.iter().for_each(|value| {
                if let Whole::Symbol(name) = value {
                    visit(name);
                }
            }),
            _ => {}
        }
    }

    /// The value in messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::None => "none".to_string(),
            Self::Tensor(name) | Self::Symbol(name) | Self::Text(name) => format!("`{name}`"),
            Self::Tensors(names) => format!("a list of {} tensors", names.len()),
            Self::Int(value) => value.to_string(),
            Self::Float(value) => value.to_string(),
            Self::Bool(value) => value.to_string(),
            Self::Floats(values) => format!("a list of {} numbers", values.len()),
            Self::Ints(values) => format!("a list of {} integers", values.len()),
            Self::Type(number) => format!("element type {number} of PyTorch"),
            Self::Other(kind) => format!("`{kind}`"),
        }
    }

    fn read(json: &Json<'_>) -> Result<Self> {
        let object = json.object()?;
        let [(kind, value)] = object.fields() else {
            return Err(json.error("an argument of several kinds, or of none"));
        };
        let names = |value: &Json<'_>| -> Result<Vec<Option<String>>> {
            value.array()?.iter().map(|item| name(item).map(Some)).collect()
        };
        Ok(match kind.as_str() {
            "as_none" => Self::None,
            "as_tensor" => Self::Tensor(name(value)?),
            "as_tensors" => Self::Tensors(names(value)?),
            "as_optional_tensor" => optional(value)?.map_or(Self::None, Self::Tensor),
            "as_optional_tensors" => Self::Tensors(value.array()?.iter().map(optional).collect::<Result<_>>()?),
            "as_int" => Self::Int(value.integer()?),
            "as_ints" => Self::Ints(value.integers()?.into_iter().map(Whole::Known).collect()),
            "as_float" => Self::Float(number(value)?),
            "as_floats" => Self::Floats(value.array()?.iter().map(number).collect::<Result<_>>()?),
            "as_string" => Self::Text(value.string()?),
            "as_bool" => Self::Bool(value.boolean()?),
            "as_scalar_type" => Self::Type(value.integer()?),
            "as_sym_int" => match whole(value)? {
                Whole::Known(number) => Self::Int(number),
                Whole::Symbol(name) => Self::Symbol(name),
            },
            "as_sym_ints" => Self::Ints(value.array()?.iter().map(whole).collect::<Result<_>>()?),
            // How tensors lie in PyTorch's memory, and on which device, changes nothing here.
            other => Self::Other(other.to_string()),
        })
    }
}

fn name(json: &Json<'_>) -> Result<String> {
    json.object()?.need("name")?.string()
}

fn optional(json: &Json<'_>) -> Result<Option<String>> {
    json.object()?.get("as_tensor").map(name).transpose()
}

fn whole(json: &Json<'_>) -> Result<Whole> {
    let object = json.object()?;
    match object.get("as_int") {
        Some(number) => number.integer().map(Whole::Known),
        None => object.need("as_name")?.string().map(Whole::Symbol),
    }
}

/// A number; infinities are written as text.
fn number(json: &Json<'_>) -> Result<f64> {
    match json.text() {
        "\"Infinity\"" => Ok(f64::INFINITY),
        "\"-Infinity\"" => Ok(f64::NEG_INFINITY),
        "\"NaN\"" => Ok(f64::NAN),
        _ => json.number(),
    }
}

/// The document with quotes around infinities and what is no number, which older PyTorch writes bare.
fn quoted(document: &str) -> Cow<'_, str> {
    const BARE: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    let (mut text, mut copied, mut at, mut inside) = (String::new(), 0, 0, false);
    let bytes = document.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if inside => at += 1,
            b'"' => inside = !inside,
            b'-' | b'I' | b'N' if !inside => {
                let rest = document.get(at..).unwrap_or_default();
                if let Some(bare) = BARE.into_iter().find(|bare| rest.starts_with(bare)) {
                    text += document.get(copied..at).unwrap_or_default();
                    text += &format!("\"{bare}\"");
                    at += bare.len();
                    copied = at;
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    if copied == 0 {
        return Cow::Borrowed(document);
    }
    text += document.get(copied..).unwrap_or_default();
    Cow::Owned(text)
}

impl Program {
    pub(super) fn read(document: &str) -> Result<Self> {
        let document = quoted(document);
        let document = Json::parse(&document)?;
        let root = document.object()?;
        let version = root.need("schema_version")?;
        let major = match version.object() {
            Ok(version) => version.need("major")?.integer()?,
            Err(_) => version.integer()?,
        };
        if !VERSIONS.contains(&major) {
            return Err(Error::unsupported(format!("schema version {major} of torch.export"))
                .expected(format!("{} to {}", VERSIONS.start(), VERSIONS.end()))
                .help("export it on: torch.onnx.export(torch.export.load(FILE), f=\"model.onnx\"), and pack that"));
        }
        let module = root.need("graph_module")?.object()?;
        let graph = module.need("graph")?.object()?;
        let mut tensors = HashMap::new();
        for (name, meta) in graph.need("tensor_values")?.object()?.fields() {
            tensors.insert(name.clone(), Meta::read(meta)?);
        }
        let nodes = graph.need("nodes")?.array()?;
        let mut program = Self {
            inputs: Vec::new(),
            outputs: Vec::new(),
            nodes: nodes.iter().map(node).collect::<Result<_>>()?,
            tensors,
            written: Vec::new(),
        };
        program.signature(&module.need("signature")?.object()?)?;
        Ok(program)
    }

    /// Reads the kinds of the graph's inputs and outputs.
    fn signature(&mut self, signature: &Object<'_>) -> Result<()> {
        for spec in signature.need("input_specs")?.array()? {
            let object = spec.object()?;
            let [(kind, value)] = object.fields() else {
                return Err(spec.error("an input of several kinds, or of none"));
            };
            let value = value.object()?;
            let target = |field: &str| value.need(field)?.string();
            let kind = match kind.as_str() {
                "user_input" => Kind::User,
                "parameter" => Kind::Weight(target("parameter_name")?),
                "buffer" if value.need("persistent")?.boolean()? => Kind::Weight(target("buffer_name")?),
                "buffer" => Kind::Constant(target("buffer_name")?),
                "tensor_constant" => Kind::Constant(target("tensor_constant_name")?),
                // A reader of one finds no value of this name.
                _ => continue,
            };
            let arg = value.need("arg")?;
            let name = match kind {
                Kind::User => match Arg::read(arg)? {
                    Arg::Tensor(name) => name,
                    _ => continue,
                },
                _ => name(arg)?,
            };
            self.inputs.push(Input { name, kind });
        }
        for spec in signature.need("output_specs")?.array()? {
            let object = spec.object()?;
            let [(kind, value)] = object.fields() else {
                return Err(spec.error("an output of several kinds, or of none"));
            };
            let value = value.object()?;
            match kind.as_str() {
                "user_output" => self.outputs.push(Arg::read(value.need("arg")?)?),
                "buffer_mutation" => self.written.push(value.need("buffer_name")?.string()?),
                "parameter_mutation" => self.written.push(value.need("parameter_name")?.string()?),
                "user_input_mutation" => self.written.push(value.need("user_input_name")?.string()?),
                _ => {}
            }
        }
        Ok(())
    }
}

fn node(json: &Json<'_>) -> Result<Node> {
    let object = json.object()?;
    let target = object.need("target")?.string()?;
    let arguments = object.need("inputs")?.array()?;
    let argument = |json: &Json<'_>| -> Result<(String, Arg)> {
        let object = json.object()?;
        Ok((object.need("name")?.string()?, Arg::read(object.need("arg")?)?))
    };
    let outputs = object.need("outputs")?.array()?;
    Ok(Node {
        target: target.strip_prefix("torch.ops.").unwrap_or(&target).to_string(),
        arguments: arguments.iter().map(argument).collect::<Result<_>>()?,
        outputs: outputs.iter().map(Arg::read).collect::<Result<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_infinities_are_quoted_outside_of_texts() {
        let text = r#"{"a": -Infinity, "b": ["NaN \" Infinity", NaN, -1], "Infinity": Infinity}"#;
        let quoted = quoted(text);
        assert_eq!(
            quoted,
            r#"{"a": "-Infinity", "b": ["NaN \" Infinity", "NaN", -1], "Infinity": "Infinity"}"#
        );
        assert!(matches!(super::quoted(&quoted), Cow::Borrowed(_)));
    }
}
