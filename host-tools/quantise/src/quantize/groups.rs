//! Which activations have one scale together: those that an operator passes on as stored numbers. A result that a function fixes, such as the result of a
//! softmax, joins nobody; where it meets others it is rescaled.

use std::collections::BTreeMap;

use super::activations::Activations;
use super::form::{Form, activations, concerns, form};
use crate::graph::{Graph, Quant, TensorId};

/// The activations by the scale that they have.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    /// The members of each group, ascending; groups in the order of their first members.
    pub(super) members: Vec<Vec<TensorId>>,
    /// Those whose quantisation an operator fixes.
    pub(super) fixed: BTreeMap<TensorId, Quant>,
}

impl Groups {
    /// Groups the activations of the nodes that `kept` leaves to integers.
    pub(super) fn of(graph: &Graph, kept: &[bool], kind: Activations) -> Self {
        let mut root: Vec<usize> = (0..graph.tensors.len()).collect();
        let mut fixed = BTreeMap::new();
        let mut quantised = vec![false; graph.tensors.len()];
        for id in graph.inputs.iter().chain(&graph.outputs) {
            quantised[id.0] = super::form::is_real(graph, *id);
        }
        for (node, kept) in graph.nodes.iter().zip(kept) {
            if *kept || !concerns(graph, node) {
                continue;
            }
            let all: Vec<TensorId> = activations(graph, node).collect();
            all.iter().for_each(|id| quantised[id.0] = true);
            match form(graph, node, kind) {
                Ok(Form::Fixed(scale, zero_point)) => {
                    let results = node.outputs.iter();
                    results.for_each(|&id| drop(fixed.insert(id, Quant::per_tensor(scale, zero_point))));
                }
                Ok(Form::Shared) => {
                    let mut free = all.iter().filter(|id| !fixed.contains_key(id));
                    // A result of fixed operands that are all of one quantisation has that, too.
                    let operands: Vec<TensorId> = activations_in(graph, node);
                    let first = operands.first().and_then(|id| fixed.get(id)).cloned();
                    let constants = node.inputs.iter().flatten().any(|&id| graph.tensor(id).is_const());
                    match first {
                        Some(quant) if !constants && operands.iter().all(|id| fixed.get(id) == Some(&quant)) => {
                            let results = node.outputs.iter();
                            results.for_each(|&id| drop(fixed.insert(id, quant.clone())));
                        }
                        _ => {
                            if let Some(first) = free.next() {
                                free.for_each(|other| join(&mut root, first.0, other.0));
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        let mut members: BTreeMap<usize, Vec<TensorId>> = BTreeMap::new();
        for id in (0..quantised.len()).filter(|&id| quantised[id] && !fixed.contains_key(&TensorId(id))) {
            members.entry(find(&mut root, id)).or_default().push(TensorId(id));
        }
        Self {
            members: members.into_values().collect(),
            fixed,
        }
    }
}

fn activations_in(graph: &Graph, node: &crate::graph::Node) -> Vec<TensorId> {
    let operands = node.inputs.iter().flatten().copied();
    operands.filter(|&id| super::form::is_real(graph, id)).collect()
}

fn find(root: &mut [usize], mut id: usize) -> usize {
    while root[id] != id {
        root[id] = root[root[id]];
        id = root[id];
    }
    id
}

fn join(root: &mut [usize], a: usize, b: usize) {
    let (a, b) = (find(root, a), find(root, b));
    root[a.max(b)] = a.min(b);
}
