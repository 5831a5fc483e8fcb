//! Networks of one operand `[2, 3]` that tests of passes make.

use crate::error::Result;
use crate::graph::check::check;
use crate::graph::{
    Activation, BinaryOp, DType, Data, Graph, Node, Op, Origin, Role, Tensor, TensorId, TensorKind, UnaryKind,
};

/// Extents of the operand.
const SHAPE: [usize; 2] = [2, 3];

/// A network under construction.
pub(super) struct Net(Graph);

impl Net {
    pub(super) fn new() -> (Self, TensorId) {
        let mut graph = Graph::default();
        let x = graph.add_tensor(Tensor {
            kind: TensorKind::Input,
            ..Tensor::activation("x", &SHAPE, DType::F32)
        });
        graph.inputs = vec![x];
        (Self(graph), x)
    }

    pub(super) fn constant(&mut self, values: &[f32]) -> TensorId {
        let name = format!("c{}", self.0.tensors.len());
        self.0.add_tensor(Tensor {
            kind: TensorKind::Const(Data::from_f32(values)),
            ..Tensor::activation(name, &[values.len()], DType::F32)
        })
    }

    pub(super) fn number(&mut self, value: f32) -> TensorId {
        self.constant(&[value])
    }

    /// An operator with a result of these extents; a comparison's is of truth values.
    pub(super) fn shaped(&mut self, op: Op, inputs: &[TensorId], shape: &[usize]) -> TensorId {
        let name = format!("t{}", self.0.tensors.len());
        let dtype = match op {
            Op::Compare { .. } => DType::Bool,
            _ => DType::F32,
        };
        let y = self.0.add_tensor(Tensor::activation(&name, shape, dtype));
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

    pub(super) fn node(&mut self, op: Op, inputs: &[TensorId]) -> TensorId {
        self.shaped(op, inputs, &SHAPE)
    }

    pub(super) fn unary(&mut self, kind: UnaryKind, x: TensorId) -> TensorId {
        self.node(Op::Unary(kind), &[x])
    }

    pub(super) fn two(&mut self, kind: BinaryOp, a: TensorId, b: TensorId) -> TensorId {
        let activation = Activation::None;
        self.node(Op::Binary { kind, activation }, &[a, b])
    }

    pub(super) fn with(&mut self, kind: BinaryOp, a: TensorId, value: f32) -> TensorId {
        let number = self.number(value);
        self.two(kind, a, number)
    }

    /// The operators behind a pass.
    pub(super) fn after(mut self, outputs: &[TensorId], pass: fn(&mut Graph) -> Result<()>) -> Vec<Op> {
        self.0.outputs = outputs.to_vec();
        check(&self.0).expect("a graph");
        pass(&mut self.0).expect("rewritten");
        check(&self.0).expect("still a graph");
        self.0.nodes.into_iter().map(|node| node.op).collect()
    }
}
