//! Our own schema, `trace.json`, as `docs/trace-schema.md` specifies it: whatever that document does not define is refused.

mod operators;
mod sidecar;
mod windows;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::build::{self, Builder, NewNode, Weights, elements};
use super::json::{Json, Object};
use super::{Assumptions, ImportOptions, Imported};
use crate::error::{Error, Result};
use crate::graph::{DType, Data, Expr, Graph, Op, Origin, Tensor, TensorId, TensorKind};

/// The content is a JSON object with the version's name.
pub(super) fn recognises(content: &[u8]) -> bool {
    super::is_json_object(content) && super::contains(content, b"\"arenite_trace\"")
}

/// Reads a trace, its constants and its samples; parameters stay in their file.
pub(super) fn import(path: &Path, content: &[u8], options: &ImportOptions) -> Result<Imported> {
    let trace = Trace::parse(build::text(content)?)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let constants = sidecar::constants(&trace, folder)?;
    let batch = options.batch.max(1);
    let mut assumptions = Assumptions::new(options);
    // Built at the traced batch first, so that every stated shape is checked, and then at the batch asked for.
    let mut graph = trace.build(&constants, None, &mut assumptions)?;
    let mut samples = sidecar::samples(&trace, folder)?;
    let mut warnings = Vec::new();
    if let Some(traced) = trace.batch_other_than(batch)? {
        assumptions = Assumptions::new(options);
        graph = trace.build(&constants, Some((traced, batch)), &mut assumptions)?;
        if samples.take().is_some() {
            warnings.push(format!(
                "the samples are of batch {traced}: they are not replayed at batch {batch}"
            ));
        }
    }
    if let Some(&input) = graph.inputs.first() {
        build::check_input_shape(options.input_shape.as_deref(), &graph.tensor(input).shape)?;
    }
    let files = [trace.parameters.clone(), sidecar::samples_file(&trace)?];
    Ok(Imported {
        graph,
        files: files.into_iter().flatten().map(|name| folder.join(name)).collect(),
        assumptions: assumptions.finish()?,
        warnings,
        weights: trace.parameters.as_ref().map(|name| folder.join(name)),
        samples,
        ..Imported::default()
    })
}

struct Trace<'a> {
    name: String,
    inputs: Vec<(String, Json<'a>)>,
    outputs: Vec<(String, Json<'a>)>,
    state: Vec<State<'a>>,
    tensors: HashMap<String, Declared<'a>>,
    /// Names of `tensors` in the order of the file.
    order: Vec<String>,
    operators: Vec<Operator<'a>>,
    parameters: Option<String>,
    samples: Option<Json<'a>>,
}

struct State<'a> {
    json: Json<'a>,
    input: String,
    output: String,
}

struct Declared<'a> {
    json: Json<'a>,
    shape: Vec<usize>,
    dtype: DType,
    role: Role,
    layout: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Input,
    Activation,
    Parameter,
    Constant,
    State,
}

struct Operator<'a> {
    json: Json<'a>,
    name: String,
    op: Json<'a>,
    kind: String,
    inputs: Vec<(Option<String>, Json<'a>)>,
    output: String,
    attrs: Option<Object<'a>>,
    source: Option<String>,
}

impl<'a> Trace<'a> {
    fn parse(text: &'a str) -> Result<Self> {
        let root = Json::parse(text)?.object()?;
        // The version first: a later one may have any names.
        let version = root.need("arenite_trace")?;
        if version.integer()? != 1 {
            return Err(version
                .locate(Error::unsupported(format!(
                    "version {} of the trace format",
                    version.integer()?
                )))
                .expected("version 1"));
        }
        root.only(&[
            "arenite_trace",
            "producer",
            "name",
            "inputs",
            "outputs",
            "state",
            "tensors",
            "ops",
            "parameters",
            "samples",
        ])?;
        root.get("producer").map(Json::string).transpose()?;
        let mut tensors = HashMap::new();
        let mut order = Vec::new();
        for (name, json) in root.need("tensors")?.object()?.fields() {
            check_name(name, json)?;
            tensors.insert(name.clone(), declared(json)?);
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
            parameters: root.get("parameters").map(sidecar::file_name).transpose()?,
            samples: root.get("samples").cloned(),
        };
        check_name(&trace.name, name)?;
        trace.check()?;
        Ok(trace)
    }

    fn declared(&self, name: &str, at: &Json<'_>) -> Result<&Declared<'a>> {
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
    fn batch_other_than(&self, batch: usize) -> Result<Option<usize>> {
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
        if batch == first || (differ && batch == 1) {
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

    /// The graph at the traced batch, or rebuilt `(from, to)` another.
    fn build(
        &self,
        constants: &HashMap<String, Vec<u8>>,
        rebatch: Option<(usize, usize)>,
        assumptions: &mut Assumptions<'_>,
    ) -> Result<Graph> {
        let mut work = Work {
            trace: self,
            constants,
            rebatch,
            assumptions,
            builder: Builder::new(&self.name),
            tensors: HashMap::new(),
        };
        for (name, _) in &self.inputs {
            let declared = &self.tensors[name.as_str()];
            let mut shape = declared.shape.clone();
            if let (Some((_, to)), Some(first)) = (rebatch, shape.first_mut()) {
                *first = to;
            }
            let id = work.builder.input(name, &shape)?;
            work.builder.set_dtype(id, declared.dtype);
            work.tensors.insert(name.clone(), id);
        }
        let mut states = Vec::new();
        for state in &self.state {
            states.push(work.read_state(state)?);
        }
        let mut unknown = Vec::new();
        for operator in &self.operators {
            // What is behind an operator of no known kind is looked at all the same, so that one message names them all.
            let done = match work.operator(operator) {
                Ok(true) => Ok(()),
                Ok(false) => {
                    unknown.push((operator.kind.clone(), format!("line {}", operator.op.line())));
                    work.stand_in(operator)
                }
                Err(e) => Err(e),
            };
            if let Err(error) = done {
                refuse(std::mem::take(&mut unknown))?;
                return Err(operator.locate(error));
            }
        }
        refuse(unknown)?;
        for (state, id) in self.state.iter().zip(states) {
            let value = work.tensor(&state.output, &state.json)?;
            let kind = "assign_state";
            let name = format!("{}.assign", state.input);
            work.builder
                .effect(&name, kind, Op::AssignState, &[id, value], origin(&state.json));
        }
        let outputs: Result<Vec<_>> = self.outputs.iter().map(|(name, at)| work.tensor(name, at)).collect();
        work.builder.finish(&outputs?)
    }
}

fn refuse(unknown: Vec<(String, String)>) -> Result<()> {
    build::refuse_unknown(unknown, "docs/trace-schema.md lists the operators of version 1")
}

struct Work<'w, 'a, 'o> {
    trace: &'w Trace<'a>,
    constants: &'w HashMap<String, Vec<u8>>,
    rebatch: Option<(usize, usize)>,
    assumptions: &'w mut Assumptions<'o>,
    builder: Builder,
    tensors: HashMap<String, TensorId>,
}

impl Work<'_, '_, '_> {
    /// The state and a node that reads it; readers read that node's output.
    fn read_state(&mut self, state: &State<'_>) -> Result<TensorId> {
        let declared = self.trace.declared(&state.input, &state.json)?;
        let bytes = elements(&declared.shape)? * declared.dtype.bytes();
        let id = self.builder.tensor(Tensor {
            kind: TensorKind::State(Data::Bytes(vec![0; bytes].into())),
            ..Tensor::activation(&state.input, &declared.shape, declared.dtype)
        })?;
        let name = format!("{}.read", state.input);
        let node = NewNode {
            name: &name,
            kind: "read_state",
            op: Op::ReadState,
            inputs: &[Some(id)],
            output: &name,
            origin: origin(&state.json),
        };
        let read = self.builder.node_of_shape(node, &declared.shape)?;
        self.tensors.insert(state.input.clone(), read);
        Ok(id)
    }

    /// A tensor as it stands.
    fn tensor(&mut self, name: &str, at: &Json<'_>) -> Result<TensorId> {
        self.view(name, at, &Weights::Same)
    }

    /// A tensor; parameters and constants moved as the operator wants them.
    fn view(&mut self, name: &str, at: &Json<'_>, weights: &Weights) -> Result<TensorId> {
        let declared = self.trace.declared(name, at)?;
        match declared.role {
            Role::Parameter if declared.dtype == DType::F32 => self.builder.param(name, &declared.shape, weights),
            Role::Parameter | Role::Constant => {
                if let (Weights::Same, Some(&id)) = (weights, self.tensors.get(name)) {
                    return Ok(id);
                }
                let bytes = self.constants.get(name).ok_or_else(|| {
                    at.error(format!("the value of constant `{name}` is unknown"))
                        .help("a trace with constants names the file that holds them in `parameters`")
                })?;
                match weights {
                    Weights::Same => {
                        let data = Data::Bytes(bytes.as_slice().into());
                        let id = self.builder.constant(name, &declared.shape, declared.dtype, data);
                        self.tensors.insert(name.to_string(), id);
                        Ok(id)
                    }
                    moved => {
                        let values = bytes.as_chunks::<4>().0.iter().map(|raw| f32::from_le_bytes(*raw));
                        let value = moved.of(Expr::Literal {
                            values: values.collect(),
                            shape: declared.shape.clone(),
                        })?;
                        let shape = value.shape();
                        Ok(self.builder.constant(name, &shape, DType::F32, Data::Lazy(value)))
                    }
                }
            }
            Role::Input | Role::Activation | Role::State => self.tensors.get(name).copied().ok_or_else(|| {
                at.error(format!("`{name}` is read before any operator writes it"))
                    .help("operators stand in execution order; a cycle has no such order")
            }),
        }
    }
}

impl Operator<'_> {
    fn locate(&self, error: Error) -> Error {
        let source = self
            .source
            .as_ref()
            .map_or(String::new(), |source| format!(", traced from {source}"));
        let (line, path) = (self.json.line(), self.json.path());
        error.at(format!("`{}` ({}), line {line} ({path}){source}", self.name, self.kind))
    }
}

fn origin(json: &Json<'_>) -> Origin {
    Origin {
        line: Some(json.line()),
        path: json.path().to_string(),
    }
}

fn check_name(name: &str, at: &Json<'_>) -> Result<()> {
    match name.is_empty() || name.chars().any(char::is_control) {
        true => Err(at
            .error(format!("name {name:?}"))
            .expected("a name that is not empty, without control characters")),
        false => Ok(()),
    }
}

fn declared<'a>(json: &Json<'a>) -> Result<Declared<'a>> {
    let object = json.object()?;
    object.only(&["shape", "dtype", "role", "layout"])?;
    let shape = object.need("shape")?.sizes(1..=u32::MAX as usize)?;
    if shape.len() > 6 {
        return Err(json.error(format!("shape {shape:?}")).expected("at most 6 axes"));
    }
    elements(&shape).map_err(|e| json.locate(e))?;
    let dtype = object.need("dtype")?;
    let role = object.need("role")?;
    let declared = Declared {
        json: json.clone(),
        dtype: match dtype.string()?.as_str() {
            "f32" => DType::F32,
            "i8" => DType::I8,
            "i16" => DType::I16,
            "i32" => DType::I32,
            "i64" => DType::I64,
            "u8" => DType::U8,
            "bool" => DType::Bool,
            other => {
                return Err(dtype
                    .error(format!("dtype `{other}`"))
                    .expected("f32, i8, i16, i32, i64, u8 or bool"));
            }
        },
        role: match role.string()?.as_str() {
            "input" => Role::Input,
            "activation" => Role::Activation,
            "parameter" => Role::Parameter,
            "constant" => Role::Constant,
            "state" => Role::State,
            other => {
                let roles = "input, activation, parameter, constant or state";
                return Err(role.error(format!("role `{other}`")).expected(roles));
            }
        },
        layout: object.get("layout").map(Json::string).transpose()?,
        shape,
    };
    if let Some(layout) = &declared.layout
        && (!["NCHW", "NHWC", "OIHW", "OI"].contains(&layout.as_str()) || layout.len() != declared.shape.len())
    {
        return Err(json
            .error(format!("layout `{layout}` of shape {:?}", declared.shape))
            .expected("NCHW, NHWC or OIHW of four axes, or OI of two"));
    }
    Ok(declared)
}

fn states<'a>(json: &Json<'a>) -> Result<Vec<State<'a>>> {
    let entry = |json: Json<'a>| {
        let object = json.object()?;
        object.only(&["input", "output"])?;
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
    object.only(&["name", "op", "inputs", "outputs", "attrs", "source"])?;
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
    let operator = Operator {
        name: object.need("name")?.string()?,
        kind: op.string()?,
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
