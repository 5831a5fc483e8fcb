//! One reason each for which a channel goes, or stays.

use arenite::DType;
use arenite_host::channels::Removed;
use arenite_host::graph::{Activation, BinaryOp, Graph, Op, Padding2d, TensorId};
use arenite_host::metadata::Channel::{self, Constant, Filler, Kept, Unread};

use super::pruned;
use crate::dead_channels::network::{Layer, Network};

/// The rows and columns of inputs.
const INPUT: [usize; 4] = [1, 5, 3, 2];
/// A rectified result, whose zero point is its least value.
const RECTIFIED: (f32, i32) = (0.1, -128);
/// Beyond any sum of products here.
const FAR: i32 = 1 << 24;

fn weight(o: usize, tap: usize, c: usize) -> i8 {
    [17, -23, 5, 41, -11, 29, -3][(o * 5 + tap * 3 + c) % 7]
}

/// A network that begins with an input and a layer whose channels 1 and 3 have these biases, far from all others'.
fn beginning(layer: &Layer, [first, second]: [i32; 2]) -> (Network, TensorId) {
    let mut net = Network::default();
    let x = net.input(&INPUT, (0.05, 4));
    let y = net.conv(x, layer, &mut weight, &mut |o| [900, first, -700, second, 40][o]);
    (net, y)
}

/// The same, its layer a rectified one.
fn rectified(biases: [i32; 2]) -> (Network, TensorId) {
    beginning(&Layer::padded(5).with(Activation::Relu, RECTIFIED), biases)
}

fn end(net: &mut Network, x: TensorId, layer: &Layer) -> TensorId {
    let y = net.conv(x, layer, &mut weight, &mut |o| 100 * o as i32);
    net.output(y);
    y
}

/// Returns the fates of a tensor's channels.
fn fates(net: &Network, block: usize, id: TensorId) -> Vec<Channel> {
    let (graph, _) = pruned(&net.graph, block, 5).unwrap_or_else(|e| panic!("{e}"));
    of(&graph, net, id)
}

fn of(graph: &Graph, net: &Network, id: TensorId) -> Vec<Channel> {
    match graph.channels.get(net.name(id)) {
        Some(channels) => channels.each().collect(),
        None => vec![Kept; net.channels(id)],
    }
}

#[test]
fn a_channel_at_the_zero_point_goes_whatever_the_padding() {
    let (mut net, y) = rectified([-FAR, 300]);
    end(&mut net, y, &Layer::padded(3));
    assert_eq!(fates(&net, 1, y), [Kept, Constant(-128), Kept, Kept, Kept]);
}

#[test]
fn a_channel_off_the_zero_point_goes_where_no_window_meets_padding() {
    let (mut net, y) = rectified([FAR, 300]);
    let valid = Layer {
        padding: Padding2d::default(),
        ..Layer::padded(3)
    };
    end(&mut net, y, &valid);
    assert_eq!(fates(&net, 1, y), [Kept, Constant(127), Kept, Kept, Kept]);

    let (mut net, y) = rectified([FAR, 300]);
    end(&mut net, y, &Layer::padded(3));
    assert_eq!(fates(&net, 1, y), [Kept; 5]);

    // Here only the taps of the middle row and the right column have weights: they never meet it.
    let (mut net, y) = rectified([FAR, 300]);
    let inside = &mut |o, tap, c| if c == 1 && tap != 3 { 0 } else { weight(o, tap, c) };
    let z = net.conv(y, &Layer::padded(3), inside, &mut |_| 7);
    net.output(z);
    assert_eq!(fates(&net, 1, y), [Kept, Constant(127), Kept, Kept, Kept]);
}

#[test]
fn a_constant_stays_where_the_bias_has_no_room() {
    for (bias, gone) in [(0, true), (i32::MAX - 5, false)] {
        let (mut net, y) = rectified([FAR, 300]);
        let z = net.conv(y, &Layer::pointwise(3), &mut weight, &mut |_| bias);
        net.output(z);
        assert_eq!(fates(&net, 1, y)[1] == Constant(127), gone, "{bias}");
    }
}

#[test]
fn sums_of_more_than_32_bits_say_nothing() {
    // The device's sums wrap, and come out anywhere.
    let (mut net, y) = rectified([i32::MAX, 300]);
    end(&mut net, y, &Layer::pointwise(3));
    assert_eq!(fates(&net, 1, y), [Kept; 5]);
}

#[test]
fn a_channel_that_nobody_reads_goes_and_so_does_what_it_alone_reads() {
    let (mut net, first) = rectified([200, 300]);
    let only_by_three = &mut |o, tap, c| if c == 4 && o != 3 { 0 } else { weight(o, tap, c) };
    let second = net.conv(first, &Layer::pointwise(5), only_by_three, &mut |_| 9);
    let unread = &mut |o, tap, c| if c == 3 { 0 } else { weight(o, tap, c) };
    let last = net.conv(second, &Layer::padded(4), unread, &mut |_| 9);
    net.output(last);
    assert_eq!(fates(&net, 1, second), [Kept, Kept, Kept, Unread, Kept]);
    assert_eq!(fates(&net, 1, first), [Kept, Kept, Kept, Kept, Unread]);
    // Five at a time: none goes, and the network stays as it is.
    assert_eq!(fates(&net, 5, second), [Kept; 5]);

    net.output(second);
    assert_eq!(fates(&net, 1, second), [Kept; 5], "an output");
}

#[test]
fn fillers_make_whole_blocks() {
    let (mut net, first) = rectified([-FAR, 300]);
    let unread = &mut |o, tap, c| if c == 3 || c == 4 { 0 } else { weight(o, tap, c) };
    let last = net.conv(first, &Layer::padded(3), unread, &mut |_| 9);
    net.output(last);
    let goes = Constant(-128);
    assert_eq!(fates(&net, 1, first), [Kept, goes, Kept, Unread, Unread]);
    assert_eq!(fates(&net, 3, first), [Kept, Kept, Kept, Unread, Unread]);
    assert_eq!(fates(&net, 4, first), [Kept, Kept, Kept, Filler, Unread]);
}

#[test]
fn one_channel_stays_at_least() {
    let mut net = Network::default();
    let x = net.input(&INPUT, (0.05, 4));
    let dead = net.conv(
        x,
        &Layer::padded(3).with(Activation::Relu, RECTIFIED),
        &mut weight,
        &mut |_| -FAR,
    );
    end(&mut net, dead, &Layer::padded(3));
    let goes = Constant(-128);
    assert_eq!(fates(&net, 1, dead), [Kept, goes, goes]);
}

#[test]
fn a_residual_sum_loses_what_both_operands_lose() {
    let sum = |reads: bool, output: bool, biases: [i32; 2]| {
        let (mut net, a) = rectified([-FAR, 300]);
        let b = net.conv(a, &Layer::pointwise(5), &mut weight, &mut |o| {
            [5, biases[0], 5, biases[1], 5][o]
        });
        let y = net.binary(BinaryOp::Add, a, b, (0.2, -9));
        let read = &mut |o, tap, c| if !reads && c == 3 { 0 } else { weight(o, tap, c) };
        let z = net.conv(y, &Layer::pointwise(4), read, &mut |_| 9);
        net.output(z);
        if output {
            net.output(b);
        }
        let (graph, _) = pruned(&net.graph, 1, 7).unwrap_or_else(|e| panic!("{e}"));
        [a, b, y].map(|id| of(&graph, &net, id))
    };
    // Channel 1 of the first is a constant: it stays beside one that is none.
    assert_eq!(sum(true, false, [8, 8]), [[Kept; 5]; 3]);
    // Both are: so is their sum, -128 * 0.1 + 127 * 0.1 with their zero points.
    let [a, b, y] = sum(true, false, [FAR, 8]);
    assert_eq!((a[1], b[1]), (Constant(-128), Constant(127)));
    assert_eq!(y[1], Constant(-9 + 62));
    // Channel 3 is read by the second's layer, and stays in all three.
    assert_eq!(sum(false, false, [8, 8]), [[Kept; 5]; 3]);
    assert_eq!(sum(true, true, [FAR, 8]), [[Kept; 5]; 3], "an operand is an output");
}

#[test]
fn a_concatenation_loses_the_channels_of_each_operand() {
    let (mut net, a) = rectified([-FAR, 300]);
    let b = net.conv(
        a,
        &Layer::pointwise(2).with(Activation::Relu, RECTIFIED),
        &mut weight,
        &mut |o| [FAR, 3][o],
    );
    let y = net.concat(&[b, a], 3);
    end(&mut net, y, &Layer::pointwise(4));
    assert_eq!(fates(&net, 1, b), [Constant(127), Kept]);
    let expected = [Constant(127), Kept, Kept, Constant(-128), Kept, Kept, Kept];
    assert_eq!(fates(&net, 1, y), expected);
    let (graph, _) = pruned(&net.graph, 1, 5).expect("prunes");
    assert_eq!(
        graph
            .tensors
            .iter()
            .find(|t| t.name == net.name(y))
            .expect("there")
            .shape,
        [1, 5, 3, 5]
    );
}

#[test]
fn a_concatenation_of_rows_loses_what_all_operands_lose() {
    for (same, gone) in [(-FAR, true), (4, false)] {
        let (mut net, a) = rectified([-FAR, 300]);
        let mut layer = Layer::pointwise(5).with(Activation::Relu, RECTIFIED);
        layer.bias = true;
        let b = net.conv(a, &layer, &mut weight, &mut |o| if o == 1 { same } else { 4 });
        let y = net.concat(&[b, a], 1);
        end(&mut net, y, &Layer::padded(4));
        let expected = if gone { Constant(-128) } else { Kept };
        assert_eq!((fates(&net, 1, b)[1], fates(&net, 1, y)[1]), (expected, expected));
    }
}

#[test]
fn a_depthwise_layer_loses_whole_groups() {
    // Of both outputs of a channel, or of one.
    for (unread, gone) in [(vec![2, 3], true), (vec![3], false)] {
        let (mut net, a) = rectified([200, 300]);
        let y = net.depthwise(a, &Layer::padded(10), &mut weight, &mut |o| o as i32);
        let read = &mut |o, tap, c| if unread.contains(&c) { 0 } else { weight(o, tap, c) };
        let z = net.conv(y, &Layer::pointwise(4), read, &mut |_| 9);
        net.output(z);
        assert_eq!(fates(&net, 1, a)[1] == Unread, gone);
        assert_eq!(
            fates(&net, 1, y).iter().filter(|&&fate| fate == Unread).count(),
            if gone { 2 } else { 0 }
        );
    }
    // A constant goes through it, with its own weights and bias.
    let (mut net, a) = rectified([-FAR, 300]);
    let y = net.depthwise(a, &Layer::padded(5), &mut weight, &mut |o| 1000 * o as i32);
    end(&mut net, y, &Layer::pointwise(4));
    let [Constant(value)] = fates(&net, 1, y)[1..2] else {
        panic!("it is no constant");
    };
    // 1000 * (0.1 * 0.02 * 65 / 64) / 0.1, rounded, and the zero point.
    assert_eq!(value, 20 + 3);
}

#[test]
fn poolings_and_means_keep_constants() {
    for max in [true, false] {
        let (mut net, a) = rectified([FAR, 300]);
        let y = net.pool(a, max, [2, 3], [2, 1]);
        let mean = net.mean(y, RECTIFIED);
        let z = net.linear(mean, &Layer::pointwise(3), &mut weight, &mut |_| 9);
        net.output(z);
        let [_, Constant(127), ..] = fates(&net, 1, mean)[..] else {
            panic!("{:?}", fates(&net, 1, mean));
        };
        assert_eq!(fates(&net, 1, y)[1], Constant(127));
        assert_eq!(fates(&net, 1, a)[1], Constant(127));
    }
}

#[test]
fn a_fully_connected_layer_behind_a_flattening_reads_a_channel_at_every_pixel() {
    for (read_at, gone) in [(None, true), (Some(14 * 5 + 3), false)] {
        let (mut net, a) = rectified([FAR, 300]);
        let flat = net.flatten(a);
        let read = &mut |o, tap, c| {
            if c % 5 == 3 && Some(c) != read_at {
                0
            } else {
                weight(o, tap, c)
            }
        };
        let z = net.linear(flat, &Layer::pointwise(3), read, &mut |_| 9);
        net.output(z);
        let expected = if gone { Unread } else { Kept };
        assert_eq!(fates(&net, 1, a), [Kept, Constant(127), Kept, expected, Kept]);
    }
}

#[test]
fn channels_before_an_operator_that_mixes_them_stay() {
    let (mut net, a) = rectified([-FAR, 300]);
    let mixed = net.same(Op::Softmax { axis: 3, beta: 1.0 }, a);
    net.graph.tensor_mut(mixed).quant = Some(arenite_host::graph::Quant::per_tensor(1.0 / 256.0, -128));
    end(&mut net, mixed, &Layer::pointwise(4));
    assert_eq!(fates(&net, 1, a), [Kept; 5]);
}

#[test]
fn an_input_keeps_its_channels() {
    let mut net = Network::default();
    let x = net.input(&INPUT, (0.05, 4));
    let unread = &mut |o, tap, c| if c == 1 { 0 } else { weight(o, tap, c) };
    let y = net.conv(x, &Layer::padded(3), unread, &mut |_| 9);
    net.output(y);
    assert_eq!(fates(&net, 1, x), [Kept; 2]);
}

#[test]
fn slices_and_pads_count_their_channels_anew() {
    let (mut net, a) = rectified([-FAR, -FAR]);
    let part = net.slice(a, 1, 3);
    let wide = net.pad(part, [(0, 0), (0, 1), (0, 0), (2, 1)], -128);
    end(&mut net, wide, &Layer::padded(4));
    let goes = Constant(-128);
    // Nobody reads what the slice leaves out, and what is padded is the same everywhere.
    assert_eq!(fates(&net, 1, a), [Unread, goes, Kept, goes, Unread]);
    assert_eq!(fates(&net, 1, part), [goes, Kept, goes]);
    assert_eq!(fates(&net, 1, wide), [goes, goes, goes, Kept, goes, goes]);
}

/// Tensors that passes left behind are no reason to rewrite a network, nor to run it against itself.
#[test]
fn tensors_that_nobody_mentions_lose_nothing() {
    for constant in [false, true] {
        let mut net = Network::default();
        let x = net.input(&INPUT, (0.05, 4));
        if constant {
            net.constant(&[3, 2], (0.1, 0), &[1, 2, 3, 4, 5, 6]);
        } else {
            net.tensor(&INPUT, (0.1, 3));
        }
        end(&mut net, x, &Layer::padded(3));
        let (graph, removed) = pruned(&net.graph, 1, 5).expect("nothing is done");
        assert_eq!(removed, Removed::default());
        assert!(graph.channels.is_empty());
    }
}

/// Zeros that are inserted between elements, as for a transposed convolution: into channels that stay, and into a tensor of reals, whose channels nobody
/// follows.
#[test]
fn pads_and_slices_beside_channels_that_go_stay_as_they_are() {
    let (mut net, y) = rectified([-FAR, -FAR]);
    end(&mut net, y, &Layer::padded(3));
    let x = net.graph.inputs[0];
    let between = |net: &mut Network, x: TensorId| {
        let apart = net.reshape(x, &[1, 5, 6, 1]);
        let wide = net.pad(apart, [(0, 0), (0, 0), (0, 0), (0, 1)], 4);
        let flat = net.reshape(wide, &[1, 60]);
        net.slice(flat, 0, 59)
    };
    let inserted = between(&mut net, x);
    net.output(inserted);
    let real = net.same(Op::Dequantize, x);
    let first = net.graph.tensors.len();
    let inserted = between(&mut net, real);
    net.output(inserted);
    for tensor in net.graph.tensors.iter_mut().skip(first) {
        (tensor.dtype, tensor.quant) = (DType::F32, None);
    }
    let real = net.graph.tensor_mut(real);
    (real.dtype, real.quant) = (DType::F32, None);
    assert_eq!(fates(&net, 1, y), [Kept, Constant(-128), Kept, Constant(-128), Kept]);
}

#[test]
fn a_layer_without_biases_gets_some() {
    let (mut net, y) = rectified([FAR, 300]);
    let layer = Layer {
        bias: false,
        ..Layer::pointwise(3)
    };
    end(&mut net, y, &layer);
    let (graph, removed) = pruned(&net.graph, 1, 5).expect("prunes");
    assert_eq!(graph.nodes[1].inputs.len(), 3);
    // One channel of 2 x 6 weights and a bias, three weights behind it; three new biases.
    assert_eq!((removed.channels, removed.bytes), (1, 12 + 4 + 3));
    assert_eq!(removed.macs, 15 * 12 + 15 * 3);
}
