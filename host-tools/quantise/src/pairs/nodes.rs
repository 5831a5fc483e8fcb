//! Questions about nodes and tensors that both halves ask.

use arenite::DType;

use crate::graph::{Graph, Op, Quant, Tensor, TensorId};

/// The scale and zero point of a byte tensor, as int8 of the same real values.
pub(super) fn as_int8(tensor: &Tensor) -> Option<Quant> {
    let quant = tensor.quant.as_ref().filter(|quant| quant.axis.is_none())?;
    let offset = match tensor.dtype {
        DType::I8 => 0,
        DType::U8 => 128,
        _ => return None,
    };
    Some(Quant::per_tensor(quant.scale[0], quant.zero_point[0] - offset))
}

/// Drops operators whose results reach neither an output nor a state.
pub(super) fn drop_unread(graph: &mut Graph) {
    let mut read = vec![false; graph.tensors.len()];
    graph.outputs.iter().for_each(|id| read[id.0] = true);
    let mut kept = vec![true; graph.nodes.len()];
    for (node, kept) in graph.nodes.iter().zip(&mut kept).rev() {
        *kept = node.outputs.is_empty() || node.outputs.iter().any(|id| read[id.0]);
        if *kept {
            node.inputs.iter().flatten().for_each(|id| read[id.0] = true);
        }
    }
    let mut kept = kept.into_iter();
    graph.nodes.retain(|_| kept.next().unwrap_or(true));
}

/// Whether the result's elements are the operand's own.
pub(super) fn moves(op: &Op) -> bool {
    matches!(op, Op::Reshape | Op::Transpose { .. } | Op::Slice { .. } | Op::Identity)
}

/// The single operand and result of a node.
pub(super) fn ends(graph: &Graph, index: usize) -> Option<(TensorId, TensorId)> {
    let node = &graph.nodes[index];
    match (&node.inputs[..], &node.outputs[..]) {
        (&[Some(x)], &[y]) => Some((x, y)),
        _ => None,
    }
}
