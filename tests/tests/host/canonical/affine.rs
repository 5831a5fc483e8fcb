//! Batch norms and constants beside layers.

use arenite_host::graph::{Activation, BinaryOp, DType, Op, Tensor};
use arenite_host::passes;
use arenite_host::stage::Stage;

use super::network::Network;

const CHAIN: [BinaryOp; 4] = [BinaryOp::Mul, BinaryOp::Add, BinaryOp::Div, BinaryOp::Sub];

#[test]
fn a_batch_norm_goes_into_the_layer_before_it() {
    let (mut net, x) = Network::new(&[3, 12], 1);
    let y = net.linear(x, 5, true);
    let y = net.batch_norm(y, 1);
    let y = net.relu(y);
    assert_eq!(net.behind(Stage::Fuse, &[y]).1, ["linear"]);

    // A matrix product and its sum are such a layer.
    let (mut net, x) = Network::new(&[3, 12], 2);
    let weights = net.constant(&[12, 5], -1.0, 1.0);
    let product = Op::MatMul {
        transpose_a: false,
        transpose_b: false,
    };
    let y = net.op(product, &[x, weights], &[3, 5]);
    let bias = net.constant(&[5], -1.0, 1.0);
    let y = net.binary(BinaryOp::Add, y, bias);
    let y = net.batch_norm(y, 1);
    assert_eq!(net.behind(Stage::Fuse, &[y]).1, ["linear"]);
}

#[test]
fn a_batch_norm_goes_into_the_layer_behind_it() {
    for groups in [1, 2] {
        let (mut net, x) = Network::new(&[1, 4, 6, 7], 3);
        let y = net.batch_norm(x, 1);
        let y = net.conv(y, (3, groups), [2, 3], 0);
        assert_eq!(net.behind(Stage::Fold, &[y]).1, ["conv"], "{groups}");
    }
    let (mut net, x) = Network::new(&[2, 9], 4);
    let y = net.relu(x);
    let y = net.batch_norm(y, 1);
    let y = net.linear(y, 4, false);
    assert_eq!(net.behind(Stage::Fold, &[y]).1, ["unary", "linear"]);
    // Zeros are padded behind the batch norm.
    let (mut net, x) = Network::new(&[1, 4, 6, 7], 5);
    let y = net.batch_norm(x, 1);
    let y = net.conv(y, (3, 1), [2, 3], 1);
    assert_eq!(net.behind(Stage::Fold, &[y]).1, ["mul", "add", "conv"]);
}

/// Weights that the network computes are no layer's own.
#[test]
fn a_batch_norm_behind_computed_weights_is_a_factor_and_a_sum() {
    let (mut net, x) = Network::new(&[3, 12], 16);
    let weights = net.relu(x);
    let linear = Op::Linear {
        activation: Activation::None,
    };
    let y = net.op(linear, &[x, weights], &[3, 3]);
    let y = net.batch_norm(y, 1);
    assert_eq!(net.behind(Stage::Fold, &[y]).1, ["unary", "linear", "mul", "add"]);
}

#[test]
fn a_factor_goes_through_padding() {
    let (mut net, x) = Network::new(&[1, 4, 6, 7], 6);
    let factors = net.constant(&[4, 1, 1], 0.5, 3.0);
    let y = net.binary(BinaryOp::Div, x, factors);
    let y = net.conv(y, (3, 2), [2, 3], 1);
    assert_eq!(net.behind(Stage::Fold, &[y]).1, ["conv"]);
}

#[test]
fn constants_go_into_the_layer_before_them() {
    for shape in [vec![], vec![3, 1, 1]] {
        let (mut net, x) = Network::new(&[1, 4, 6, 7], 7);
        let mut y = net.conv(x, (3, 1), [2, 3], 1);
        for kind in CHAIN {
            let constant = net.constant(&shape, 0.5, 3.0);
            y = net.binary(kind, y, constant);
        }
        let y = net.relu(y);
        assert_eq!(net.behind(Stage::Fuse, &[y]).1, ["transpose", "conv", "transpose"]);
    }
    // Of elements, not of channels.
    let (mut net, x) = Network::new(&[1, 4, 6, 7], 8);
    let y = net.conv(x, (3, 1), [2, 3], 1);
    let constant = net.constant(&[3, 5, 7], 0.5, 3.0);
    let y = net.binary(BinaryOp::Mul, y, constant);
    assert_eq!(net.behind(Stage::Fold, &[y]).1, ["conv", "mul"]);
}

#[test]
fn what_others_read_stays() {
    // The layer's result.
    let (mut net, x) = Network::new(&[2, 9], 9);
    let first = net.linear(x, 4, true);
    let half = net.stated(&[], &[0.375]);
    let y = net.binary(BinaryOp::Mul, first, half);
    assert_eq!(net.behind(Stage::Fold, &[y, first]).1, ["linear", "mul"]);
    // Its weights.
    let (mut net, x) = Network::new(&[2, 9], 10);
    let weights = net.constant(&[9, 9], -1.0, 1.0);
    let linear = Op::Linear {
        activation: Activation::None,
    };
    let first = net.same(linear.clone(), &[x, weights]);
    let half = net.stated(&[], &[0.375]);
    let scaled = net.binary(BinaryOp::Mul, first, half);
    let y = net.same(linear, &[scaled, weights]);
    assert_eq!(net.behind(Stage::Fold, &[y]).1, ["linear", "mul", "linear"]);
}

#[test]
fn constants_in_a_row_are_one_factor_and_one_sum() {
    let (mut net, x) = Network::new(&[2, 5, 3], 11);
    let mut y = net.relu(x);
    for kind in CHAIN.into_iter().chain(CHAIN) {
        let constant = net.constant(&[3], 0.5, 2.0);
        y = net.binary(kind, y, constant);
    }
    let y = net.relu(y);
    assert_eq!(net.behind(Stage::Fold, &[y]).1, ["unary", "mul", "add", "unary"]);
    // A constant grows no larger: one of rows and one of columns stay two.
    let (mut net, x) = Network::new(&[2, 5, 3], 12);
    let (rows, columns) = (net.constant(&[5, 1], 0.5, 2.0), net.constant(&[3], 0.5, 2.0));
    let y = net.binary(BinaryOp::Mul, x, rows);
    let y = net.binary(BinaryOp::Mul, y, columns);
    assert_eq!(net.behind(Stage::Fold, &[y]).1, ["mul", "mul"]);
}

#[test]
fn large_offsets_are_taken_away_before_products() {
    for (offset, steps) in [(200.0, vec!["linear"]), (101_325.0, vec!["sub", "linear"])] {
        let (mut net, x) = Network::new(&[2, 9], 13);
        let offset = net.stated(&[], &[offset]);
        let y = net.binary(BinaryOp::Sub, x, offset);
        let y = net.linear(y, 4, true);
        assert_eq!(net.behind(Stage::Fold, &[y]).1, steps);
    }
}

#[test]
fn divisors_that_are_powers_of_two_are_factors() {
    let kinds = |values: &[f32], last: Stage| {
        let (mut net, x) = Network::new(&[2, 3], 14);
        let divisor = net.stated(&[3], values);
        let y = net.binary(BinaryOp::Div, x, divisor);
        let mut graph = net.behind(Stage::Fuse, &[y]).0;
        if last == Stage::Quantize {
            passes::run(&mut graph, last).expect("it runs");
        }
        match graph.nodes[0].op {
            Op::Binary { kind, .. } => kind,
            ref other => panic!("{other:?}"),
        }
    };
    assert_eq!(kinds(&[2.0, -0.25, 1.0], Stage::Fuse), BinaryOp::Mul);
    assert_eq!(kinds(&[2.0, 3.0, 1.0], Stage::Fuse), BinaryOp::Div);
    assert_eq!(kinds(&[2.0, 3.0, 1.0], Stage::Quantize), BinaryOp::Mul);
    assert_eq!(kinds(&[2.0, 0.0, 1.0], Stage::Quantize), BinaryOp::Div, "no inverse");
    assert_eq!(
        kinds(&[2.0, f32::from_bits(1), 1.0], Stage::Quantize),
        BinaryOp::Div,
        "its inverse is infinite"
    );
}

/// Integers that a file states are no floats that may be rounded otherwise.
#[test]
fn networks_that_state_integers_are_left_alone() {
    let (mut net, x) = Network::new(&[2, 9], 15);
    let bytes = Tensor {
        quant: Some(arenite_host::graph::Quant::per_tensor(0.5, 0)),
        ..Tensor::activation("bytes", &[2, 9], DType::I8)
    };
    let y = net.same(Op::Quantize, &[x]);
    *net.graph.tensor_mut(y) = bytes;
    let y = net.same(Op::Dequantize, &[y]);
    let y = net.linear(y, 4, true);
    let half = net.stated(&[], &[0.375]);
    let y = net.binary(BinaryOp::Mul, y, half);
    net.graph.outputs = vec![y];
    passes::run(&mut net.graph, Stage::Fold).expect("it folds");
    assert_eq!(net.graph.nodes.len(), 4, "{:?}", net.graph.nodes);
}
