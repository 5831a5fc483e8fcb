//! The dump itself: operators with their footprints and variables, in the order of execution, checked for what it states twice.

use std::collections::{HashMap, HashSet};

use crate::error::{Error, Result};
use crate::files::json::{Json, Object};

pub(super) const CONSTANT: &str = "ImmutableTensor";
pub(super) const SOURCES: [&str; 2] = ["InputCallback", "Host2DeviceCopy"];
pub(super) const SINK: &str = "OutputCallback";

/// The dump, in the order of execution.
pub(super) struct Dump<'a> {
    pub(super) operators: Vec<Operator<'a>>,
    pub(super) variables: HashMap<String, Variable<'a>>,
}

pub(super) struct Operator<'a> {
    pub(super) json: Json<'a>,
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) footprint: Option<Footprint<'a>>,
}

pub(super) struct Footprint<'a> {
    pub(super) json: Json<'a>,
    pub(super) param: Object<'a>,
    pub(super) in_shapes: Vec<Vec<usize>>,
    pub(super) out_shapes: Vec<Vec<usize>>,
    /// Bytes of inputs and outputs.
    pub(super) memory: Option<u64>,
    /// Operations, two for a multiply-accumulate.
    pub(super) computation: Option<u64>,
}

pub(super) struct Variable<'a> {
    pub(super) json: Json<'a>,
    pub(super) name: String,
    pub(super) shape: Option<Vec<usize>>,
    /// Small integer values, such as shapes.
    pub(super) value: Option<Vec<i64>>,
    /// Bytes of its memory chunk, for parameters.
    pub(super) bytes: Option<u64>,
}

impl<'a> Dump<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self> {
        let root = Json::parse(text)?.object()?;
        let graph = root.need("graph_exec")?.object()?;
        let mut footprints: HashMap<String, Footprint<'a>> = match root.get("profiler") {
            Some(profiler) => footprints(&profiler.object()?)?,
            None => HashMap::new(),
        };
        let mut variables = variables(graph.need("var")?)?;
        if let Some(chunks) = graph.get("mem_chunk") {
            memory_chunks(chunks, &mut variables)?;
        }
        let records = graph.need("operator")?.object()?;
        let mut unordered: HashMap<&str, &Json<'a>> =
            records.fields().iter().map(|(id, json)| (id.as_str(), json)).collect();

        let mut operators = Vec::new();
        for item in graph.need("comp_seq")?.array()? {
            let id = item.string()?;
            let json = unordered.remove(id.as_str()).ok_or_else(|| {
                item.error(format!(
                    "comp_seq names operator {id}, which is not among the operators, or twice"
                ))
            })?;
            operators.push(Operator::parse(&id, json, &mut footprints)?);
        }
        // Operators that need no kernel have no place in the sequence: constants, shapes and transfers, in the order of the file.
        let mut early = Vec::new();
        for (id, json) in records
            .fields()
            .iter()
            .filter(|(id, _)| unordered.contains_key(id.as_str()))
        {
            let operator = Operator::parse(id, json, &mut footprints)?;
            if !matches!(
                operator.kind.as_str(),
                CONSTANT | "GetVarShape" | "Subtensor" | "Concat" | "Host2DeviceCopy"
            ) {
                return Err(json.error(format!(
                    "{} `{}` has no place in comp_seq",
                    operator.kind, operator.name
                )));
            }
            early.push(operator);
        }
        if let Some(footprint) = footprints.into_values().min_by_key(|f| f.json.line()) {
            return Err(footprint
                .json
                .error("a footprint of an operator that is not in graph_exec"));
        }
        let dump = Self {
            operators: interleave(early, operators),
            variables,
        };
        dump.check_edges()?;
        Ok(dump)
    }

    pub(super) fn variable(&self, operator: &Operator<'_>, id: &str) -> Result<&Variable<'a>> {
        self.variables
            .get(id)
            .ok_or_else(|| operator.error(format!("variable {id} is missing from graph_exec/var")))
    }

    /// Every variable exists and has one writer.
    fn check_edges(&self) -> Result<()> {
        let mut written = HashSet::new();
        for operator in &self.operators {
            for id in operator.inputs.iter().chain(&operator.outputs) {
                self.variable(operator, id)?;
            }
            if let Some(id) = operator.outputs.iter().find(|id| !written.insert(id.as_str())) {
                return Err(operator.error(format!(
                    "it writes variable {id}, which another operator writes as well"
                )));
            }
        }
        match self
            .variables
            .iter()
            .filter(|(id, _)| !written.contains(id.as_str()))
            .min_by_key(|(id, _)| id.as_str())
        {
            Some((id, variable)) => Err(variable
                .json
                .error(format!("no operator writes variable {id} (`{}`)", variable.name))),
            None => Ok(()),
        }
    }

    /// The images have no inferred shape: their readers' footprints state it. By variable.
    pub(super) fn image_shapes(&self) -> Result<HashMap<String, Vec<usize>>> {
        let sources: HashSet<&str> = (self.operators.iter())
            .filter(|o| SOURCES.contains(&o.kind.as_str()))
            .flat_map(|o| o.outputs.iter().map(String::as_str))
            .collect();
        let mut found: HashMap<String, Vec<usize>> = HashMap::new();
        for operator in self.operators.iter().filter(|o| o.kind != SINK) {
            let Some(footprint) = &operator.footprint else {
                continue;
            };
            for (id, shape) in operator.inputs.iter().zip(&footprint.in_shapes) {
                if !sources.contains(id.as_str()) {
                    continue;
                }
                let other = found.entry(id.clone()).or_insert_with(|| shape.clone());
                if other != shape {
                    let message = format!("it reads the image as {shape:?}, another operator as {other:?}");
                    return Err(operator.error(message));
                }
            }
        }
        if found.is_empty() {
            Err(Error::input("no operator reads the output of an InputCallback")
                .expected("a convolution whose in_shapes state the image's shape"))
        } else {
            Ok(found)
        }
    }
}

impl<'a> Operator<'a> {
    fn parse(id: &str, json: &Json<'a>, footprints: &mut HashMap<String, Footprint<'a>>) -> Result<Self> {
        let object = json.object()?;
        let list = |name: &str| {
            object
                .need(name)?
                .array()?
                .iter()
                .map(Json::string)
                .collect::<Result<Vec<_>>>()
        };
        if let Some(own) = object.get("id").map(Json::string).transpose()?
            && own != id
        {
            return Err(json.error(format!("operator {id} says that its id is {own}")));
        }
        Ok(Self {
            id: id.to_string(),
            kind: object.need("type")?.string()?,
            name: object.need("name")?.string()?,
            inputs: list("input")?,
            outputs: list("output")?,
            footprint: footprints.remove(id),
            json: json.clone(),
        })
    }

    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        self.locate(Error::input(message))
    }

    pub(super) fn locate(&self, error: Error) -> Error {
        let (line, path) = (self.json.line(), self.json.path());
        error.at(format!("`{}` ({}), line {line} ({path})", self.name, self.kind))
    }

    /// The footprint, which an operator with a kernel needs.
    pub(super) fn footprint(&self) -> Result<&Footprint<'a>> {
        self.footprint.as_ref().ok_or_else(|| {
            self.error(format!(
                "profiler/opr_footprint has no entry {}, so its parameters are unknown",
                self.id
            ))
        })
    }
}

fn footprints<'a>(profiler: &Object<'a>) -> Result<HashMap<String, Footprint<'a>>> {
    let Some(all) = profiler.get("opr_footprint") else {
        return Ok(HashMap::new());
    };
    let mut footprints = HashMap::new();
    for (id, json) in all.object()?.fields() {
        let object = json.object()?;
        let shapes = |name: &str| -> Result<Vec<Vec<usize>>> {
            let shapes = object.need(name)?.array()?;
            shapes.iter().map(|shape| shape.sizes(0..=u32::MAX as usize)).collect()
        };
        let count = |name: &str| -> Result<Option<u64>> {
            match object.get(name).filter(|json| !json.is_null()) {
                Some(json) => Ok(Some(
                    u64::try_from(json.integer()?).map_err(|_| json.error("a negative count"))?,
                )),
                None => Ok(None),
            }
        };
        let footprint = Footprint {
            param: object.need("param")?.object()?,
            in_shapes: shapes("in_shapes")?,
            out_shapes: shapes("out_shapes")?,
            memory: count("memory")?,
            computation: count("computation")?,
            json: json.clone(),
        };
        footprints.insert(id.clone(), footprint);
    }
    Ok(footprints)
}

fn variables<'a>(all: &Json<'a>) -> Result<HashMap<String, Variable<'a>>> {
    let mut variables = HashMap::new();
    for (id, json) in all.object()?.fields() {
        let object = json.object()?;
        let (mut shape, mut value) = (None, None);
        if let Some(tags) = object.get("static_infer_tags").filter(|tags| !tags.is_null()) {
            let tags = tags.object()?;
            let inferred = |name: &str| -> Result<Option<Json<'a>>> {
                let Some(tag) = tags.get(name).filter(|tag| !tag.is_null()) else {
                    return Ok(None);
                };
                let result = tag.object()?.get("inferred_result").cloned();
                Ok(result.filter(|result| !result.is_null()))
            };
            shape = inferred("SHAPE")?
                .map(|shape| shape.sizes(0..=u32::MAX as usize))
                .transpose()?;
            // Values too large to print are a string ("Large Array"); floats are nobody's shape.
            value = inferred("VALUE")?.and_then(|value| value.integers().ok());
        }
        if let Some(plan) = object.get("mem_plan").filter(|plan| !plan.is_null())
            && let Some(layout) = plan.object()?.get("layout").filter(|layout| !layout.is_null())
            && let Some(dtype) = layout.object()?.get("dtype")
            && !matches!(dtype.string()?.as_str(), "Float32" | "Int32" | "Byte")
        {
            return Err(
                dtype.locate(Error::unsupported(format!("variables of {}", dtype.string()?)).expected("Float32"))
            );
        }
        let variable = Variable {
            name: object.need("name")?.string()?,
            shape,
            value,
            bytes: None,
            json: json.clone(),
        };
        variables.insert(id.clone(), variable);
    }
    Ok(variables)
}

fn memory_chunks(chunks: &Json<'_>, variables: &mut HashMap<String, Variable<'_>>) -> Result<()> {
    for (_, chunk) in chunks.object()?.fields() {
        let object = chunk.object()?;
        let size = object.need("size")?;
        let bytes = u64::try_from(size.integer()?).map_err(|_| size.error("a negative size"))?;
        let owner = object.need("owner_var")?.string()?;
        let variable = variables.get_mut(&owner).ok_or_else(|| {
            chunk.error(format!(
                "the memory of variable {owner}, which is not in graph_exec/var"
            ))
        })?;
        if variable.bytes.replace(bytes).is_some() {
            return Err(chunk.error(format!("variable {owner} has two chunks of memory")));
        }
    }
    Ok(())
}

/// Puts each operator that has no place in the sequence before the first one that reads it, itself after what it reads.
fn interleave<'a>(early: Vec<Operator<'a>>, sequence: Vec<Operator<'a>>) -> Vec<Operator<'a>> {
    let mut writer: HashMap<String, usize> = HashMap::new();
    for (index, operator) in early.iter().enumerate() {
        writer.extend(operator.outputs.iter().map(|id| (id.clone(), index)));
    }
    let mut early: Vec<Option<Operator<'a>>> = early.into_iter().map(Some).collect();
    let mut ordered = Vec::with_capacity(early.len() + sequence.len());
    // Depth-first with an explicit stack; an operator that is on the stack already closes a cycle, which the check reports.
    let place = |wanted: &[String], early: &mut Vec<Option<Operator<'a>>>, ordered: &mut Vec<Operator<'a>>| {
        let mut stack: Vec<usize> = wanted.iter().rev().filter_map(|id| writer.get(id).copied()).collect();
        let mut opened = HashSet::new();
        while let Some(&index) = stack.last() {
            let Some(Some(operator)) = early.get(index) else {
                stack.pop();
                continue;
            };
            if opened.insert(index) {
                stack.extend(operator.inputs.iter().rev().filter_map(|id| writer.get(id).copied()));
            } else {
                stack.pop();
                ordered.extend(early.get_mut(index).and_then(Option::take));
            }
        }
    };
    for operator in sequence {
        place(&operator.inputs, &mut early, &mut ordered);
        ordered.push(operator);
    }
    ordered.extend(early.into_iter().flatten());
    ordered
}
