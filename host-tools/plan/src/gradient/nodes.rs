//! Parts of a training step's graph.

use crate::graph::{Activation, BinaryOp, DType, Data, Graph, Node, Op, Origin, Role, Tensor, TensorId, TensorKind};

/// An operator on two operands, of the shape of the first; its result.
pub(super) fn binary(graph: &mut Graph, name: &str, kind: BinaryOp, operands: [TensorId; 2]) -> TensorId {
    let tensor = graph.tensor(operands[0]);
    let (shape, dtype) = (tensor.shape.clone(), tensor.dtype);
    made(
        graph,
        name,
        plain(kind),
        &operands,
        Tensor::activation(name, &shape, dtype),
    )
}

/// An operator on two operands that ends with no activation.
pub(super) fn plain(kind: BinaryOp) -> Op {
    Op::Binary {
        kind,
        activation: Activation::None,
    }
}

/// Appends a node with a result of its own.
pub(super) fn made(graph: &mut Graph, name: &str, op: Op, operands: &[TensorId], result: Tensor) -> TensorId {
    let result = graph.add_tensor(result);
    node(graph, name, op, operands, &[result]);
    result
}

/// Appends a node.
pub(super) fn node(graph: &mut Graph, name: &str, op: Op, inputs: &[TensorId], outputs: &[TensorId]) {
    let inputs = inputs.iter().copied().map(Some).collect();
    append(graph, name, op, inputs, outputs.to_vec());
}

/// The same of a node that may lack operands.
pub(super) fn append(graph: &mut Graph, name: &str, op: Op, inputs: Vec<Option<TensorId>>, outputs: Vec<TensorId>) {
    graph.add_node(Node {
        name: name.to_string(),
        kind: "training".into(),
        op,
        inputs,
        outputs,
        role: Role::Forward,
        origin: Origin::default(),
    });
}

/// A number, `[1]`.
pub(super) fn constant(graph: &mut Graph, name: &str, value: f32) -> TensorId {
    graph.add_tensor(Tensor {
        kind: TensorKind::Const(Data::Bytes(value.to_le_bytes().as_slice().into())),
        ..Tensor::activation(name, &[1], DType::F32)
    })
}
