//! Random int8 networks with channels of every kind: without weights, unread, of one value at, above and below the next zero point.

use arenite_host::graph::{Activation, BinaryOp, Graph, Op, Padding2d, TensorId, UnaryKind};

use crate::dead_channels::network::{Affine, Layer, Network};

/// Marsaglia's xorshift.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % end
    }

    fn between(&mut self, first: i32, last: i32) -> i32 {
        first + self.below((last - first + 1) as usize) as i32
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn affine(&mut self) -> Affine {
        let zero = [-128, -128, -5, 0, 17, 127];
        ([0.05, 0.1, 0.02][self.below(3)], zero[self.below(zero.len())])
    }
}

/// Of so many operators behind the first layer.
pub(crate) fn random_network(seed: u64, operators: usize) -> Graph {
    let mut random = Random::new(seed);
    let mut net = Network::default();
    let shape = [1, 5 + random.below(3), 3 + random.below(2), 1 + random.below(4)];
    let quant = random.affine();
    let x = net.input(&shape, quant);
    // Tensors of four axes that an operator may take; the last one is always read.
    let mut open = vec![conv(&mut net, x, &mut random)];
    for _ in 0..operators {
        let x = *open.last().expect("one at least");
        let y = operator(&mut net, x, &open, &mut random);
        open.push(y);
    }
    let last = *open.last().expect("one at least");
    if random.one_in(4) {
        net.output(open[open.len() / 2]);
    }
    let end = match random.below(3) {
        0 => net.flatten(last),
        1 => {
            let quant = net.affine(last);
            net.mean(last, quant)
        }
        _ => last,
    };
    let end = linear(&mut net, end, &mut random);
    if !net.graph.outputs.contains(&end) {
        net.output(end);
    }
    net.graph
}

fn operator(net: &mut Network, x: TensorId, open: &[TensorId], random: &mut Random) -> TensorId {
    let shape = net.shape(x);
    let like = |net: &Network, random: &mut Random, same_quant: bool| {
        let fits = |&&id: &&TensorId| net.shape(id) == shape && (!same_quant || net.affine(id) == net.affine(x));
        let all: Vec<TensorId> = open.iter().filter(fits).copied().collect();
        all[random.below(all.len())]
    };
    match random.below(14) {
        0..=2 => conv(net, x, random),
        3 | 4 => depthwise(net, x, random),
        5 => {
            let kind = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul][random.below(3)];
            let (other, quant) = (like(net, random, false), random.affine());
            net.binary(kind, x, other, quant)
        }
        6 => {
            let other = like(net, random, true);
            net.concat(&[x, other], [1, 3][random.below(2)])
        }
        7 => {
            let kernel = [
                1 + random.below(2).min(shape[1] - 1),
                1 + random.below(2).min(shape[2] - 1),
            ];
            net.pool(x, random.one_in(2), kernel, [1, 1 + random.below(2)])
        }
        8 => {
            let quant = random.affine();
            net.node(Op::Unary(UnaryKind::HARD_SWISH), &[x], &shape, quant)
        }
        9 => {
            let quant = random.affine();
            net.node(Op::Quantize, &[x], &shape, quant)
        }
        10 => {
            let pads = [
                (0, 0),
                (random.below(2), 0),
                (0, random.below(2)),
                (random.below(3), random.below(2)),
            ];
            let (_, zero) = net.affine(x);
            let value = if random.one_in(2) { zero } else { -7 };
            net.pad(x, pads, value as i8)
        }
        11 => {
            let count = 1 + random.below(shape[3]);
            net.slice(x, random.below(shape[3] - count + 1), count)
        }
        12 => {
            let values: Vec<i8> = (0..shape[3]).map(|_| random.between(-3, 3) as i8).collect();
            let gains = net.constant(&[shape[3]], (0.5, 0), &values);
            let quant = random.affine();
            net.binary(BinaryOp::Mul, x, gains, quant)
        }
        _ => {
            let turned = [shape[0], shape[2], shape[1], shape[3]];
            let (perm, quant) = (vec![0, 2, 1, 3], net.affine(x));
            net.node(Op::Transpose { perm }, &[x], &turned, quant)
        }
    }
}

fn layer(random: &mut Random, outputs: usize) -> Layer {
    let activations = [Activation::None, Activation::Relu, Activation::Relu6];
    Layer {
        activation: activations[random.below(3)],
        quant: random.affine(),
        weight_scale: [0.002, 0.01, 0.03][random.below(3)],
        bias: !random.one_in(6),
        ..Layer::pointwise(outputs)
    }
}

fn windowed(net: &Network, x: TensorId, random: &mut Random, outputs: usize) -> Layer {
    let shape = net.shape(x);
    let mut layer = layer(random, outputs);
    let mut side = || random.below(2);
    layer.padding = Padding2d {
        top: side(),
        bottom: side(),
        left: side(),
        right: side(),
    };
    let p = layer.padding;
    for (axis, room) in [shape[1] + p.top + p.bottom, shape[2] + p.left + p.right]
        .into_iter()
        .enumerate()
    {
        // A padding without a window that reaches into it is none of a convolution.
        let least = if p == Padding2d::default() { 1 } else { 2 };
        layer.kernel[axis] = (least + random.below(2)).min(room);
        layer.stride[axis] = 1 + random.below(2);
        if random.one_in(4) && 2 * (layer.kernel[axis] - 1) < room {
            layer.dilation[axis] = 2;
        }
    }
    layer
}

/// Weights of which whole rows and columns are nothing, and biases that drive some channels into their clamps.
struct Values {
    columns: Vec<bool>,
    rows: Vec<bool>,
    weights: Vec<i8>,
    biases: Vec<i32>,
}

impl Values {
    fn new(inputs: usize, outputs: usize, random: &mut Random) -> Self {
        let bias = |random: &mut Random| match random.below(6) {
            0 => 1 << 24,
            1 | 2 => -(1 << 24),
            _ => random.between(-3000, 3000),
        };
        Self {
            columns: (0..inputs).map(|_| random.one_in(3)).collect(),
            rows: (0..outputs).map(|_| random.one_in(5)).collect(),
            weights: (0..97).map(|_| random.between(-128, 127) as i8).collect(),
            biases: (0..outputs).map(|_| bias(random)).collect(),
        }
    }

    fn weight(&self, output: usize, tap: usize, c: usize) -> i8 {
        if self.rows[output] || self.columns[c % self.columns.len()] {
            return 0;
        }
        self.weights[(output * 31 + tap * 7 + c * 3) % self.weights.len()]
    }
}

fn conv(net: &mut Network, x: TensorId, random: &mut Random) -> TensorId {
    let outputs = 1 + random.below(9);
    let layer = windowed(net, x, random, outputs);
    let values = Values::new(net.channels(x), outputs, random);
    net.conv(x, &layer, &mut |o, tap, c| values.weight(o, tap, c), &mut |o| {
        values.biases[o]
    })
}

fn depthwise(net: &mut Network, x: TensorId, random: &mut Random) -> TensorId {
    let outputs = net.channels(x) * (1 + random.below(2));
    let layer = windowed(net, x, random, outputs);
    let values = Values::new(7, outputs, random);
    net.depthwise(x, &layer, &mut |o, tap, _| values.weight(o, tap, o), &mut |o| {
        values.biases[o]
    })
}

fn linear(net: &mut Network, x: TensorId, random: &mut Random) -> TensorId {
    let outputs = 1 + random.below(5);
    let layer = layer(random, outputs);
    let values = Values::new(1 + random.below(net.channels(x)), outputs, random);
    net.linear(x, &layer, &mut |o, tap, c| values.weight(o, tap, c), &mut |o| {
        values.biases[o]
    })
}
