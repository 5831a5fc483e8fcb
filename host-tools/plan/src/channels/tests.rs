//! The check sees each way in which a pruned network can be wrong.

use super::live::Classes;
use super::ranges::Ranges;
use super::{check, remove, rewrite};
use crate::graph::{
    Activation, Conv2dAttrs, DType, Data, Graph, Layout, Node, Op, Origin, Padding2d, Quant, Role, Tensor, TensorId,
    TensorKind,
};
use crate::metadata::{Channel, Channels};

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

fn fates(graph: &Graph, name: &str) -> Vec<Channel> {
    graph.channels[name].each().collect()
}

/// What is checked.
struct Case {
    whole: Graph,
    pruned: Graph,
    claims: Vec<Vec<(i32, i32)>>,
}

impl Case {
    fn new() -> Self {
        let whole = sample();
        let ranges = Ranges::of(&whole);
        let mut pruned = whole.clone();
        rewrite::rewrite(&mut pruned, &Classes::of(&whole, &ranges, 1), &ranges).expect("rewritten");
        Self {
            claims: ranges.claims(),
            whole,
            pruned,
        }
    }

    fn id(&self, name: &str) -> usize {
        let named = self.whole.tensors.iter().position(|t| t.name == name);
        named.expect("a tensor")
    }

    /// The bytes of a constant of the pruned network.
    fn change(&mut self, node: usize, operand: usize, f: impl FnOnce(&mut Vec<u8>)) {
        let id = self.pruned.nodes[node].inputs[operand].expect("there");
        let TensorKind::Const(Data::Bytes(bytes)) = &mut self.pruned.tensor_mut(id).kind else {
            panic!("no constant");
        };
        let mut changed = bytes.to_vec();
        f(&mut changed);
        *bytes = changed.into();
    }

    fn refused(&self) -> String {
        let found = check::check(&self.whole, &self.pruned, &self.claims);
        found.expect_err("the check takes it").to_string()
    }
}

#[test]
fn the_sample_has_channels_of_every_kind() {
    use Channel::{Constant, Kept, Unread};
    let case = Case::new();
    check::check(&case.whole, &case.pruned, &case.claims).expect("right");
    let expected = [Kept, Constant(-128), Kept, Kept, Unread];
    assert_eq!(fates(&case.pruned, "first"), expected);
    assert_eq!(fates(&case.pruned, "same"), expected);
    assert_eq!(fates(&case.pruned, "second"), [Kept, Unread, Kept]);
    assert_eq!(fates(&case.pruned, "depthwise"), [Kept, Constant(127), Kept]);
    assert_eq!(case.claims[case.id("first")][3], (127, 127));
    assert!(!case.pruned.channels.contains_key("last"));
    let removed = remove(&mut sample(), 1).expect("removes");
    assert_eq!(removed.channels, 4);
}

/// What the check is to say of a change.
type Change = (&'static str, fn(&mut Case));

#[test]
fn every_wrong_network_is_seen() {
    let changes: &[Change] = &[
        ("channel 0 of `first` may hold", |case| {
            let at = case.id("first");
            case.claims[at][0].1 -= 1;
        }),
        ("channel 2 of `same` may hold", |case| {
            let at = case.id("same");
            case.claims[at][2].0 += 1;
        }),
        ("`x` is claimed to hold less", |case| {
            let at = case.id("x");
            case.claims[at][1] = (0, 127);
        }),
        ("`second`, channel 0: its weights of channel 2 are others", |case| {
            case.change(2, 1, |weights| weights[1] ^= 1);
        }),
        ("`last`, channel 0: its bias grew by", |case| {
            case.change(4, 2, |biases| biases[0] ^= 1);
        }),
        ("`first`, channel 3: it holds", |case| {
            case.change(0, 2, |biases| biases[8..12].copy_from_slice(&0_i32.to_le_bytes()));
        }),
        ("`first`, channel 3: it holds None", |case| {
            // The factor is 0.02: with a shift to the left a sum may leave its 32 bits.
            case.claims[0] = vec![(-128, 127); 2];
            let weights = case.pruned.nodes[0].inputs[1].expect("there");
            case.pruned.tensor_mut(weights).quant = Some(Quant::per_tensor(200.0, 0));
        }),
        ("`depthwise`, channel 2: its weights or its bias are others", |case| {
            case.change(3, 1, |weights| weights[5] ^= 1);
        }),
        ("channel 1 of `first` is not always -127", |case| {
            let changed = fates(&case.pruned, "first").into_iter().map(|fate| match fate {
                Channel::Constant(_) => Channel::Constant(-127),
                fate => fate,
            });
            let changed = Channels::new(changed);
            case.pruned.channels.insert("first".into(), changed);
        }),
        ("channel 4 of `first` is needed, and went", |case| {
            let mut swapped = fates(&case.pruned, "same");
            swapped.swap(0, 4);
            let swapped = Channels::new(swapped.into_iter());
            case.pruned.channels.insert("same".into(), swapped);
        }),
        ("`second`, channel 0: channel 4 of `same` is needed, and went", |case| {
            let weights = case.whole.nodes[2].inputs[1].expect("there");
            let TensorKind::Const(Data::Bytes(bytes)) = &mut case.whole.tensor_mut(weights).kind else {
                panic!("no constant");
            };
            let mut changed = bytes.to_vec();
            changed[4] = 1;
            *bytes = changed.into();
            for name in ["second", "depthwise", "last"] {
                let at = case.id(name);
                let narrow = case.claims[at].iter_mut().filter(|claim| claim.0 < claim.1);
                narrow.for_each(|claim| *claim = (-128, 127));
            }
        }),
        ("channel 0 of `first` is needed, and went", |case| {
            let mut held = fates(&case.pruned, "first");
            held[0] = Channel::Filler;
            case.pruned
                .channels
                .insert("first".into(), Channels::new(held.into_iter()));
        }),
        ("channel 0 of `second` is needed, and went", |case| {
            let mut held = fates(&case.pruned, "second");
            held[0] = Channel::Filler;
            case.pruned
                .channels
                .insert("second".into(), Channels::new(held.into_iter()));
        }),
        ("channels of `last` went", |case| {
            case.pruned.channels.insert("last".into(), Channels::default());
        }),
        ("operators are missing", |case| {
            case.pruned.nodes.pop();
        }),
        ("`elsewhere` stands in its place", |case| {
            case.pruned.nodes[2].name = "elsewhere".into();
        }),
        ("`second`: 4 to 2 channels; expected 3 to 2", |case| {
            let w = case.pruned.nodes[2].inputs[1].expect("there");
            case.pruned.tensor_mut(w).shape[3] = 4;
        }),
        ("it is no layer of constant weights any more", |case| {
            let w = case.pruned.nodes[2].inputs[1].expect("there");
            case.pruned.tensor_mut(w).kind = TensorKind::Activation;
        }),
    ];
    for (message, change) in changes {
        let mut case = Case::new();
        change(&mut case);
        let found = case.refused();
        assert!(found.contains(message), "{found}\ninstead of\n{message}");
    }
}
