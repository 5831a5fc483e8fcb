//! How much noise each source alone adds to the answers: the float network with the weights of one layer rounded, or with one activation.

use std::collections::BTreeMap;

use super::super::activations::Activations;
use super::super::evaluate::{Evaluator, Samples};
use super::super::form::is_real;
use super::super::judge::{self, Judge};
use super::super::network::{Network, is_layer, takes_four_bits};
use super::super::parameters::Layer;
use super::super::rewrite::{Plan, conversion};
use crate::error::Result;
use crate::graph::{Data, Graph, LowBits, Op, Quant, Tensor, TensorId, TensorKind, facts};

/// Multiply-accumulates that the measurements may take, but for one sample of each.
const MACS: u64 = 1 << 34;
/// The most samples of each.
const SAMPLES: u64 = 64;

/// Noise over signal.
#[derive(Debug, Clone, Default)]
pub(super) struct Sources {
    /// Of a layer's weights in four bits, where they may have so few, and in eight.
    pub(super) weights: BTreeMap<usize, (Option<f64>, f64)>,
    /// Of activations in int8, by unit.
    pub(super) units: Vec<f64>,
}

/// Measures all sources; `plan` is that of int8, and has the scales.
pub(super) fn measure(
    network: &Network<'_>,
    plan: &Plan,
    units: &[Vec<TensorId>],
    bits: LowBits,
    samples: &Samples,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Sources> {
    let graph = network.graph;
    let layers: Vec<usize> = plan.layers.keys().copied().collect();
    let all = (2 * layers.len() + units.len()) as u64;
    let once = facts::macs_of_a_run(graph).max(1) * all.max(1);
    let count = (MACS / once).clamp(1, SAMPLES) as usize;
    let float = Evaluator::new(graph, network.weights, network.threads, |id| is_real(graph, id))?;
    let judge = Judge::new(graph, &float, samples, 1, count)?;
    let mut done = 0;
    let mut of = |graph: &Graph| -> Result<f64> {
        done += 1;
        progress(done, all);
        Ok(judge::noise(&judge.squares(
            0,
            graph,
            network.weights,
            network.threads,
        )?))
    };
    let mut found = Sources::default();
    for index in layers {
        let node = &graph.nodes[index];
        let layer = Layer::of(graph, network.weights, &node.inputs)?;
        let mut noise = |bits: Option<LowBits>| -> Result<f64> {
            let ends = [plan.input_scale(index, node), plan.output_scale(index, node)];
            of(&with_weights(graph, index, &layer, ends, bits)?)
        };
        let four = takes_four_bits(graph, node, &layer, bits).then(|| noise(Some(bits)));
        let four = four.transpose()?;
        found.weights.insert(index, (four, noise(None)?));
    }
    let quants = plan.quant.get(&Activations::Int8);
    for unit in units {
        let rounded = |id: &TensorId| Some((*id, quants?.get(id)?.clone()));
        let rounded: Vec<(TensorId, Quant)> = unit.iter().filter_map(rounded).collect();
        found.units.push(of(&with_activations(graph, &rounded))?);
    }
    Ok(found)
}

/// The float network with one layer's weights as they are behind rounding.
fn with_weights(graph: &Graph, index: usize, layer: &Layer, ends: [f32; 2], bits: Option<LowBits>) -> Result<Graph> {
    let node = &graph.nodes[index];
    debug_assert!(is_layer(graph, node));
    let stored = layer.stored(ends, &node.name, Activations::Int8, bits)?;
    let rows = stored.weights.chunks(layer.inputs.max(1)).zip(&stored.scales);
    let values: Vec<f32> = rows
        .flat_map(|(row, scale)| row.iter().map(move |&number| f32::from(number) * scale))
        .collect();
    let mut rounded = graph.clone();
    let weights = rounded.add_tensor(Tensor {
        kind: TensorKind::Const(Data::from_f32(&values)),
        ..Tensor::activation(format!("{} (rounded)", node.name), &layer.shape, arenite::DType::F32)
    });
    if let Some(operand) = rounded.nodes[index].inputs.get_mut(1) {
        *operand = Some(weights);
    }
    // A locally connected layer's gain is in its weights.
    rounded.nodes[index].inputs.truncate(3);
    Ok(rounded)
}

/// The float network with activations that are rounded where they are complete.
fn with_activations(graph: &Graph, quants: &[(TensorId, Quant)]) -> Graph {
    let mut rounded = graph.clone();
    for (id, quant) in quants {
        let own = graph.tensor(*id).clone();
        let activation = |name: &str| Tensor {
            name: format!("{} ({name})", own.name),
            kind: TensorKind::Activation,
            ..own.clone()
        };
        let integers = rounded.add_tensor(Tensor {
            dtype: arenite::DType::I8,
            quant: Some(quant.clone()),
            ..activation("int8")
        });
        let other = rounded.add_tensor(activation("f32"));
        let writer = rounded.nodes.iter().position(|node| node.outputs.contains(id));
        // The output of a node is rounded under its own number; the caller's input has another behind rounding.
        let (from, to, at) = match writer {
            Some(writer) => {
                let outputs = rounded.nodes[writer].outputs.iter_mut();
                outputs
                    .filter(|output| *output == id)
                    .for_each(|output| *output = other);
                (other, *id, writer + 1)
            }
            None => {
                let operands = rounded
                    .nodes
                    .iter_mut()
                    .flat_map(|node| node.inputs.iter_mut().flatten());
                operands
                    .filter(|operand| *operand == id)
                    .for_each(|operand| *operand = other);
                (*id, other, 0)
            }
        };
        let back = conversion(format!("{} (rounded)", own.name), Op::Dequantize, integers, to);
        rounded.nodes.insert(at, back);
        let there = conversion(format!("{} (int8)", own.name), Op::Quantize, from, integers);
        rounded.nodes.insert(at, there);
    }
    rounded
}
