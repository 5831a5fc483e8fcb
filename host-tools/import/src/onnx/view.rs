//! A node under translation, and its attributes within their ranges.

use super::proto::Node;
use crate::error::{Error, Result};
use crate::graph::numbers::Range;

/// A node under translation.
#[derive(Clone, Copy)]
pub(super) struct View<'m, 'a> {
    pub(super) index: usize,
    pub(super) node: &'m Node<'a>,
    /// The version of the operator set.
    pub(super) opset: i64,
}

impl<'a> View<'_, 'a> {
    /// The name of operand `position`.
    pub(super) fn input(&self, position: usize) -> Result<&'a str> {
        self.optional(position)
            .ok_or_else(|| Error::input(format!("operand {position} is missing")))
    }

    pub(super) fn optional(&self, position: usize) -> Option<&'a str> {
        self.node.inputs.get(position).copied().filter(|name| !name.is_empty())
    }

    /// The name of result `position`, where it is wanted.
    pub(super) fn output(&self, position: usize) -> Option<&'a str> {
        self.node.outputs.get(position).copied().filter(|name| !name.is_empty())
    }

    pub(super) fn int(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.node.int(name)?.unwrap_or(default))
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool> {
        match self.int(name, i64::from(default))? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Error::input(format!("attribute `{name}` is {other}")).expected("0 or 1")),
        }
    }

    /// An attribute that is one of these words, the first where it is not given.
    pub(super) fn word(&self, name: &str, known: &[&'static str]) -> Result<&'a str> {
        let found = self.text(name, known.first().copied().unwrap_or_default())?;
        if known.contains(&found) {
            return Ok(found);
        }
        Err(Error::input(format!("attribute `{name}` is `{found}`")).expected(known.join(", ")))
    }

    /// A real attribute, which is finite.
    pub(super) fn float(&self, name: &str, default: f32) -> Result<f32> {
        self.number(name, default, Range::Finite)
    }

    /// Returns the constant added to a variance before its root.
    pub(super) fn epsilon(&self) -> Result<f32> {
        self.number("epsilon", 1e-5, Range::NotNegative)
    }

    /// A real attribute of this range.
    pub(super) fn number(&self, name: &str, default: f32, range: Range) -> Result<f32> {
        range.check(
            &format!("attribute `{name}`"),
            self.node.float(name)?.unwrap_or(default),
        )
    }

    /// A list of real attributes, which are finite.
    pub(super) fn floats(&self, name: &str) -> Result<Option<Vec<f32>>> {
        let values = self.node.floats(name)?;
        let mut each = values.iter().flatten();
        each.try_for_each(|&value| {
            Range::Finite
                .check(&format!("a number of attribute `{name}`"), value)
                .map(drop)
        })?;
        Ok(values)
    }

    pub(super) fn text(&self, name: &str, default: &'static str) -> Result<&'a str> {
        Ok(self.node.text(name)?.unwrap_or(default))
    }

    pub(super) fn place(&self) -> String {
        let output = self.node.outputs.iter().find(|name| !name.is_empty());
        format!(
            "node {} ({}) that writes `{}`",
            self.node.place(self.index),
            self.node.called(),
            output.unwrap_or(&"")
        )
    }
}
