//! Forms of attributes: what the reader takes without regard to shapes, and the same as JSON Schema.

use serde_json::{Value, json};

use crate::build::LARGEST_EXTENT;
use crate::error::Result;
use crate::files::json::Json;

/// The most axes of a tensor.
pub(super) const MOST_AXES: usize = 6;
/// The largest extent of a tensor.
pub(super) const MOST_ELEMENTS: usize = u32::MAX as usize;

/// A number as the device computes with it.
pub(super) fn real(name: &str, json: &Json<'_>, value: f64) -> Result<f32> {
    let narrow = value as f32;
    if narrow.is_finite() {
        return Ok(narrow);
    }
    Err(json.error(format!("{name} {value:e}")).expected(format!(
        "a number of 32 bits, from {:e} to {:e}",
        f32::MIN,
        f32::MAX
    )))
}

/// The form of an attribute's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
    Flag,
    Number,
    /// A number above zero.
    Positive,
    /// A number from 0 to below 1.
    Ratio,
    /// A number, or null where there is none.
    Bound,
    /// An integer from the first to the second.
    Size(usize, usize),
    /// An even one.
    Even(usize, usize),
    /// As many integers as there are words, each of the least or more.
    Sizes(usize, &'static [&'static str]),
    /// An axis of an operand: its rank says more.
    Axis,
    /// One or more axes.
    Axes,
    /// A permutation of the axes.
    Order,
    /// Extents, of which one may be -1.
    Shape,
    /// [before, after] for each axis.
    EachAxis,
    /// A place along an axis: its extent says more.
    Index,
    /// The place behind the last, or null for the axis' end.
    End,
    /// One of these.
    Word(&'static [&'static str]),
}

impl Form {
    pub(super) const COUNT: Self = Self::Size(1, LARGEST_EXTENT);
    pub(super) const PAIR: Self = Self::Sizes(1, &["rows", "columns"]);
    pub(super) const MORE: Self = Self::Sizes(0, &["rows", "columns"]);
    pub(super) const BORDERS: Self = Self::Sizes(0, &["top", "bottom", "left", "right"]);

    /// Refuses a value of another form.
    pub(super) fn check(self, name: &str, json: &Json<'_>) -> Result<()> {
        let any = || real(name, json, json.number()?).map(drop);
        let number = |holds: fn(f64) -> bool, expected: &str| match json.number()? {
            value if holds(f64::from(real(name, json, value)?)) => Ok(()),
            value => Err(json.error(format!("{name} {value}")).expected(expected)),
        };
        match self {
            Self::Flag => json.boolean().map(drop),
            Self::Number => any(),
            Self::Positive => number(|value| value > 0.0, "a number above zero"),
            Self::Ratio => number(|value| (0.0..1.0).contains(&value), &format!("0 <= {name} < 1")),
            Self::Bound if json.is_null() => Ok(()),
            Self::Bound => any(),
            Self::Size(least, most) => json.size(least..=most).map(drop),
            Self::Even(least, most) => match json.size(least..=most)? {
                size if size.is_multiple_of(2) => Ok(()),
                size => Err(json.error(format!("{name} {size}")).expected("an even number")),
            },
            Self::Sizes(least, words) => {
                if json.sizes(least..=LARGEST_EXTENT)?.len() == words.len() {
                    return Ok(());
                }
                let expected = format!("[{}]", words.join(", "));
                Err(json.error(format!("`{name}`")).expected(expected))
            }
            Self::Axis => json.integer().map(drop),
            Self::Axes => json.integers().map(drop),
            Self::Order => json.sizes(0..=MOST_AXES - 1).map(drop),
            Self::Shape => {
                let shape = json.integers()?;
                let open = shape.iter().filter(|&&extent| extent == -1).count();
                if open <= 1 && shape.len() <= MOST_AXES && shape.iter().all(|&extent| extent >= 1 || extent == -1) {
                    return Ok(());
                }
                let expected = format!("integers >= 1, at most one -1, at most {MOST_AXES} axes");
                Err(json.error(format!("shape {shape:?}")).expected(expected))
            }
            Self::EachAxis => json
                .array()?
                .iter()
                .try_for_each(|pair| match pair.sizes(0..=LARGEST_EXTENT)?.len() {
                    2 => Ok(()),
                    _ => Err(pair.error("a padding").expected("[before, after]")),
                }),
            Self::End if json.is_null() => Ok(()),
            Self::Index | Self::End => json.size(0..=MOST_ELEMENTS).map(drop),
            Self::Word(words) => {
                let found = json.string()?;
                if words.contains(&found.as_str()) {
                    return Ok(());
                }
                Err(json.error(format!("{name} `{found}`")).expected(words.join(" or ")))
            }
        }
    }

    /// The form as JSON Schema, as narrow as all that reads the attribute.
    pub(super) fn schema(self) -> Value {
        let integer = |least: i64, most: usize| json!({"type": "integer", "minimum": least, "maximum": most});
        let axis = || integer(-(MOST_AXES as i64), MOST_AXES - 1);
        let sizes = |least: usize, count: usize| {
            let items = integer(least as i64, LARGEST_EXTENT);
            json!({"type": "array", "items": items, "minItems": count, "maxItems": count})
        };
        match self {
            Self::Flag => json!({"type": "boolean"}),
            Self::Number => json!({"type": "number"}),
            Self::Positive => json!({"type": "number", "exclusiveMinimum": 0}),
            Self::Ratio => json!({"type": "number", "minimum": 0, "exclusiveMaximum": 1}),
            Self::Bound => json!({"type": ["number", "null"]}),
            Self::Size(least, most) => integer(least as i64, most),
            Self::Even(least, most) => {
                json!({"type": "integer", "minimum": least, "maximum": most, "multipleOf": 2})
            }
            Self::Sizes(least, words) => sizes(least, words.len()),
            Self::Axis => axis(),
            Self::Axes => {
                json!({"type": "array", "items": axis(), "minItems": 1, "maxItems": MOST_AXES, "uniqueItems": true})
            }
            Self::Order => {
                let items = integer(0, MOST_AXES - 1);
                json!({"type": "array", "items": items, "maxItems": MOST_AXES, "uniqueItems": true})
            }
            Self::Shape => json!({
                "type": "array", "items": {"type": "integer", "minimum": -1, "not": {"const": 0}}, "maxItems": MOST_AXES,
                "contains": {"const": -1}, "minContains": 0, "maxContains": 1,
            }),
            Self::EachAxis => json!({"type": "array", "items": sizes(0, 2), "maxItems": MOST_AXES}),
            Self::Index => integer(0, MOST_ELEMENTS - 1),
            Self::End => json!({"type": ["integer", "null"], "minimum": 1, "maximum": MOST_ELEMENTS}),
            Self::Word(words) => json!({"enum": words}),
        }
    }
}

/// The axis of this number in an operand of `rank` axes.
pub(super) fn axis(at: &Json<'_>, index: i64, rank: usize) -> Result<usize> {
    let signed = rank as i64;
    let positive = if index < 0 { index.saturating_add(signed) } else { index };
    match usize::try_from(positive) {
        Ok(found) if found < rank => Ok(found),
        _ => Err(at
            .error(format!("axis {index} of an operand of {rank} axes"))
            .expected(format!("-{rank} to {}", signed - 1))),
    }
}
