//! JSON Schema, draft 2020-12, as much of it as the schema of `trace.json` takes. Crates that know all of it take minutes to compile.

use std::collections::HashMap;
use std::sync::OnceLock;

use regex::Regex;
use serde_json::Value;

/// A schema, ready for use.
pub struct Schema {
    root: Value,
    patterns: HashMap<String, Regex>,
}

/// Where a value breaks a schema, and by what.
pub type Verdict = Result<(), String>;

impl Schema {
    /// # Panics
    /// Where a pattern is none.
    #[must_use]
    pub fn new(root: Value) -> Self {
        let mut patterns = HashMap::new();
        let mut open = vec![&root];
        while let Some(value) = open.pop() {
            if let Some(Value::String(pattern)) = value.get("pattern") {
                let regex = Regex::new(pattern).expect("a pattern");
                patterns.insert(pattern.clone(), regex);
            }
            match value {
                Value::Object(object) => open.extend(object.values()),
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
        Self { root, patterns }
    }

    /// Whether `value` is valid.
    ///
    /// # Errors
    /// The first place that is not, with the keyword.
    ///
    /// # Panics
    /// At a keyword that is not known here.
    pub fn check(&self, value: &Value) -> Verdict {
        self.at(&self.root, value, "")
    }

    fn at(&self, schema: &Value, value: &Value, path: &str) -> Verdict {
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(true) => return Ok(()),
            _ => return Err(format!("{path}: nothing may stand here")),
        };
        for (keyword, rule) in schema {
            let holds = match keyword.as_str() {
                "$schema" | "$defs" | "title" | "description" | "default" => true,
                // With their neighbours.
                "then" | "minContains" | "maxContains" => true,
                "$ref" => {
                    let target = text(rule).strip_prefix('#').and_then(|place| self.root.pointer(place));
                    self.at(target.expect("a definition"), value, path)?;
                    true
                }
                "allOf" => {
                    list(rule).iter().try_for_each(|rule| self.at(rule, value, path))?;
                    true
                }
                "anyOf" => list(rule).iter().any(|rule| self.at(rule, value, path).is_ok()),
                "not" => self.at(rule, value, path).is_err(),
                "if" => {
                    if self.at(rule, value, path).is_ok() {
                        self.at(&schema["then"], value, path)?;
                    }
                    true
                }
                "type" => match rule {
                    Value::Array(types) => types.iter().any(|name| is(text(name), value)),
                    name => is(text(name), value),
                },
                "enum" => list(rule).iter().any(|one| equal(one, value)),
                "const" => equal(rule, value),
                "pattern" => value
                    .as_str()
                    .is_none_or(|value| self.patterns[text(rule)].is_match(value)),
                "minimum" => number(value).is_none_or(|value| value >= bound(rule)),
                "maximum" => number(value).is_none_or(|value| value <= bound(rule)),
                "exclusiveMinimum" => number(value).is_none_or(|value| value > bound(rule)),
                "exclusiveMaximum" => number(value).is_none_or(|value| value < bound(rule)),
                "multipleOf" => number(value).is_none_or(|value| value % bound(rule) == 0.0),
                "properties" | "required" | "additionalProperties" | "propertyNames" | "minProperties" => match value {
                    Value::Object(_) => self.object(schema, keyword, rule, value, path)?,
                    _ => true,
                },
                "prefixItems" | "items" | "minItems" | "maxItems" | "uniqueItems" | "contains" => match value {
                    Value::Array(items) => self.array(schema, keyword, rule, items, path)?,
                    _ => true,
                },
                other => panic!("the keyword `{other}` is not known here"),
            };
            if !holds {
                return Err(format!("{path}: {keyword} {rule} does not hold of {value}"));
            }
        }
        Ok(())
    }

    fn object(
        &self,
        schema: &serde_json::Map<String, Value>,
        keyword: &str,
        rule: &Value,
        value: &Value,
        path: &str,
    ) -> Result<bool, String> {
        let fields = value.as_object().expect("an object");
        let known = schema.get("properties");
        for (name, value) in fields {
            let named = known.and_then(|known| known.get(name));
            let below = format!("{path}/{name}");
            match (keyword, named) {
                ("properties", Some(rule)) => self.at(rule, value, &below)?,
                ("additionalProperties", None) => self.at(rule, value, &below)?,
                ("propertyNames", _) => self.at(rule, &Value::String(name.clone()), &below)?,
                _ => {}
            }
        }
        Ok(match keyword {
            "required" => list(rule).iter().all(|name| fields.contains_key(text(name))),
            "minProperties" => fields.len() as f64 >= bound(rule),
            _ => true,
        })
    }

    fn array(
        &self,
        schema: &serde_json::Map<String, Value>,
        keyword: &str,
        rule: &Value,
        items: &[Value],
        path: &str,
    ) -> Result<bool, String> {
        let count = items.len() as f64;
        let first = schema.get("prefixItems").map_or(0, |first| list(first).len());
        Ok(match keyword {
            "prefixItems" => {
                let mut pairs = list(rule).iter().zip(items);
                pairs.try_for_each(|(rule, item)| self.at(rule, item, path))?;
                true
            }
            "items" => {
                let mut rest = items.iter().enumerate().skip(first);
                rest.try_for_each(|(index, item)| self.at(rule, item, &format!("{path}/{index}")))?;
                true
            }
            "minItems" => count >= bound(rule),
            "maxItems" => count <= bound(rule),
            "uniqueItems" => (0..items.len()).all(|i| items[..i].iter().all(|other| !equal(other, &items[i]))),
            _ => {
                let found = items.iter().filter(|item| self.at(rule, item, path).is_ok()).count() as f64;
                let limit = |name: &str, absent: f64| schema.get(name).map_or(absent, bound);
                (limit("minContains", 1.0)..=limit("maxContains", f64::INFINITY)).contains(&found)
            }
        })
    }
}

/// Whether a trace is valid by the schema of the native dialect.
///
/// # Errors
/// As [`Schema::check`].
pub fn check_trace(trace: &Value) -> Verdict {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    let schema = SCHEMA.get_or_init(|| Schema::new(arenite_host::import::trace_schema()));
    schema.check(trace)
}

fn text(rule: &Value) -> &str {
    rule.as_str().expect("a string of the schema")
}

fn list(rule: &Value) -> &[Value] {
    rule.as_array().expect("a list of the schema")
}

fn bound(rule: &Value) -> f64 {
    rule.as_f64().expect("a number of the schema")
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64()
}

/// 1.0 is an integer, as the draft has it.
fn is(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => number(value).is_some_and(|value| value.fract() == 0.0),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the type `{other}` is not known here"),
    }
}

fn equal(one: &Value, other: &Value) -> bool {
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A rule, values that are valid by the specification, and values that are not.
    #[test]
    fn keywords_hold_of_what_the_specification_says() {
        let rules = [
            (
                json!({"type": "integer"}),
                json!([1, -1]),
                json!([1.5, "1", null, true]),
            ),
            (json!({"type": ["number", "null"]}), json!([1.5, null]), json!(["", []])),
            (json!({"enum": ["a", 1]}), json!(["a", 1]), json!(["b", 2, null])),
            (
                json!({"const": {"a": 1}}),
                json!([{"a": 1}]),
                json!([{"a": 2}, {}, {"a": 1, "b": 1}]),
            ),
            (json!({"pattern": "^a+$"}), json!(["aa", 5]), json!(["", "ab"])),
            (json!({"minimum": 2, "maximum": 3}), json!([2, 3, "x"]), json!([1, 4])),
            (
                json!({"exclusiveMinimum": 0, "exclusiveMaximum": 1}),
                json!([0.5]),
                json!([0, 1]),
            ),
            (json!({"multipleOf": 2}), json!([4, 0, "x"]), json!([3])),
            (json!({"not": {"type": "null"}}), json!([1]), json!([null])),
            (
                json!({"anyOf": [{"const": 1}, {"const": 2}]}),
                json!([1, 2]),
                json!([3]),
            ),
            (
                json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}),
                json!([1, 2]),
                json!([0, 3]),
            ),
            (
                json!({"if": {"minimum": 5}, "then": {"multipleOf": 5}}),
                json!([1, 5, 10]),
                json!([6]),
            ),
            (
                json!({"properties": {"a": {"type": "null"}}, "required": ["a"], "additionalProperties": false}),
                json!([{"a": null}, 7]),
                json!([{}, {"a": 1}, {"a": null, "b": 1}]),
            ),
            (
                json!({"propertyNames": {"pattern": "^x"}, "minProperties": 1}),
                json!([{"x": 1}]),
                json!([{}, {"y": 1}]),
            ),
            (
                json!({"prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 1, "maxItems": 3}),
                json!([[1], [1, 2, 2]]),
                json!([[], [2], [1, 1], [1, 2, 2, 2]]),
            ),
            (json!({"uniqueItems": true}), json!([[1, 2], []]), json!([[1, 2, 1]])),
            (
                json!({"contains": {"const": 0}, "maxContains": 1}),
                json!([[0, 1], [1, 0]]),
                json!([[1], [0, 0]]),
            ),
            (
                json!({"contains": {"const": 0}, "minContains": 0, "maxContains": 1}),
                json!([[1], [0]]),
                json!([[0, 0]]),
            ),
            (
                json!({"$defs": {"one": {"const": 1}}, "$ref": "#/$defs/one"}),
                json!([1]),
                json!([2]),
            ),
            (json!(false), json!([]), json!([1])),
        ];
        for (rule, valid, invalid) in rules {
            let schema = Schema::new(rule.clone());
            for value in list(&valid) {
                assert_eq!(schema.check(value), Ok(()), "{rule}");
            }
            for value in list(&invalid) {
                assert!(schema.check(value).is_err(), "{rule} holds of {value}");
            }
        }
    }
}
