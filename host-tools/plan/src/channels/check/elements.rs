//! Operators that compute channels one by one: where each element comes from, and what it can be.

use arenite::DType;
use arenite::ops::elementwise_int::{BinaryInt, IntOp};

use super::definition::{scaled, word};
use crate::graph::{Graph, Layout, Node, Op, ReduceKind, TensorId};
use crate::lower::numbers::{clamp_int, per_tensor};
use crate::lower::{convert, elementwise_int, reduce};

/// For each channel of a result, the channels that its elements come from.
pub(super) struct Sources {
    channels: Vec<Vec<(TensorId, usize)>>,
    /// Channels with elements that come from nowhere.
    filled: Vec<bool>,
}

impl Sources {
    /// Of a channel.
    pub(super) fn of(&self, channel: usize) -> &[(TensorId, usize)] {
        self.channels.get(channel).map_or(&[], Vec::as_slice)
    }
}

/// Where the elements of the result come from; `None` where channels mix.
pub(super) fn sources(graph: &Graph, node: &Node) -> Option<Sources> {
    let &[y] = &node.outputs[..] else { return None };
    let shape = &graph.tensor(y).shape;
    let &channels = shape.last()?;
    let operands: Vec<TensorId> = node.inputs.iter().flatten().copied().collect();
    let int8 = |id: &TensorId| graph.tensor(*id).dtype == DType::I8 && !graph.tensor(*id).shape.is_empty();
    if !operands.iter().chain([&y]).all(int8) {
        return None;
    }
    let mut found = Sources {
        channels: vec![Vec::new(); channels],
        filled: vec![false; channels],
    };
    for (flat, place) in places(graph, node, operands.first()?, shape) {
        let channel = flat % channels;
        let from = from(graph, node, &operands, &place, flat)?;
        found.filled[channel] |= from.is_empty();
        for source in from {
            let known = &mut found.channels[channel];
            if !known.contains(&source) {
                known.push(source);
            }
        }
    }
    Some(found)
}

/// Elements of the result, by index and place, among which are all kinds: operators treat places alike but where operands meet, and where padding begins.
fn places(graph: &Graph, node: &Node, x: &TensorId, shape: &[usize]) -> Vec<(usize, Vec<usize>)> {
    let channels = shape.last().copied().unwrap_or(1);
    if node.op == Op::Reshape {
        // Then the channels of both sides begin together again.
        let period = channels * graph.tensor(*x).shape.last().copied().unwrap_or(1);
        let all: usize = shape.iter().product();
        return (0..period.min(all)).map(|flat| (flat, vec![flat % channels])).collect();
    }
    let mut found = vec![(0, Vec::new())];
    for (axis, &extent) in shape.iter().enumerate() {
        let mut along: Vec<usize> = match &node.op {
            _ if axis + 1 == shape.len() => (0..extent).collect(),
            Op::Concat { axis: of, .. } if *of == axis => (0..extent).collect(),
            Op::Pad { pads, .. } => vec![0, pads[axis].0.min(extent - 1), extent - 1],
            _ => vec![0],
        };
        along.dedup();
        let with = |(flat, place): &(usize, Vec<usize>), at: usize| {
            let place = place.iter().copied().chain([at]).collect();
            (flat * extent + at, place)
        };
        found = found
            .iter()
            .flat_map(|before| along.iter().map(|&at| with(before, at)))
            .collect();
    }
    found
}

/// The channels that one element comes from; none where it is filled in.
fn from(
    graph: &Graph,
    node: &Node,
    operands: &[TensorId],
    place: &[usize],
    flat: usize,
) -> Option<Vec<(TensorId, usize)>> {
    let &x = operands.first()?;
    let shape = &graph.tensor(x).shape;
    let last = shape.len() - 1;
    let &channel = place.last()?;
    let own = |holds: bool| {
        let equal = graph.tensor(node.outputs[0]).shape.last() == Some(&shape[last]);
        (holds && equal).then(|| vec![(x, channel)])
    };
    match &node.op {
        Op::Identity | Op::Unary(_) | Op::Lookup { .. } | Op::Quantize | Op::Cast => own(true),
        Op::ResizeNearest { .. } | Op::ResizeBilinear { .. } => own(true),
        Op::MaxPool2d(attrs) | Op::AvgPool2d(attrs) => own(attrs.layout == Layout::Nhwc),
        Op::Reduce { axes, .. } => own(axes.iter().all(|&axis| axis != last)),
        Op::Transpose { perm } => {
            let axis = perm.iter().position(|&from| from == last)?;
            (axis == last).then(|| vec![(x, place[axis])])
        }
        Op::Reshape => Some(vec![(x, flat % shape[last])]),
        Op::Binary { .. } => {
            let of = |&id: &TensorId| match graph.tensor(id).shape.last() {
                Some(1) => (id, 0),
                _ => (id, channel),
            };
            Some(operands.iter().map(of).collect())
        }
        Op::Concat { axis, .. } => {
            let mut at = place[*axis];
            let held = operands.iter().find_map(|&id| {
                let extent = graph.tensor(id).shape[*axis];
                let inside = (at < extent).then_some((id, at));
                at = at.wrapping_sub(extent);
                inside
            })?;
            Some(vec![(held.0, if *axis == last { held.1 } else { channel })])
        }
        Op::Pad { pads, .. } => {
            let axes = place.iter().zip(pads).zip(shape);
            let inside = axes
                .clone()
                .all(|((at, (before, _)), extent)| at >= before && at - before < *extent);
            Some(if inside {
                vec![(x, channel - pads[last].0)]
            } else {
                Vec::new()
            })
        }
        Op::Slice { begin, stride } => {
            (place.len() == shape.len()).then_some(())?;
            let at = begin[last] as isize + place[last] as isize * stride[last];
            Some(vec![(x, usize::try_from(at).ok()?)])
        }
        _ => None,
    }
}

/// Returns the values that each channel of the result can hold; `None` where nothing is known.
pub(super) fn derived(graph: &Graph, node: &Node, claims: &[Vec<(i32, i32)>]) -> Option<Vec<(i32, i32)>> {
    let found = sources(graph, node)?;
    let y = node.outputs[0];
    let tensors: Vec<_> = node.inputs.iter().flatten().map(|&id| graph.tensor(id)).collect();
    let (tx, ty) = (*tensors.first()?, graph.tensor(y));
    let claim = |&(id, c): &(TensorId, usize)| claims[id.0].get(c).copied().unwrap_or((-128, 127));
    let hull = |values: &mut dyn Iterator<Item = i32>| {
        values.fold(None, |found: Option<(i32, i32)>, value| {
            Some(found.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        })
    };
    let table = match &node.op {
        Op::Unary(kind) => Some(elementwise_int::table(*kind, per_tensor(tx).ok()?, per_tensor(ty).ok()?).ok()?),
        Op::Lookup { table, .. } => Some(**table),
        Op::Quantize => {
            let affine = (per_tensor(tx).ok()?, per_tensor(ty).ok()?);
            Some(convert::requantisation([tx.dtype, ty.dtype], affine.0, affine.1).ok()?)
        }
        _ => None,
    };
    let binary = match (&node.op, &tensors[..]) {
        (Op::Binary { kind, activation }, &[ta, tb]) => {
            Some(elementwise_int::arithmetic(&node.kind, *kind, *activation, [ta, tb, ty]).ok()?)
        }
        _ => None,
    };
    let of_channel = |channel: usize| {
        let held: Vec<(i32, i32)> = found.of(channel).iter().map(claim).collect();
        // One source alone is both operands.
        if let (Some(op), Some(&a), Some(&b)) = (&binary, held.first(), held.last()) {
            let pairs = (a.0..=a.1).flat_map(|x| (b.0..=b.1).map(move |y| (x, y)));
            let results: Option<Vec<i32>> = pairs.map(|(x, y)| result(op, x, y)).collect();
            return hull(&mut results?.into_iter());
        }
        let mut ends = held.iter().flat_map(|&(low, high)| [low, high]).collect::<Vec<_>>();
        if let (Op::Pad { value, .. }, true) = (&node.op, found.filled[channel]) {
            ends.push(*value as i8 as i32);
        }
        let (low, high) = hull(&mut ends.into_iter())?;
        if let Some(table) = &table {
            return hull(&mut (low..=high).map(|q| i32::from(table[usize::from(q as i8 as u8)] as i8)));
        }
        match &node.op {
            Op::MaxPool2d(attrs) | Op::AvgPool2d(attrs) => {
                let [least, most] = clamp_int(attrs.activation, per_tensor(ty).ok()?, DType::I8).ok()?;
                Some((low.clamp(least, most), high.clamp(least, most)))
            }
            Op::Reduce { kind, axes, .. } => {
                let count: usize = axes.iter().map(|&axis| tx.shape[axis]).product();
                let mean = match kind {
                    ReduceKind::Max | ReduceKind::Min => return Some((low, high)),
                    kind => *kind == ReduceKind::Mean,
                };
                let (qx, qy) = (per_tensor(tx).ok()?, per_tensor(ty).ok()?);
                let multiplier = reduce::multiplier(mean, count as i64, qx, qy).ok()?;
                let stored = |q: i32| {
                    let sum = word(count as i128 * i128::from(q - qx.1))?;
                    Some((scaled(sum, multiplier)? + i128::from(qy.1)).clamp(-128, 127) as i32)
                };
                hull(&mut [stored(low)?, stored(high)?].into_iter())
            }
            _ => Some((low, high)),
        }
    };
    let channels = 0..claims[y.0].len();
    Some(
        channels
            .map(|channel| of_channel(channel).unwrap_or((-128, 127)))
            .collect(),
    )
}

/// The stored result of two stored values, as `core/src/ops/elementwise_int.rs` says; `None` where 32 bits do not hold what is computed on the way.
fn result<P>(op: &BinaryInt<P>, a: i32, b: i32) -> Option<i32> {
    let ([za, zb, zy], [ma, mb, my]) = (op.zero.map(i128::from), op.multipliers);
    let (x, y) = (i128::from(a) - za, i128::from(b) - zb);
    let stored = match op.op {
        IntOp::Minimum => i128::from(a.min(b)),
        IntOp::Maximum => i128::from(a.max(b)),
        IntOp::Add => scaled(word(scaled(x << op.shift, ma)? + scaled(y << op.shift, mb)?)?, my)? + zy,
        IntOp::Sub => scaled(word(scaled(x << op.shift, ma)? - scaled(y << op.shift, mb)?)?, my)? + zy,
        IntOp::Mul => scaled(x * y, my)? + zy,
        IntOp::Prelu if x >= 0 => scaled(x, ma)? + zy,
        IntOp::Prelu => scaled(x * y, my)? + zy,
        IntOp::Div => return None,
    };
    let [low, high] = op.clamp.map(i128::from);
    Some(stored.max(low).min(high) as i32)
}
