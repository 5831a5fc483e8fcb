//! Types and shapes that the file states of values: they agree with each other, and with those that follow from the operators.

use std::collections::HashMap;

use super::elem::Elem;
use super::importer::{Importer, View};
use super::proto::{Extent, Graph, ValueInfo};
use crate::error::{Error, Result};

/// Refuses a graph that states two types or shapes of one of its initializers or inputs.
pub(super) fn agree(graph: &Graph<'_>) -> Result<()> {
    let held = graph.initializers.iter().map(|tensor| {
        let extents = tensor.shape.iter().map(|&n| Extent::Known(n)).collect();
        let info = ValueInfo {
            name: tensor.name,
            elem: tensor.elem,
            shape: Some(extents),
        };
        (tensor.name, info)
    });
    let held: HashMap<&str, ValueInfo<'_>> = held.collect();
    let inputs: HashMap<&str, &ValueInfo<'_>> = graph.inputs.iter().map(|info| (info.name, info)).collect();
    for info in graph.inputs.iter().chain(&graph.values).chain(&graph.outputs) {
        if let Some(tensor) = held.get(info.name) {
            alike(info, tensor, "that of its initializer")?;
        } else if let Some(input) = inputs.get(info.name) {
            alike(info, input, "that of the input")?;
        }
    }
    let mut inner = graph.nodes.iter().flat_map(|node| &node.graphs);
    inner.try_for_each(|(_, graph)| agree(graph))
}

/// Refuses what the file states of a value where it is not what `other` states.
fn alike(info: &ValueInfo<'_>, other: &ValueInfo<'_>, whose: &str) -> Result<()> {
    if info.elem != other.elem && info.elem != 0 && other.elem != 0 {
        let expected = format!("{}, {whose}", Elem(other.elem).name());
        return Err(wrong_type(info.name, Elem(info.elem), expected));
    }
    let (Some(shape), Some(own)) = (&info.shape, &other.shape) else {
        return Ok(());
    };
    let known = |extent: &Extent<'_>| matches!(extent, Extent::Known(n) if *n > 0);
    let differ = |(a, b): (&Extent<'_>, &Extent<'_>)| known(a) && known(b) && a != b;
    // One element is a scalar too.
    let is_one = |shape: &[Extent<'_>]| shape.iter().all(|extent| *extent == Extent::Known(1));
    if (is_one(shape) && is_one(own)) || (shape.len() == own.len() && !shape.iter().zip(own).any(differ)) {
        return Ok(());
    }
    Err(wrong_shape(
        info.name,
        shape.iter().map(shown),
        format!("[{}], {whose}", own.iter().map(shown).collect::<Vec<_>>().join(", ")),
    ))
}

pub(super) fn shown(extent: &Extent<'_>) -> String {
    match extent {
        Extent::Known(n) if *n > 0 => n.to_string(),
        Extent::Named(name) if !name.is_empty() => (*name).to_string(),
        _ => "?".to_string(),
    }
}

const REMEDY: &str =
    "export the model again, or run onnx.shape_inference with strict_mode: a wrong value_info misleads every tool";

fn wrong_shape(name: &str, extents: impl Iterator<Item = String>, expected: String) -> Error {
    let extents: Vec<String> = extents.collect();
    Error::input(format!(
        "the file states the shape [{}] of `{name}`",
        extents.join(", ")
    ))
    .expected(expected)
    .help(REMEDY)
}

fn wrong_type(name: &str, elem: Elem, expected: String) -> Error {
    Error::input(format!("the file states the type {} of `{name}`", elem.name()))
        .expected(expected)
        .help(REMEDY)
}

impl<'a> Importer<'_, 'a> {
    /// Notes what the file states of the results of nodes: types, and shapes unless the network is `rebatched`: they are those of another batch. `named` are
    /// the extents of the inputs by name.
    pub(super) fn declare(&mut self, named: &HashMap<&str, usize>, rebatched: bool) {
        let graph = &self.model.graph;
        // Other formats have types that ONNX's operators have not: their importers compare them.
        let of_file = graph.nodes.iter().all(|node| node.source.is_none());
        for info in graph.values.iter().chain(&graph.outputs) {
            if of_file && info.elem != 0 {
                self.declared_types.insert(info.name, Elem(info.elem));
            }
            let Some(shape) = info.shape.as_ref().filter(|_| !rebatched) else {
                continue;
            };
            let known = |extent: &Extent<'_>| match *extent {
                Extent::Known(n) => usize::try_from(n).ok().filter(|&n| n > 0),
                _ => None,
            };
            self.declared.insert(info.name, shape.iter().map(known).collect());
            let known = shape.iter().map(|extent| match *extent {
                Extent::Named(name) => named.get(name).copied(),
                ref extent => known(extent),
            });
            if let Some(shape) = known.collect::<Option<Vec<usize>>>() {
                self.stated.insert(info.name, shape);
            }
        }
    }

    /// Refuses a value of another type than the file states of it. int64 that is computed is int32, and half precision is f32.
    pub(super) fn has_declared_type(&self, name: &str, elem: Elem) -> Result<()> {
        let Some(&stated) = self.declared_types.get(name) else {
            return Ok(());
        };
        let whole = |elem: Elem| {
            let integers = [Elem::INT32, Elem::INT64, Elem::UINT32, Elem::UINT64];
            integers.contains(&elem)
        };
        let real = |elem: Elem| elem.is_float() && !self.floats.is_empty();
        if stated == elem || (whole(stated) && whole(elem)) || (real(stated) && real(elem)) {
            return Ok(());
        }
        Err(wrong_type(
            name,
            stated,
            format!("{}, which follows from its operands", elem.name()),
        ))
    }

    /// Refuses a value that has another shape than the file states of it. Extents that are only named, or left open, are those of the value. ONNX's own shape
    /// inference rounds some lengths otherwise than ONNX Runtime computes them: from such a node on nothing that the file states of shapes is believed.
    pub(super) fn as_declared(&mut self, view: Option<View<'_, 'a>>, name: &str, shape: &[usize]) -> Result<()> {
        let Some(declared) = self.declared.get(name) else {
            return Ok(());
        };
        // The shape stated of an If's result may be that of the other branch.
        if view.is_some_and(|view| view.node.op == "If") {
            return Ok(());
        }
        let agree = |(stated, found): (&Option<usize>, &usize)| stated.is_none_or(|stated| stated == *found);
        // A list of open extents states nothing, and a scalar is one element.
        let nothing = !declared.is_empty() && declared.iter().all(Option::is_none);
        let scalar = declared.is_empty() && shape.iter().product::<usize>() == 1;
        if nothing || scalar || (declared.len() == shape.len() && declared.iter().zip(shape).all(agree)) {
            return Ok(());
        }
        let near = |(stated, found): (&Option<usize>, &usize)| stated.is_none_or(|stated| stated.abs_diff(*found) <= 1);
        if declared.len() == shape.len()
            && declared.iter().zip(shape).all(near)
            && view.map_or(Ok(false), rounds_lengths)?
        {
            self.declared.clear();
            self.warn(format!(
                "the shape that the file states of `{name}` is a row or column off, as ONNX's shape inference rounds: the shapes that it states from there on \
                 are not compared"
            ));
            return Ok(());
        }
        let open = || "?".to_string();
        Err(wrong_shape(
            name,
            declared.iter().map(|n| n.map_or_else(open, |n| n.to_string())),
            format!("{shape:?}, which follows from its operands"),
        ))
    }
}

/// Whether the lengths of a node's result are rounded.
fn rounds_lengths(view: View<'_, '_>) -> Result<bool> {
    Ok(match view.node.op {
        "MaxPool" | "AveragePool" | "LpPool" => view.flag("ceil_mode", false)?,
        "Resize" | "Upsample" => true,
        _ => false,
    })
}
