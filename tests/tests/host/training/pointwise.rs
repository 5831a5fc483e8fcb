//! Gradients of operators between elements, reductions, softmax and products of activations, beside central differences of the network as written, in f64.

use arenite_host::gradient::Loss;
use arenite_host::model::gradients::Gradients;
use arenite_host::pack::Options;
use serde_json::{Value, json};

use super::*;
use crate::quantise::network::Network;

/// Rows, and their width.
const SHAPE: [usize; 2] = [3, 5];

/// Half the sum of squares of a network's output.
fn loss(network: &Network, x: &ndarray::ArrayD<f32>) -> f64 {
    network.expected(x).iter().map(|y| 0.5 * y * y).sum()
}

/// Trains a network by one step; every gradient within `1e-4` of its largest element, or of the loss's where that is more.
fn agrees(what: &str, mut network: Network, trainable: &[&str], expected: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let x = network.samples(1).remove(0);
    let options = Options {
        train: request(Loss::L2, trainable),
        ..Options::new(network.write(folder.path()), folder.path().join("net.bin"))
    };
    let (file, told) = packed(options);
    arenite_host::memory::prove::prove(&file.view().expect("intact")).expect("both plans are right");
    assert!(told.summary.plan_proven_optimal, "{what}");
    let view = file.view().expect("intact");
    let training = view.training().expect("intact").expect("steps of training");
    let mut gradients = Gradients::of(&training).expect("updates");
    let mut given = Some(vec![bytes(x.as_slice().expect("in order")), bytes(&[0.0])]);
    let (model, mut outputs) = (file.load().expect("loads"), Vec::new());
    let kept = model::train_keeping(
        &model,
        None,
        &mut |_| given.take(),
        &mut |_, found| {
            outputs = found.to_vec();
            Ok(())
        },
        &mut gradients,
    );
    kept.expect("it trains");
    let here = loss(&network, &x);
    let ours = f64::from(floats(&outputs[0])[0]);
    assert!((ours - here).abs() <= 1e-5 * here.max(1.0), "{what}: {ours} and {here}");
    let found = gradients.into_found().expect("a step was made");
    assert_eq!(found.len(), expected, "{what}");
    for gradient in found {
        let ours: Vec<f64> = gradient.values.iter().map(|&value| f64::from(value)).collect();
        let theirs: Vec<f64> = (0..ours.len())
            .map(|at| {
                let step = 1e-5;
                let mut moved = |by: f64| {
                    network.change(&gradient.name, at, by);
                    let value = loss(&network, &x);
                    network.change(&gradient.name, at, -by);
                    value
                };
                (moved(step) - moved(-step)) / (2.0 * step)
            })
            .collect();
        let largest = theirs.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let far = ours
            .iter()
            .zip(&theirs)
            .fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
        assert!(largest > 0.0, "{what}, {}: no gradient", gradient.name);
        assert!(
            far <= 1e-4 * largest.max(1e-2 * here),
            "{what}, {}: {far:e} of {largest:e}",
            gradient.name
        );
    }
}

/// A layer in front, whose gradient goes through all that follows.
fn begun(seed: u64) -> (Network, String) {
    let mut network = Network::new(seed, &SHAPE);
    let weights = network.parameter(&[4, SHAPE[1]], |v| 0.9 * v);
    let bias = network.parameter(&[4], |v| 0.3 * v);
    let x = network.push("linear", &["x", &weights, &bias], json!({}));
    (network, x)
}

#[test]
fn functions_of_one_operand() {
    for (seed, op) in [
        "leaky_relu",
        "exp",
        "tanh",
        "sigmoid",
        "hardswish",
        "silu",
        "abs",
        "neg",
        "log",
        "sqrt",
        "relu",
        "rsqrt",
        "square",
        "softsign",
        "softplus",
        "hardsigmoid",
        "erf",
        "gelu",
        "gelu_tanh",
        "sin",
        "cos",
    ]
    .into_iter()
    .enumerate()
    {
        let (mut network, mut x) = begun(11 + seed as u64);
        if matches!(op, "log" | "sqrt" | "rsqrt") {
            x = network.push("exp", &[&x], json!({}));
        }
        let attrs = if op == "leaky_relu" {
            json!({"negative_slope": 0.3})
        } else {
            json!({})
        };
        let y = network.push(op, &[&x], attrs);
        // Its own gradient differs from element to element.
        let gain = network.parameter(&[3, 4], |v| 0.5 + v);
        network.push("mul", &[&y, &gain], json!({}));
        agrees(op, network, &[], 2);
    }
}

#[test]
fn operators_of_two_operands() {
    for (seed, op) in ["add", "sub", "mul", "div"].into_iter().enumerate() {
        // Of the same shape, of a column, of a row that is computed; either operand first.
        for (place, [rows, columns]) in [[3, 4], [3, 1], [1, 4], [1, 1]].into_iter().enumerate() {
            for turned in [false, true] {
                let (mut network, a) = begun((31 + 8 * seed + 2 * place) as u64 + u64::from(turned));
                let axes: Vec<usize> = (0..2).filter(|&axis| [rows, columns][axis] == 1).collect();
                let mut b = network.push("sigmoid", &[&a], json!({}));
                if !axes.is_empty() {
                    b = network.push("mean", &[&b], json!({"axes": axes, "keepdims": true}));
                }
                let operands = if turned { [&*b, &*a] } else { [&*a, &*b] };
                let shift = network.parameter(&[1, 4], |v| 3.0 + v);
                let first = network.push("exp", &[operands[0]], json!({}));
                let second = network.push("add", &[operands[1], &shift], json!({}));
                network.push(op, &[&first, &second], json!({}));
                agrees(
                    &format!("{op} of {rows} x {columns}, turned: {turned}"),
                    network,
                    &[],
                    2,
                );
            }
        }
    }
}

/// Constants of sums and products are trained where a pattern has their names.
#[test]
fn constants_of_sums_and_products() {
    for (place, shape) in [&[3, 4][..], &[1, 4], &[4], &[3, 1]].into_iter().enumerate() {
        let (mut network, x) = begun(71 + place as u64);
        // Right behind a layer they would be folded into it.
        let x = network.push("tanh", &[&x], json!({}));
        let gain = network.parameter(shape, |v| 1.0 + 0.5 * v);
        let scaled = network.push("mul", &[&x, &gain], json!({}));
        let shift = network.parameter(shape, |v| 0.5 * v);
        let shifted = network.push("add", &[&shift, &scaled], json!({}));
        network.push("tanh", &[&shifted], json!({}));
        agrees(&format!("{shape:?}"), network, &["*"], 4);
    }
}

#[test]
fn reductions_softmax_and_views() {
    let cases: [(&str, Value); 8] = [
        ("slice", json!({"axis": 1, "start": 1, "stop": 3})),
        ("mean", json!({"axes": [1], "keepdims": true})),
        ("mean", json!({"axes": [0], "keepdims": false})),
        ("sum", json!({"axes": [1], "keepdims": false})),
        ("sum", json!({"axes": [0, 1], "keepdims": true})),
        ("softmax", json!({"axis": 1})),
        ("log_softmax", json!({"axis": 1})),
        ("transpose", json!({"perm": [1, 0]})),
    ];
    for (seed, (op, attrs)) in cases.into_iter().enumerate() {
        let (mut network, x) = begun(91 + seed as u64);
        let y = network.push(op, &[&x], attrs.clone());
        let z = network.push("tanh", &[&y], json!({}));
        network.push("mul", &[&z, &y], json!({}));
        agrees(&format!("{op} {attrs}"), network, &[], 2);
    }
}

#[test]
fn slices_that_leave_elements_out_are_refused() {
    let (mut network, x) = begun(121);
    network.push("slice", &[&x], json!({"axis": 1, "start": 0, "stop": 4, "step": 2}));
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        train: request(Loss::L2, &[]),
        ..Options::new(network.write(folder.path()), folder.path().join("net.bin"))
    };
    let error = arenite_host::pack::pack(&options, &mut |_, _, _| {})
        .map(|_| ())
        .expect_err("refused");
    assert!(
        error
            .to_string()
            .contains("no gradient of `slice1` (slice): it leaves elements out"),
        "{error}"
    );
}

/// Attention of one head behind a layer norm by its parts: queries, keys and values of one layer each, their products, a softmax, a residual sum.
#[test]
fn a_block_of_a_transformer() {
    let (mut network, x) = begun(131);
    let mean = network.push("mean", &[&x], json!({"axes": [1], "keepdims": true}));
    let centred = network.push("sub", &[&x, &mean], json!({}));
    let square = network.push("mul", &[&centred, &centred], json!({}));
    let variance = network.push("mean", &[&square], json!({"axes": [1], "keepdims": true}));
    let epsilon = network.parameter(&[1], |_| 1e-3);
    let more = network.push("add", &[&variance, &epsilon], json!({}));
    let deviation = network.push("sqrt", &[&more], json!({}));
    let normal = network.push("div", &[&centred, &deviation], json!({}));
    let gain = network.parameter(&[4], |v| 1.0 + 0.3 * v);
    let scaled = network.push("mul", &[&normal, &gain], json!({}));
    let shift = network.parameter(&[4], |v| 0.3 * v);
    let normal = network.push("add", &[&scaled, &shift], json!({}));
    // A bias of keys would change no share.
    let layer = |network: &mut Network, x: &str, [outputs, inputs]: [usize; 2]| {
        let weights = network.parameter(&[outputs, inputs], |v| v);
        network.push("linear", &[x, &weights], json!({}))
    };
    let [q, k, v] = [(); 3].map(|()| layer(&mut network, &normal, [4, 4]));
    let keys = network.push("transpose", &[&k], json!({"perm": [1, 0]}));
    let scores = network.push("matmul", &[&q, &keys], json!({}));
    let shares = network.push("softmax", &[&scores], json!({"axis": 1}));
    let mixed = network.push("matmul", &[&shares, &v], json!({}));
    let sum = network.push("add", &[&x, &mixed], json!({}));
    let wide = layer(&mut network, &sum, [6, 4]);
    let active = network.push("silu", &[&wide], json!({}));
    layer(&mut network, &active, [2, 6]);
    agrees("a transformer's block", network, &["*"], 9);
}
