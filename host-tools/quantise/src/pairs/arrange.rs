//! Brings Quantize and Dequantize next to the operators that compute.

use std::collections::HashMap;

use arenite::DType;

use super::nodes::{drop_unread, ends, moves};
use crate::graph::{Graph, NodeId, Op, Tensor, TensorId, TensorKind};

/// Scale and zero point as they are compared.
type Stored = (DType, u32, i32);

/// Rewrites the graph; its results stay the same bits. Of equal conversions of one tensor one stays. A tensor that is only moved and quantised as it was is not
/// converted in between. A Quantize stands before operators that only change shapes and a Dequantize behind none, so that both touch what computes.
pub fn arrange(graph: &mut Graph) {
    join(graph);
    cancel(graph);
    drop_unread(graph);
    upwards(graph);
}

fn stored(tensor: &Tensor) -> Option<Stored> {
    let quant = tensor.quant.as_ref().filter(|quant| quant.axis.is_none())?;
    let real = tensor.dtype == DType::F32;
    (!real).then(|| (tensor.dtype, quant.scale[0].to_bits(), quant.zero_point[0]))
}

/// Gives every reader of a conversion that was made before the first one's result.
fn join(graph: &mut Graph) {
    let mut made: HashMap<(TensorId, Option<Stored>), TensorId> = HashMap::new();
    let mut instead: HashMap<TensorId, TensorId> = HashMap::new();
    for index in 0..graph.nodes.len() {
        for input in graph.nodes[index].inputs.iter_mut().flatten() {
            *input = instead.get(input).copied().unwrap_or(*input);
        }
        let converts = matches!(graph.nodes[index].op, Op::Quantize | Op::Dequantize);
        let Some((x, y)) = ends(graph, index).filter(|_| converts) else {
            continue;
        };
        let first = *made.entry((x, stored(graph.tensor(y)))).or_insert(y);
        if first != y {
            instead.insert(y, first);
        }
    }
}

/// A value that stands on the grid that it is quantised to stays as it is.
fn cancel(graph: &mut Graph) {
    // Of real tensors: the grid on which all of their values lie.
    let mut grids: HashMap<TensorId, Stored> = HashMap::new();
    // Of integers: the real tensor that they are.
    let mut origins: HashMap<TensorId, TensorId> = HashMap::new();
    let mut instead: HashMap<TensorId, TensorId> = HashMap::new();
    for index in 0..graph.nodes.len() {
        for input in graph.nodes[index].inputs.iter_mut().flatten() {
            *input = instead.get(input).copied().unwrap_or(*input);
        }
        let Some((x, y)) = ends(graph, index) else { continue };
        match &graph.nodes[index].op {
            Op::Dequantize => {
                if let Some(&origin) = origins.get(&x) {
                    instead.insert(y, origin);
                } else if let Some(grid) = stored(graph.tensor(x)) {
                    grids.insert(y, grid);
                }
            }
            Op::Quantize => {
                let own = stored(graph.tensor(y));
                if own.is_some() && grids.get(&x).copied() == own {
                    origins.insert(y, x);
                }
            }
            op if moves(op) || matches!(op, Op::MaxPool2d(attrs) if attrs.activation == Default::default()) => {
                if let Some(&grid) = grids.get(&x) {
                    grids.insert(y, grid);
                }
            }
            _ => {}
        }
    }
}

/// Moves conversions before the shape changes that feed nothing else.
fn upwards(graph: &mut Graph) {
    let mut writer = graph.producers();
    let mut readers = vec![0_usize; graph.tensors.len()];
    for id in graph.nodes.iter().flat_map(|node| node.inputs.iter().flatten()) {
        readers[id.0] += 1;
    }
    graph.outputs.iter().for_each(|id| readers[id.0] += 1);
    for from in 0..graph.nodes.len() {
        if !matches!(graph.nodes[from].op, Op::Quantize | Op::Dequantize) {
            continue;
        }
        let mut at = from;
        while let Some((x, y)) = ends(graph, at) {
            let before = writer[x.0].map(|node| node.0).filter(|_| readers[x.0] == 1);
            let shapes = |&at: &usize| matches!(graph.nodes[at].op, Op::Reshape | Op::Transpose { .. });
            let Some(before) = before.filter(shapes) else { break };
            let Some((origin, _)) = ends(graph, before) else { break };
            let (shaped, own) = (graph.tensor(origin).clone(), graph.tensor(y).clone());
            let converted = graph.add_tensor(Tensor {
                name: format!("{} (before {})", own.name, graph.nodes[before].name),
                kind: TensorKind::Activation,
                dtype: own.dtype,
                quant: own.quant,
                ..shaped
            });
            graph.nodes.swap(before, at);
            let ends = [(before, origin, converted), (at, converted, y)];
            writer.push(None);
            readers.push(1);
            for (node, from, to) in ends {
                graph.nodes[node].inputs = vec![Some(from)];
                graph.nodes[node].outputs = vec![to];
                writer[to.0] = Some(NodeId(node));
            }
            at = before;
        }
    }
}
