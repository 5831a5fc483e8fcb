//! Variants that exporters write for the same network (`docs/onnx.md`, One graph through every door).

use arenite::ops::pointwise::{Function, SpecialOp};
use arenite_host::graph::{Activation, BinaryOp, Layout, Op, Padding2d, PoolAttrs, ReduceKind, UnaryKind};
use arenite_host::stage::Stage;

use super::network::Network;

/// A product of three axes as exporters write it: rows, the layer, the axes again, a sum.
#[test]
fn a_layer_between_reshapes_takes_all_axes_and_its_bias() {
    let (mut net, x) = Network::new(&[2, 3, 7], 1);
    let mut y = x;
    for (within, out) in [(7, 5), (5, 4)] {
        let rows = net.reshape(y, &[6, within]);
        let layer = net.linear(rows, out, false);
        let wide = net.reshape(layer, &[2, 3, out]);
        let bias = net.constant(&[out], -1.0, 1.0);
        y = net.binary(BinaryOp::Add, wide, bias);
        y = net.relu(y);
    }
    let (graph, steps) = net.behind(Stage::Fuse, &[y]);
    assert_eq!(steps, ["linear", "linear"]);
    assert_eq!(graph.nodes.len(), 2, "no reshape stays");
}

#[test]
fn a_layer_between_other_reshapes_stays() {
    // Its rows are made of several.
    let (mut net, x) = Network::new(&[2, 3, 7], 2);
    let rows = net.reshape(x, &[2, 21]);
    let y = net.linear(rows, 5, false);
    let y = net.reshape(y, &[2, 1, 5]);
    let y = net.relu(y);
    assert_eq!(net.behind(Stage::Fold, &[y]).1, ["linear", "unary"]);
    // The axes behind are others.
    let (mut net, x) = Network::new(&[2, 3, 7], 3);
    let rows = net.reshape(x, &[6, 7]);
    let layer = net.linear(rows, 5, false);
    let y = net.reshape(layer, &[3, 2, 5]);
    let (graph, _) = net.behind(Stage::Fold, &[y]);
    assert_eq!(graph.nodes.len(), 3);
    // The rows are an output as well.
    let (mut net, x) = Network::new(&[2, 3, 7], 4);
    let rows = net.reshape(x, &[6, 7]);
    let layer = net.linear(rows, 5, false);
    let y = net.reshape(layer, &[2, 3, 5]);
    let (graph, _) = net.behind(Stage::Fold, &[y, layer]);
    assert_eq!(graph.nodes.len(), 3);
}

/// A group normalisation's own factor and sum, where another one of each channel stands behind.
#[test]
fn ones_and_zeros_of_each_channel_do_nothing() {
    let (mut net, x) = Network::new(&[2, 3, 5], 5);
    let y = net.relu(x);
    let (ones, zeros) = (net.stated(&[3, 1], &[1.0; 3]), net.stated(&[3, 1], &[0.0; 3]));
    let product = Op::Binary {
        kind: BinaryOp::Mul,
        activation: Activation::None,
    };
    let y = net.op(product, &[ones, y], &[2, 3, 5]);
    let y = net.binary(BinaryOp::Add, y, zeros);
    let y = net.binary(BinaryOp::Div, y, ones);
    let y = net.binary(BinaryOp::Sub, y, zeros);
    assert_eq!(net.behind(Stage::Fold, &[y]).1, ["unary"]);
    // One of them is not.
    let (mut net, x) = Network::new(&[2, 3, 5], 6);
    let y = net.relu(x);
    let nearly = net.stated(&[3, 1], &[1.0, 1.0, 1.5]);
    let y = net.binary(BinaryOp::Mul, y, nearly);
    assert_eq!(net.behind(Stage::Fold, &[y]).1, ["unary", "mul"]);
    // One divided by a value is not that value.
    let (mut net, x) = Network::new(&[2, 3], 7);
    let y = net.same(Op::Unary(UnaryKind::EXP), &[x]);
    let ones = net.stated(&[2, 3], &[1.0; 6]);
    let y = net.binary(BinaryOp::Div, ones, y);
    assert_eq!(net.behind(Stage::Fold, &[y]).1, ["unary", "div"]);
}

#[test]
fn a_maximum_of_the_whole_plane_is_a_reduction() {
    let pool = |kernel: [usize; 2], right: usize| {
        Op::MaxPool2d(PoolAttrs {
            layout: Layout::Nchw,
            kernel,
            stride: [1, 1],
            padding: Padding2d {
                right,
                ..Padding2d::default()
            },
            count_include_pad: false,
            activation: Activation::None,
        })
    };
    let (mut net, x) = Network::new(&[1, 3, 4, 5], 8);
    let y = net.op(pool([4, 5], 0), &[x], &[1, 3, 1, 1]);
    let (graph, _) = net.behind(Stage::Fold, &[y]);
    let max = |axes: Vec<usize>| Op::Reduce {
        kind: ReduceKind::Max,
        axes,
        keep_dims: true,
    };
    assert_eq!(graph.nodes[0].op, max(vec![2, 3]));
    let (mut net, x) = Network::new(&[1, 3, 4, 5], 9);
    let y = net.op(pool([4, 5], 1), &[x], &[1, 3, 1, 2]);
    assert!(matches!(net.behind(Stage::Fold, &[y]).0.nodes[0].op, Op::MaxPool2d(_)));
    // Axes of extent 1 are not named.
    let (mut net, x) = Network::new(&[1, 3, 1, 5], 10);
    let y = net.op(max(vec![0, 2, 3]), &[x], &[1, 3, 1, 1]);
    assert_eq!(net.behind(Stage::Fold, &[y]).0.nodes[0].op, max(vec![3]));
}

/// A padding of sequences stands before the reshape to an image of a row.
#[test]
fn padding_goes_into_the_convolution_behind_the_reshape() {
    let (mut net, x) = Network::new(&[1, 6, 20], 11);
    let pads = vec![(0, 0), (0, 0), (2, 0)];
    let y = net.op(Op::Pad { pads, value: 0.0 }, &[x], &[1, 6, 22]);
    let y = net.conv1d(y, 4, 3, 0);
    assert_eq!(net.behind(Stage::Fuse, &[y]).1, ["transpose", "conv", "transpose"]);
}

#[test]
fn a_hard_sigmoid_between_layers_is_a_clamp() {
    let hard_sigmoid = Op::Unary(UnaryKind::Function(Function::Special(SpecialOp::HardSigmoid)));
    let (mut net, x) = Network::new(&[2, 9], 12);
    let y = net.linear(x, 5, true);
    let y = net.same(hard_sigmoid.clone(), &[y]);
    let y = net.linear(y, 4, true);
    assert_eq!(net.behind(Stage::Fuse, &[y]).1, ["linear", "linear"]);
    // With padding: a quotient of zero is zero.
    let (mut net, x) = Network::new(&[1, 4, 6, 7], 13);
    let y = net.conv(x, (6, 1), [2, 3], 0);
    let y = net.same(hard_sigmoid.clone(), &[y]);
    let y = net.conv(y, (3, 2), [2, 3], 1);
    assert_eq!(
        net.behind(Stage::Fuse, &[y]).1,
        ["transpose", "conv", "conv", "transpose"]
    );
    // Without a layer on either side, or read elsewhere, it stays.
    let (mut net, x) = Network::new(&[2, 9], 14);
    let y = net.linear(x, 5, true);
    let y = net.same(hard_sigmoid.clone(), &[y]);
    assert_eq!(net.behind(Stage::Fuse, &[y]).1, ["linear", "unary"]);
    let (mut net, x) = Network::new(&[2, 9], 15);
    let y = net.same(hard_sigmoid.clone(), &[x]);
    let y = net.linear(y, 4, true);
    assert_eq!(net.behind(Stage::Fuse, &[y]).1, ["unary", "linear"]);
    let (mut net, x) = Network::new(&[2, 9], 16);
    let y = net.linear(x, 5, true);
    let gate = net.same(hard_sigmoid, &[y]);
    let y = net.linear(gate, 4, true);
    assert_eq!(net.behind(Stage::Fuse, &[y, gate]).1, ["linear", "unary", "linear"]);
}

/// The scale of attention: of a part of a layer's channels, through the axes of heads.
#[test]
fn a_number_goes_through_views_and_slices_into_the_layer() {
    let part = |begin: usize| Op::Slice {
        begin: vec![0, begin],
        stride: vec![1, 1],
    };
    let build = |parts: [usize; 2], scaled: [bool; 2], seed: u64| {
        let (mut net, x) = Network::new(&[5, 7], seed);
        let both = net.linear(x, 12, true);
        let [q, k] = [0, 1].map(|at| {
            let y = net.op(part(parts[at]), &[both], &[5, 6]);
            let y = net.reshape(y, &[5, 2, 3]);
            let y = net.transpose(y, &[1, 0, 2]);
            let factor = net.stated(&[], &[0.375]);
            if scaled[at] {
                net.binary(BinaryOp::Mul, y, factor)
            } else {
                y
            }
        });
        net.behind(Stage::Fold, &[q, k]).1
    };
    let counted = |steps: &[&str]| steps.iter().filter(|step| **step == "mul").count();
    for scaled in [[true, false], [true, true], [false, true], [false, false]] {
        assert_eq!(counted(&build([0, 6], scaled, 17)), 0, "{scaled:?}");
    }
    // Channels that both read belong to neither.
    assert_eq!(counted(&build([0, 5], [true, true], 18)), 2);
    // A product of two computed matrices is linear in the first.
    let (mut net, x) = Network::new(&[5, 7], 22);
    let [q, k] = [0, 1].map(|_| net.linear(x, 6, true));
    let activation = Activation::None;
    let y = net.op(Op::Linear { activation }, &[q, k], &[5, 5]);
    let three = net.stated(&[1], &[3.0]);
    let y = net.binary(BinaryOp::Div, y, three);
    assert_eq!(net.behind(Stage::Fold, &[y]).1, ["linear"; 3]);
}

/// The node between is no product, or somebody else reads it.
#[test]
fn a_number_stays_where_the_way_is_not_linear() {
    let (mut net, x) = Network::new(&[5, 8], 19);
    let y = net.linear(x, 6, true);
    let y = net.relu(y);
    let y = net.transpose(y, &[1, 0]);
    let factor = net.stated(&[], &[0.375]);
    let y = net.binary(BinaryOp::Mul, y, factor);
    assert!(net.behind(Stage::Fold, &[y]).1.contains(&"mul"));
    let (mut net, x) = Network::new(&[5, 8], 20);
    let y = net.linear(x, 6, true);
    let turned = net.transpose(y, &[1, 0]);
    let factor = net.stated(&[], &[0.375]);
    let y = net.binary(BinaryOp::Mul, turned, factor);
    assert!(net.behind(Stage::Fold, &[y, turned]).1.contains(&"mul"));
    // A softmax is not linear.
    let (mut net, x) = Network::new(&[5, 8], 21);
    let y = net.linear(x, 6, true);
    let y = net.op(Op::Softmax { axis: 1, beta: 1.0 }, &[y], &[5, 6]);
    let factor = net.stated(&[], &[0.375]);
    let y = net.binary(BinaryOp::Mul, y, factor);
    assert!(net.behind(Stage::Fold, &[y]).1.contains(&"mul"));
}
