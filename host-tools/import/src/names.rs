//! Names of a file that hold control characters: in the graph they are escaped, so that reports, dumps and messages have each name in one line.

use std::collections::BTreeMap;

use super::error::one_line;
use super::imported::Imported;

/// Escapes the names of an import; whether there was something to escape.
pub(super) fn shown(imported: &mut Imported) -> bool {
    let mut changed = false;
    let mut escape = |name: &mut String| {
        if name.contains(char::is_control) {
            *name = one_line(name).into_owned();
            changed = true;
        }
    };
    let graph = &mut imported.graph;
    escape(&mut graph.name);
    graph.tensors.iter_mut().for_each(|tensor| escape(&mut tensor.name));
    for node in &mut graph.nodes {
        [&mut node.name, &mut node.kind, &mut node.origin.path]
            .into_iter()
            .for_each(&mut escape);
    }
    for assumption in &mut imported.assumptions {
        escape(&mut assumption.applies_to);
    }
    if let Some(samples) = &mut imported.samples {
        let values = samples.runs.iter_mut();
        values
            .flat_map(|run| run.inputs.iter_mut().chain(&mut run.outputs))
            .for_each(|(name, _)| escape(name));
    }
    // Maps by these names.
    if changed {
        keys(&mut graph.stated.params);
        keys(&mut graph.stated.macs);
        keys(&mut graph.pruned);
        keys(&mut imported.constants);
        keys(&mut imported.keys);
    }
    changed
}

fn keys<T>(map: &mut BTreeMap<String, T>) {
    let renamed = std::mem::take(map).into_iter();
    *map = renamed
        .map(|(name, value)| (one_line(&name).into_owned(), value))
        .collect();
}
