//! Which channels of an operator's operands and result stand and fall together.

use arenite::DType;

use crate::graph::{Graph, Layout, Node, Op, TensorId, TensorKind};

/// A channel: an index along the innermost axis of a tensor.
pub(super) type Channel = (TensorId, usize);

/// The channels of an operator that computes each channel of its result by itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    /// A channel of an operand, and the channel of the result that it goes into.
    pub(super) pairs: Vec<(Channel, Channel)>,
    /// Channels of operands that go into all of them.
    pub(super) shared: Vec<Channel>,
}

/// Channels of a tensor that the analysis follows: int8 activations and constants.
pub(super) fn channels(graph: &Graph, id: TensorId) -> Option<usize> {
    let tensor = graph.tensor(id);
    let followed = match &tensor.kind {
        TensorKind::Input | TensorKind::Activation => true,
        TensorKind::Const(data) => matches!(data, crate::graph::Data::Bytes(_)),
        TensorKind::State(_) => false,
    };
    let channels = *tensor.shape.last()?;
    (followed && tensor.dtype == DType::I8 && tensor.elements() > 0).then_some(channels)
}

/// The flow through `node`; `None` where its channels mix, or where nobody knows.
pub(super) fn flow(graph: &Graph, node: &Node) -> Option<Flow> {
    let &[y] = &node.outputs[..] else { return None };
    let to = channels(graph, y)?;
    let x = node.inputs.first().copied().flatten()?;
    let from = channels(graph, x)?;
    let rank = graph.tensor(x).shape.len();
    let same_rank = rank == graph.tensor(y).shape.len();
    let last = rank.checked_sub(1)?;
    let each = |pairs: &mut dyn Iterator<Item = (usize, usize)>| {
        Some(Flow {
            pairs: pairs.map(|(i, o)| ((x, i), (y, o))).collect(),
            shared: Vec::new(),
        })
    };
    let alone = |equal: bool| {
        if equal && from == to {
            each(&mut (0..to).map(|c| (c, c)))
        } else {
            None
        }
    };
    match &node.op {
        Op::Identity | Op::Unary(_) | Op::Lookup { .. } | Op::Quantize | Op::Cast => alone(true),
        Op::MaxPool2d(attrs) | Op::AvgPool2d(attrs) => alone(attrs.layout == Layout::Nhwc),
        Op::ResizeNearest { .. } | Op::ResizeBilinear { .. } => alone(same_rank),
        Op::Transpose { perm } => alone(perm.last() == Some(&last)),
        Op::Reduce { axes, .. } => alone(!axes.contains(&last)),
        Op::Binary { .. } => binary(graph, node, y, to),
        Op::Concat { axis, .. } => concat(graph, node, y, *axis == last),
        Op::Pad { pads, .. } => {
            let &(before, behind) = pads.get(last)?;
            (from + before + behind == to).then_some(())?;
            each(&mut (0..from).map(|c| (c, c + before)))
        }
        Op::Slice { begin, stride } => {
            let (begin, stride) = (*begin.get(last)?, *stride.get(last)?);
            (same_rank && stride == 1 && begin + to <= from).then_some(())?;
            each(&mut (0..to).map(|c| (c + begin, c)))
        }
        // Elements keep their order: where one number of channels divides the other, each belongs to one channel on both sides.
        Op::Reshape if from.is_multiple_of(to) || to.is_multiple_of(from) => {
            each(&mut (0..from.max(to)).map(|c| (c % from, c % to)))
        }
        _ => None,
    }
}

/// Two operands, one of them perhaps the same for all channels.
fn binary(graph: &Graph, node: &Node, y: TensorId, to: usize) -> Option<Flow> {
    let mut flow = Flow::default();
    for &operand in node.inputs.iter().flatten() {
        match channels(graph, operand)? {
            from if from == to => flow.pairs.extend((0..to).map(|c| ((operand, c), (y, c)))),
            1 => flow.shared.push((operand, 0)),
            _ => return None,
        }
    }
    Some(flow)
}

/// Operands one behind the other, along the channels or along another axis.
fn concat(graph: &Graph, node: &Node, y: TensorId, along: bool) -> Option<Flow> {
    let mut flow = Flow::default();
    let mut at = 0;
    for &operand in node.inputs.iter().flatten() {
        let from = channels(graph, operand)?;
        flow.pairs.extend((0..from).map(|c| ((operand, c), (y, at + c))));
        at += if along { from } else { 0 };
    }
    Some(flow)
}
