//! `--from` and `--until`: the part of a file between tensors, cut before its nodes are translated, so that what lies outside may be anything.

use std::collections::HashMap;

use super::branches::live_nodes;
use super::elem::Elem;
use super::proto::{Extent, Graph, Model, ValueInfo};
use crate::borders::{not_computed, not_needed, unknown};
use crate::error::Result;
use crate::imported::ImportOptions;

/// Type of a tensor that the network begins with.
pub(super) struct Beginning {
    pub(super) shape: Vec<usize>,
    pub(super) elem: Elem,
}

/// Ends the network with the tensors of `--until`.
pub(super) fn end(model: &mut Model<'_>, until: &[String]) -> Result<()> {
    if until.is_empty() {
        return Ok(());
    }
    let graph = &mut model.graph;
    let mut ends = Vec::new();
    for name in until {
        let (node, position) = computed(graph, "--until", name)?;
        ends.push(stated(graph, graph.nodes[node].outputs[position]));
    }
    graph.outputs = ends;
    keep_needed_inputs(graph, &[]);
    Ok(())
}

/// The tensors of `--from` of which the file states no type or shape.
pub(super) fn unstated<'o>(model: &Model<'_>, options: &'o ImportOptions) -> Result<Vec<&'o String>> {
    let mut found = Vec::new();
    for name in &options.from {
        let (node, position) = computed(&model.graph, "--from", name)?;
        let info = stated(&model.graph, model.graph.nodes[node].outputs[position]);
        let known = |extent: &Extent<'_>| matches!(extent, Extent::Known(n) if *n > 0);
        if info.elem == 0 || !info.shape.is_some_and(|shape| shape.iter().all(known)) {
            found.push(name);
        }
    }
    Ok(found)
}

/// Begins the network with the tensors of `--from`; `computed` are those that the file does not state.
pub(super) fn begin(model: &mut Model<'_>, from: &[String], beginnings: &HashMap<&str, Beginning>) -> Result<()> {
    if from.is_empty() {
        return Ok(());
    }
    let graph = &mut model.graph;
    let mut inputs = Vec::new();
    for name in from {
        let (node, position) = computed(graph, "--from", name)?;
        let mut info = stated(graph, graph.nodes[node].outputs[position]);
        if let Some(beginning) = beginnings.get(name.as_str()) {
            let extents = beginning.shape.iter().map(|&n| Extent::Known(n as i64));
            (info.elem, info.shape) = (beginning.elem.0, Some(extents.collect()));
        }
        graph.nodes[node].outputs[position] = "";
        inputs.push(info);
    }
    let names: Vec<&str> = inputs.iter().map(|info| info.name).collect();
    graph.inputs.splice(0..0, inputs);
    keep_needed_inputs(graph, &names);
    let (_, wanted) = live_nodes(graph);
    match from.iter().find(|name| !wanted.contains(name.as_str())) {
        Some(name) => Err(not_needed(name)),
        None => Ok(()),
    }
}

/// The node that computes the tensor of this name, and which of its results it is.
fn computed(graph: &Graph<'_>, option: &str, name: &str) -> Result<(usize, usize)> {
    for (index, node) in graph.nodes.iter().enumerate() {
        if let Some(position) = node.outputs.iter().position(|output| *output == name) {
            return Ok((index, position));
        }
    }
    if graph.initializers.iter().any(|tensor| tensor.name == name) {
        return Err(not_computed(option, name, "a constant"));
    }
    if graph.inputs.iter().any(|input| input.name == name) {
        return Err(not_computed(option, name, "an input"));
    }
    let names = graph.nodes.iter().flat_map(|node| node.outputs.iter().copied());
    Err(unknown(option, name, "tensor", names))
}

/// Returns the type that the file states of a tensor between nodes.
fn stated<'a>(graph: &Graph<'a>, name: &'a str) -> ValueInfo<'a> {
    let found = graph.outputs.iter().chain(&graph.values).find(|info| info.name == name);
    ValueInfo {
        name,
        elem: found.map_or(0, |info| info.elem),
        shape: found.and_then(|info| info.shape.clone()),
    }
}

/// Drops the inputs that no output depends on, but for those of `kept`.
fn keep_needed_inputs(graph: &mut Graph<'_>, kept: &[&str]) {
    let (_, wanted) = live_nodes(graph);
    let wanted: Vec<bool> = graph
        .inputs
        .iter()
        .map(|input| wanted.contains(input.name) || kept.contains(&input.name))
        .collect();
    let mut wanted = wanted.into_iter();
    graph.inputs.retain(|_| wanted.next().unwrap_or(false));
}
