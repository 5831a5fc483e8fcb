//! A network with dead channels of every kind, for tests: of this crate, and of the one that packs.

use crate::graph::{
    Activation, Conv2dAttrs, DType, Data, Graph, Layout, Node, Op, Origin, Padding2d, Quant, Role, Tensor, TensorId,
    TensorKind,
};

const ROWS: usize = 4;
const COLUMNS: usize = 3;
/// Beyond any sum of products here.
const FAR: i32 = 1 << 24;

fn tensor(graph: &mut Graph, name: &str, shape: &[usize], zero_point: i32) -> TensorId {
    graph.add_tensor(Tensor {
        quant: Some(Quant::per_tensor(0.1, zero_point)),
        ..Tensor::activation(name, shape, DType::I8)
    })
}

fn node(graph: &mut Graph, name: &str, op: Op, inputs: &[TensorId], output: TensorId) {
    graph.add_node(Node {
        name: name.into(),
        kind: name.into(),
        op,
        inputs: inputs.iter().copied().map(Some).collect(),
        outputs: vec![output],
        role: Role::Forward,
        origin: Origin::default(),
    });
}

/// A layer of as many outputs as biases; `window` is rows and columns, as much as they reach beyond one is padded at the top and on the left.
fn layer(graph: &mut Graph, name: &str, x: TensorId, window: [usize; 2], groups: usize, biases: &[i32]) -> TensorId {
    let outputs = biases.len();
    let inputs = graph.tensor(x).shape[3] / groups;
    let unread = if name == "second" { 4 } else { usize::MAX };
    let each = (0..outputs * window[0] * window[1] * inputs).map(|at| match at % inputs {
        c if c == unread => 0,
        _ => [11_i8, -7, 23, 5, -19][at % 5] as u8,
    });
    let weights = graph.add_tensor(Tensor {
        kind: TensorKind::Const(Data::Bytes(each.collect())),
        quant: Some(Quant::per_tensor(0.02, 0)),
        ..Tensor::activation(format!("{name}.w"), &[outputs, window[0], window[1], inputs], DType::I8)
    });
    let bias = graph.add_tensor(Tensor {
        kind: TensorKind::Const(Data::from_i32(biases)),
        ..Tensor::activation(format!("{name}.b"), &[outputs], DType::I32)
    });
    let y = tensor(graph, name, &[1, ROWS, COLUMNS, outputs], -128);
    let attrs = Conv2dAttrs {
        layout: Layout::Nhwc,
        stride: [1, 1],
        dilation: [1, 1],
        padding: Padding2d {
            top: window[0] - 1,
            left: window[1] - 1,
            ..Padding2d::default()
        },
        groups,
        activation: Activation::Relu,
    };
    node(graph, name, Op::Conv2d(attrs), &[x, weights, bias], y);
    y
}

/// A network whose channels go, and stay, for every reason: of `first`, 1 is -128, 4 is read by nobody, and 3 is 127, which the padding of `second` is not;
/// 1 of `depthwise` is 127, and 1 of `second` goes with it.
pub(crate) fn sample() -> Graph {
    let mut graph = Graph::default();
    let x = tensor(&mut graph, "x", &[1, ROWS, COLUMNS, 2], 4);
    graph.tensor_mut(x).kind = TensorKind::Input;
    graph.inputs.push(x);
    let first = layer(&mut graph, "first", x, [1, 1], 1, &[90, -FAR, 70, FAR, 40]);
    let same = tensor(&mut graph, "same", &[1, ROWS, COLUMNS, 5], -128);
    node(&mut graph, "same", Op::Quantize, &[first], same);
    let second = layer(&mut graph, "second", same, [2, 3], 1, &[5, 6, 7]);
    let depthwise = layer(&mut graph, "depthwise", second, [2, 2], 3, &[5, FAR, 7]);
    let last = layer(&mut graph, "last", depthwise, [1, 1], 1, &[100, 200]);
    graph.outputs.push(last);
    graph
}
