//! Sums with a mask, whose masked elements a softmax makes zero: how far below the others they lie says nothing of the range that the others want.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::evaluate::floats;
use crate::error::Result;
use crate::graph::{BinaryOp, Graph, Op, TensorId, TensorKind};
use crate::weights::Weights;

/// Elements of a mask that take a place away are below this.
const MASKED: f32 = -1e3;

/// How far below its line's largest element one still counts: its share is 1.1e-7 at the most, under half a step of a softmax of 16 bits.
const DEPTH: f32 = 16.0;

/// Tensors that are read so, and the length of the lines that the softmax makes shares of.
pub(super) type Lines = BTreeMap<TensorId, usize>;

/// The sums with a mask that only softmaxes read, and their views on the way.
///
/// # Errors
/// Constants that cannot be read.
pub(super) fn lines(graph: &Graph, weights: &Weights) -> Result<Lines> {
    let (producers, consumers) = (graph.producers(), graph.consumers());
    let mut lines = Lines::new();
    for node in &graph.nodes {
        let (Op::Softmax { axis, beta: 1.0 }, Some(&Some(read))) = (&node.op, node.inputs.first()) else {
            continue;
        };
        let Some(&line) = graph
            .tensor(read)
            .shape
            .last()
            .filter(|_| axis + 1 == graph.tensor(read).shape.len())
        else {
            continue;
        };
        let mut on_the_way = vec![read];
        let mut at = read;
        let masked = loop {
            let alone = consumers[at.0].len() == 1 && !graph.outputs.contains(&at);
            let Some(by) = producers[at.0].map(|id| &graph.nodes[id.0]).filter(|_| alone) else {
                break false;
            };
            match (&by.op, &by.inputs[..]) {
                (Op::Reshape | Op::Identity, &[Some(before)]) if graph.tensor(before).shape.last() == Some(&line) => {
                    on_the_way.push(before);
                    at = before;
                }
                (
                    Op::Binary {
                        kind: BinaryOp::Add, ..
                    },
                    inputs,
                ) => {
                    break inputs.iter().flatten().try_fold(false, |found, &id| {
                        Ok::<_, crate::error::Error>(found || masks(graph, weights, id)?)
                    })?;
                }
                _ => break false,
            }
        };
        if masked {
            lines.extend(on_the_way.into_iter().map(|id| (id, line)));
        }
    }
    Ok(lines)
}

/// Whether a tensor is a constant that takes places away.
fn masks(graph: &Graph, weights: &Weights, id: TensorId) -> Result<bool> {
    let tensor = graph.tensor(id);
    match &tensor.kind {
        TensorKind::Const(data) => {
            let values = weights.evaluate(&data.to_expr(&tensor.shape))?;
            Ok(values.iter().any(|&value| value < MASKED))
        }
        _ => Ok(false),
    }
}

/// The values of a tensor, those below what counts in their line raised to that.
pub(super) fn read<'a>(lines: &Lines, id: TensorId, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    let Some(&line) = lines.get(&id) else {
        return Cow::Borrowed(bytes);
    };
    let values: Vec<f32> = floats(bytes).collect();
    let raised = values.chunks(line.max(1)).flat_map(|line| {
        let least = line.iter().copied().fold(f32::NEG_INFINITY, f32::max) - DEPTH;
        line.iter().flat_map(move |value| value.max(least).to_le_bytes())
    });
    Cow::Owned(raised.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_elements_end_sixteen_below_their_line() {
        let lines = Lines::from([(TensorId(3), 2)]);
        let bytes: Vec<u8> = [1.0, f32::MIN, -20.0, -4.0, 7.0, 6.5]
            .into_iter()
            .flat_map(f32::to_le_bytes)
            .collect();
        let read_as: Vec<f32> = floats(&read(&lines, TensorId(3), &bytes)).collect();
        assert_eq!(read_as, [1.0, -15.0, -20.0, -4.0, 7.0, 6.5]);
        assert_eq!(read(&lines, TensorId(2), &bytes), bytes);
    }
}
