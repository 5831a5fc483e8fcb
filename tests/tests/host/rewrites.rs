//! Patterns that must not be rewritten: paddings that are no zeros of the operator, orders in which a state is read before it is written, memory that is a byte
//! too small.

use std::path::Path;
use std::sync::Arc;

use arenite::{DType, Target};
use arenite_host::ErrorKind;
use arenite_host::graph::{
    Activation, Conv2dAttrs, Data, Graph, Layout, Node, Op, Origin, Padding2d, PoolAttrs, Quant, ReduceKind, Role,
    Tensor, TensorId, TensorKind, UnaryKind, check,
};
use arenite_host::lower::{Preferences, lower};
use arenite_host::memory::{Region, schedule};
use arenite_host::pack::{Options, pack};
use arenite_host::passes;
use arenite_host::stage::{Stage, unwatched};
use arenite_host::weights::Weights;
use arenite_tests::golden::options;

fn node(graph: &mut Graph, op: Op, inputs: &[TensorId], outputs: &[TensorId]) {
    let name = format!("node {}", graph.nodes.len());
    graph.add_node(Node {
        kind: name.clone(),
        name,
        op,
        inputs: inputs.iter().copied().map(Some).collect(),
        outputs: outputs.to_vec(),
        role: Role::Forward,
        origin: Origin::default(),
    });
}

fn tensor(graph: &mut Graph, shape: &[usize], dtype: DType, quant: Option<Quant>) -> TensorId {
    let name = format!("tensor {}", graph.tensors.len());
    let tensor = Tensor::activation(name, shape, dtype);
    graph.add_tensor(Tensor { quant, ..tensor })
}

fn input(graph: &mut Graph, shape: &[usize], dtype: DType, quant: Option<Quant>) -> TensorId {
    let id = tensor(graph, shape, dtype, quant);
    graph.tensor_mut(id).kind = TensorKind::Input;
    graph.inputs.push(id);
    id
}

/// A padded tensor, its padding, and its reader.
#[derive(Debug, Clone)]
struct Case {
    dtype: DType,
    /// Zero points before and behind the padding; of int8 alone.
    zero_points: [i32; 2],
    value: f32,
    relu: bool,
    pads: [(usize, usize); 4],
    reader: Reader,
    kernel: [usize; 2],
    dilation: [usize; 2],
    layout: Layout,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Reader {
    Conv,
    Max,
    Average,
}

impl Case {
    fn new(reader: Reader) -> Self {
        Self {
            dtype: DType::F32,
            zero_points: [0, 0],
            value: 0.0,
            relu: false,
            pads: [(0, 0), (1, 2), (0, 1), (0, 0)],
            reader,
            kernel: [3, 2],
            dilation: [1, 1],
            layout: Layout::Nhwc,
        }
    }

    fn int8(reader: Reader, value: i32, zero_points: [i32; 2]) -> Self {
        Self {
            dtype: DType::I8,
            zero_points,
            value: value as f32,
            ..Self::new(reader)
        }
    }

    /// The padding that the reader has after all passes, beside its own `[1, 0, 0, 1]`; `None` where the operator is still there.
    fn folded(&self) -> Option<Padding2d> {
        let mut graph = Graph::default();
        let quant = |zero_point| (self.dtype == DType::I8).then(|| Quant::per_tensor(0.05, zero_point));
        let [before, behind] = self.zero_points;
        let (channels, rows, columns) = (3, 7, 9);
        let arrange = |[rows, columns]: [usize; 2], channels: usize| match self.layout {
            Layout::Nhwc => vec![1, rows, columns, channels],
            Layout::Nchw => vec![1, channels, rows, columns],
        };
        let shape = arrange([rows, columns], channels);
        let mut x = input(&mut graph, &shape, self.dtype, quant(before));
        if self.relu {
            let rectified = tensor(&mut graph, &shape, self.dtype, quant(before));
            node(&mut graph, Op::Unary(UnaryKind::Relu), &[x], &[rectified]);
            x = rectified;
        }
        let wide: Vec<usize> = shape.iter().zip(&self.pads).map(|(n, (a, b))| n + a + b).collect();
        let padded = tensor(&mut graph, &wide, self.dtype, quant(behind));
        let pads = self.pads.to_vec();
        node(
            &mut graph,
            Op::Pad {
                pads,
                value: self.value,
            },
            &[x],
            &[padded],
        );
        let own = Padding2d {
            top: 1,
            bottom: 0,
            left: 0,
            right: 1,
        };
        let (first, second, depth) = match self.layout {
            Layout::Nhwc => (1, 2, 3),
            Layout::Nchw => (2, 3, 1),
        };
        let out = |n: usize, axis: usize| n + 1 - self.dilation[axis] * (self.kernel[axis] - 1);
        let extents = [out(wide[first], 0), out(wide[second], 1)];
        let (layout, stride, activation) = (self.layout, [1, 1], Activation::None);
        let (op, out_channels) = match self.reader {
            Reader::Conv => {
                let (groups, dilation) = (1, self.dilation);
                let attrs = Conv2dAttrs {
                    layout,
                    stride,
                    dilation,
                    padding: own,
                    groups,
                    activation,
                };
                (Op::Conv2d(attrs), 4)
            }
            Reader::Max | Reader::Average => {
                let attrs = PoolAttrs {
                    layout,
                    kernel: self.kernel,
                    stride,
                    padding: own,
                    count_include_pad: false,
                    activation,
                };
                let op = match self.reader {
                    Reader::Max => Op::MaxPool2d(attrs),
                    _ => Op::AvgPool2d(attrs),
                };
                (op, wide[depth])
            }
        };
        let shape = arrange(extents, out_channels);
        let shape = std::iter::once(wide[0])
            .chain(shape[1..].iter().copied())
            .collect::<Vec<_>>();
        let y = tensor(&mut graph, &shape, self.dtype, quant(behind));
        let mut inputs = vec![padded];
        if self.reader == Reader::Conv {
            let weights = [4, self.kernel[0], self.kernel[1], wide[depth]];
            let w = tensor(&mut graph, &weights, self.dtype, quant(0));
            let bytes = vec![0u8; graph.tensor(w).bytes()];
            graph.tensor_mut(w).kind = TensorKind::Const(Data::Bytes(Arc::from(bytes)));
            inputs.push(w);
        }
        node(&mut graph, op, &inputs, &[y]);
        graph.outputs.push(y);
        check::check(&graph).unwrap_or_else(|e| panic!("{self:?}: {e}"));
        passes::run(&mut graph, Stage::Fold).expect("folds");
        passes::run(&mut graph, Stage::Fuse).expect("fuses");
        let has = |of: fn(&Op) -> bool| graph.nodes.iter().any(|node| of(&node.op));
        let found = graph.nodes.iter().find_map(|node| match &node.op {
            Op::Conv2d(attrs) => Some(attrs.padding),
            Op::MaxPool2d(attrs) | Op::AvgPool2d(attrs) => Some(attrs.padding),
            _ => None,
        });
        let found = found.expect("the reader");
        if has(|op| matches!(op, Op::Pad { .. })) {
            assert_eq!(found, own, "{self:?}: folded, and still there");
            None
        } else {
            Some(found)
        }
    }
}

#[test]
fn zeros_before_a_convolution_become_its_own() {
    let whole = Some(Padding2d {
        top: 2,
        bottom: 2,
        left: 0,
        right: 2,
    });
    // Its windows of two columns bridge one column of zeros and not two.
    let three = Case {
        kernel: [3, 3],
        ..Case::new(Reader::Conv)
    };
    assert_eq!(three.folded(), whole);
    assert_eq!(
        Case::new(Reader::Conv).folded(),
        None,
        "a window would lie in the padding alone"
    );
    let far = Case {
        kernel: [2, 2],
        dilation: [3, 2],
        ..three.clone()
    };
    assert_eq!(far.folded(), whole);
    let near = Case {
        dilation: [2, 1],
        ..far.clone()
    };
    assert_eq!(near.folded(), None);
    for (value, zero_points, folds) in [(-7, [-7, -7], true), (0, [0, 0], true), (0, [-7, -7], false)] {
        let int8 = Case {
            kernel: [3, 3],
            ..Case::int8(Reader::Conv, value, zero_points)
        };
        assert_eq!(int8.folded(), whole.filter(|_| folds), "{value} with {zero_points:?}");
    }
    let channels_first = Case {
        layout: Layout::Nchw,
        pads: [(0, 0), (0, 0), (1, 2), (0, 1)],
        ..three.clone()
    };
    assert_eq!(channels_first.folded(), whole);
}

#[test]
fn other_paddings_stay_before_a_convolution() {
    let three = Case {
        kernel: [3, 3],
        ..Case::new(Reader::Conv)
    };
    for value in [0.5, -1.0, f32::MIN_POSITIVE, f32::MIN] {
        let other = Case { value, ..three.clone() };
        assert_eq!(other.folded(), None, "{value}");
    }
    // Another value, and another meaning of the same one.
    for (value, zero_points) in [(-6, [-7, -7]), (127, [-7, -7]), (-7, [-7, 0]), (0, [-7, 0])] {
        let int8 = Case {
            kernel: [3, 3],
            ..Case::int8(Reader::Conv, value, zero_points)
        };
        assert_eq!(int8.folded(), None, "{value} with {zero_points:?}");
    }
    for pads in [
        [(0, 0), (1, 2), (0, 1), (1, 0)],
        [(0, 0), (1, 2), (0, 1), (0, 1)],
        [(1, 0), (1, 2), (0, 1), (0, 0)],
    ] {
        let deep = Case { pads, ..three.clone() };
        assert_eq!(deep.folded(), None, "{pads:?}");
    }
}

#[test]
fn a_padding_stays_before_a_pooling_that_it_takes_part_in() {
    let three = |reader| Case {
        kernel: [3, 3],
        ..Case::new(reader)
    };
    let relu = Case {
        relu: true,
        ..three(Reader::Max)
    };
    assert!(relu.folded().is_some(), "nothing is below the zeros");
    assert_eq!(three(Reader::Max).folded(), None, "something may be");
    for value in [1.0, -1.0, f32::MIN] {
        let other = Case { value, ..relu.clone() };
        assert_eq!(other.folded(), None, "{value}");
    }
    for (value, relu) in [(-7, false), (-7, true), (-128, false), (0, true)] {
        let int8 = Case {
            relu,
            kernel: [3, 3],
            ..Case::int8(Reader::Max, value, [-7, -7])
        };
        assert_eq!(int8.folded(), None, "{value}, ReLU: {relu}");
    }
    for relu in [false, true] {
        let average = Case {
            relu,
            ..three(Reader::Average)
        };
        assert_eq!(average.folded(), None, "zeros count in an average");
    }
}

/// The old state is read into a tensor that is alive with the input. Writing the input into the state first would need half the memory, and
/// be wrong.
#[test]
fn a_state_is_read_before_it_is_written() {
    let mut graph = Graph::default();
    let shape = [1, 250];
    let x = input(&mut graph, &shape, DType::F32, None);
    let state = tensor(&mut graph, &shape, DType::F32, None);
    graph.tensor_mut(state).kind = TensorKind::State(Data::Bytes(Arc::from(vec![0u8; 1000])));
    let before = tensor(&mut graph, &shape, DType::F32, None);
    let sum = tensor(&mut graph, &[1, 1], DType::F32, None);
    node(&mut graph, Op::ReadState, &[state], &[before]);
    node(&mut graph, Op::AssignState, &[state, x], &[]);
    let (kind, axes, keep_dims) = (ReduceKind::Sum, vec![1], true);
    node(&mut graph, Op::Reduce { kind, axes, keep_dims }, &[before], &[sum]);
    graph.outputs.push(sum);
    check::check(&graph).expect("a graph");
    let weights = Weights::nothing(&graph).expect("no parameters");
    let preferences = Preferences {
        cost: |_, _, _| None,
        target: Target::Portable,
        size: false,
        share: true,
        spend: None,
        paged: false,
        accelerator: None,
        without: &[],
    };
    let program = lower(graph, preferences, &weights).expect("it lowers");
    assert_eq!(program.steps.len(), 3);
    let found = schedule::schedule(&program, 100_000, &mut unwatched);
    let place = |step: usize| found.order.iter().position(|&s| s == step);
    assert!(
        place(0) < place(1),
        "the state is overwritten before it is read: {:?}",
        found.order
    );
    assert!(place(0) < place(2), "{:?}", found.order);
    assert!(found.peak >= 2000, "{}", found.peak);
}

/// Exactly the arena's bytes fit, one less does not.
#[test]
fn a_region_that_is_a_byte_too_small_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let digits = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits");
    for (name, target) in [("residual", Target::Portable), ("digits", Target::CortexM4)] {
        let options = options(&digits.join(format!("{name}.trace.json")), folder.path(), target);
        let needed = pack(&options, &mut |_, _, _| {}).expect("it packs").summary.arena_bytes;
        let within = |size: u64| {
            let region = Region {
                name: "sram".into(),
                size: Some(size),
            };
            let options = Options {
                regions: vec![region],
                ..options.clone()
            };
            pack(&options, &mut |_, _, _| {}).map(|packed| packed.summary.arena_bytes)
        };
        assert_eq!(within(needed).expect("it fits"), needed);
        let error = within(needed - 1).expect_err("a byte is missing");
        assert_eq!(error.kind(), ErrorKind::DoesNotFit);
        assert!(error.to_string().contains(&needed.to_string()), "{error}");
    }
}
