//! A number that a tensor is multiplied with, or divided by, goes through what is linear into the layer that the tensor comes from: through transposes,
//! reshapes, products of computed matrices, and a part of the layer's channels. Attention scales its queries so, exporters its keys as well.

use std::sync::Arc;

use super::constants::{known, reshape};
use super::layer_constants::{Layer, Step};
use super::rewrite::Rewriter;
use crate::graph::{Activation, DType, Expr, Graph, Node, NodeId, Op, TensorId};

/// Most operators that it goes through.
const MOST: usize = 16;

/// Behind the names of tensors that it goes through.
const SCALED: &str = " (scaled)";

/// Where a tensor comes from.
struct Source {
    layer: NodeId,
    /// The part of the layer's channels, where that is not all.
    part: Option<[usize; 2]>,
    /// The tensors from the layer's result to the one that is multiplied.
    through: Vec<TensorId>,
}

/// `id` becomes an identity.
pub(super) fn fold(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let node = net.graph.nodes[id.0].clone();
    let Some(step) = Step::of(net.graph, &node) else {
        return false;
    };
    let one = step.constant.shape().iter().product::<usize>() == 1;
    if !one || !step.scales() || step.activation != Activation::None {
        return false;
    }
    let Some(Source {
        layer: before,
        part,
        through,
    }) = source(net, step.x, id)
    else {
        return false;
    };
    let first = net.graph.nodes[before.0].clone();
    let Some(layer) = Layer::of(net, &first).filter(|_| is_plain(net.graph, &first)) else {
        return false;
    };
    let number = reshape(&step.constant, vec![1]);
    let numbers = match part {
        None => number,
        Some([begin, end]) => {
            let Some(numbers) = within(layer.channels, [begin, end], number) else {
                return false;
            };
            numbers
        }
    };
    let scaled = layer.scaled(net.graph, &first, step.op, &numbers);
    net.set(before, scaled);
    for id in through {
        // It is no tensor of the trace any more.
        let name = &mut net.graph.tensor_mut(id).name;
        if !name.ends_with(SCALED) {
            name.push_str(SCALED);
        }
    }
    let identity = Node {
        op: Op::Identity,
        inputs: vec![Some(step.x)],
        ..node
    };
    net.set(id, identity);
    true
}

/// The number for the channels from `begin` up to `end`, 1 for the others.
fn within(channels: usize, [begin, end]: [usize; 2], number: Arc<Expr>) -> Option<Arc<Expr>> {
    let value = *known(&number)?.first()?;
    let values = (0..channels).map(|channel| if (begin..end).contains(&channel) { value } else { 1.0 });
    Some(Arc::new(Expr::Literal {
        values: values.collect(),
        shape: vec![channels],
    }))
}

fn is_plain(graph: &Graph, node: &Node) -> bool {
    let activation = match &node.op {
        Op::Conv2d(attrs) => attrs.activation,
        Op::Linear { activation } => *activation,
        _ => return false,
    };
    activation == Activation::None && graph.tensor(node.outputs[0]).dtype == DType::F32
}

/// The layer that `x` comes from, which `reader` reads.
fn source(net: &Rewriter<'_>, x: TensorId, reader: NodeId) -> Option<Source> {
    let (mut x, mut reader, mut through) = (x, reader, vec![x]);
    for _ in 0..MOST {
        let before = net.feeder(x, reader)?;
        let node = &net.graph.nodes[before.0];
        let first = node.inputs.first().copied().flatten()?;
        match &node.op {
            Op::Reshape | Op::Transpose { .. } => (),
            Op::Linear {
                activation: Activation::None,
            } if node.inputs.len() == 2 && !net.graph.tensor(node.inputs[1]?).is_const() => (),
            Op::MatMul { .. } => (),
            Op::Slice { .. } => {
                let layer = net.producer(first)?;
                through.push(first);
                return Some(Source {
                    layer,
                    part: Some(own_channels(net, before, layer)?),
                    through,
                });
            }
            _ => {
                return Some(Source {
                    layer: before,
                    part: None,
                    through,
                });
            }
        }
        (x, reader) = (first, before);
        through.push(x);
    }
    None
}

/// The channels that the slice `id` takes of the layer's result, where nobody else reads them.
fn own_channels(net: &Rewriter<'_>, id: NodeId, layer: NodeId) -> Option<[usize; 2]> {
    let graph = &*net.graph;
    let y = *graph.nodes[layer.0].outputs.first()?;
    let rank = graph.tensor(y).shape.len();
    let axis = match &graph.nodes[layer.0].op {
        Op::Linear { .. } => rank - 1,
        _ => return None,
    };
    let taken = |node: &Node| match &node.op {
        Op::Slice { begin, stride } if stride[axis] == 1 => {
            let extent = graph.tensor(*node.outputs.first()?).shape[axis];
            Some([begin[axis], begin[axis] + extent])
        }
        _ => None,
    };
    let [begin, end] = taken(&graph.nodes[id.0])?;
    let mut readers = 0;
    for (index, node) in graph.nodes.iter().enumerate() {
        // A node that has been merged away writes nothing any more.
        let there = node
            .outputs
            .iter()
            .all(|&output| net.producer(output) == Some(NodeId(index)));
        if !there || !node.inputs.contains(&Some(y)) {
            continue;
        }
        readers += 1;
        let [from, to] = taken(node)?;
        if index != id.0 && from < end && begin < to {
            return None;
        }
    }
    (readers == net.reads(y) && !graph.outputs.contains(&y)).then_some([begin, end])
}
