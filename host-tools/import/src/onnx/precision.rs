//! Float types that the device does not have. Constants of them are read as f32, and what is computed of constants when importing is rounded to their own
//! type behind every node, as ONNX Runtime does. A network that computes in half precision is widened: its tensors are f32, those of its inputs and outputs
//! too. A cast that only rounds to half precision at run time is refused.

use std::collections::HashSet;

use super::elem::{Elem, unsupported};
use super::importer::{Importer, Value, View};
use super::proto::{Model, Node};
use crate::error::Result;
use crate::graph::DType;
use crate::half::{rounded_to_bf16, rounded_to_f16};

/// Half precision, by its types.
const HALVES: [Elem; 2] = [Elem::FLOAT16, Elem::BFLOAT16];

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

/// The types of half precision that the network computes in: those of its inputs, of outputs that it does not only cast, and of constants that are operands of
/// more than casts.
pub(super) fn halves_of(model: &Model<'_>) -> Vec<Elem> {
    let graph = &model.graph;
    let (mut constants, mut operands) = (Vec::new(), HashSet::new());
    // Results of casts, as such or moved.
    let mut cast = HashSet::new();
    let mut visit = |node: &Node<'_>| {
        let casts = matches!(node.op, "Cast" | "CastLike");
        let moves = MOVES.contains(&node.op);
        operands.extend(node.inputs.iter().filter(|_| !moves && !casts).map(ToString::to_string));
        if casts || moves && node.inputs.iter().any(|input| cast.contains(*input)) {
            cast.extend(node.outputs.iter().map(ToString::to_string));
        }
        // A value that cannot be read is reported with its node.
        if node.op == "Constant"
            && let (Ok(Some(tensor)), Some(output)) = (node.tensor("value"), node.outputs.first())
        {
            constants.push((output.to_string(), Elem(tensor.elem)));
        }
        for (_, inner) in &node.graphs {
            constants.extend(inner.initializers.iter().map(|t| (t.name.to_string(), Elem(t.elem))));
        }
    };
    graph.each_node(&mut visit);
    constants.extend(graph.initializers.iter().map(|t| (t.name.to_string(), Elem(t.elem))));
    let outputs = graph.outputs.iter().filter(|output| !cast.contains(output.name));
    let mut halves: Vec<Elem> = graph.inputs.iter().chain(outputs).map(|port| Elem(port.elem)).collect();
    halves.extend(
        constants
            .iter()
            .filter(|(name, _)| operands.contains(name))
            .map(|(_, elem)| *elem),
    );
    HALVES.into_iter().filter(|half| halves.contains(half)).collect()
}

impl<'a> Importer<'_, 'a> {
    /// Says in which types of half precision the network computes, which are f32 on the device.
    pub(super) fn widen(&mut self) {
        self.halves = halves_of(self.model);
        for half in self.halves.clone() {
            let name = half.name();
            self.warn(format!(
                "the network computes in {name}: its tensors, inputs and outputs among them, are float32 on the device, so that results are those of more \
                 precision, and finite where {name} ends"
            ));
        }
    }

    /// The type of a tensor that is computed: half precision is f32 in a network that computes in it.
    pub(super) fn dtype_of(&self, elem: Elem) -> Result<DType> {
        if self.halves.contains(&elem) {
            return Ok(DType::F32);
        }
        elem.dtype()
    }

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
            (value, elem) if self.halves.contains(&elem) => Ok(value),
            (value, _) if MOVES.contains(&view.node.op) => Ok(value),
            _ => Err(unsupported(elem, "a tensor that is computed")),
        }
    }
}
