//! Patterns that become an operator on int8, and each reason for which one does not.

use std::sync::Arc;

use arenite::DType;
use arenite::ops::binary::BinaryOp;

use super::{arrange, fold};
use crate::graph::check::check;
use crate::graph::data::{Expr, ExprOp};
use crate::graph::{
    Activation, Conv2dAttrs, Data, Graph, Layout, Node, Op, Origin, Padding2d, PoolAttrs, Quant, Role, Tensor,
    TensorId, TensorKind, UnaryKind,
};
use crate::weights::Weights;

/// A graph under construction.
#[derive(Default)]
struct Net(Graph);

impl Net {
    fn tensor(&mut self, shape: &[usize], dtype: DType, quant: Option<(f32, i32)>) -> TensorId {
        let name = format!("t{}", self.0.tensors.len());
        self.0.add_tensor(Tensor {
            quant: quant.map(|(scale, zero)| Quant::per_tensor(scale, zero)),
            ..Tensor::activation(name, shape, dtype)
        })
    }

    fn input(&mut self, shape: &[usize]) -> TensorId {
        let id = self.tensor(shape, DType::F32, None);
        self.0.tensors[id.0].kind = TensorKind::Input;
        self.0.inputs.push(id);
        id
    }

    fn constant(&mut self, shape: &[usize], data: Data) -> TensorId {
        let id = self.tensor(shape, DType::F32, None);
        self.0.tensors[id.0].kind = TensorKind::Const(data);
        id
    }

    /// Whole numbers times steps, as an importer leaves a dequantised constant.
    fn multiples(&mut self, shape: &[usize], whole: &[f32], steps: &[f32]) -> TensorId {
        let literal = |values: &[f32]| {
            let (values, shape) = (values.to_vec(), shape.to_vec());
            Arc::new(Expr::Literal { values, shape })
        };
        let (a, b) = (literal(whole), literal(steps));
        let op = ExprOp::Mul;
        self.constant(shape, Data::Lazy(Arc::new(Expr::Binary { op, a, b })))
    }

    fn node(
        &mut self,
        op: Op,
        inputs: &[TensorId],
        shape: &[usize],
        dtype: DType,
        quant: Option<(f32, i32)>,
    ) -> TensorId {
        let y = self.tensor(shape, dtype, quant);
        let name = format!("n{}", self.0.nodes.len());
        self.0.add_node(Node {
            kind: name.clone(),
            name,
            op,
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: vec![y],
            role: Role::Forward,
            origin: Origin::default(),
        });
        y
    }

    fn real(&mut self, op: Op, inputs: &[TensorId], shape: &[usize]) -> TensorId {
        self.node(op, inputs, shape, DType::F32, None)
    }

    fn quantize(&mut self, x: TensorId, quant: (f32, i32), dtype: DType) -> TensorId {
        let shape = self.0.tensor(x).shape.clone();
        self.node(Op::Quantize, &[x], &shape, dtype, Some(quant))
    }

    fn dequantize(&mut self, x: TensorId) -> TensorId {
        let shape = self.0.tensor(x).shape.clone();
        self.real(Op::Dequantize, &[x], &shape)
    }

    /// Quantised to int8 and back.
    fn pair(&mut self, x: TensorId, quant: (f32, i32)) -> TensorId {
        let stored = self.quantize(x, quant, DType::I8);
        self.dequantize(stored)
    }

    /// The operators behind the rewrite, and what the note says.
    fn folded(mut self, outputs: &[TensorId]) -> (Vec<Op>, String) {
        self.0.outputs = outputs.to_vec();
        check(&self.0).expect("a graph");
        arrange(&mut self.0);
        check(&self.0).expect("arranged");
        let weights = Weights::nothing(&self.0).expect("no weights");
        let note = fold(&mut self.0, &weights).expect("folded").unwrap_or_default();
        crate::passes::name_apart(&mut self.0);
        check(&self.0).expect("folded");
        (self.0.nodes.into_iter().map(|node| node.op).collect(), note)
    }
}

/// `op` of one operand between conversions of these scales.
fn one(op: Op, from: (f32, i32), to: (f32, i32), shapes: [&[usize]; 2]) -> (Vec<Op>, String) {
    let mut net = Net::default();
    let x = net.input(shapes[0]);
    let x = net.pair(x, from);
    let y = net.real(op, &[x], shapes[1]);
    let y = net.quantize(y, to, DType::I8);
    net.folded(&[y])
}

#[test]
fn a_form_coarser_than_the_result_stays_in_f32() {
    let op = Op::Softmax { axis: 1, beta: 1.0 };
    let shape: &[usize] = &[2, 5];
    let fixed = one(op.clone(), (0.1, 3), (1.0 / 256.0, -128), [shape; 2]);
    assert_eq!(fixed, (vec![Op::Quantize, op.clone()], String::new()));
    let near = one(op.clone(), (0.1, 3), (1.0 / 255.0, -128), [shape; 2]);
    assert_eq!(near, (vec![Op::Quantize, op.clone(), Op::Quantize], String::new()));
    let (ops, note) = one(op.clone(), (0.1, 3), (1.0 / 257.0, -128), [shape; 2]);
    assert_eq!(ops, [Op::Quantize, Op::Dequantize, op, Op::Quantize]);
    assert!(note.contains("`n2` (n2)") && note.contains("coarser"), "{note}");
}

#[test]
fn averages_are_rounded_twice_only_where_that_is_less_than_a_step() {
    let op = Op::AvgPool2d(PoolAttrs {
        layout: Layout::Nhwc,
        kernel: [2, 3],
        stride: [2, 1],
        padding: Padding2d::default(),
        count_include_pad: false,
        activation: Activation::None,
    });
    let shapes: [&[usize]; 2] = [&[1, 4, 5, 3], &[1, 2, 3, 3]];
    for (scale, kept) in [(0.1, 0), (0.11, 0), (0.09, 1)] {
        let (ops, note) = one(op.clone(), (0.1, 3), (scale, 3), shapes);
        let real = ops.iter().filter(|op| **op == Op::Dequantize).count();
        assert_eq!((real, note.contains("coarser")), (kept, kept == 1), "{scale}: {note}");
    }
}

#[test]
fn a_padding_that_the_scale_does_not_hold_stays_in_f32() {
    for (value, kept) in [(0.0, false), (0.5, false), (0.3, true), (1e6, true)] {
        let op = Op::Pad {
            pads: vec![(0, 1), (2, 0)],
            value,
        };
        let (ops, note) = one(op, (0.25, 7), (0.25, 7), [&[2, 3], &[3, 5]]);
        assert_eq!(
            (ops.contains(&Op::Dequantize), note.contains("padding")),
            (kept, kept),
            "{value}"
        );
        if let Some(Op::Pad { value: stored, .. }) =
            ops.iter().find(|op| matches!(op, Op::Pad { .. })).filter(|_| !kept)
        {
            assert_eq!(*stored, 7.0 + 4.0 * value);
        }
    }
}

/// A layer of `[1, 1, 1, 2]` by two outputs, with weights and bias as given.
fn layer(weights: impl Fn(&mut Net) -> TensorId, bias: [f32; 2], to: f32) -> (Vec<Op>, String) {
    let mut net = Net::default();
    let x = net.input(&[1, 1, 1, 2]);
    let x = net.pair(x, (0.5, -3));
    let w = weights(&mut net);
    let b = net.constant(&[2], Data::from_f32(&bias));
    let op = Op::Conv2d(Conv2dAttrs {
        layout: Layout::Nhwc,
        stride: [1, 1],
        dilation: [1, 1],
        padding: Padding2d::default(),
        groups: 1,
        activation: Activation::Relu,
    });
    let y = net.real(op, &[x, w, b], &[1, 1, 1, 2]);
    let y = net.quantize(y, (to, 4), DType::I8);
    net.folded(&[y])
}

#[test]
fn a_layer_needs_whole_weights_of_a_scale_for_each_output() {
    const SHAPE: [usize; 4] = [2, 1, 1, 2];
    let of = |whole: [f32; 4], steps: [f32; 4]| move |net: &mut Net| net.multiples(&SHAPE, &whole, &steps);
    let steps = [0.1, 0.1, 0.2, 0.2];
    let (ops, note) = layer(of([127.0, -128.0, 3.0, 0.0], steps), [0.5, -2.0], 0.3);
    assert_eq!((ops.len(), note.as_str()), (2, ""));
    type Case<'a> = (&'a str, Box<dyn Fn(&mut Net) -> TensorId>, [f32; 2], f32);
    let cases: Vec<Case<'_>> = vec![
        ("weights", Box::new(of([128.0, 0.0, 3.0, 0.0], steps)), [0.0; 2], 0.3),
        (
            "weights",
            Box::new(of([1.0, 0.0, 3.0, 0.0], [0.1, 0.1, 0.2, 0.3])),
            [0.0; 2],
            0.3,
        ),
        ("weights", Box::new(of([1.5, 0.0, 3.0, 0.0], steps)), [0.0; 2], 0.3),
        (
            "weights",
            Box::new(|net| net.constant(&SHAPE, Data::from_f32(&[1.0, 2.0, 3.0, 4.0]))),
            [0.0; 2],
            0.3,
        ),
        ("bias", Box::new(of([1.0, 0.0, 3.0, 0.0], steps)), [1e9, 0.0], 0.3),
        ("factor", Box::new(of([1.0, 0.0, 3.0, 0.0], steps)), [0.0; 2], 1e-30),
    ];
    for (why, weights, bias, to) in cases {
        let (ops, note) = layer(weights, bias, to);
        assert!(ops.contains(&Op::Dequantize) && note.contains(why), "{why}: {note}");
    }
}

#[test]
fn a_sum_needs_scales_that_are_not_too_far_apart_and_constants_that_are_whole() {
    let op = Op::Binary {
        kind: BinaryOp::Add,
        activation: Activation::None,
    };
    for (to, constant, why) in [
        (0.2, None, ""),
        (1e-7, None, "factor"),
        (0.2, Some(true), ""),
        (0.2, Some(false), "constant in f32"),
    ] {
        let mut net = Net::default();
        let (x, z) = (net.input(&[2, 3]), net.input(&[2, 3]));
        let x = net.pair(x, (0.1, 3));
        let z = match constant {
            None => net.pair(z, (0.3, -3)),
            Some(true) => net.multiples(&[3], &[-100.0, 3.0, 155.0], &[0.01; 3]),
            Some(false) => net.constant(&[3], Data::from_f32(&[0.1, 0.2, 0.3])),
        };
        let y = net.real(op.clone(), &[x, z], &[2, 3]);
        let y = net.quantize(y, (to, 0), DType::I8);
        let (ops, note) = net.folded(&[y]);
        assert_eq!(
            ops.contains(&Op::Dequantize),
            !why.is_empty(),
            "{to} {constant:?}: {note}"
        );
        assert!(note.contains(why), "{note}");
    }
}

#[test]
fn who_reads_the_real_result_has_it() {
    let mut net = Net::default();
    let x = net.input(&[2, 3]);
    let x = net.pair(x, (0.1, 3));
    let y = net.real(Op::Unary(UnaryKind::EXP), &[x], &[2, 3]);
    let stored = net.quantize(y, (0.05, -128), DType::I8);
    let (ops, note) = net.folded(&[y, stored]);
    assert_eq!(
        ops,
        [Op::Quantize, Op::Dequantize, Op::Unary(UnaryKind::EXP), Op::Quantize]
    );
    assert!(note.contains("not quantised right behind it"), "{note}");
}

#[test]
fn what_is_only_moved_is_not_converted() {
    let mut net = Net::default();
    let x = net.input(&[2, 3]);
    let x = net.pair(x, (0.1, 3));
    let y = net.real(Op::Transpose { perm: vec![1, 0] }, &[x], &[3, 2]);
    let y = net.pair(y, (0.1, 3));
    let y = net.real(Op::Unary(UnaryKind::EXP), &[y], &[3, 2]);
    let y = net.real(Op::Reshape, &[y], &[6]);
    let y = net.quantize(y, (0.05, -128), DType::I8);
    let (ops, note) = net.folded(&[y]);
    let transpose = Op::Transpose { perm: vec![1, 0] };
    assert_eq!([&ops[0], &ops[1], &ops[3]], [&Op::Quantize, &transpose, &Op::Reshape]);
    assert!(
        matches!(ops[2], Op::Lookup { name: "exp", .. }) && ops.len() == 4,
        "{ops:?}"
    );
    assert_eq!(note, "");
}

#[test]
fn another_scale_behind_a_move_is_a_rescaling() {
    let mut net = Net::default();
    let x = net.input(&[2, 3]);
    let x = net.pair(x, (0.1, 3));
    let y = net.real(
        Op::Slice {
            begin: vec![1, 0],
            stride: vec![1, 2],
        },
        &[x],
        &[1, 2],
    );
    let y = net.quantize(y, (0.2, 3), DType::U8);
    let (ops, note) = net.folded(&[y]);
    assert!(!ops.contains(&Op::Dequantize) && ops.len() >= 3, "{ops:?}");
    assert_eq!(note, "");
}
