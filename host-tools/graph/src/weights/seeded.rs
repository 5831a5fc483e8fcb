//! Reproducible weights for traces that carry none.
//!
//! One generator, SplitMix64 (Steele, Lea, Flood 2014): output `i` of the stream with state `s` is `mix(s + (i + 1) * GAMMA)`. The seed is
//! the state of a first stream, which gives each parameter, in byte order of the names, the state of its own; so element `i` of a
//! parameter is found without computing any other. An output becomes a uniform number `p = (top 53 bits + 1/2) / 2^53` and then a
//! standard normal one by inverting the distribution with Wichura's PPND7 (Applied Statistics 37, algorithm AS 241, 1988), in f64 and
//! rounded once to f32. Its only operations are those that IEEE 754 rounds correctly (the logarithm is a series written below), so every
//! platform gives the same bits.
//!
//! The distribution of a parameter follows from the operator that reads it:
//!
//! | parameter | value of a normal n |
//! | --- | --- |
//! | weights of a convolution or matrix product | n * sqrt(2 / fan-in), times 0.25 before a sum of two activations, 0.1 for the last linear |
//! | bias, whatever else is added or subtracted, and parameters of no known use | 0.01 n |
//! | batch norm: gamma, beta, mean, variance | 1 + 0.1 n, 0.1 n, 0.1 n, 1 + 0.1 \|n\| |
//! | scalar factor | 1 |
//! | other factors, divisors | 1 + 0.1 n, 1 + 0.1 \|n\| |
//! | slope of a PReLU | 0.25 |
//!
//! Between weights and a sum there may be a bias, batch norm, affine or reshape; the last linear is that of the network.

use std::collections::HashMap;

use super::keys::{missing, params};
use crate::error::Result;
use crate::graph::facts::for_each_param;
use crate::graph::{Activation, BinaryOp, Data, Graph, Node, NodeId, Op, Role, TensorId, TensorKind};

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The generator, and what it draws for each parameter.
#[derive(Debug)]
pub(crate) struct Seeded {
    params: HashMap<String, Param>,
}

#[derive(Debug, Clone, Copy)]
struct Param {
    state: u64,
    recipe: Recipe,
}

/// offset + scale * n, or offset + scale * |n|
#[derive(Debug, Clone, Copy, PartialEq)]
struct Recipe {
    offset: f32,
    scale: f64,
    positive: bool,
}

impl Seeded {
    /// Reads the structure of an imported graph.
    pub(crate) fn new(seed: u64, graph: &Graph) -> Self {
        let recipes = recipes(graph);
        let params = params(graph).into_keys().enumerate().map(|(index, key)| {
            let state = output(seed, index as u64);
            let recipe = recipes.get(key).copied().unwrap_or(BIAS);
            (key.to_string(), Param { state, recipe })
        });
        Self {
            params: params.collect(),
        }
    }

    /// Elements of a parameter from `start` on.
    pub(crate) fn read(&self, key: &str, start: usize, out: &mut [f32]) -> Result<()> {
        let param = self.params.get(key).ok_or_else(|| missing(key, &[]))?;
        let Recipe {
            offset,
            scale,
            positive,
        } = param.recipe;
        if scale == 0.0 {
            out.fill(offset);
            return Ok(());
        }
        for (index, value) in out.iter_mut().enumerate() {
            let n = normal(output(param.state, (start + index) as u64));
            let n = if positive { n.abs() } else { n };
            *value = offset + (scale * n) as f32;
        }
        Ok(())
    }
}

const fn recipe(offset: f32, scale: f64) -> Recipe {
    Recipe {
        offset,
        scale,
        positive: false,
    }
}

const BIAS: Recipe = recipe(0.0, 0.01);
const FACTOR: Recipe = recipe(1.0, 0.1);
const POSITIVE: Recipe = Recipe {
    offset: 1.0,
    scale: 0.1,
    positive: true,
};

/// Returns the recipe of each parameter, by the first node that reads it.
fn recipes(graph: &Graph) -> HashMap<&str, Recipe> {
    let consumers = graph.consumers();
    let is_product = |node: &&Node| matches!(node.op, Op::Linear { .. } | Op::MatMul { .. });
    let last_linear = (graph.nodes.iter())
        .rfind(|node| node.role == Role::Forward && is_product(node) && reads_const(graph, node, 1))
        .map(|node| node.name.as_str());
    let mut recipes = HashMap::new();
    for node in graph.nodes.iter().filter(|node| node.role == Role::Forward) {
        for (index, &id) in node.inputs.iter().enumerate() {
            let Some(TensorKind::Const(Data::Lazy(expr))) = id.map(|id| &graph.tensor(id).kind) else {
                continue;
            };
            let elements = id.map_or(0, |id| graph.tensor(id).elements());
            let recipe = match weights_fan_in(graph, node, index) {
                Some(fan_in) => {
                    let mut scale = (2.0 / fan_in.max(1) as f64).sqrt();
                    if node.outputs.iter().any(|&id| feeds_addition(graph, &consumers, id)) {
                        scale *= 0.25;
                    }
                    if last_linear == Some(node.name.as_str()) {
                        scale *= 0.1;
                    }
                    recipe(0.0, scale)
                }
                None => other(node, index, elements),
            };
            for_each_param(expr, &mut |key, _| {
                recipes.entry(key).or_insert(recipe);
            });
        }
    }
    recipes
}

fn other(node: &Node, index: usize, elements: usize) -> Recipe {
    match (&node.op, index) {
        (Op::BatchNorm { .. }, 1) => FACTOR,
        (Op::BatchNorm { .. }, 2 | 3) => recipe(0.0, 0.1),
        (Op::BatchNorm { .. }, 4) => POSITIVE,
        (Op::Affine, 1) => recipe(1.0, 0.0),
        (Op::Binary { kind, .. }, _) => match kind {
            BinaryOp::Mul | BinaryOp::Div if elements == 1 => recipe(1.0, 0.0),
            BinaryOp::Mul => FACTOR,
            BinaryOp::Div => POSITIVE,
            BinaryOp::Prelu => recipe(0.25, 0.0),
            _ => BIAS,
        },
        _ => BIAS,
    }
}

/// Terms that one output element sums, where operand `index` is the weights.
fn weights_fan_in(graph: &Graph, node: &Node, index: usize) -> Option<u64> {
    let shape = &graph.tensor(node.inputs.get(index).copied().flatten()?).shape;
    let product = |extents: Option<&[usize]>| extents.map(|e| e.iter().map(|&n| n as u64).product());
    match (&node.op, index) {
        (Op::Conv2d(_) | Op::Linear { .. }, 1) => product(shape.get(1..)),
        (Op::LocallyConnected2d { .. }, 1) => product(shape.get(1..4)),
        (Op::MatMul { transpose_b, .. }, 1) => {
            let back = if *transpose_b { 1 } else { 2 };
            shape
                .len()
                .checked_sub(back)
                .and_then(|i| shape.get(i))
                .map(|&k| k as u64)
        }
        (Op::MatMul { transpose_a, .. }, 0) => {
            let back = if *transpose_a { 2 } else { 1 };
            shape
                .len()
                .checked_sub(back)
                .and_then(|i| shape.get(i))
                .map(|&k| k as u64)
        }
        _ => None,
    }
}

fn reads_const(graph: &Graph, node: &Node, index: usize) -> bool {
    let id = node.inputs.get(index).copied().flatten();
    id.is_some_and(|id| graph.tensor(id).is_const())
}

/// Whether two activations are added, one of them this, seen through linear operators that keep the shape.
fn feeds_addition(graph: &Graph, consumers: &[Vec<NodeId>], id: TensorId) -> bool {
    let mut rest = vec![id];
    while let Some(id) = rest.pop() {
        for reader in consumers.get(id.0).into_iter().flatten() {
            let node = &graph.nodes[reader.0];
            match &node.op {
                Op::Binary {
                    kind: BinaryOp::Add | BinaryOp::Sub,
                    activation,
                } => {
                    if !reads_const(graph, node, 0) && !reads_const(graph, node, 1) {
                        return true;
                    }
                    if *activation == Activation::None {
                        rest.extend(&node.outputs);
                    }
                }
                Op::BatchNorm { .. } | Op::Affine | Op::Identity | Op::Reshape => rest.extend(&node.outputs),
                _ => {}
            }
        }
    }
    false
}

/// Output `index` of the SplitMix64 stream with this state.
fn output(state: u64, index: u64) -> u64 {
    let mut z = state.wrapping_add(index.wrapping_add(1).wrapping_mul(GAMMA));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Number `index` of the SplitMix64 stream with this state, from 0 to below 1.
#[must_use]
pub fn uniform(state: u64, index: u64) -> f64 {
    (output(state, index) >> 11) as f64 / (1_u64 << 53) as f64
}

/// The standard normal quantile of a 64-bit uniform number.
fn normal(uniform: u64) -> f64 {
    let p = ((uniform >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64);
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        let above = ((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179;
        let below = ((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0;
        return q * above / below;
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = (-ln(tail)).sqrt();
    let n = if r <= 5.0 {
        let r = r - 1.6;
        let above = ((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777;
        let below = (0.12021132975 * r + 0.73700164250) * r + 1.0;
        above / below
    } else {
        let r = r - 5.0;
        let above = ((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150;
        let below = (0.012258202635 * r + 0.24197894225) * r + 1.0;
        above / below
    };
    if q < 0.0 { -n } else { n }
}

/// Natural logarithm of a positive normal number: exponent times ln 2, and the series of 2 atanh((m - 1) / (m + 1)) with m in
/// sqrt(1/2)..sqrt(2). The error is below 1e-12.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7FF) as i64 - 1023;
    let mut m = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        exponent += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut series = 0.0;
    for k in [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        series = series * z + 1.0 / k;
    }
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_that_of_the_standard_library() {
        for i in 1..10_000 {
            let x = f64::from(i) * 1e-5 + 1e-17;
            assert!((ln(x) - x.ln()).abs() < 1e-12 * x.ln().abs().max(1.0), "{x}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let uniform = |p: f64| (p * (1u64 << 53) as f64) as u64 * 2048;
        let expected = [
            (0.5, 0.0),
            (0.841344746, 1.0),
            (0.975, 1.959963985),
            (0.001, -3.090232306),
            (1e-9, -5.997807015),
            (1e-13, -7.348796102),
        ];
        for (p, n) in expected {
            assert!(
                (normal(uniform(p)) - n).abs() < 2e-4 * f64::max(1.0, n.abs()) * if p < 1e-12 { 10.0 } else { 0.01 },
                "{p}"
            );
        }
    }

    /// The first values are part of the contract: the same seed gives the same weights in every version.
    #[test]
    fn moments_and_first_values_are_fixed() {
        let count = 1 << 20;
        let values: Vec<f64> = (0..count).map(|i| normal(output(7, i))).collect();
        let mean = values.iter().sum::<f64>() / count as f64;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / count as f64;
        let kurtosis = values.iter().map(|v| v.powi(4)).sum::<f64>() / count as f64;
        assert!(mean.abs() < 3e-3 && (variance - 1.0).abs() < 5e-3 && (kurtosis - 3.0).abs() < 0.05);
        assert_eq!(output(0, 0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(output(0, 1), 0x6E78_9E6A_A1B9_65F4);
    }
}
