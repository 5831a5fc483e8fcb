//! Reshapes and transposes around what computes.

use arenite_host::graph::{BinaryOp, Op, ReduceKind};
use arenite_host::stage::Stage;

use super::network::Network;

#[test]
fn one_dimensional_convolutions_are_a_step_each() {
    let (mut net, x) = Network::new(&[1, 6, 20], 1);
    let mut y = x;
    for (out, padding) in [(8, 1), (4, 0), (5, 2)] {
        y = net.conv1d(y, out, 3, padding);
        y = net.batch_norm(y, 1);
        y = net.relu(y);
    }
    let (_, steps) = net.behind(Stage::Fuse, &[y]);
    assert_eq!(steps, ["transpose", "conv", "conv", "conv", "transpose"]);
}

#[test]
fn branches_of_rows_are_images_throughout() {
    let (mut net, x) = Network::new(&[1, 6, 20], 2);
    let first = net.conv1d(x, 6, 3, 1);
    let first = net.relu(first);
    let y = net.conv1d(first, 6, 3, 1);
    let y = net.binary(BinaryOp::Add, y, first);
    let y = net.relu(y);
    let pads = vec![(0, 0), (0, 0), (2, 1)];
    let y = net.op(Op::Pad { pads, value: 0.0 }, &[y], &[1, 6, 23]);
    let y = net.conv1d(y, 4, 3, 0);
    let mean = Op::Reduce {
        kind: ReduceKind::Mean,
        axes: vec![2],
        keep_dims: true,
    };
    let y = net.op(mean, &[y], &[1, 4, 1]);
    let y = net.reshape(y, &[1, 4]);
    let y = net.linear(y, 3, true);
    let (_, steps) = net.behind(Stage::Fuse, &[y]);
    assert_eq!(steps, ["transpose", "conv", "conv", "conv", "other", "linear"]);
}

#[test]
fn transposes_meet_through_pointwise_operators() {
    let (mut net, x) = Network::new(&[2, 3, 4, 5], 3);
    let y = net.transpose(x, &[0, 2, 3, 1]);
    let y = net.relu(y);
    let factors = net.constant(&[5, 3], 0.5, 1.5);
    let y = net.binary(BinaryOp::Mul, y, factors);
    let y = net.transpose(y, &[0, 3, 1, 2]);
    assert_eq!(net.behind(Stage::Fold, &[y]).1, ["unary", "mul"]);
    // Two that are another one together.
    let (mut net, x) = Network::new(&[2, 3, 4], 4);
    let y = net.transpose(x, &[1, 0, 2]);
    let y = net.relu(y);
    let y = net.transpose(y, &[0, 2, 1]);
    assert_eq!(net.behind(Stage::Fold, &[y]).1, ["unary", "transpose"]);
}

#[test]
fn a_batch_norm_between_transposes_reaches_its_layer() {
    let (mut net, x) = Network::new(&[2, 7, 5], 5);
    let y = net.linear(x, 4, true);
    let y = net.transpose(y, &[0, 2, 1]);
    let y = net.batch_norm(y, 1);
    let y = net.relu(y);
    let y = net.transpose(y, &[0, 2, 1]);
    let y = net.linear(y, 3, true);
    assert_eq!(net.behind(Stage::Fuse, &[y]).1, ["linear", "linear"]);
}

#[test]
fn a_layer_keeps_what_is_behind_it() {
    // The gate of a squeeze and excitation is read as an image; its layers keep their activations.
    let (mut net, x) = Network::new(&[1, 4, 5, 6], 6);
    let mean = Op::Reduce {
        kind: ReduceKind::Mean,
        axes: vec![2, 3],
        keep_dims: false,
    };
    let gate = net.op(mean, &[x], &[1, 4]);
    let gate = net.linear(gate, 4, true);
    let gate = net.relu(gate);
    let gate = net.reshape(gate, &[1, 4, 1, 1]);
    let y = net.binary(BinaryOp::Mul, x, gate);
    assert_eq!(net.behind(Stage::Fuse, &[y]).1, ["other", "linear", "mul"]);
}

#[test]
fn outputs_keep_shape_and_name() {
    let (mut net, x) = Network::new(&[1, 6, 20], 7);
    let first = net.conv1d(x, 4, 3, 1);
    let first = net.relu(first);
    let y = net.conv1d(first, 4, 3, 1);
    let names = [first, y].map(|id| net.graph.tensor(id).name.clone());
    let (graph, steps) = net.behind(Stage::Fuse, &[first, y]);
    assert_eq!(steps, ["transpose", "conv", "transpose", "conv", "transpose"]);
    let found: Vec<_> = graph.outputs.iter().map(|&id| graph.tensor(id)).collect();
    assert_eq!([&found[0].name, &found[1].name], [&names[0], &names[1]]);
    assert!(found.iter().all(|tensor| tensor.shape == [1, 4, 20]));
}

#[test]
fn what_moves_nothing_is_no_step() {
    let (mut net, x) = Network::new(&[1, 1, 6], 8);
    let y = net.relu(x);
    let y = net.transpose(y, &[1, 0, 2]);
    let slice = Op::Slice {
        begin: vec![0; 3],
        stride: vec![1; 3],
    };
    let y = net.same(slice, &[y]);
    let pads = vec![(0, 0); 3];
    let y = net.same(Op::Pad { pads, value: 3.0 }, &[y]);
    let concat = Op::Concat {
        axis: 1,
        activation: Default::default(),
    };
    let y = net.same(concat, &[y]);
    let y = net.same(Op::Broadcast, &[y]);
    let kind = ReduceKind::Mean;
    let axes = vec![0, 1];
    let keep_dims = false;
    let y = net.op(Op::Reduce { kind, axes, keep_dims }, &[y], &[6]);
    let y = net.reshape(y, &[2, 3]);
    let y = net.reshape(y, &[3, 2]);
    let y = net.relu(y);
    let (graph, steps) = net.behind(Stage::Fold, &[y]);
    assert_eq!(steps, ["unary", "unary"]);
    assert_eq!(graph.nodes.len(), 3, "one reshape");
}
