//! Cross-layer equalisation (Nagel et al. 2019): a layer's output channels are made of like size, and the next layer's weights take it back.
//!
//! Activations have one scale for all channels, so that small channels beside large ones are stored with few steps. Between two layers with nothing but a
//! ReLU, a factor for each channel changes nothing in real numbers.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::evaluate::{Evaluator, Samples, floats};
use super::form::concerns;
use super::parameters::Layer;
use crate::error::Result;
use crate::graph::{Activation, Data, Graph, Layout, Op, Tensor, TensorId, TensorKind};
use crate::weights::Weights;

/// The least factor beside the greatest.
const LEAST: f32 = 1.0 / 64.0;

/// Between which layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Before depthwise layers: each of their weights meets one channel and has the scale of that channel, so that nothing is lost.
    Depthwise,
    /// Before all layers: there the sizes of channels and of the weights that meet them are brought together half-way.
    All,
}

/// Two layers and the activation between them.
struct Pair {
    first: usize,
    second: usize,
    between: TensorId,
    depthwise: bool,
}

/// An equal graph, and between how many pairs of layers it has other factors; none where there is no such pair.
pub(super) fn run(
    graph: &Graph,
    weights: &Weights,
    kept: &[bool],
    extent: Extent,
    samples: &Samples,
    threads: usize,
) -> Result<Option<(Graph, usize)>> {
    let pairs: Vec<Pair> = pairs(graph, kept)
        .into_iter()
        .filter(|pair| pair.depthwise || extent == Extent::All)
        .collect();
    if pairs.is_empty() {
        return Ok(None);
    }
    let largest = largest(graph, weights, &pairs, samples, threads)?;
    let mut layers: BTreeMap<usize, Layer> = BTreeMap::new();
    for pair in &pairs {
        for index in [pair.first, pair.second] {
            if let Entry::Vacant(unknown) = layers.entry(index) {
                unknown.insert(Layer::of(graph, weights, &graph.nodes[index].inputs)?);
            }
        }
        let Some(ranges) = largest.get(&pair.between) else {
            continue;
        };
        let second = &layers[&pair.second];
        let factors = factors(ranges, pair.depthwise, &meeting(second, ranges.len()));
        if let Some(first) = layers.get_mut(&pair.first) {
            let inputs = first.inputs;
            for (output, factor) in factors.iter().enumerate() {
                first.weights[output * inputs..(output + 1) * inputs]
                    .iter_mut()
                    .for_each(|weight| *weight /= factor);
                first.bias[output] /= factor;
            }
        }
        if let Some(second) = layers.get_mut(&pair.second) {
            let (within, each) = (within(second), outputs_of_a_group(second, factors.len()));
            for (at, weight) in second.weights.iter_mut().enumerate() {
                let group = at / second.inputs / each;
                *weight *= factors[group * within + at % within];
            }
        }
    }
    let mut equal = graph.clone();
    for (index, layer) in layers {
        replace(&mut equal, index, &layer);
    }
    Ok(Some((equal, pairs.len())))
}

/// A node gets these weights and biases, under the names of its own.
pub(super) fn replace(graph: &mut Graph, index: usize, layer: &Layer) {
    let node = graph.nodes[index].clone();
    let name = |operand: usize| {
        let id = node.inputs.get(operand).copied().flatten();
        id.map_or_else(|| format!("{} (bias)", node.name), |id| graph.tensor(id).name.clone())
    };
    let (of_weights, of_bias) = (name(1), name(2));
    let weights = constant(graph, of_weights, &layer.shape, &layer.weights);
    let bias = constant(graph, of_bias, &[layer.bias.len()], &layer.bias);
    graph.nodes[index].inputs = vec![node.inputs[0], Some(weights), Some(bias)];
}

/// A constant of these values.
pub(super) fn constant(graph: &mut Graph, name: String, shape: &[usize], values: &[f32]) -> TensorId {
    graph.add_tensor(Tensor {
        kind: TensorKind::Const(Data::from_f32(values)),
        ..Tensor::activation(name, shape, arenite::DType::F32)
    })
}

/// Layers of which the second alone reads the first, with nothing between them that a factor does not pass.
fn pairs(graph: &Graph, kept: &[bool]) -> Vec<Pair> {
    let (producers, consumers) = (graph.producers(), graph.consumers());
    let layer = |index: usize| {
        let node = &graph.nodes[index];
        let constant = |operand: usize| {
            let id = node.inputs.get(operand).copied().flatten();
            id.is_none_or(|id| graph.tensor(id).is_const())
        };
        let own = match &node.op {
            Op::Conv2d(attrs) => attrs.layout == Layout::Nhwc,
            Op::Linear { .. } => true,
            _ => false,
        };
        own && !kept[index] && concerns(graph, node) && node.inputs.len() <= 3 && constant(1) && constant(2)
    };
    let mut found = Vec::new();
    for second in (0..graph.nodes.len()).filter(|&index| layer(index)) {
        let node = &graph.nodes[second];
        let Some(between) = node.inputs[0] else { continue };
        let first = producers[between.0].map(|id| id.0).filter(|&first| layer(first));
        let (Some(first), false) = (first, graph.outputs.contains(&between)) else {
            continue;
        };
        let passes = match &graph.nodes[first].op {
            Op::Conv2d(attrs) => attrs.activation,
            Op::Linear { activation } => *activation,
            _ => continue,
        };
        let channels = graph.tensor(between).shape.last().copied().unwrap_or(0);
        let meets = match (&node.op, node.inputs[1]) {
            (Op::Conv2d(_), _) => true,
            (_, Some(weights)) => graph.tensor(weights).shape.get(1) == Some(&channels),
            _ => false,
        };
        if consumers[between.0].len() == 1 && meets && matches!(passes, Activation::None | Activation::Relu) {
            let depthwise = matches!(&node.op, Op::Conv2d(attrs) if attrs.groups == channels && channels > 1);
            found.push(Pair {
                first,
                second,
                between,
                depthwise,
            });
        }
    }
    found
}

/// The largest value of each channel of the activations between.
fn largest(
    graph: &Graph,
    weights: &Weights,
    pairs: &[Pair],
    samples: &Samples,
    threads: usize,
) -> Result<BTreeMap<TensorId, Vec<f32>>> {
    let between: Vec<TensorId> = pairs.iter().map(|pair| pair.between).collect();
    let evaluator = Evaluator::new(graph, weights, threads, |id| between.contains(&id))?;
    let parts = evaluator.each(
        samples,
        BTreeMap::<TensorId, Vec<f32>>::new,
        |largest, seen| {
            let channels = graph.tensor(seen.tensor).shape.last().copied().unwrap_or(1);
            let largest = largest.entry(seen.tensor).or_insert_with(|| vec![0.0; channels]);
            for (at, value) in floats(seen.bytes).enumerate() {
                let most = &mut largest[at % channels];
                *most = most.max(value.abs());
            }
            Ok(())
        },
        &mut |_| {},
    )?;
    let mut all = BTreeMap::<TensorId, Vec<f32>>::new();
    for (id, part) in parts.into_iter().flatten() {
        let whole = all.entry(id).or_insert_with(|| vec![0.0; part.len()]);
        whole
            .iter_mut()
            .zip(part)
            .for_each(|(most, value)| *most = most.max(value));
    }
    Ok(all)
}

fn within(layer: &Layer) -> usize {
    layer.shape.last().copied().unwrap_or(1).max(1)
}

fn outputs_of_a_group(layer: &Layer, channels: usize) -> usize {
    let groups = (channels / within(layer)).max(1);
    (layer.shape[0] / groups).max(1)
}

/// The largest weight that meets each channel.
fn meeting(layer: &Layer, channels: usize) -> Vec<f32> {
    let (within, each) = (within(layer), outputs_of_a_group(layer, channels));
    let mut largest = vec![0.0_f32; channels];
    for (at, weight) in layer.weights.iter().enumerate() {
        let channel = at / layer.inputs / each * within + at % within;
        largest[channel] = largest[channel].max(weight.abs());
    }
    largest
}

/// Returns the divisor of each channel.
fn factors(ranges: &[f32], depthwise: bool, weights: &[f32]) -> Vec<f32> {
    let wanted: Vec<f32> = ranges
        .iter()
        .zip(weights)
        .map(|(&range, &weight)| match (depthwise, range > 0.0 && weight > 0.0) {
            (_, false) => 0.0,
            (true, true) => range,
            (false, true) => (range / weight).sqrt(),
        })
        .collect();
    let most = wanted.iter().fold(0.0_f32, |most, &factor| most.max(factor));
    let factor = |wanted: &f32| {
        if *wanted > 0.0 && most.is_finite() {
            (wanted / most).max(LEAST)
        } else {
            1.0
        }
    };
    wanted.iter().map(factor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_before_a_depthwise_layer_become_equal() {
        let factors = factors(&[4.0, 1.0, 0.0, 0.001], true, &[1.0; 4]);
        assert_eq!(factors, [1.0, 0.25, 1.0, LEAST]);
    }

    #[test]
    fn channels_and_weights_meet_half_way() {
        let factors = factors(&[4.0, 1.0], false, &[1.0, 1.0]);
        assert_eq!(factors, [1.0, 0.5]);
        let unmet = super::factors(&[4.0, 1.0], false, &[1.0, 0.0]);
        assert_eq!(unmet, [1.0, 1.0]);
    }

    #[test]
    fn grouped_weights_meet_the_channels_of_their_group() {
        let layer = Layer {
            // Two groups of two outputs, each of two taps and two channels.
            weights: (1..=16).map(|value| value as f32).collect(),
            bias: vec![0.0; 4],
            positions: 1,
            inputs: 4,
            shape: vec![4, 2, 1, 2],
        };
        assert_eq!(meeting(&layer, 4), [7.0, 8.0, 15.0, 16.0]);
    }
}
