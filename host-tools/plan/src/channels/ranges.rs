//! Ranges of channels: intervals of stored values from the network's inputs to its outputs, in the device's own arithmetic.

use arenite::DType;
use arenite::ops::elementwise_int::{BinaryInt, IntOp};

use super::flow::channels;
use super::products::{Products, Reach};
use crate::graph::infer::nhwc;
use crate::graph::{Data, Graph, Node, Op, PoolAttrs, ReduceKind, Tensor, TensorId, TensorKind};
use crate::lower::numbers::{clamp_int, per_tensor};
use crate::lower::{convert, elementwise_int, reduce};

/// Stored values from the first to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) low: i32,
    pub(super) high: i32,
}

impl Range {
    /// All of int8.
    pub(super) const ALL: Self = Self { low: -128, high: 127 };

    /// The value, where there is one alone.
    pub(super) fn constant(self) -> Option<i32> {
        (self.low == self.high).then_some(self.low)
    }

    fn of(value: i32) -> Self {
        Self {
            low: value,
            high: value,
        }
    }

    fn hull(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    fn clamp(self, [low, high]: [i32; 2]) -> Self {
        Self {
            low: self.low.max(low).min(high),
            high: self.high.max(low).min(high),
        }
    }

    /// Of all that a table makes of it.
    fn through(self, table: &[u8; 256]) -> Self {
        let mut values = (self.low..=self.high).map(|q| i32::from(table[usize::from(q as i8 as u8)] as i8));
        let first = Self::of(values.next().unwrap_or(0));
        values.fold(first, |range, value| range.hull(Self::of(value)))
    }
}

/// The ranges of each channel of each tensor that is followed; of others, none.
#[derive(Debug, Clone)]
pub(super) struct Ranges {
    tensors: Vec<Vec<Range>>,
    /// The sums of layers at their least, by result and channel.
    least: Vec<Vec<i64>>,
}

impl Ranges {
    /// From the first node to the last.
    pub(super) fn of(graph: &Graph) -> Self {
        let all = |id: usize| vec![Range::ALL; channels(graph, TensorId(id)).unwrap_or(0)];
        let mut ranges = Self {
            tensors: (0..graph.tensors.len()).map(all).collect(),
            least: vec![Vec::new(); graph.tensors.len()],
        };
        for (tensor, ranges) in graph.tensors.iter().zip(&mut ranges.tensors) {
            if let TensorKind::Const(Data::Bytes(bytes)) = &tensor.kind {
                constant(bytes, ranges);
            }
        }
        for node in &graph.nodes {
            let &[y] = &node.outputs[..] else { continue };
            if channels(graph, y).is_none() {
                continue;
            }
            if let Some(layer) = Products::of(graph, node) {
                ranges.layer(&layer);
            } else if let Some(found) = ranges.node(graph, node, y)
                && found.len() == ranges.tensors[y.0].len()
            {
                ranges.tensors[y.0] = found;
            }
        }
        ranges
    }

    /// Of a channel.
    pub(super) fn at(&self, (id, channel): (TensorId, usize)) -> Range {
        self.tensors[id.0].get(channel).copied().unwrap_or(Range::ALL)
    }

    /// A sum of a layer's channel whose result lies in the channel's range.
    pub(super) fn least_sum(&self, (id, channel): (TensorId, usize)) -> i32 {
        let sum = self.least[id.0].get(channel).copied().unwrap_or(0);
        sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
    }

    /// The least and the largest value of each channel of each tensor.
    pub(super) fn claims(&self) -> Vec<Vec<(i32, i32)>> {
        let of_tensor = |ranges: &Vec<Range>| ranges.iter().map(|range| (range.low, range.high)).collect();
        self.tensors.iter().map(of_tensor).collect()
    }

    fn layer(&mut self, layer: &Products) {
        let (mut found, mut least) = (Vec::new(), Vec::new());
        for output in 0..layer.outputs() {
            let (low, high) = self.sums(layer, output);
            least.push(low);
            let ends = [low, high].map(|sum| layer.scaled(output, sum));
            let [clamp_low, clamp_high] = layer.clamp;
            found.push(match ends {
                // A negative factor turns them round.
                [Some(a), Some(b)] => Range {
                    low: a.min(b) as i32,
                    high: a.max(b) as i32,
                }
                .clamp(layer.clamp),
                _ => Range {
                    low: clamp_low,
                    high: clamp_high,
                },
            });
        }
        self.tensors[layer.y.0] = found;
        self.least[layer.y.0] = least;
    }

    /// The least and the largest sum of an output channel.
    fn sums(&self, layer: &Products, output: usize) -> (i64, i64) {
        let bias = i64::from(layer.bias[output]);
        let (mut low, mut high) = (bias, bias);
        for (tap, &reach) in layer.taps.iter().enumerate() {
            for c in 0..layer.inputs {
                let weight = layer.weight(output, tap, c);
                if weight == 0 || reach == Reach::Never {
                    continue;
                }
                let range = self.at((layer.x, layer.input(output, c)));
                let [a, b] = [range.low, range.high].map(|q| i64::from(weight * (q - layer.zero_in)));
                let (mut least, mut most) = (a.min(b), a.max(b));
                if reach == Reach::Sometimes {
                    (least, most) = (least.min(0), most.max(0));
                }
                low += least;
                high += most;
            }
        }
        (low, high)
    }

    /// Of the result of any other operator; `None` where nothing is known of it.
    fn node(&self, graph: &Graph, node: &Node, y: TensorId) -> Option<Vec<Range>> {
        let operand = |index: usize| node.inputs.get(index).copied().flatten();
        let x = operand(0)?;
        let (tx, ty) = (graph.tensor(x), graph.tensor(y));
        let from = &self.tensors[x.0];
        if from.is_empty() {
            return None;
        }
        let mapped = |f: &dyn Fn(Range) -> Range| from.iter().map(|&range| f(range)).collect();
        let flow = super::flow::flow(graph, node)?;
        match &node.op {
            Op::Identity | Op::Cast | Op::ResizeNearest { .. } | Op::ResizeBilinear { .. } => Some(from.clone()),
            Op::Unary(kind) => {
                let table = elementwise_int::table(*kind, per_tensor(tx).ok()?, per_tensor(ty).ok()?).ok()?;
                Some(mapped(&|range| range.through(&table)))
            }
            Op::Lookup { table, .. } => Some(mapped(&|range| range.through(table))),
            Op::Quantize => {
                let types = [tx.dtype, ty.dtype];
                let table = convert::requantisation(types, per_tensor(tx).ok()?, per_tensor(ty).ok()?).ok()?;
                Some(mapped(&|range| range.through(&table)))
            }
            Op::MaxPool2d(attrs) | Op::AvgPool2d(attrs) => {
                let clamp = clamp_int(attrs.activation, per_tensor(ty).ok()?, DType::I8).ok()?;
                every_window_meets(attrs, tx, ty).then(|| mapped(&|range| range.clamp(clamp)))
            }
            Op::Reduce { kind, axes, .. } => {
                let count: usize = axes.iter().map(|&axis| tx.shape[axis]).product();
                let reduced = |range| reduced(*kind, count as i64, range, tx, ty);
                from.iter().map(|&range| reduced(range)).collect()
            }
            Op::Binary { kind, activation } => {
                let other = operand(1)?;
                let tensors = [tx, graph.tensor(other), ty];
                let op = elementwise_int::arithmetic(&node.kind, *kind, *activation, tensors).ok()?;
                let at = |id: TensorId, c: usize| match self.tensors[id.0][..] {
                    [one] => one,
                    _ => self.at((id, c)),
                };
                let channels = 0..self.tensors[y.0].len();
                Some(channels.map(|c| sum_or_product(&op, at(x, c), at(other, c))).collect())
            }
            // The rest moves elements: a channel holds what comes into it, and what an operator fills it with.
            op => {
                let mut found: Vec<Option<Range>> = vec![None; self.tensors[y.0].len()];
                for (from, (_, to)) in flow.pairs {
                    let range = self.at(from);
                    let slot = found.get_mut(to)?;
                    *slot = Some(slot.map_or(range, |other| other.hull(range)));
                }
                let fill = match op {
                    Op::Pad { pads, value } => {
                        let inside = pads
                            .split_last()
                            .is_some_and(|(_, outer)| outer.iter().all(|&p| p == (0, 0)));
                        Some((Range::of(*value as i8 as i32), inside))
                    }
                    _ => None,
                };
                let filled = |found: Option<Range>| match (found, fill) {
                    (Some(range), None | Some((_, true))) => range,
                    (Some(range), Some((value, false))) => range.hull(value),
                    (None, Some((value, _))) => value,
                    (None, None) => Range::ALL,
                };
                Some(found.into_iter().map(filled).collect())
            }
        }
    }
}

/// Of a constant's channels.
fn constant(bytes: &[u8], ranges: &mut [Range]) {
    let channels = ranges.len().max(1);
    for (channel, range) in ranges.iter_mut().enumerate() {
        let mut values = bytes
            .iter()
            .skip(channel)
            .step_by(channels)
            .map(|&b| i32::from(b as i8));
        if let Some(first) = values.next() {
            *range = values.fold(Range::of(first), |range, value| range.hull(Range::of(value)));
        }
    }
}

/// Whether every window of a pooling has elements.
fn every_window_meets(attrs: &PoolAttrs, x: &Tensor, y: &Tensor) -> bool {
    let (Ok([_, h, w, _]), Ok([_, oh, ow, _])) = (nhwc(attrs.layout, &x.shape), nhwc(attrs.layout, &y.shape)) else {
        return false;
    };
    let last = |outputs: usize, axis: usize| outputs.saturating_sub(1) * attrs.stride[axis];
    attrs.padding.top < attrs.kernel[0]
        && attrs.padding.left < attrs.kernel[1]
        && last(oh, 0) < h + attrs.padding.top
        && last(ow, 1) < w + attrs.padding.left
}

/// Of a reduction of `count` values.
fn reduced(kind: ReduceKind, count: i64, range: Range, x: &Tensor, y: &Tensor) -> Option<Range> {
    let mean = match kind {
        ReduceKind::Max | ReduceKind::Min => return Some(range),
        ReduceKind::Mean => true,
        ReduceKind::Sum => false,
    };
    let (qx, qy) = (per_tensor(x).ok()?, per_tensor(y).ok()?);
    let multiplier = reduce::multiplier(mean, count, qx, qy).ok()?;
    let stored = |q: i32| {
        let sum = i32::try_from(count * i64::from(q - qx.1)).ok()?;
        i32::try_from(i64::from(sum) << multiplier.shift.max(0)).ok()?;
        multiplier.apply(sum).checked_add(qy.1)
    };
    let (a, b) = (stored(range.low)?, stored(range.high)?);
    Some(
        Range {
            low: a.min(b),
            high: a.max(b),
        }
        .clamp([-128, 127]),
    )
}

/// Of the result of two operands: it is monotonous in each, so its ends are those of its operands' ends.
fn sum_or_product<P>(op: &BinaryInt<P>, a: Range, b: Range) -> Range {
    if op.op == IntOp::Prelu {
        return Range::ALL.clamp(op.clamp);
    }
    let ends = [(a.low, b.low), (a.low, b.high), (a.high, b.low), (a.high, b.high)];
    let ends = ends.map(|(a, b)| elementwise_int::stored(op, a, b));
    let found = ends.iter().try_fold(None, |found: Option<Range>, end| {
        let end = Range::of((*end)?);
        Some(Some(found.map_or(end, |found| found.hull(end))))
    });
    found.flatten().unwrap_or(Range::ALL).clamp(op.clamp)
}
