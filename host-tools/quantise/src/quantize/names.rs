//! Which layers stay in f32: those that `--keep-f32` names, and with `--keep-f32 auto` those without a form on integers, which else must be among them.

use super::activations::Activations;
use super::form::{concerns, form};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Graph, Node, facts};
use crate::spelling::distance;

/// How many near names a message lists.
const LISTED: usize = 5;

/// Name that stands for all layers without a form on integers.
pub const AUTO: &str = "auto";

/// Which layers stay in f32.
#[derive(Debug)]
pub(super) struct Kept {
    /// Of each node, whether it does.
    pub nodes: Vec<bool>,
    /// Note on the layers that [`AUTO`] found.
    pub note: Option<String>,
}

/// Which layers stay in f32. A name is a node's or that of the tensor it writes; [`AUTO`] adds those without a form.
///
/// # Errors
/// [`ErrorKind::Usage`] for a name that is not there, with the nearest; [`ErrorKind::Unsupported`] for layers without a form, all of them.
pub(super) fn kept(graph: &Graph, names: &[String], activations: Activations) -> Result<Kept> {
    let concerned = |node: &Node| concerns(graph, node);
    let (auto, names): (Vec<_>, Vec<_>) = names.iter().cloned().partition(|name| name == AUTO);
    let mut nodes = named(graph, &names, &concerned)?;
    let without = (0..nodes.len())
        .filter(|&index| concerned(&graph.nodes[index]) && !nodes[index])
        .filter_map(|index| {
            let node = &graph.nodes[index];
            form(graph, node, activations).err().map(|reason| (index, reason))
        });
    let without: Vec<_> = without.collect();
    let layers: Vec<String> = without
        .iter()
        .map(|(index, reason)| {
            let node = &graph.nodes[*index];
            format!("{}: {reason}", facts::described(graph, node))
        })
        .collect();
    let form = format!("no {} form: {}", activations.dtype().name(), layers.join("; "));
    let Some(&(first, _)) = without.first() else {
        let note = (!auto.is_empty()).then(|| format!("--keep-f32 {AUTO}: every layer has a form on integers"));
        return Ok(Kept { nodes, note });
    };
    if auto.is_empty() {
        let options: Vec<String> = without
            .iter()
            .map(|(index, _)| format!("--keep-f32 '{}'", graph.nodes[*index].name))
            .collect();
        let help = format!("--keep-f32 {AUTO} leaves them in f32, as {} does", options.join(" "));
        return Err(Error::unsupported(form).at(&graph.nodes[first].origin).help(help));
    }
    without.iter().for_each(|&(index, _)| nodes[index] = true);
    let note = Some(format!("--keep-f32 {AUTO} leaves in f32 what has {form}"));
    Ok(Kept { nodes, note })
}

/// Of each node, whether it is one of these names, among those that `concerned` says. A name is a node's or that of the tensor it writes.
///
/// # Errors
/// [`ErrorKind::Usage`] for a name that is not there, with the nearest.
pub(super) fn named(graph: &Graph, names: &[String], concerned: &dyn Fn(&Node) -> bool) -> Result<Vec<bool>> {
    let called = |index: usize| -> Vec<&str> {
        let node = &graph.nodes[index];
        let outputs = node.outputs.iter().map(|&id| graph.tensor(id).name.as_str());
        std::iter::once(node.name.as_str()).chain(outputs).collect()
    };
    let concerned: Vec<bool> = graph.nodes.iter().map(concerned).collect();
    let mut kept = vec![false; graph.nodes.len()];
    for name in names {
        let found: Vec<usize> = (0..kept.len())
            .filter(|&index| concerned[index] && called(index).contains(&name.as_str()))
            .collect();
        if found.is_empty() {
            let all = (0..kept.len()).filter(|&index| concerned[index]).flat_map(called);
            return Err(unknown(name, all.collect()));
        }
        found.into_iter().for_each(|index| kept[index] = true);
    }
    Ok(kept)
}

fn unknown(name: &str, mut all: Vec<&str>) -> Error {
    all.sort_by_key(|other| distance(name, other));
    all.dedup();
    let near: Vec<String> = all.iter().take(LISTED).map(|other| format!("`{other}`")).collect();
    Error::new(ErrorKind::Usage, format!("--keep-f32 {name}: there is no such layer"))
        .expected(format!("a layer of the network; the nearest are {}", near.join(", ")))
        .help("layers are those of --dump-after fuse: folded ones are part of another")
}
