//! Every operator of the trace schema by itself, and random networks of several: at least 30 dB against loops in f64, or refused by its name with the
//! option that leaves it in f32.

use arenite_host::quantize::Activations;
use arenite_tests::{oracle, properties};
use proptest::prelude::*;
use serde_json::json;

use crate::quantise::network::Network;

/// Signal over noise that an operator must reach in int8, in dB.
const LEAST: f64 = 30.0;

/// And in int16, where the weights are of eight bits all the same.
const LEAST_INT16: f64 = 40.0;

/// Adds an operator to `y`, an activation `[1, 6, 7, 5]`; `z` is another one, of a convolution.
pub(crate) type Add = fn(&mut Network, y: &str, z: &str) -> String;

pub(crate) const OPERATORS: &[(&str, Add)] = &[
    ("conv2d", |n, y, _| {
        n.conv2d(y, [4, 6, 3, 2], json!({"strides": [2, 1], "padding": [1, 0, 0, 1]}))
    }),
    ("grouped", |n, y, _| {
        n.conv2d(y, [4, 3, 2, 3], json!({"groups": 2, "dilation": [2, 1]}))
    }),
    ("depthwise", |n, y, _| {
        n.conv2d(y, [6, 1, 3, 2], json!({"groups": 6, "padding": [1, 1, 0, 0]}))
    }),
    ("linear", |n, y, _| {
        let flat = n.push("flatten", &[y], json!({}));
        let weights = n.parameter(&[5, 210], |v| v * 0.1);
        let bias = n.parameter(&[5], |v| v);
        n.push("linear", &[&flat, &weights, &bias], json!({}))
    }),
    ("max_pool2d", |n, y, _| {
        n.push("max_pool2d", &[y], json!({"kernel": [3, 2], "strides": [2, 1]}))
    }),
    ("avg_pool2d", |n, y, _| {
        n.push("avg_pool2d", &[y], json!({"kernel": [3, 2], "strides": [2, 1]}))
    }),
    ("avg_pool2d, padding counts", |n, y, _| {
        n.push(
            "avg_pool2d",
            &[y],
            json!({"kernel": [3, 2], "strides": [2, 1], "padding": [1, 1, 0, 1]}),
        )
    }),
    ("relu", |n, y, _| n.push("relu", &[y], json!({}))),
    ("relu of a transposition", |n, y, _| {
        let moved = n.push("transpose", &[y], json!({"perm": [0, 2, 1, 3]}));
        n.push("relu", &[&moved], json!({}))
    }),
    ("clamp", |n, y, _| {
        n.push("clamp", &[y], json!({"min": -0.4, "max": 0.9}))
    }),
    ("leaky_relu", |n, y, _| {
        n.push("leaky_relu", &[y], json!({"negative_slope": 0.1}))
    }),
    ("sigmoid", |n, y, _| n.push("sigmoid", &[y], json!({}))),
    ("tanh", |n, y, _| n.push("tanh", &[y], json!({}))),
    ("hardswish", |n, y, _| n.push("hardswish", &[y], json!({}))),
    ("silu", |n, y, _| n.push("silu", &[y], json!({}))),
    ("abs", |n, y, _| n.push("abs", &[y], json!({}))),
    ("neg", |n, y, _| n.push("neg", &[y], json!({}))),
    ("add", |n, y, z| n.push("add", &[y, z], json!({}))),
    ("sub", |n, y, z| n.push("sub", &[y, z], json!({}))),
    ("mul", |n, y, z| n.push("mul", &[y, z], json!({}))),
    ("maximum", |n, y, z| n.push("maximum", &[y, z], json!({}))),
    ("minimum", |n, y, z| n.push("minimum", &[y, z], json!({}))),
    ("factor of each channel", |n, y, _| {
        let factor = n.parameter(&[6, 1, 1], |v| v * v * 3.0 + 0.01);
        let pooled = n.push("max_pool2d", &[y], json!({"kernel": [2, 2], "strides": [1, 1]}));
        n.push("mul", &[&pooled, &factor], json!({}))
    }),
    ("a factor", |n, y, _| {
        let factor = n.parameter(&[1], |v| v + 2.0);
        n.push("mul", &[y, &factor], json!({}))
    }),
    ("batch_norm", |n, y, _| {
        let pooled = n.push("max_pool2d", &[y], json!({"kernel": [2, 2], "strides": [1, 1]}));
        let gamma = n.parameter(&[6], |v| 1.0 + v * 0.9);
        let [beta, mean] = [(); 2].map(|()| n.parameter(&[6], |v| v));
        let variance = n.parameter(&[6], |v| 1.0 + 0.5 * v.abs());
        n.push("batch_norm", &[&pooled, &gamma, &beta, &mean, &variance], json!({}))
    }),
    ("softmax", |n, y, _| n.push("softmax", &[y], json!({"axis": 1}))),
    ("mean", |n, y, _| n.push("mean", &[y], json!({"axes": [2, 3]}))),
    ("sum", |n, y, _| {
        n.push("sum", &[y], json!({"axes": [3], "keepdims": true}))
    }),
    ("max", |n, y, _| n.push("max", &[y], json!({"axes": [2]}))),
    ("flatten", |n, y, _| n.push("flatten", &[y], json!({}))),
    ("reshape", |n, y, _| {
        n.push("reshape", &[y], json!({"shape": [-1, 7, 30]}))
    }),
    ("transpose", |n, y, _| {
        n.push("transpose", &[y], json!({"perm": [0, 3, 1, 2]}))
    }),
    ("pad", |n, y, _| {
        let padding = json!([[0, 0], [0, 1], [2, 0], [1, 1]]);
        n.push("pad", &[y], json!({"padding": padding, "value": 0.75}))
    }),
    ("concat", |n, y, z| n.push("concat", &[y, z], json!({"axis": 1}))),
    ("concat of a fixed range", |n, y, z| {
        let small = n.push("sigmoid", &[z], json!({}));
        n.push("concat", &[&small, y], json!({"axis": 1}))
    }),
    ("slice", |n, y, _| {
        n.push("slice", &[y], json!({"axis": 3, "start": 1, "stop": 4}))
    }),
    ("dropout", |n, y, _| n.push("dropout", &[y], json!({}))),
    ("product of activations", |n, y, z| {
        let moved = n.push("transpose", &[z], json!({"perm": [0, 1, 3, 2]}));
        n.push("matmul", &[y, &moved], json!({}))
    }),
    ("product of activations, and a clamp", |n, y, z| {
        let moved = n.push("transpose", &[z], json!({"perm": [0, 1, 3, 2]}));
        let product = n.push("matmul", &[y, &moved], json!({}));
        let bias = n.parameter(&[7], |v| v);
        let sum = n.push("add", &[&product, &bias], json!({}));
        n.push("relu", &[&sum], json!({}))
    }),
    ("attention under a mask", |n, y, z| {
        let moved = n.push("transpose", &[z], json!({"perm": [0, 1, 3, 2]}));
        let scores = n.push("matmul", &[y, &moved], json!({}));
        let mask = n.parameter(&[7, 7], |v| if v > 0.4 { -1e9 } else { 0.0 });
        let masked = n.push("add", &[&scores, &mask], json!({}));
        let shares = n.push("softmax", &[&masked], json!({"axis": 3}));
        n.push("matmul", &[&shares, z], json!({}))
    }),
    ("quotient", |n, y, z| {
        let positive = n.push("sigmoid", &[z], json!({}));
        let half = n.parameter(&[1], |_| 0.5);
        let by = n.push("add", &[&positive, &half], json!({}));
        n.push("div", &[y, &by], json!({}))
    }),
    ("root mean square", |n, y, z| {
        let sum = n.push("add", &[y, z], json!({}));
        let squares = n.push("mul", &[&sum, &sum], json!({}));
        let mean = n.push("mean", &[&squares], json!({"axes": [3], "keepdims": true}));
        let least = n.parameter(&[1], |_| 0.3);
        let above = n.push("add", &[&mean, &least], json!({}));
        let root = n.push("sqrt", &[&above], json!({}));
        n.push("div", &[&sum, &root], json!({}))
    }),
    ("maximum, and a clamp", |n, y, z| {
        let larger = n.push("maximum", &[y, z], json!({}));
        n.push("relu", &[&larger], json!({}))
    }),
];

/// A convolution that keeps the extents `[1, 6, 7, 5]`.
pub(crate) fn same(n: &mut Network, x: &str) -> String {
    n.conv2d(x, [6, 6, 3, 1], json!({"padding": [1, 1, 0, 0]}))
}

#[test]
fn every_operator_reaches_thirty_decibels_or_is_named() {
    let compared = every_operator(Activations::Int8, LEAST);
    assert!(
        compared >= OPERATORS.len() - 1,
        "{compared} of {} are int8",
        OPERATORS.len()
    );
    oracle::compared("loops in f64", compared, 36);
}

#[test]
fn every_operator_reaches_forty_decibels_in_int16_or_is_named() {
    let compared = every_operator(Activations::Int16, LEAST_INT16);
    oracle::compared("loops in f64", compared, 30);
}

/// How many operators have a form on such activations. Those that have none must say so.
fn every_operator(activations: Activations, least: f64) -> usize {
    let mut compared = 0;
    let none = format!("no {} form", activations.dtype().name());
    for (index, (name, add)) in OPERATORS.iter().enumerate() {
        let mut network = Network::new(index as u64 + 1, &[1, 6, 7, 5]);
        network.activations = activations;
        let z = same(&mut network, "x");
        let last = add(&mut network, "x", &z);
        match network.snr(&[]) {
            Ok(snr) => {
                assert!(snr >= least, "{name}: {snr:.1} dB");
                compared += 1;
            }
            Err(error) => {
                let message = error.to_string();
                assert!(
                    message.contains(&none) && message.contains("--keep-f32"),
                    "{name}: {message}"
                );
                // An operator may be several, of which more than the last one have no form: they are named as well.
                match network.snr(&[&last]) {
                    Ok(snr) => assert!(snr >= least, "{name} in f32: {snr:.1} dB"),
                    Err(error) => assert!(error.to_string().contains(&none), "{name} in f32: {error}"),
                }
                let snr = network
                    .snr(&["auto"])
                    .unwrap_or_else(|e| panic!("{name} by itself: {e}"));
                assert!(snr >= least, "{name} by itself: {snr:.1} dB");
            }
        }
    }
    compared
}

proptest! {
    #![proptest_config(properties::config("quantise", 0.1))]

    /// Chains of up to three operators between convolutions: each adds its noise.
    #[test]
    fn random_networks_stay_near_their_formulas(
        seed in 1_u64..1 << 40,
        picks in prop::collection::vec(0..OPERATORS.len(), 1..4),
    ) {
        let mut network = Network::new(seed, &[1, 6, 7, 5]);
        let mut y = same(&mut network, "x");
        let z = same(&mut network, "x");
        let chained = picks.iter().filter(|pick| SAME.contains(&OPERATORS[**pick].0));
        for pick in chained.clone() {
            y = OPERATORS[*pick].1(&mut network, &y, &z);
            y = same(&mut network, &y);
        }
        let snr = network.snr(&[]);
        let least = LEAST - 3.5 * (1 + chained.count()) as f64;
        prop_assert!(snr.as_ref().is_ok_and(|snr| *snr >= least), "{:?} {:?}", picks, snr.map_err(|e| e.to_string()));
    }
}

/// Operators whose result is an image of the same extents.
const SAME: [&str; 12] = [
    "relu",
    "clamp",
    "leaky_relu",
    "tanh",
    "hardswish",
    "silu",
    "abs",
    "neg",
    "add",
    "sub",
    "maximum",
    "minimum",
];
