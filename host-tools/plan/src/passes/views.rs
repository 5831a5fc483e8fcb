//! Transposes, and reshapes that add or drop extents of 1, move out of the way of what computes element by element: they meet and vanish, and
//! what they stood between can be fused. A one-dimensional convolution is one of images of a row between two such reshapes; behind this pass a chain of them is
//! one of images.
//!
//! Tensors that pointwise operators join are a region: all of them take another form, or none. The form is one that a reshape or transpose at
//! the region's border has on its other side. Nothing is computed otherwise.

use std::collections::HashSet;

use super::frame::Frame;
use super::identity;
use super::region::{Border, Member, Region, Regions, is_layer, operands};
use super::region_rewrite::Rewrite;
use crate::error::Result;
use crate::graph::{DType, Graph, NodeId, Op, TensorId, UnaryKind};

/// Most rounds: each moves every region once.
const MOST_ROUNDS: usize = 64;

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    for _ in 0..MOST_ROUNDS {
        if !round(graph) {
            break;
        }
        identity::run(graph)?;
    }
    Ok(())
}

/// Gives every region that gains by it another form; whether one did.
fn round(graph: &mut Graph) -> bool {
    let regions = Regions::of(graph);
    // Tensors that a region before has changed are looked at in the next round.
    let mut changed: HashSet<TensorId> = HashSet::new();
    let mut rewrite = Rewrite::new(graph);
    for region in regions.all() {
        let graph = rewrite.graph();
        let near = touched(graph, &regions, &region);
        if near.iter().any(|id| changed.contains(id)) {
            continue;
        }
        let mut best: Option<(i32, Frame)> = None;
        for frame in frames(graph, &regions, &region) {
            let gain = gain(graph, &regions, &region, &frame);
            if let Some(gain) = gain.filter(|gain| best.as_ref().is_none_or(|(most, _)| gain > most)) {
                best = Some((gain, frame));
            }
        }
        if let Some((_, frame)) = best {
            changed.extend(near);
            rewrite.region(&regions, &region, &frame);
        }
    }
    rewrite.finish()
}

/// The region's tensors, and those on the other side of its borders.
fn touched(graph: &Graph, regions: &Regions, region: &Region) -> Vec<TensorId> {
    let mut touched = region.tensors.clone();
    for &id in &region.tensors {
        touched.extend((regions.view_before(graph, id)).and_then(|(node, _)| graph.nodes[node.0].inputs[0]));
        touched.extend(
            regions
                .views_behind(graph, id)
                .map(|(node, _)| graph.nodes[node.0].outputs[0]),
        );
    }
    touched
}

/// The forms that a region may take: those on the other side of its borders.
fn frames(graph: &Graph, regions: &Regions, region: &Region) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut add = |frame: Option<Frame>| {
        if let Some(frame) = frame.filter(|frame| !frame.is_identity() && !frames.contains(frame)) {
            frames.push(frame);
        }
    };
    for &id in &region.tensors {
        let shape = &graph.tensor(id).shape;
        if let Some((writer, _)) = regions.view_before(graph, id) {
            let node = &graph.nodes[writer.0];
            match (&node.op, node.inputs[0]) {
                (Op::Transpose { perm }, _) => add(Some(Frame::transposed_by(perm))),
                (_, Some(source)) => add(Frame::reshaping(shape, &graph.tensor(source).shape)),
                _ => {}
            }
        }
        for (reader, _) in regions.views_behind(graph, id) {
            let node = &graph.nodes[reader.0];
            match &node.op {
                Op::Transpose { perm } => add(Some(Frame::transposing(perm))),
                _ => add(Frame::reshaping(shape, &graph.tensor(node.outputs[0]).shape)),
            }
        }
    }
    frames
}

/// By how many reshapes and transposes the graph is smaller in this form of the region; none where it is not worth it.
fn gain(graph: &Graph, regions: &Regions, region: &Region, frame: &Frame) -> Option<i32> {
    if !region.nodes.iter().all(|&node| fits(graph, node, frame)) {
        return None;
    }
    let layer = |node: NodeId| is_layer(graph, node);
    let members = regions.members(graph, region, frame);
    let gone = |borders: &mut dyn Iterator<Item = &Border>| -> Vec<TensorId> {
        borders
            .filter(|border| border.vanishes)
            .map(|border| border.other)
            .collect()
    };
    let before = gone(&mut members.iter().flat_map(|member| &member.before));
    let behind = gone(&mut members.iter().flat_map(|member| &member.behind));
    let entries: Vec<&Member> = members.iter().filter(|member| member.stays).collect();
    let exits: Vec<&Member> = members.iter().filter(|member| member.exits).collect();
    // Whether a pointwise operator comes next to a layer, and whether one that is there is parted from it.
    let follows_layer = before.iter().any(|&id| regions.writer(id).is_some_and(layer));
    let leads_to_layer = behind.iter().any(|&id| regions.readers(id).iter().copied().any(layer));
    let parts_behind = (entries.iter()).any(|member| regions.writer(member.id).is_some_and(layer));
    let parts_before = (exits.iter()).any(|member| member.foreign.iter().copied().any(layer));
    let count = |list: usize| i32::try_from(list).unwrap_or(i32::MAX / 8);
    let mut gain = count(before.len() + behind.len()) - count(entries.len() + exits.len());
    gain -= i32::from(parts_behind) + i32::from(parts_before);
    gain -= region.nodes.iter().map(|&node| turned(graph, node, frame)).sum::<i32>();
    let taken_up = |take: fn(&Op) -> bool| region.nodes.iter().any(|&node| take(&graph.nodes[node.0].op));
    let leads = leads_to_layer && exits.is_empty() && !parts_behind;
    let fuses = (taken_up(is_taken_up) && ((follows_layer && entries.is_empty() && !parts_before) || leads))
        || (taken_up(|op| matches!(op, Op::Pad { .. })) && leads);
    (gain > 0 || (gain == 0 && fuses)).then_some(gain)
}

/// Returns whether a layer beside it may take up the operator.
fn is_taken_up(op: &Op) -> bool {
    let clamp = |kind: &UnaryKind| !matches!(kind, UnaryKind::Function(_));
    matches!(op, Op::Binary { .. } | Op::BatchNorm { .. } | Op::Affine) || matches!(op, Op::Unary(kind) if clamp(kind))
}

/// Whether the constants of an operator can take this form.
fn fits(graph: &Graph, id: NodeId, frame: &Frame) -> bool {
    let constants = operands(&graph.nodes[id.0]).map(|id| graph.tensor(id));
    constants.filter(|tensor| tensor.is_const()).all(|tensor| {
        let per_tensor = tensor.quant.as_ref().is_none_or(|quant| quant.axis.is_none());
        per_tensor && (tensor.elements() == 1 || tensor.dtype == DType::F32 || frame.keeps_any_order())
    })
}

/// Transposes that an operator wants along an axis which was the innermost.
fn turned(graph: &Graph, id: NodeId, frame: &Frame) -> i32 {
    let node = &graph.nodes[id.0];
    let (Op::Softmax { axis, .. } | Op::LogSoftmax { axis } | Op::Lrn { axis, .. }) = &node.op else {
        return 0;
    };
    let rank = graph.tensor(node.outputs[0]).shape.len();
    if *axis + 1 == rank && (frame.at(*axis) != rank - 1 || rank == 3) {
        2
    } else {
        0
    }
}
