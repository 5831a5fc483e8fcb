//! Parts of a network that are of int16 inside an int8 one, where the answers come nearer: recurrent layers, normalisations of lines, and sums that these
//! normalise.

use std::collections::BTreeMap;

use super::activations::Activations;
use super::context::Context;
use super::form::{concerns, form};
use super::groups::Groups;
use super::range::Method;
use super::ranges::Ranges;
use super::statistics::Parts;
use super::{norms, recurrent};
use crate::error::Result;
use crate::graph::{Activation, BinaryOp, Graph, Op, Quant, TensorId, UnaryKind};

/// The share that noise must fall to for them to be taken: they take twice the bytes and more instructions.
pub(super) const ENOUGH: f64 = 0.8;

/// Nodes that compute with int16 activations in an int8 network.
pub(super) struct Wide {
    /// The network, in which their squares are products: a table of 513 values has no exact ones.
    pub(super) graph: Graph,
    /// Of each node, whether it is one.
    pub(super) nodes: Vec<bool>,
    /// The scales of their activations.
    pub(super) quant: BTreeMap<TensorId, Quant>,
}

/// Layers of a network that may be int16: recurrent ones; normalisations, and these with the sums that they normalise, which are what residual connections
/// add up. Empty where it has none of them, or where its activations are no int8.
///
/// # Errors
/// Ranges that no scale holds.
pub(super) fn of(graph: &Graph, context: &Context<'_>, parts: &Parts) -> Result<Vec<Wide>> {
    if context.activations != Activations::Int8 {
        return Ok(Vec::new());
    }
    let (producers, consumers) = (graph.producers(), graph.consumers());
    let has_form = |&index: &usize| {
        let node = &graph.nodes[index];
        !context.kept[index] && concerns(graph, node) && form(graph, node, Activations::Int16).is_ok()
    };
    let mut steps = recurrent::nodes(graph, &producers, &consumers);
    for (index, own) in steps.iter_mut().enumerate() {
        *own &= has_form(&index);
    }
    let mut nodes = steps.clone();
    for found in norms::all(graph, &producers, &consumers) {
        if found.iter().all(has_form) {
            found.into_iter().for_each(|index| nodes[index] = true);
        }
    }
    let read = |id: TensorId| consumers[id.0].iter().any(|reader| nodes[reader.0] && !steps[reader.0]);
    let mut with_sums = nodes.clone();
    for (index, node) in graph.nodes.iter().enumerate() {
        let sum = matches!(
            node.op,
            Op::Binary {
                kind: BinaryOp::Add,
                activation: Activation::None
            }
        );
        with_sums[index] |= sum && has_form(&index) && node.outputs.iter().any(|&id| read(id));
    }
    let mut all: Vec<Wide> = Vec::new();
    for nodes in [steps, nodes, with_sums] {
        if nodes.contains(&true) && all.iter().all(|before| before.nodes != nodes) {
            all.push(made(graph, context, parts, nodes)?);
        }
    }
    Ok(all)
}

/// A network whose nodes are of int16 where `nodes` says so.
fn made(graph: &Graph, context: &Context<'_>, parts: &Parts, nodes: Vec<bool>) -> Result<Wide> {
    let kept: Vec<bool> = nodes.iter().map(|own| !own).collect();
    let own = Context {
        kept: &kept,
        activations: Activations::Int16,
        ..*context
    };
    let mut wide = graph.clone();
    for (node, _) in wide.nodes.iter_mut().zip(&nodes).filter(|(_, own)| **own) {
        if matches!(node.op, Op::Unary(UnaryKind::SQUARE)) {
            node.op = Op::Binary {
                kind: BinaryOp::Mul,
                activation: Activation::None,
            };
            node.inputs = vec![node.inputs[0], node.inputs[0]];
        }
    }
    let groups = Groups::of(&wide, &kept, Activations::Int16);
    let ranges = Ranges::of(&wide, &own, &groups, parts, 1)?;
    let choice = vec![Method::first(Activations::Int16); ranges.candidates.len()];
    let quant = ranges.quant(&wide, &groups, &choice, None)?;
    Ok(Wide {
        graph: wide,
        nodes,
        quant,
    })
}
