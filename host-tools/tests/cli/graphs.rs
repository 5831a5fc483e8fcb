//! Graphs that no file of an importer's brings about, but a program that makes its own graph can: each is refused by name.

use arenite::ops::pointwise::{Function, UnaryOp};
use arenite::{DType, Target};
use arenite_host::graph::signal::Signal;
use arenite_host::graph::{
    Activation, Conv2dAttrs, Data, Graph, Layout, Node, Op, Origin, Padding2d, Quant, ReduceKind, Role, Tensor,
    TensorId, TensorKind, UnaryKind, check, infer,
};
use arenite_host::import::{Assumptions, ImportOptions};
use arenite_host::lower::{Preferences, lower};
use arenite_host::memory::plan::{Buffer, Options, Problem, Relation, solve};
use arenite_host::weights::Weights;

fn tensor(shape: &[usize], dtype: DType) -> Tensor {
    let mut tensor = Tensor::activation("", shape, dtype);
    if dtype != DType::F32 && dtype != DType::I32 && dtype != DType::I64 {
        tensor.quant = Some(Quant::per_tensor(0.5, 0));
    }
    tensor
}

fn scaled(shape: &[usize], dtype: DType, scale: f32, zero: i32) -> Tensor {
    Tensor {
        quant: Some(Quant::per_tensor(scale, zero)),
        ..tensor(shape, dtype)
    }
}

fn constant(shape: &[usize], dtype: DType) -> Tensor {
    let bytes = shape.iter().product::<usize>() * dtype.bytes();
    Tensor {
        kind: TensorKind::Const(Data::Bytes(vec![0; bytes].into())),
        ..tensor(shape, dtype)
    }
}

/// A graph of one operator; the last tensor is its result.
fn graph(op: Op, tensors: Vec<Tensor>) -> Graph {
    let mut graph = Graph::default();
    let ids: Vec<TensorId> = (0..)
        .zip(tensors)
        .map(|(index, tensor)| {
            graph.add_tensor(Tensor {
                name: format!("t{index}"),
                ..tensor
            })
        })
        .collect();
    let (&result, operands) = ids.split_last().expect("a result");
    graph.add_node(Node {
        name: "one".into(),
        kind: "KIND".into(),
        op,
        inputs: operands.iter().map(|&id| Some(id)).collect(),
        outputs: vec![result],
        role: Role::Forward,
        origin: Origin::default(),
    });
    graph.outputs.push(result);
    graph
}

/// Returns the error of lowering it.
fn lowered(op: Op, tensors: Vec<Tensor>) -> String {
    let graph = graph(op, tensors);
    let preferences = Preferences {
        target: Target::Portable,
        size: false,
        share: true,
        spend: None,
        cost: |_, _, _| None,
        without: &[],
        paged: false,
        accelerator: None,
    };
    let weights = Weights::nothing(&graph).expect("no parameters");
    lower(graph, preferences, &weights).expect_err("refused").to_string()
}

fn checked(graph: &Graph) -> String {
    check::check(graph).expect_err("refused").to_string()
}

/// Holds what is said of each to its words.
fn hold(cases: &[(String, &str)]) {
    for (said, words) in cases {
        let mut rest = &said[..];
        for word in words.split(" … ") {
            let at = rest
                .find(word)
                .unwrap_or_else(|| panic!("`{words}` is not said: {said}"));
            rest = &rest[at + word.len()..];
        }
    }
}

fn conv() -> Op {
    Op::Conv2d(Conv2dAttrs {
        layout: Layout::Nhwc,
        stride: [1, 1],
        dilation: [1, 1],
        padding: Padding2d::default(),
        groups: 1,
        activation: Activation::None,
    })
}

fn slice(begin: &[usize], stride: &[isize]) -> Op {
    Op::Slice {
        begin: begin.to_vec(),
        stride: stride.to_vec(),
    }
}

fn lrn(axis: usize, beta: f32) -> Op {
    Op::Lrn {
        axis,
        radius: 1,
        bias: 1.0,
        alpha: 1.0,
        beta,
    }
}

use DType::{F32, I8, I16, I32, I64};

#[test]
fn operators_that_no_kernel_computes_are_refused_by_name() {
    let image = |dtype| tensor(&[1, 3, 3, 2], dtype);
    let filter = |dtype| constant(&[4, 1, 1, 2], dtype);
    let result = |dtype| tensor(&[1, 3, 3, 4], dtype);
    let bare = |dtype| Tensor {
        quant: None,
        ..filter(dtype)
    };
    let concat = Op::Concat {
        axis: 0,
        activation: Activation::Relu,
    };
    let mean = Op::Reduce {
        kind: ReduceKind::Mean,
        axes: vec![0, 2, 4],
        keep_dims: false,
    };
    let local = Op::LocallyConnected2d {
        activation: Activation::None,
    };
    let softmax = Op::Softmax { axis: 0, beta: 1.0 };
    let fft = Op::Signal(Signal::Fft {
        length: 7,
        inverse: false,
    });
    let row = |dtype| tensor(&[2, 3], dtype);
    hold(&[
        (
            lowered(concat, vec![row(F32), tensor(&[4, 3], F32)]),
            "a concatenation with a fused activation",
        ),
        (
            lowered(lrn(1, 0.75), vec![row(I16), row(I16)]),
            "no kernel computes KIND on int16 (`t0`)",
        ),
        (
            lowered(conv(), vec![image(I16), filter(I16), result(I16)]),
            "an int16 layer with these types",
        ),
        (
            lowered(conv(), vec![image(I16), bare(I8), constant(&[4], I64), result(I16)]),
            "weights without quantisation",
        ),
        (
            lowered(conv(), vec![image(I8), filter(I8), constant(&[4], F32), result(I8)]),
            "a bias of f32 for int8 activations",
        ),
        (
            lowered(conv(), vec![image(I8), filter(I8), result(I16)]),
            "KIND of int8 activations with int8 weights and int16 output",
        ),
        (
            lowered(conv(), vec![image(I8), bare(I8), result(I8)]),
            "the weights `t1` have no quantisation",
        ),
        (
            lowered(
                conv(),
                vec![scaled(&[1, 3, 3, 2], I8, 0.5, 300), filter(I8), result(I8)],
            ),
            "the zero point 300 of an int8 tensor",
        ),
        (
            lowered(conv(), vec![image(I8), filter(I8), tensor(&[4], I32), result(I8)]),
            "`t2` is computed by the network",
        ),
        (
            lowered(
                slice(&[0; 7], &[2; 7]),
                vec![tensor(&[3; 7], F32), tensor(&[2; 7], F32)],
            ),
            "a copy along more than 6 axes",
        ),
        (
            lowered(
                slice(&[0, 0], &[2, 1]),
                vec![tensor(&[3, 2_147_483_649], I8), tensor(&[2, 2_147_483_649], I8)],
            ),
            "a stride of 4294967298",
        ),
        (
            lowered(slice(&[0], &[1]), vec![row(F32), row(F32)]),
            "a slice of 1 axes of [2, 3]",
        ),
        (
            lowered(slice(&[0, 0], &[0, 1]), vec![row(F32), row(F32)]),
            "a slice with stride 0",
        ),
        (
            lowered(slice(&[1, 0], &[1, 1]), vec![row(F32), row(F32)]),
            "a slice of 2 along axis 0 of [2, 3] from 1",
        ),
        (
            lowered(Op::Unary(UnaryKind::Elu), vec![row(F32), row(F32)]),
            "elu of f32 in one step",
        ),
        (
            lowered(
                Op::Unary(UnaryKind::Function(Function::Basic(UnaryOp::HardSwish))),
                vec![scaled(&[4], I8, 1e30, 0), scaled(&[4], I8, 1e-30, 0)],
            ),
            " with scales 1000000000000000000000000000000 and 0.000000000000000000000000000001",
        ),
        (
            lowered(
                Op::L2Norm,
                vec![tensor(&[1, 200_000], I8), scaled(&[1, 200_000], I8, 1.0 / 128.0, 0)],
            ),
            "rows of 200000 numbers",
        ),
        (
            lowered(local, vec![image(I8), constant(&[4, 3, 3, 2, 1, 1], F32), result(I8)]),
            "an int8 locally connected layer of these operands",
        ),
        (
            lowered(lrn(1, 9.0), vec![row(I8), row(I8)]),
            "an int8 normalisation with bias 1, alpha 1, beta 9 of values in steps of 0.5",
        ),
        (
            lowered(lrn(0, 0.75), vec![row(F32), row(F32)]),
            "normalisation along axis 0 of [2, 3]",
        ),
        (
            lowered(Op::Opaque, vec![row(F32), row(F32)]),
            "no kernel computes KIND\n",
        ),
        (
            lowered(mean, vec![tensor(&[2; 5], F32), tensor(&[2; 2], F32)]),
            "a reduction of [2, 2, 2, 2, 2] over [0, 2, 4]",
        ),
        (
            lowered(softmax, vec![row(F32), row(F32)]),
            "softmax along axis 0 of [2, 3]",
        ),
        (
            lowered(fft, vec![tensor(&[7], F32), tensor(&[9], F32)]),
            "a transform of length 7",
        ),
        (
            lowered(Op::ArgMax { axis: 0 }, vec![row(I32), tensor(&[3], I32)]),
            "the largest of int32",
        ),
    ]);
}

#[test]
fn graphs_that_contradict_themselves_are_refused_by_name() {
    let relu = || {
        graph(
            Op::Unary(UnaryKind::Relu),
            vec![
                Tensor {
                    kind: TensorKind::Input,
                    ..tensor(&[2, 3], F32)
                },
                tensor(&[2, 3], F32),
            ],
        )
    };
    check::check(&relu()).expect("as it should be");
    let mut twice = relu();
    let again = Node {
        name: "two".into(),
        ..twice.nodes[0].clone()
    };
    twice.add_node(again);
    let mut unwritten = relu();
    unwritten.outputs = vec![unwritten.add_tensor(Tensor::activation("y", &[1], F32))];
    let mut early = relu();
    early.nodes[0].inputs = vec![Some(TensorId(1))];
    let quantised = |quant| {
        let mut graph = relu();
        graph.tensors[0].quant = Some(quant);
        graph
    };
    let along = |axis| Quant {
        axis: Some(axis),
        ..Quant::per_tensor(0.5, 0)
    };
    let input = |shape| Tensor {
        kind: TensorKind::Input,
        ..tensor(shape, F32)
    };
    let affine = graph(
        Op::Affine,
        vec![
            input(&[2, 3]),
            constant(&[2], F32),
            constant(&[3], F32),
            tensor(&[2, 3], F32),
        ],
    );
    let linear = graph(
        Op::Linear {
            activation: Activation::None,
        },
        vec![input(&[2, 3]), constant(&[4, 3, 1], F32), tensor(&[2, 4], F32)],
    );
    let window = |kernel, dilation| {
        infer::windows(5, kernel, 1, dilation, 0)
            .expect_err("refused")
            .to_string()
    };
    hold(&[
        (checked(&twice), "it writes `t1`, which is written already"),
        (checked(&unwritten), "nothing writes the network's output `y`"),
        (
            checked(&early),
            "it reads `t1` before anything writes it … the operators form a cycle, or the one that writes it is missing",
        ),
        (
            checked(&quantised(along(2))),
            "quantised along axis 2, but its shape is [2, 3]",
        ),
        (checked(&quantised(along(1))), "1 scales and 1 zero points"),
        (checked(&affine), "the gain has shape [2]"),
        (checked(&linear), "the weights `t1` have shape [4, 3, 1]"),
        (window(0, 1), "kernel 0, stride 1 and dilation 1 must be at least 1"),
        (
            window(usize::MAX, 3),
            "a window of 18446744073709551615 with dilation 3 and padding 0 overflows",
        ),
    ]);
}

#[test]
fn buffers_that_no_plan_can_have_are_refused_by_name() {
    let planned = |buffers: Vec<Buffer>, relation: Option<(usize, usize, i64)>| {
        let relation = relation.map(|(below, above, distance)| Relation { below, above, distance });
        let problem = Problem {
            buffers,
            relations: relation.into_iter().collect(),
        };
        solve(&problem, &Options::default()).expect_err("refused").to_string()
    };
    let buffer = || Buffer::new("a", 0, 2, 8);
    let fixed = Buffer {
        fixed: Some(6),
        ..buffer().aligned(4)
    };
    let two = || vec![buffer(), buffer()];
    hold(&[
        (
            planned(vec![buffer().aligned(0)], None),
            "the alignment must be at least 1",
        ),
        (
            planned(vec![fixed], None),
            "the fixed offset must be a multiple of the alignment",
        ),
        (
            planned(vec![Buffer::new("a", 2, 1, 8)], None),
            "a lifetime must not end before it begins",
        ),
        (
            planned(two(), Some((0, 2, 0))),
            "a relation names buffer 2, but there are 2",
        ),
        (
            planned(two(), Some((1, 1, 0))),
            "a relation needs two different buffers",
        ),
        (
            planned(two(), Some((0, 1, 1 << 61))),
            "a relation's distance must be within 2^60 bytes",
        ),
    ]);
}

#[test]
fn what_nothing_explains_is_refused_by_name() {
    let options = ImportOptions::default();
    let none: [(String, usize); 0] = [];
    let said = Assumptions::new(&options).choose("pool1.kernel", &none, "pool1");
    let said = said.expect_err("refused").to_string();
    assert_eq!(said, "pool1: nothing explains the pool1.kernel");
}
