//! Float types that the device does not have. Constants of them are read as f32, and what is computed of constants when importing is rounded to their own
//! type behind every node, as ONNX Runtime does; what would be computed in half precision at run time is refused.

use super::elem::{Elem, unsupported};
use super::importer::{Importer, Value, View};
use crate::error::Result;
use crate::import::half::{rounded_to_bf16, rounded_to_f16};

/// Operators whose elements are those of their operand, so that no precision is lost.
const MOVES: &[&str] = &[
    "Concat",
    "DepthToSpace",
    "Dropout",
    "Expand",
    "Flatten",
    "Gather",
    "Identity",
    "Reshape",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
    "Where",
];

impl<'a> Importer<'_, 'a> {
    /// Remembers that `name` is of a float type that the device does not have.
    pub(super) fn note_float(&mut self, name: &'a str, elem: Elem) {
        if elem.is_float() && elem != Elem::FLOAT {
            self.floats.insert(name, elem);
        }
    }

    /// The type that the file gives operand `position`.
    pub(super) fn stated_elem(&self, view: View<'_, 'a>, position: usize, value: &Value) -> Elem {
        let name = view.optional(position);
        name.and_then(|name| self.floats.get(name).copied())
            .unwrap_or_else(|| self.elem(value))
    }

    /// A result of the node as the file's float type has it.
    pub(super) fn in_own_precision(&mut self, view: View<'_, 'a>, name: &'a str, value: Value) -> Result<Value> {
        if self.elem(&value) != Elem::FLOAT {
            return Ok(value);
        }
        let of = |position: usize| {
            let operand = view.optional(position)?;
            self.floats.get(operand).copied()
        };
        let elem = match view.node.op {
            "Cast" => Some(Elem(view.int("to", 0)?)),
            "Constant" | "ConstantOfShape" => view.node.tensor("value")?.map(|tensor| Elem(tensor.elem)),
            "CastLike" | "DequantizeLinear" | "Where" => of(1),
            "OneHot" => of(2),
            _ => of(0),
        };
        let Some(elem) = elem.filter(|elem| elem.is_float() && *elem != Elem::FLOAT) else {
            return Ok(value);
        };
        self.note_float(name, elem);
        match (value, elem) {
            (Value::Array(array), Elem::FLOAT16) => Ok(array.map(&self.budget, rounded_to_f16)?.into()),
            (Value::Array(array), Elem::BFLOAT16) => Ok(array.map(&self.budget, rounded_to_bf16)?.into()),
            // Double precision is computed in single.
            (value, Elem::DOUBLE) => Ok(value),
            (value, _) if MOVES.contains(&view.node.op) => Ok(value),
            _ => Err(unsupported(elem, "a tensor that is computed")),
        }
    }
}
