//! Which layers stay in f32: those that `--keep-f32` names. A layer without a form on integers must be among them.

use super::activations::Activations;
use super::form::{concerns, form};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Graph, Node};
use crate::spelling::distance;

/// How many layers, or near names, a message lists.
const LISTED: usize = 5;

/// Of each node, whether it stays in f32. A name is a node's or that of the tensor it writes.
///
/// # Errors
/// [`ErrorKind::Usage`] for a name that is not there, with the nearest; [`ErrorKind::Unsupported`] for layers without a form.
pub(super) fn kept(graph: &Graph, names: &[String], activations: Activations) -> Result<Vec<bool>> {
    let concerned = |node: &Node| concerns(graph, node);
    let kept = named(graph, names, &concerned)?;
    let without = (0..kept.len())
        .filter(|&index| concerned(&graph.nodes[index]) && !kept[index])
        .filter_map(|index| {
            let node = &graph.nodes[index];
            form(graph, node, activations).err().map(|reason| (node, reason))
        });
    let without: Vec<_> = without.collect();
    let Some((first, _)) = without.first() else {
        return Ok(kept);
    };
    let listed = without.iter().take(LISTED);
    let layers: Vec<String> = listed
        .clone()
        .map(|(node, reason)| format!("`{}` ({}): {reason}", node.name, node.kind))
        .collect();
    let more = without.len().saturating_sub(LISTED);
    let options: Vec<String> = listed.map(|(node, _)| format!("--keep-f32 '{}'", node.name)).collect();
    let rest = match more {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Err(Error::unsupported(format!(
        "no {} form: {}{rest}",
        activations.dtype().name(),
        layers.join("; ")
    ))
    .at(&first.origin)
    .help(format!("{}{rest} leaves them in f32", options.join(" "))))
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
