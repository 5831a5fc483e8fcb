//! Parts of a training step's graph.

use crate::graph::{Activation, BinaryOp, DType, Data, Graph, Node, Op, Origin, Role, Tensor, TensorId, TensorKind};

/// An operator on two operands, of the shape of the first; its result.
pub(super) fn binary(graph: &mut Graph, name: &str, kind: BinaryOp, operands: [TensorId; 2]) -> TensorId {
    let tensor = graph.tensor(operands[0]);
    let result = Tensor::activation(name, &tensor.shape, tensor.dtype);
    let result = graph.add_tensor(result);
    let op = Op::Binary {
        kind,
        activation: Activation::None,
    };
    node(graph, name, op, &operands, &[result]);
    result
}

/// Appends a node.
pub(super) fn node(graph: &mut Graph, name: &str, op: Op, inputs: &[TensorId], outputs: &[TensorId]) {
    graph.add_node(Node {
        name: name.to_string(),
        kind: "training".into(),
        op,
        inputs: inputs.iter().copied().map(Some).collect(),
        outputs: outputs.to_vec(),
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
