//! The network without its dead channels: weights cut, what constants contributed added to biases.

use std::collections::BTreeMap;

use super::live::{Classes, Use};
use super::products::{Products, Reach};
use super::ranges::Ranges;
use crate::error::{Error, Result};
use crate::graph::{DType, Data, Graph, Op, Quant, Tensor, TensorId, TensorKind};
use crate::metadata::{Channel, Channels};

/// Rewrites `graph`.
///
/// # Errors
/// [`crate::error::ErrorKind::Internal`] where the classes contradict the weights.
pub(super) fn rewrite(graph: &mut Graph, classes: &Classes, ranges: &Ranges) -> Result<()> {
    let changed = |id: TensorId| classes.loses(id);
    let layers: Vec<Option<Products>> = graph.nodes.iter().map(|node| Products::of(graph, node)).collect();
    graph.channels = fates(graph, classes, ranges);
    for (index, layer) in layers.iter().enumerate() {
        match layer {
            Some(layer) if changed(layer.x) || changed(layer.y) => cut(graph, index, layer, classes, ranges)?,
            Some(_) => {}
            None => renumber(graph, index, classes),
        }
    }
    for id in (0..graph.tensors.len())
        .map(TensorId)
        .filter(|&id| id.0 < classes.tensors())
    {
        if !changed(id) {
            continue;
        }
        let kept = classes.kept(id);
        let tensor = graph.tensor_mut(id);
        if let TensorKind::Const(Data::Bytes(bytes)) = &tensor.kind {
            let rows = bytes.chunks_exact(classes.count(id));
            let cut = rows.flat_map(|row| kept.iter().map(|&c| row[c]));
            tensor.kind = TensorKind::Const(Data::Bytes(cut.collect()));
        }
        if let Some(last) = tensor.shape.last_mut() {
            *last = kept.len();
        }
    }
    crate::passes::prune::remove_unmentioned_tensors(graph);
    Ok(())
}

/// Returns the fates of the channels of each activation of which some go, or hold something else.
fn fates(graph: &Graph, classes: &Classes, ranges: &Ranges) -> BTreeMap<String, Channels> {
    let mut fates = BTreeMap::new();
    for (index, tensor) in graph.tensors.iter().enumerate() {
        let id = TensorId(index);
        if tensor.is_const() {
            continue;
        }
        let fate = |c: usize| match (classes.at((id, c)), ranges.at((id, c)).constant()) {
            (Use::Dead, Some(value)) => Channel::Constant(value),
            (Use::Dead, None) => Channel::Unread,
            (Use::Filler, None) => Channel::Filler,
            (Use::Live | Use::Filler, _) => Channel::Kept,
        };
        let channels = Channels::new((0..classes.count(id)).map(fate));
        if channels.each().any(|channel| channel != Channel::Kept) {
            fates.insert(tensor.name.clone(), channels);
        }
    }
    fates
}

/// Cuts a layer's weights and biases.
fn cut(graph: &mut Graph, index: usize, layer: &Products, classes: &Classes, ranges: &Ranges) -> Result<()> {
    let outputs = classes.kept(layer.y);
    let inputs: Vec<usize> = match layer.depthwise {
        Some(_) => vec![0],
        None => classes.kept(layer.x),
    };
    let taps = layer.taps.len();
    let mut weights: Vec<u8> = Vec::with_capacity(outputs.len() * taps * inputs.len());
    let mut biases = Vec::with_capacity(outputs.len());
    for &output in &outputs {
        let place = (layer.y, output);
        let settled = classes.at(place) != Use::Live || ranges.at(place).constant().is_some();
        if layer.depthwise.is_none() && settled {
            weights.resize(weights.len() + taps * inputs.len(), 0);
            biases.push(ranges.least_sum(place));
            continue;
        }
        for tap in 0..taps {
            weights.extend(inputs.iter().map(|&c| layer.weight(output, tap, c) as u8));
        }
        let folded = match layer.depthwise {
            Some(_) => 0,
            None => folded(layer, output, classes, ranges)
                .ok_or_else(|| Error::internal(format!("`{}` reads a channel that goes", graph.nodes[index].name)))?,
        };
        let bias = i32::try_from(i64::from(layer.bias[output]) + folded);
        biases.push(bias.map_err(|_| Error::internal("a bias of more than 32 bits"))?);
    }

    let old = graph.tensor(layer.w);
    let mut shape = old.shape.clone();
    if let ([first, .., last], None) = (&mut shape[..], layer.depthwise) {
        (*first, *last) = (outputs.len(), inputs.len());
    } else if let Some(first) = shape.first_mut() {
        *first = outputs.len();
    }
    let of_each = |quant: &Quant| match quant.axis {
        Some(_) => Quant {
            scale: outputs.iter().map(|&o| quant.scale[o]).collect(),
            zero_point: outputs.iter().map(|&o| quant.zero_point[o]).collect(),
            axis: quant.axis,
        },
        None => quant.clone(),
    };
    let constant = |of: &Tensor, shape: Vec<usize>, data: Data| Tensor {
        shape,
        kind: TensorKind::Const(data),
        ..of.clone()
    };
    let quant = old.quant.as_ref().map(of_each);
    let weights = Tensor {
        quant,
        ..constant(old, shape, Data::Bytes(weights.into()))
    };
    let node = &graph.nodes[index];
    let named = match node.inputs.get(2).copied().flatten() {
        Some(bias) => graph.tensor(bias).clone(),
        None => Tensor::activation(format!("{} (bias)", node.name), &[], DType::I32),
    };
    let bias = Tensor {
        quant: None,
        ..constant(&named, vec![biases.len()], Data::from_i32(&biases))
    };
    let (w, bias) = (graph.add_tensor(weights), graph.add_tensor(bias));
    let groups = classes.kept(layer.x).len();
    let pixels = graph.tensor(layer.y).elements() / layer.outputs().max(1);
    let macs = |outputs: usize, inputs: usize| (pixels * outputs * taps * inputs) as u64;
    let macs = [macs(layer.outputs(), layer.inputs), macs(biases.len(), inputs.len())];
    graph.cut_macs.insert(graph.nodes[index].name.clone(), macs);
    let node = &mut graph.nodes[index];
    node.inputs.truncate(1);
    node.inputs.extend([Some(w), Some(bias)]);
    if let (Op::Conv2d(attrs), Some(_)) = (&mut node.op, layer.depthwise) {
        attrs.groups = groups;
    }
    Ok(())
}

/// Returns the contribution of the removed channels to an output channel, wherever its window lies. `None` where it is not the same everywhere.
fn folded(layer: &Products, output: usize, classes: &Classes, ranges: &Ranges) -> Option<i64> {
    let mut sum = 0;
    for c in 0..layer.inputs {
        if classes.at((layer.x, c)) != Use::Dead {
            continue;
        }
        let value = ranges.at((layer.x, c)).constant();
        for (tap, &reach) in layer.taps.iter().enumerate() {
            let weight = layer.weight(output, tap, c);
            if weight == 0 || reach == Reach::Never {
                continue;
            }
            match (value? - layer.zero_in, reach) {
                (0, _) => {}
                (_, Reach::Sometimes) => return None,
                (value, _) => sum += i64::from(weight) * i64::from(value),
            }
        }
    }
    Some(sum)
}

/// Brings what an operator says of channels to those that stay.
fn renumber(graph: &mut Graph, index: usize, classes: &Classes) {
    let node = &graph.nodes[index];
    let (Some(x), Some(&y)) = (node.inputs.first().copied().flatten(), node.outputs.first()) else {
        return;
    };
    // Tensors of other types, and those that nobody follows, keep all that they have; what an operator says of them stands.
    if !classes.loses(x) && !classes.loses(y) {
        return;
    }
    let count = classes.count(x);
    let (x_kept, y_kept) = (classes.kept(x), classes.kept(y));
    match &mut graph.nodes[index].op {
        Op::Slice { begin, .. } => {
            if let (Some(begin), true) = (begin.last_mut(), x_kept.len() != count) {
                *begin = x_kept.iter().filter(|&c| c < begin).count();
            }
        }
        Op::Pad { pads, .. } => {
            if let Some((before, behind)) = pads.last_mut() {
                let end = *before + count;
                *behind = y_kept.iter().filter(|&&c| c >= end).count();
                *before = y_kept.iter().filter(|&c| c < before).count();
            }
        }
        _ => {}
    }
}
