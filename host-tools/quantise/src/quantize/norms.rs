//! Normalisations of lines (LayerNorm, RMSNorm), which an int8 network may have in int16. A line's mean is taken away, squared, averaged and inverted: of
//! bytes each of these steps rounds to a part in 256 of its own range, and lines of little variance lose most. Of 16 bits what is left is the rounding of
//! what goes in and what comes out.

use crate::graph::{Activation, BinaryOp, Graph, NodeId, Op, ReduceKind, TensorId, UnaryKind};

/// The nodes of each normalisation.
pub(super) fn all<'a>(
    graph: &'a Graph,
    producers: &'a [Option<NodeId>],
    consumers: &'a [Vec<NodeId>],
) -> impl Iterator<Item = Vec<usize>> + 'a {
    (0..graph.nodes.len()).filter_map(|root| normalisation(graph, producers, consumers, root))
}

/// The nodes of the normalisation whose reciprocal root stands at a place: the mean and what is left without it, their squares, the mean of these, what is
/// added to it, the root, and the product.
fn normalisation(
    graph: &Graph,
    producers: &[Option<NodeId>],
    consumers: &[Vec<NodeId>],
    root: usize,
) -> Option<Vec<usize>> {
    let written_by = |id: TensorId| producers[id.0].map(|node| node.0);
    let operand = |index: usize, at: usize| graph.nodes[index].inputs.get(at).copied().flatten();
    let is_mean = |index: usize| {
        let op = &graph.nodes[index].op;
        matches!(
            op,
            Op::Reduce {
                kind: ReduceKind::Mean,
                keep_dims: true,
                ..
            }
        )
    };
    let is = |index: usize, wanted: BinaryOp| matches!(&graph.nodes[index].op, Op::Binary { kind, activation: Activation::None } if *kind == wanted);
    if !matches!(graph.nodes[root].op, Op::Unary(UnaryKind::RSQRT)) {
        return None;
    }
    let mut found = vec![root];
    let mut mean = written_by(operand(root, 0)?)?;
    if is(mean, BinaryOp::Add) {
        found.push(mean);
        let operands = [0, 1].map(|at| operand(mean, at));
        let computed = operands.into_iter().flatten().find(|&id| !graph.tensor(id).is_const());
        mean = written_by(computed?)?;
    }
    let square = is_mean(mean).then(|| written_by(operand(mean, 0)?)).flatten()?;
    let by_itself = is(square, BinaryOp::Mul) && operand(square, 0) == operand(square, 1);
    if !by_itself && !matches!(graph.nodes[square].op, Op::Unary(UnaryKind::SQUARE)) {
        return None;
    }
    found.extend([mean, square]);
    let line = operand(square, 0)?;
    if let Some(less) = written_by(line).filter(|&index| is(index, BinaryOp::Sub)) {
        let mean = operand(less, 1).and_then(written_by);
        if let Some(mean) = mean.filter(|&mean| is_mean(mean) && operand(mean, 0) == operand(less, 0)) {
            found.extend([less, mean]);
        }
    }
    let inverse = graph.nodes[root].outputs[0];
    let products = consumers[inverse.0]
        .iter()
        .map(|reader| reader.0)
        .filter(|&index| is(index, BinaryOp::Mul) && [operand(index, 0), operand(index, 1)].contains(&Some(line)));
    found.extend(products);
    Some(found)
}
