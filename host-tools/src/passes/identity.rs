//! Drops nodes that compute nothing at inference, dropout first of all.

use super::rewrite::{producer, remove, replace};
use crate::error::Result;
use crate::graph::{Graph, NodeId, Op};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    let mut gone = Vec::new();
    for index in 0..graph.nodes.len() {
        let node = &graph.nodes[index];
        let (Op::Identity, [Some(input), ..], [output]) = (&node.op, &node.inputs[..], &node.outputs[..]) else {
            continue;
        };
        let (input, output) = (*input, *output);
        if graph.outputs.contains(&output) {
            // The network's output keeps its name: the producer writes it directly. An input that is an output needs the copy.
            let Some(before) = producer(graph, input) else { continue };
            for id in &mut graph.nodes[before.0].outputs {
                if *id == input {
                    *id = output;
                }
            }
            replace(graph, input, output);
        } else {
            replace(graph, output, input);
        }
        gone.push(NodeId(index));
    }
    remove(graph, &gone);
    Ok(())
}
