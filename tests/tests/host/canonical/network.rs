//! Small graphs, and what passes make of them.

use arenite::DType;
use arenite_host::graph::train::MOMENTUM;
use arenite_host::graph::{
    Activation, BinaryOp, Conv2dAttrs, Data, Graph, Layout, Node, Op, Origin, Padding2d, Role, Tensor, TensorId,
    TensorKind, UnaryKind, check,
};
use arenite_host::passes;
use arenite_host::stage::Stage;
use arenite_host::weights::Weights;
use arenite_tests::graphs::evaluate;

/// A graph under construction.
#[derive(Default)]
pub(crate) struct Network {
    pub(crate) graph: Graph,
    seed: u64,
}

impl Network {
    /// One with the input `x`.
    pub(crate) fn new(shape: &[usize], seed: u64) -> (Self, TensorId) {
        let mut network = Self {
            graph: Graph::default(),
            seed,
        };
        let x = network.graph.add_tensor(Tensor {
            kind: TensorKind::Input,
            ..Tensor::activation("x", shape, DType::F32)
        });
        network.graph.inputs.push(x);
        (network, x)
    }

    pub(crate) fn shape(&self, id: TensorId) -> Vec<usize> {
        self.graph.tensor(id).shape.clone()
    }

    /// In `from..to`; splitmix64.
    pub(crate) fn within(&mut self, from: usize, to: usize) -> usize {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        from + ((z ^ (z >> 31)) % to.saturating_sub(from).max(1) as u64) as usize
    }

    pub(crate) fn numbers(&mut self, count: usize, least: f32, most: f32) -> Vec<f32> {
        let steps = 4096;
        let unit = |at: usize| at as f32 / steps as f32;
        (0..count)
            .map(|_| least + (most - least) * unit(self.within(0, steps)))
            .collect()
    }

    pub(crate) fn stated(&mut self, shape: &[usize], values: &[f32]) -> TensorId {
        let name = format!("constant {}", self.graph.tensors.len());
        self.graph.add_tensor(Tensor {
            kind: TensorKind::Const(Data::from_f32(values)),
            ..Tensor::activation(name, shape, DType::F32)
        })
    }

    pub(crate) fn constant(&mut self, shape: &[usize], least: f32, most: f32) -> TensorId {
        let values = self.numbers(shape.iter().product(), least, most);
        self.stated(shape, &values)
    }

    /// Adds an operator whose result has this shape.
    pub(crate) fn op(&mut self, op: Op, inputs: &[TensorId], shape: &[usize]) -> TensorId {
        let name = format!("tensor {}", self.graph.tensors.len());
        let y = self
            .graph
            .add_tensor(Tensor::activation(name.clone(), shape, DType::F32));
        self.graph.add_node(Node {
            kind: "test".to_string(),
            name,
            op,
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: vec![y],
            role: Role::Forward,
            origin: Origin::default(),
        });
        y
    }

    pub(crate) fn same(&mut self, op: Op, inputs: &[TensorId]) -> TensorId {
        let shape = self.shape(inputs[0]);
        self.op(op, inputs, &shape)
    }

    pub(crate) fn relu(&mut self, x: TensorId) -> TensorId {
        self.same(Op::Unary(UnaryKind::Relu), &[x])
    }

    pub(crate) fn binary(&mut self, kind: BinaryOp, x: TensorId, other: TensorId) -> TensorId {
        let activation = Activation::None;
        self.same(Op::Binary { kind, activation }, &[x, other])
    }

    pub(crate) fn batch_norm(&mut self, x: TensorId, axis: usize) -> TensorId {
        let channels = self.shape(x)[axis];
        let [gamma, beta, mean] = [0; 3].map(|_| self.constant(&[channels], -1.0, 1.0));
        let variance = self.constant(&[channels], 0.5, 2.0);
        let epsilon = 1e-3;
        let op = Op::BatchNorm {
            axis,
            epsilon,
            momentum: MOMENTUM,
            trained: false,
        };
        self.same(op, &[x, gamma, beta, mean, variance])
    }

    pub(crate) fn reshape(&mut self, x: TensorId, shape: &[usize]) -> TensorId {
        self.op(Op::Reshape, &[x], shape)
    }

    pub(crate) fn transpose(&mut self, x: TensorId, perm: &[usize]) -> TensorId {
        let shape = self.shape(x);
        let shape: Vec<usize> = perm.iter().map(|&axis| shape[axis]).collect();
        self.op(Op::Transpose { perm: perm.to_vec() }, &[x], &shape)
    }

    pub(crate) fn linear(&mut self, x: TensorId, out: usize, bias: bool) -> TensorId {
        let mut shape = self.shape(x);
        let last = shape.len() - 1;
        let mut inputs = vec![x, self.constant(&[out, shape[last]], -1.0, 1.0)];
        if bias {
            inputs.push(self.constant(&[out], -1.0, 1.0));
        }
        shape[last] = out;
        let activation = Activation::None;
        self.op(Op::Linear { activation }, &inputs, &shape)
    }

    /// A convolution NCHW: so many output channels for each group, kernel and padding of rows and columns.
    pub(crate) fn conv(
        &mut self,
        x: TensorId,
        (out, groups): (usize, usize),
        kernel: [usize; 2],
        padding: usize,
    ) -> TensorId {
        let [n, c, h, w] = self.shape(x)[..] else {
            panic!("four axes")
        };
        let weights = self.constant(&[out * groups, kernel[0], kernel[1], c / groups], -1.0, 1.0);
        let bias = self.constant(&[out * groups], -1.0, 1.0);
        let padding = Padding2d {
            left: padding,
            right: padding,
            ..Padding2d::default()
        };
        let attrs = Conv2dAttrs {
            layout: Layout::Nchw,
            stride: [1, 1],
            dilation: [1, 1],
            padding,
            groups,
            activation: Activation::None,
        };
        let shape = [
            n,
            out * groups,
            h - kernel[0] + 1,
            w + padding.left + padding.right - kernel[1] + 1,
        ];
        self.op(Op::Conv2d(attrs), &[x, weights, bias], &shape)
    }

    /// A one-dimensional convolution as importers write it.
    pub(crate) fn conv1d(&mut self, x: TensorId, out: usize, kernel: usize, padding: usize) -> TensorId {
        let [n, c, t] = self.shape(x)[..] else {
            panic!("three axes")
        };
        let row = self.reshape(x, &[n, c, 1, t]);
        let y = self.conv(row, (out, 1), [1, kernel], padding);
        let [n, c, _, t] = self.shape(y)[..] else {
            panic!("four axes")
        };
        self.reshape(y, &[n, c, t])
    }

    /// The operators behind the passes up to `last`, but reshapes; what the network computes is as before.
    pub(crate) fn behind(mut self, last: Stage, outputs: &[TensorId]) -> (Graph, Vec<&'static str>) {
        self.graph.outputs = outputs.to_vec();
        check::check(&self.graph).unwrap_or_else(|e| panic!("{e}\n{:?}", self.graph.nodes));
        let mut graph = self.graph.clone();
        passes::run(&mut graph, Stage::Fold).unwrap_or_else(|e| panic!("{e}"));
        self.equal(&graph);
        if last >= Stage::Fuse {
            passes::run(&mut graph, Stage::Fuse).unwrap_or_else(|e| panic!("{e}"));
        }
        let names = graph
            .nodes
            .iter()
            .filter(|node| node.op != Op::Reshape)
            .map(|node| match &node.op {
                Op::Conv2d(_) => "conv",
                Op::Linear { .. } => "linear",
                Op::Transpose { .. } => "transpose",
                Op::Unary(_) => "unary",
                Op::Binary { kind, .. } => kind.names().name,
                Op::Identity => "identity",
                _ => "other",
            });
        let names = names.collect();
        (graph, names)
    }

    fn equal(&mut self, graph: &Graph) {
        let weights = Weights::nothing(graph).expect("no parameters");
        let input = self.numbers(self.graph.tensor(self.graph.inputs[0]).elements(), -2.0, 2.0);
        let expected = evaluate(&self.graph, &weights, std::slice::from_ref(&input)).expect("it computes");
        let found = evaluate(graph, &weights, &[input]).expect("it computes");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.len(), expected.len());
            let largest = expected.iter().fold(1e-3f64, |most, value| most.max(value.abs()));
            for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
                assert!(
                    found == expected || (found - expected).abs() <= 2e-5 * largest,
                    "[{at}]: {found} for {expected}\n{:#?}\n{:#?}",
                    self.graph.nodes,
                    graph.nodes
                );
            }
        }
    }
}
