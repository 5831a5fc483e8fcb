//! Max-live: the largest sum of activation bytes alive while one operator runs. No plan of separate buffers is smaller.

use super::{Graph, Op, Role, TensorId, TensorKind};

/// Max-live in bytes of the forward graph in its order: a network input lives until its last reader, a network output to the
/// end; aliases ([`Op::Reshape`], [`Op::Identity`]) count once.
pub fn max_live(graph: &Graph) -> usize {
    let mut root: Vec<usize> = (0..graph.tensors.len()).collect();
    for node in graph
        .nodes
        .iter()
        .filter(|n| matches!(n.op, Op::Reshape | Op::Identity))
    {
        if let ([Some(input), ..], [output]) = (node.inputs.as_slice(), node.outputs.as_slice()) {
            root[output.0] = root[input.0];
        }
    }
    let lives = |id: TensorId| matches!(graph.tensor(id).kind, TensorKind::Activation | TensorKind::Input);
    let mut span: Vec<Option<(usize, usize)>> = vec![None; graph.tensors.len()];
    let mut touch = |id: TensorId, step: usize| {
        if lives(id) {
            let (_, last) = span[root[id.0]].get_or_insert((step, step));
            *last = step.max(*last);
        }
    };
    for &input in &graph.inputs {
        touch(input, 0);
    }
    let forward: Vec<_> = graph.nodes.iter().filter(|n| n.role == Role::Forward).collect();
    for (step, node) in forward.iter().enumerate() {
        for &id in node.inputs.iter().flatten().chain(&node.outputs) {
            touch(id, step);
        }
    }
    for &output in &graph.outputs {
        touch(output, forward.len().saturating_sub(1));
    }
    // A network without operators has inputs and outputs alive at once.
    let mut change = vec![0i64; forward.len().max(1) + 1];
    for (index, span) in span.iter().enumerate() {
        if let Some((first, last)) = *span {
            let bytes = graph.tensors[index].bytes() as i64;
            change[first] += bytes;
            change[last + 1] -= bytes;
        }
    }
    let mut live = 0;
    let running = change.iter().map(|delta| {
        live += delta;
        live
    });
    running.max().unwrap_or(0) as usize
}
