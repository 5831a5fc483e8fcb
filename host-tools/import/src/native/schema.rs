//! The JSON Schema of the document (draft 2020-12), made of what the reader checks by.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::fields::{self, DTYPES, LAYOUTS, ROLES};
use super::form::{Form, MOST_AXES, MOST_ELEMENTS};
use super::quant;
use super::rows::{self, Absent, Attr, Row, VERSIONS};
use super::sidecar::MOST_RUNS;

/// Not empty, without control characters.
const NAME: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$";
/// A plain name in the folder of the trace.
const FILE: &str = "^[^/\\\\\\u0000]+$";

fn words<T>(words: &[(&str, T)]) -> Value {
    let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    json!({"enum": words})
}

fn list(of: &Value, least: usize) -> Value {
    json!({"type": "array", "items": of, "minItems": least})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// The whole document.
pub(crate) fn schema() -> Value {
    let name = reference("name");
    let mut schema = fields::TRACE.schema(|field| match field {
        "arenite_trace" => json!({"type": "integer", "minimum": VERSIONS.start(), "maximum": VERSIONS.end()}),
        "name" => name.clone(),
        "inputs" => {
            let mut inputs = list(&name, 1);
            inputs["uniqueItems"] = true.into();
            inputs
        }
        "outputs" => list(&name, 1),
        "state" => list(&fields::STATE.schema(|_| name.clone()), 0),
        "tensors" => {
            json!({"type": "object", "propertyNames": name, "additionalProperties": reference("tensor")})
        }
        "ops" => list(&reference("operator"), 0),
        "parameters" => reference("file"),
        "samples" => samples(),
        _ => json!({"type": "string"}),
    });
    schema["allOf"] = VERSIONS.skip(1).map(before).collect();
    schema["$defs"] = json!({
        "name": {"type": "string", "pattern": NAME},
        "file": {"type": "string", "pattern": FILE, "not": {"enum": [".", ".."]}},
        "tensor": tensor(),
        "operator": operator(),
    });
    let mut whole = Map::new();
    whole.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    whole.insert("title".into(), "trace.json of Arenite".into());
    let about =
        "The form of a traced network; docs/trace-schema.md has the meaning. Generated from the rows of the reader.";
    whole.insert("description".into(), about.into());
    if let Value::Object(schema) = schema {
        whole.extend(schema);
    }
    Value::Object(whole)
}

/// A trace of an earlier version has nothing that `version` added.
fn before(version: i64) -> Value {
    let layouts: Vec<_> = LAYOUTS.iter().filter(|row| row.1 == version).map(|row| row.0).collect();
    let operators: Vec<_> = rows::all()
        .filter(|row| row.since == version)
        .map(|row| row.op)
        .collect();
    let without = |field: &str, words: &[&str]| json!({"properties": {field: {"not": {"enum": words}}}});
    let mut tensors = without("layout", &layouts);
    if version == quant::SINCE {
        tensors["not"] = json!({"required": ["quant"]});
    }
    json!({
        "if": {"properties": {"arenite_trace": {"exclusiveMaximum": version}}},
        "then": {"properties": {
            "tensors": {"additionalProperties": tensors},
            "ops": {"items": without("op", &operators)},
        }},
    })
}

fn tensor() -> Value {
    let mut tensor = fields::TENSOR.schema(|field| match field {
        "shape" => {
            let extent = json!({"type": "integer", "minimum": 1, "maximum": MOST_ELEMENTS});
            json!({"type": "array", "items": extent, "maxItems": MOST_AXES})
        }
        "dtype" => words(DTYPES),
        "role" => words(ROLES),
        "quant" => quant::field(),
        _ => words(LAYOUTS),
    });
    // A layout has a letter for each axis.
    let ranks: BTreeSet<_> = LAYOUTS.iter().map(|(name, _)| name.len()).collect();
    let of_rank = ranks.into_iter().map(|rank| {
        let names: Vec<_> = LAYOUTS
            .iter()
            .map(|row| row.0)
            .filter(|name| name.len() == rank)
            .collect();
        json!({
            "if": {"properties": {"layout": {"enum": names}}, "required": ["layout"]},
            "then": {"properties": {"shape": {"minItems": rank, "maxItems": rank}}},
        })
    });
    tensor["allOf"] = of_rank.chain(quant::rules()).collect();
    tensor
}

fn samples() -> Value {
    let keys = json!({
        "type": "object", "minProperties": 1, "propertyNames": reference("name"), "additionalProperties": {"type": "string"},
    });
    fields::SAMPLES.schema(|field| match field {
        "file" => reference("file"),
        "runs" => json!({"type": "integer", "minimum": 1, "maximum": MOST_RUNS}),
        "rtol" => json!({"type": "number", "exclusiveMinimum": 0, "default": 1e-4}),
        _ => keys.clone(),
    })
}

/// An operator of any kind, and then what its kind has.
fn operator() -> Value {
    let names: Vec<_> = rows::all().map(|row| row.op).collect();
    let name = reference("name");
    let mut operator = fields::OPERATOR.schema(|field| match field {
        "name" => name.clone(),
        "op" => json!({"enum": names}),
        "inputs" => json!({"type": "array"}),
        "outputs" => json!({"type": "array", "items": name, "minItems": 1, "maxItems": 1}),
        "attrs" => json!({"type": "object"}),
        _ => json!({"type": "string"}),
    });
    // Operators of one form share what is said of it.
    let mut forms: Vec<(Value, Vec<&str>)> = Vec::new();
    for row in rows::all() {
        let form = kind(&row);
        match forms.iter_mut().find(|(known, _)| *known == form) {
            Some((_, names)) => names.push(row.op),
            None => forms.push((form, vec![row.op])),
        }
    }
    let cases = forms
        .into_iter()
        .map(|(form, names)| json!({"if": {"properties": {"op": {"enum": names}}, "required": ["op"]}, "then": form}));
    operator["allOf"] = cases.collect();
    operator
}

/// Returns the schema of an operator of this row.
fn kind(row: &Row) -> Value {
    let properties: Map<_, _> = row
        .attrs
        .iter()
        .map(|attr| (attr.name.into(), attribute(attr)))
        .collect();
    let required: Vec<_> = row.attrs.iter().filter(|attr| attr.absent == Absent::Refused).collect();
    let names: Vec<_> = required.iter().map(|attr| attr.name).collect();
    let mut attrs = json!({"properties": properties, "additionalProperties": false});
    if !names.is_empty() {
        attrs["required"] = json!(names);
    }
    // Of bounds that may be null, one is a number.
    let bounds = row.attrs.iter().filter(|attr| attr.form == Form::Bound);
    let bounds: Vec<_> = bounds
        .map(|attr| json!({"properties": {attr.name: {"type": "number"}}, "required": [attr.name]}))
        .collect();
    let needed = !names.is_empty() || !bounds.is_empty();
    if !bounds.is_empty() {
        attrs["anyOf"] = Value::Array(bounds);
    }
    let mut form = json!({"properties": {"inputs": operands(row), "attrs": attrs}});
    if needed {
        form["required"] = json!(["attrs"]);
    }
    form
}

fn attribute(attr: &Attr) -> Value {
    let mut form = attr.form.schema();
    match attr.absent {
        Absent::Refused => {}
        Absent::Is(value) => form["default"] = serde_json::from_str(value).unwrap_or_default(),
        Absent::As(other) => form["description"] = format!("as `{other}`, where absent").into(),
    }
    form
}

fn operands(row: &Row) -> Value {
    let (name, rule) = (reference("name"), row.operands);
    let or_null = json!({"anyOf": [name, {"type": "null"}]});
    if rule.most == usize::MAX {
        return list(&name, rule.least);
    }
    if rule.nullable.is_empty() {
        return json!({"items": name, "minItems": rule.least, "maxItems": rule.most});
    }
    let places = (0..rule.most).map(|place| {
        if rule.nullable.contains(&place) {
            &or_null
        } else {
            &name
        }
    });
    let places: Vec<_> = places.collect();
    json!({"prefixItems": places, "minItems": rule.least, "maxItems": rule.most})
}
