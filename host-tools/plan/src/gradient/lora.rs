//! Low-rank adaptation: beside the weights of a layer, which stay in flash, two narrow layers are trained whose product is added to it.
//!
//! `y = W x + b + B (A x)`, with A `[rank, in]` and B `[out, rank]` (Hu et al. 2021, with a scale of 1). B begins with zeros, so that the network computes
//! what it did; A with uniform numbers within one over the root of `in`, the same ones in every packing.

use super::nodes::node;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Activation, BinaryOp, Conv2dAttrs, DType, Data, Graph, Op, Tensor, TensorId, TensorKind};
use crate::weights::uniform;

/// Prefix of the rank in a pattern.
const LORA: &str = "lora:";

/// Ends of the names of what is added to a layer.
const ENDS: [&str; 2] = [".lora_a.weight", ".lora_b.weight"];

/// The patterns with those of the layers' additions where one says `lora:RANK`, and the rank.
///
/// # Errors
/// [`ErrorKind::Usage`] for a rank that is no whole number above 0, and for several.
pub(super) fn asked(patterns: &[String]) -> Result<(Vec<String>, Option<usize>)> {
    let (mut names, mut rank) = (Vec::new(), None);
    for pattern in patterns {
        let Some(text) = pattern.strip_prefix(LORA) else {
            names.push(pattern.clone());
            continue;
        };
        let wrong = |what: &str| Error::new(ErrorKind::Usage, format!("--trainable {pattern}{what}"));
        let found = text.parse().ok().filter(|&rank| rank > 0);
        let found = found.ok_or_else(|| wrong("").expected("lora:RANK, a whole number above 0"))?;
        if rank.replace(found).is_some() {
            return Err(wrong(", after another rank").expected("one rank for all layers"));
        }
        names.extend(ENDS.map(|end| format!("*{end}")));
    }
    Ok((names, rank))
}

/// Adds the narrow layers to all linear and pointwise layers of constant f32 weights, of a rank that is at most their width.
///
/// # Errors
/// [`ErrorKind::Input`] where there is no such layer.
pub(super) fn add(graph: &mut Graph, rank: usize) -> Result<()> {
    let mut is_one = false;
    for mut layer in std::mem::take(&mut graph.nodes) {
        let Some(narrow) = Narrow::beside(graph, &layer.op, &layer.inputs) else {
            graph.nodes.push(layer);
            continue;
        };
        is_one = true;
        let (Some(x), Some(&y)) = (layer.inputs.first().copied().flatten(), layer.outputs.first()) else {
            return Err(Error::internal("a layer without operands"));
        };
        let activation = std::mem::take(match &mut layer.op {
            Op::Conv2d(attrs) => &mut attrs.activation,
            Op::Linear { activation } => activation,
            _ => return Err(Error::internal("a layer that is none")),
        });
        let name = layer.name.clone();
        let rank = rank.min(narrow.inputs).min(narrow.outputs);
        let [wide, inner, outer] = ["sum", "lora_a", "lora_b"].map(|end| format!("{name}.{end}"));
        let bound = 1.0 / (narrow.inputs as f64).sqrt();
        // Others for each layer.
        let stream = graph.nodes.len() as u64;
        let value = |at: usize| (bound * (2.0 * uniform(stream, at as u64) - 1.0)) as f32;
        let values = (0..rank * narrow.inputs).map(value).collect();
        let a = narrow.weights(graph, &inner, [rank, narrow.inputs], values);
        let b = narrow.weights(graph, &outer, [narrow.outputs, rank], vec![0.0; narrow.outputs * rank]);
        let result = graph.tensor(y).clone();
        let like = |graph: &mut Graph, name: &str, channels: usize| {
            let mut shape = result.shape.clone();
            if let Some(last) = shape.last_mut() {
                *last = channels;
            }
            graph.add_tensor(Tensor::activation(name, &shape, DType::F32))
        };
        let own = like(graph, &format!("{name}.own"), narrow.outputs);
        let (between, added) = (like(graph, &inner, rank), like(graph, &outer, narrow.outputs));
        layer.outputs = vec![own];
        graph.nodes.push(layer);
        node(graph, &inner, narrow.first, &[x, a], &[between]);
        node(graph, &outer, narrow.second, &[between, b], &[added]);
        let sum = Op::Binary {
            kind: BinaryOp::Add,
            activation,
        };
        node(graph, &wide, sum, &[own, added], &[y]);
    }
    if is_one {
        return Ok(());
    }
    Err(Error::input("--trainable lora: the network has no layer for it")
        .expected("a fully connected layer or a convolution of 1x1 in one group, with constant f32 weights"))
}

/// The layers to be added beside one.
struct Narrow {
    inputs: usize,
    outputs: usize,
    first: Op,
    second: Op,
}

impl Narrow {
    fn beside(graph: &Graph, op: &Op, operands: &[Option<TensorId>]) -> Option<Self> {
        let [_, Some(weights), rest @ ..] = operands else {
            return None;
        };
        let weights = graph.tensor(*weights);
        if !weights.is_const() || weights.dtype != DType::F32 || matches!(rest, [_, Some(_), ..]) {
            return None;
        }
        match (op, &weights.shape[..]) {
            (Op::Linear { .. }, &[outputs, inputs]) => {
                let layer = || Op::Linear {
                    activation: Activation::None,
                };
                Some(Self {
                    inputs,
                    outputs,
                    first: layer(),
                    second: layer(),
                })
            }
            (Op::Conv2d(attrs), &[outputs, 1, 1, inputs]) if attrs.groups == 1 => {
                let plain = Conv2dAttrs {
                    activation: Activation::None,
                    ..attrs.clone()
                };
                let second = Conv2dAttrs {
                    stride: [1, 1],
                    padding: Default::default(),
                    ..plain.clone()
                };
                Some(Self {
                    inputs,
                    outputs,
                    first: Op::Conv2d(plain),
                    second: Op::Conv2d(second),
                })
            }
            _ => None,
        }
    }

    /// Weights of one of them.
    fn weights(&self, graph: &mut Graph, name: &str, [outputs, inputs]: [usize; 2], values: Vec<f32>) -> TensorId {
        let shape = match self.first {
            Op::Conv2d(_) => vec![outputs, 1, 1, inputs],
            _ => vec![outputs, inputs],
        };
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let name = format!("{name}.weight");
        graph.stated.params.insert(name.clone(), (0, values.len() as u64));
        graph.add_tensor(Tensor {
            kind: TensorKind::Const(Data::Bytes(bytes.into())),
            ..Tensor::activation(name, &shape, DType::F32)
        })
    }
}
