//! JSON read in place: every value knows where it stands, objects refuse a name that occurs twice, and nothing is copied or
//! built that the importer does not ask for.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Error, Result};

/// A value that has been checked for syntax only.
#[derive(Debug, Clone)]
pub struct Json<'a> {
    document: &'a str,
    lines: Rc<Lines>,
    text: &'a str,
    path: String,
}

/// An object's fields, in the order of the file.
#[derive(Debug)]
pub struct Object<'a> {
    this: Json<'a>,
    fields: Vec<(String, Json<'a>)>,
}

impl<'a> Json<'a> {
    /// Checks the syntax of a whole document.
    pub fn parse(document: &'a str) -> Result<Self> {
        Self::parse_part(document, document)
    }

    /// Checks the syntax of a part of a text; places are those of the text.
    pub fn parse_part(document: &'a str, part: &'a str) -> Result<Self> {
        let raw: &RawValue = serde_json::from_str(part).map_err(|e| syntax(&e, document, part))?;
        Ok(Self {
            document,
            lines: Rc::default(),
            text: raw.get(),
            path: String::new(),
        })
    }

    /// Path from the root, such as `operator/621`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where the value stands in the document, in bytes.
    pub fn range(&self) -> Range<usize> {
        let start = offset(self.document, self.text);
        start..start + self.text.len()
    }

    /// The value at a path from here, such as `operator/621`; `None` where there is none. Names may hold a slash.
    pub fn find(&self, path: &str) -> Option<Json<'a>> {
        if path.is_empty() {
            return Some(self.clone());
        }
        let rest = |name: &str| match path.strip_prefix(name)? {
            "" => Some(""),
            rest => rest.strip_prefix('/'),
        };
        if let Ok(object) = self.object() {
            let mut found = object
                .fields()
                .iter()
                .filter_map(|(name, value)| value.find(rest(name)?));
            return found.next();
        }
        let (index, behind) = path.split_once('/').unwrap_or((path, ""));
        self.array().ok()?.get(index.parse::<usize>().ok()?)?.find(behind)
    }

    /// One-based line.
    pub fn line(&self) -> usize {
        self.position().0
    }

    /// An error at this value.
    pub fn error(&self, message: impl Into<String>) -> Error {
        self.locate(Error::input(message))
    }

    /// Adds this value's place to an error.
    pub fn locate(&self, error: Error) -> Error {
        let (line, column) = self.position();
        error.at(match self.path.as_str() {
            "" => format!("line {line}, column {column}"),
            path => format!("line {line}, column {column} ({path})"),
        })
    }

    /// The value as the file writes it.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.text == "null"
    }

    /// An object.
    ///
    /// # Errors
    /// Names the line of a value of another type.
    pub fn object(&self) -> Result<Object<'a>> {
        let Fields(raw) = self.read("an object")?;
        let fields = raw.into_iter().map(|(name, raw)| {
            let child = self.child(raw, &name);
            (name, child)
        });
        Ok(Object {
            fields: fields.collect(),
            this: self.clone(),
        })
    }

    /// The elements of an array.
    ///
    /// # Errors
    /// Names the line of a value of another type.
    pub fn array(&self) -> Result<Vec<Json<'a>>> {
        let Items(raw) = self.read("a list")?;
        let items = raw.into_iter().enumerate();
        Ok(items.map(|(index, raw)| self.child(raw, &index.to_string())).collect())
    }

    /// A string.
    ///
    /// # Errors
    /// Names the line of a value of another type.
    pub fn string(&self) -> Result<String> {
        self.read("a string")
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// Names the line of a value of another type.
    pub fn boolean(&self) -> Result<bool> {
        self.read("true or false")
    }

    /// An integer.
    ///
    /// # Errors
    /// Names the line of a value of another type.
    pub fn integer(&self) -> Result<i64> {
        self.read("an integer")
    }

    /// An array of integers.
    ///
    /// # Errors
    /// Names the line of a value of another type.
    pub fn integers(&self) -> Result<Vec<i64>> {
        self.read("a list of integers")
    }

    /// An integer in `range`.
    pub fn size(&self, range: RangeInclusive<usize>) -> Result<usize> {
        let what = || format!("an integer from {} to {}", range.start(), range.end());
        let value = usize::try_from(self.read::<i64>(&what())?).ok();
        value
            .filter(|v| range.contains(v))
            .ok_or_else(|| self.error(format!("found {}", self.excerpt())).expected(what()))
    }

    /// Integers, each in `range`.
    pub fn sizes(&self, range: RangeInclusive<usize>) -> Result<Vec<usize>> {
        self.array()?.iter().map(|item| item.size(range.clone())).collect()
    }

    /// A finite number.
    pub fn number(&self) -> Result<f64> {
        let value: f64 = self.read("a number")?;
        if value.is_finite() {
            Ok(value)
        } else {
            Err(self
                .error(format!("found {}", self.excerpt()))
                .expected("a finite number"))
        }
    }

    fn child(&self, raw: &'a RawValue, name: &str) -> Json<'a> {
        Json {
            document: self.document,
            lines: Rc::clone(&self.lines),
            text: raw.get(),
            path: match self.path.as_str() {
                "" => name.to_string(),
                path => format!("{path}/{name}"),
            },
        }
    }

    fn read<T: Deserialize<'a>>(&self, expected: &str) -> Result<T> {
        serde_json::from_str(self.text).map_err(|e| {
            if e.is_data() && e.to_string().starts_with(TWICE) {
                syntax(&e, self.document, self.text)
            } else {
                self.error(format!("found {}", self.excerpt())).expected(expected)
            }
        })
    }

    /// The start of the value, for messages.
    fn excerpt(&self) -> String {
        let mut characters = self.text.chars();
        let start: String = characters.by_ref().take(40).collect();
        match characters.next() {
            Some(_) => format!("`{start}…`"),
            None => format!("`{start}`"),
        }
    }

    fn position(&self) -> (usize, usize) {
        let offset = offset(self.document, self.text);
        let starts = self.lines.0.get_or_init(|| {
            let ends = self.document.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect()
        });
        let line = starts.partition_point(|&start| start <= offset);
        let start = line.checked_sub(1).and_then(|line| starts.get(line)).copied();
        (line, offset - start.unwrap_or(0) + 1)
    }
}

/// Where the lines of a document start, found when the first place is asked for.
#[derive(Debug, Default)]
struct Lines(OnceCell<Vec<usize>>);

impl<'a> Object<'a> {
    /// The field, if it is there.
    pub fn get(&self, name: &str) -> Option<&Json<'a>> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// The field, which must be there.
    pub fn need(&self, name: &str) -> Result<&Json<'a>> {
        self.get(name)
            .ok_or_else(|| self.this.error(format!("`{name}` is missing")))
    }

    /// Refuses fields that are not among `names`.
    pub fn only(&self, names: &[&str]) -> Result<()> {
        match self.fields.iter().find(|(n, _)| !names.contains(&n.as_str())) {
            Some((name, value)) => Err(value
                .error(format!("unknown name `{name}`"))
                .expected(if names.is_empty() {
                    "no name at all".to_string()
                } else {
                    format!("one of {}", names.join(", "))
                })),
            None => Ok(()),
        }
    }

    /// All fields, in the order of the document.
    pub fn fields(&self) -> &[(String, Json<'a>)] {
        &self.fields
    }
}

const TWICE: &str = "a name that occurs twice";

struct Fields<'a>(Vec<(String, &'a RawValue)>);

struct Items<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
                let mut seen = HashSet::new();
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    if !seen.insert(name.clone()) {
                        return Err(A::Error::custom(format_args!("{TWICE} in one object: `{name}`")));
                    }
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Map)
    }
}

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Seq;
        impl<'de> Visitor<'de> for Seq {
            type Value = Items<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(value) = seq.next_element::<&'de RawValue>()? {
                    items.push(value);
                }
                Ok(Items(items))
            }
        }
        deserializer.deserialize_seq(Seq)
    }
}

/// `part` is a slice of `document`: its byte offset.
fn offset(document: &str, part: &str) -> usize {
    (part.as_ptr() as usize)
        .saturating_sub(document.as_ptr() as usize)
        .min(document.len())
}

/// One-based line and column (in bytes) of a byte offset.
fn position(document: &str, offset: usize) -> (usize, usize) {
    let before = document.as_bytes().get(..offset).unwrap_or_default();
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|&&b| b != b'\n').count() + 1;
    (line, column)
}

/// A parser's error in `text`, a part of `document`.
fn syntax(error: &serde_json::Error, document: &str, text: &str) -> Error {
    let (line, column) = position(document, offset(document, text));
    let place = match error.line() {
        0 | 1 => (line, column + error.column().saturating_sub(1)),
        further => (line + further - 1, error.column()),
    };
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let error = match message.strip_prefix("EOF while parsing ") {
        Some(part) => {
            Error::input(format!("it ends within {part}")).help("the file is cut off: copy or write it again")
        }
        None => Error::input(message),
    };
    error.at(format!("line {}, column {}", place.0, place.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_document() {
        let text = "{\"a\": 1,\n \"b\": {\"c\": [1,\n 2, \"x\"]}}";
        let c = Json::parse(text).unwrap().object().unwrap();
        let c = c.need("b").unwrap().object().unwrap();
        let items = c.need("c").unwrap().array().unwrap();
        let error = items[2].integer().unwrap_err().to_string();
        assert!(error.starts_with("line 3, column 5 (b/c/2): found `\"x\"`"), "{error}");
        assert!(c.only(&["d"]).unwrap_err().to_string().contains("unknown name `c`"));
    }

    #[test]
    fn a_name_twice_is_refused_with_its_line() {
        let object = Json::parse("{\"a\":\n1, \"a\": 2}").unwrap();
        let error = object.object().unwrap_err().to_string();
        assert!(error.starts_with("line 2") && error.contains("`a`"), "{error}");
    }

    #[test]
    fn deep_nesting_is_bounded() {
        let deep = "[".repeat(1_000_000);
        assert!(Json::parse(&deep).is_err());
        let closed = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let mut value = Json::parse(&closed).unwrap();
        for _ in 0..10 {
            value = value.array().unwrap().remove(0);
        }
        assert!(value.integer().is_err());
    }
}
