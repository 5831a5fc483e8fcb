//! The document: its tensors, operators and states, as `docs/trace-schema.md` has them.

use std::collections::{HashMap, HashSet};

use super::fields::{self, DTYPES, LAYOUTS, ROLES, Role, newer, word};
use super::form::{MOST_AXES, MOST_ELEMENTS};
use super::quant;
use super::rows::{self, Row, VERSIONS};
use crate::build::elements;
use crate::error::{Error, Result};
use crate::files::json::{Json, Object};
use crate::graph::{DType, Origin, Quant};

/// The document, checked for what it states of itself.
pub(super) struct Trace<'a> {
    pub(super) name: String,
    pub(super) inputs: Vec<(String, Json<'a>)>,
    pub(super) outputs: Vec<(String, Json<'a>)>,
    pub(super) state: Vec<State<'a>>,
    pub(super) tensors: HashMap<String, Declared<'a>>,
    /// Names of `tensors` in the order of the file.
    pub(super) order: Vec<String>,
    pub(super) operators: Vec<Operator<'a>>,
    pub(super) parameters: Option<String>,
    pub(super) samples: Option<Json<'a>>,
}

/// A state: what reads it, and what it becomes.
pub(super) struct State<'a> {
    pub(super) json: Json<'a>,
    pub(super) input: String,
    pub(super) output: String,
}

/// An entry of `tensors`.
pub(super) struct Declared<'a> {
    pub(super) json: Json<'a>,
    pub(super) shape: Vec<usize>,
    pub(super) dtype: DType,
    pub(super) role: Role,
    pub(super) layout: Option<String>,
    pub(super) quant: Option<Quant>,
}

/// An entry of `ops`.
pub(super) struct Operator<'a> {
    pub(super) json: Json<'a>,
    pub(super) name: String,
    pub(super) op: Json<'a>,
    pub(super) kind: String,
    /// None where the kind is not known.
    pub(super) row: Option<Row>,
    pub(super) inputs: Vec<(Option<String>, Json<'a>)>,
    pub(super) output: String,
    pub(super) attrs: Option<Object<'a>>,
    pub(super) source: Option<String>,
}

impl<'a> Trace<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self> {
        let root = Json::parse(text)?.object()?;
        // The version first: a later one may have any names.
        let version = root.need("arenite_trace")?;
        let number = version.integer()?;
        if !VERSIONS.contains(&number) {
            return Err(version
                .locate(Error::unsupported(format!("version {number} of the trace format")))
                .expected(format!("a version from {} to {}", VERSIONS.start(), VERSIONS.end())));
        }
        fields::TRACE.check(&root)?;
        root.get("producer").map(Json::string).transpose()?;
        let mut tensors = HashMap::new();
        let mut order = Vec::new();
        for (name, json) in root.need("tensors")?.object()?.fields() {
            check_name(name, json)?;
            tensors.insert(name.clone(), declared(json, number)?);
            order.push(name.clone());
        }
        let list = |field: &str| -> Result<Vec<(String, Json<'a>)>> {
            let json = root.need(field)?;
            let items = json.array()?;
            if items.is_empty() {
                return Err(json
                    .error(format!("`{field}` is empty"))
                    .expected("at least one tensor"));
            }
            items.into_iter().map(|item| Ok((item.string()?, item))).collect()
        };
        let name = root.need("name")?;
        let trace = Self {
            name: name.string()?,
            inputs: list("inputs")?,
            outputs: list("outputs")?,
            state: root.get("state").map(states).transpose()?.unwrap_or_default(),
            tensors,
            order,
            operators: root
                .need("ops")?
                .array()?
                .into_iter()
                .map(operator)
                .collect::<Result<_>>()?,
            parameters: root.get("parameters").map(file_name).transpose()?,
            samples: root.get("samples").cloned(),
        };
        check_name(&trace.name, name)?;
        for operator in &trace.operators {
            if let Some(row) = operator.row.filter(|row| row.since > number) {
                return Err(newer(
                    &operator.op,
                    &format!("operator `{}`", row.op),
                    row.since,
                    number,
                ));
            }
        }
        trace.check()?;
        Ok(trace)
    }

    pub(super) fn declared(&self, name: &str, at: &Json<'_>) -> Result<&Declared<'a>> {
        self.tensors
            .get(name)
            .ok_or_else(|| at.error(format!("tensor `{name}` is not among `tensors`")))
    }

    /// Roles, and that everything is mentioned.
    fn check(&self) -> Result<()> {
        let mut mentioned: HashSet<&str> = HashSet::new();
        for (name, at) in &self.inputs {
            if self.declared(name, at)?.role != Role::Input {
                return Err(at.error(format!("`{name}` has another role")).expected("role `input`"));
            }
            if !mentioned.insert(name) {
                return Err(at.error(format!("`{name}` is listed twice")));
            }
        }
        for (name, at) in &self.outputs {
            if !matches!(self.declared(name, at)?.role, Role::Input | Role::Activation) {
                let role = "role `input` or `activation`";
                return Err(at.error(format!("`{name}` has another role")).expected(role));
            }
            mentioned.insert(name);
        }
        let mut states = HashSet::new();
        for state in &self.state {
            let (input, output) = (
                self.declared(&state.input, &state.json)?,
                self.declared(&state.output, &state.json)?,
            );
            if input.role != Role::State || !states.insert(state.input.as_str()) {
                let message = format!("`{}` has another role, or is in two entries", state.input);
                return Err(state.json.error(message).expected("role `state`"));
            }
            if !matches!(output.role, Role::Activation | Role::Input) {
                return Err(state
                    .json
                    .error(format!("`{}` has another role", state.output))
                    .expected("`activation` or `input`"));
            }
            if (&input.shape, input.dtype) != (&output.shape, output.dtype) {
                return Err(state.json.error(format!(
                    "`{}` is {} {:?}, `{}` is {} {:?}",
                    state.input,
                    input.dtype.name(),
                    input.shape,
                    state.output,
                    output.dtype.name(),
                    output.shape
                )));
            }
            mentioned.extend([state.input.as_str(), state.output.as_str()]);
        }
        let mut names = HashSet::new();
        for operator in &self.operators {
            if !names.insert(operator.name.as_str()) {
                return Err(operator
                    .json
                    .error(format!("two operators are named `{}`", operator.name)));
            }
            for (name, at) in operator
                .inputs
                .iter()
                .filter_map(|(name, at)| name.as_ref().map(|name| (name, at)))
            {
                self.declared(name, at)?;
                mentioned.insert(name);
            }
            if self.declared(&operator.output, &operator.json)?.role != Role::Activation {
                let message = format!("its output `{}` has another role", operator.output);
                return Err(operator.json.error(message).expected("role `activation`"));
            }
            mentioned.insert(&operator.output);
        }
        for name in &self.order {
            let declared = &self.tensors[name.as_str()];
            let listed = match declared.role {
                Role::Input => self.inputs.iter().any(|(n, _)| n == name),
                Role::State => states.contains(name.as_str()),
                _ => true,
            };
            if !mentioned.contains(name.as_str()) || !listed {
                return Err(declared
                    .json
                    .error(format!("nothing uses tensor `{name}`, or its role is not listed")));
            }
        }
        Ok(())
    }

    /// The traced batch, where it must be rebuilt to be `batch`.
    pub(super) fn batch_other_than(&self, batch: usize) -> Result<Option<usize>> {
        let mut firsts = self
            .inputs
            .iter()
            .map(|(name, at)| (self.tensors[name.as_str()].shape.first().copied(), at));
        let Some((Some(first), at)) = firsts.next() else {
            return match batch {
                1 => Ok(None),
                _ => Err(Error::unsupported("--batch of a network whose input is a scalar")),
            };
        };
        let differ = firsts.any(|(other, _)| other != Some(first));
        if batch == first {
            return Ok(None);
        }
        let refuse = |why: &str| {
            Err(at.locate(Error::unsupported(format!(
                "batch {first} cannot become {batch}: {why}"
            ))))
        };
        match (differ, self.state.is_empty()) {
            (true, _) => refuse("the inputs differ in their first extent"),
            (_, false) => refuse("the states have the traced batch"),
            _ => Ok(Some(first)),
        }
    }
}
impl Operator<'_> {
    pub(super) fn locate(&self, error: Error) -> Error {
        let source = self
            .source
            .as_ref()
            .map_or(String::new(), |source| format!(", traced from {source}"));
        let (line, path) = (self.json.line(), self.json.path());
        error.at(format!("`{}` ({}), line {line} ({path}){source}", self.name, self.kind))
    }
}

pub(super) fn origin(json: &Json<'_>) -> Origin {
    Origin {
        line: Some(json.line()),
        path: json.path().to_string(),
    }
}

fn check_name(name: &str, at: &Json<'_>) -> Result<()> {
    if name.is_empty() || name.chars().any(char::is_control) {
        Err(at
            .error(format!("name {name:?}"))
            .expected("a name that is not empty, without control characters"))
    } else {
        Ok(())
    }
}

fn declared<'a>(json: &Json<'a>, version: i64) -> Result<Declared<'a>> {
    let object = json.object()?;
    fields::TENSOR.check(&object)?;
    let shape = object.need("shape")?.sizes(1..=MOST_ELEMENTS)?;
    if shape.len() > MOST_AXES {
        return Err(json
            .error(format!("shape {shape:?}"))
            .expected(format!("at most {MOST_AXES} axes")));
    }
    elements(&shape).map_err(|e| json.locate(e))?;
    let dtype = word("dtype", object.need("dtype")?, DTYPES)?;
    let role = word("role", object.need("role")?, ROLES)?;
    let quant = match object.get("quant") {
        Some(at) if version < quant::SINCE => return Err(newer(at, "`quant`", quant::SINCE, version)),
        Some(at) => Some(quant::read(at, dtype, role, &shape)?),
        None => None,
    };
    let declared = Declared {
        json: json.clone(),
        dtype,
        role,
        layout: object.get("layout").map(Json::string).transpose()?,
        quant,
        shape,
    };
    if let Some(layout) = &declared.layout {
        let known = LAYOUTS.iter().find(|(name, _)| name == layout);
        match known.filter(|_| layout.len() == declared.shape.len()) {
            Some((_, since)) if *since > version => {
                return Err(newer(json, &format!("layout `{layout}`"), *since, version));
            }
            Some(_) => {}
            None => {
                return Err(json
                    .error(format!("layout `{layout}` of shape {:?}", declared.shape))
                    .expected("NCHW, NHWC, OIHW or IOHW of four axes, or OI of two"));
            }
        }
    }
    Ok(declared)
}

fn states<'a>(json: &Json<'a>) -> Result<Vec<State<'a>>> {
    let entry = |json: Json<'a>| {
        let object = json.object()?;
        fields::STATE.check(&object)?;
        Ok(State {
            input: object.need("input")?.string()?,
            output: object.need("output")?.string()?,
            json,
        })
    };
    json.array()?.into_iter().map(entry).collect()
}

fn operator(json: Json<'_>) -> Result<Operator<'_>> {
    let object = json.object()?;
    fields::OPERATOR.check(&object)?;
    let inputs = object.need("inputs")?.array()?.into_iter().map(|item| {
        let name = if item.is_null() { None } else { Some(item.string()?) };
        Ok((name, item))
    });
    let outputs = object.need("outputs")?;
    let names: Result<Vec<_>> = outputs.array()?.iter().map(Json::string).collect();
    let [output] = names?
        .try_into()
        .map_err(|names: Vec<String>| outputs.error(format!("{} outputs", names.len())).expected("one"))?;
    let op = object.need("op")?.clone();
    let kind = op.string()?;
    let operator = Operator {
        name: object.need("name")?.string()?,
        row: rows::find(&kind),
        kind,
        op,
        inputs: inputs.collect::<Result<_>>()?,
        output,
        attrs: object.get("attrs").map(Json::object).transpose()?,
        source: object.get("source").map(Json::string).transpose()?,
        json: json.clone(),
    };
    check_name(&operator.name, &json)?;
    Ok(operator)
}

/// A file name in the folder of the trace.
pub(super) fn file_name(json: &Json<'_>) -> Result<String> {
    let name = json.string()?;
    if name.is_empty() || name == ".." || name == "." || name.contains(['/', '\\', '\0']) {
        Err(json
            .error(format!("file name {name:?}"))
            .expected("a plain name in the folder of the trace"))
    } else {
        Ok(name)
    }
}
