//! Normalisations of lines (LayerNorm, RMSNorm) in int16 inside an int8 network. A line's mean is taken away, squared, averaged and inverted: of bytes each of
//! these steps rounds to a part in 256 of its own range, and lines of little variance lose most. Of 16 bits what is left is the rounding of what goes in and
//! what comes out. Recurrent layers are as well.

use std::collections::BTreeMap;

use super::activations::Activations;
use super::context::Context;
use super::form::{concerns, form};
use super::groups::Groups;
use super::range::Method;
use super::ranges::Ranges;
use super::recurrent;
use super::statistics::Parts;
use crate::error::Result;
use crate::graph::{Activation, BinaryOp, Graph, NodeId, Op, Quant, ReduceKind, TensorId, UnaryKind};

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

/// What of a network may be int16: its recurrent layers; its normalisations, and these with the sums that they normalise, which are what residual connections
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
    for index in 0..graph.nodes.len() {
        let found = normalisation(graph, &producers, &consumers, index).unwrap_or_default();
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
    // Its steps are so fine that ranges may lie well outside of what the samples have.
    let choice = vec![Method::Wider; ranges.candidates.len()];
    let quant = ranges.quant(&wide, &groups, &choice, None)?;
    Ok(Wide {
        graph: wide,
        nodes,
        quant,
    })
}

/// The nodes of the normalisation whose reciprocal root stands at a place: the mean and what is left without it, their squares, the mean of these, what is
/// added to it, the root, and the product.
fn normalisation(
    graph: &Graph,
    producers: &[Option<NodeId>],
    consumers: &[Vec<NodeId>],
    root: usize,
) -> Option<Vec<usize>> {
    let written_by = |id: TensorId| producers[id.0].map(|node| node.0);
    let operand = |index: usize, at: usize| graph.nodes[index].inputs.get(at).copied().flatten();
    let is_mean = |index: usize| {
        let op = &graph.nodes[index].op;
        matches!(
            op,
            Op::Reduce {
                kind: ReduceKind::Mean,
                keep_dims: true,
                ..
            }
        )
    };
    let is = |index: usize, wanted: BinaryOp| matches!(&graph.nodes[index].op, Op::Binary { kind, activation: Activation::None } if *kind == wanted);
    if !matches!(graph.nodes[root].op, Op::Unary(UnaryKind::RSQRT)) {
        return None;
    }
    let mut found = vec![root];
    let mut mean = written_by(operand(root, 0)?)?;
    if is(mean, BinaryOp::Add) {
        found.push(mean);
        let operands = [0, 1].map(|at| operand(mean, at));
        let computed = operands.into_iter().flatten().find(|&id| !graph.tensor(id).is_const());
        mean = written_by(computed?)?;
    }
    let square = is_mean(mean).then(|| written_by(operand(mean, 0)?)).flatten()?;
    let by_itself = is(square, BinaryOp::Mul) && operand(square, 0) == operand(square, 1);
    if !by_itself && !matches!(graph.nodes[square].op, Op::Unary(UnaryKind::SQUARE)) {
        return None;
    }
    found.extend([mean, square]);
    let line = operand(square, 0)?;
    if let Some(less) = written_by(line).filter(|&index| is(index, BinaryOp::Sub)) {
        let mean = operand(less, 1).and_then(written_by);
        if let Some(mean) = mean.filter(|&mean| is_mean(mean) && operand(mean, 0) == operand(less, 0)) {
            found.extend([less, mean]);
        }
    }
    let inverse = graph.nodes[root].outputs[0];
    let products = consumers[inverse.0]
        .iter()
        .map(|reader| reader.0)
        .filter(|&index| is(index, BinaryOp::Mul) && [operand(index, 0), operand(index, 1)].contains(&Some(line)));
    found.extend(products);
    Some(found)
}
