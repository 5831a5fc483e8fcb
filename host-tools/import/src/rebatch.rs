//! Whether a network that was rebuilt at another batch is the same network: every sample still goes its own way.
//!
//! A file does not say which axis holds samples. The network is built at the batch that the file states and at the one that is asked for; where the first axis
//! of the inputs holds samples, both have the same steps and constants, every tensor grows with the batch along one axis, and no step works across that axis.

use crate::error::{Error, Result};
use crate::graph::data::Expr;
use crate::graph::facts::{IMPLIED, place};
use crate::graph::{Data, Graph, Node, Op, Tensor, TensorId, TensorKind};

/// Refuses a rebuilt network whose first axis holds something else than samples. `batches` are the stated one and that of `--batch`.
///
/// # Errors
/// [`crate::error::ErrorKind::Unsupported`], naming the node that works across the axis.
pub(super) fn check(stated: &Graph, rebuilt: &Graph, batches: [usize; 2]) -> Result<()> {
    let refuse = |node: &Node, why: &str| {
        let [from, to] = batches;
        // The node of the file, where this is a part of its translation.
        let of_file = |other: &&Node| other.origin == node.origin && other.kind != IMPLIED;
        let node = stated.nodes.iter().find(of_file).unwrap_or(node);
        Err(Error::unsupported(format!(
            "--batch {to}, where the file states {from}: this {why}"
        ))
        .at(place(rebuilt, node))
        .expected("a first axis of independent samples")
        .help("leave --batch out: the network keeps what it states; or export the network with the batch that you want"))
    };
    for (index, new) in rebuilt.nodes.iter().enumerate() {
        let old = match stated.nodes.get(index) {
            Some(old) if std::mem::discriminant(&old.op) == std::mem::discriminant(&new.op) => old,
            _ => return refuse(new, "is a step that the network does not have at the stated batch"),
        };
        if let Err(why) = (Pair {
            graphs: [stated, rebuilt],
            nodes: [old, new],
            batches,
        })
        .check()
        {
            return refuse(new, why);
        }
    }
    match stated.nodes.get(rebuilt.nodes.len()) {
        Some(node) => refuse(node, "is a step that the network does not have at that batch"),
        None => Ok(()),
    }
}

/// A node at both batches.
struct Pair<'g> {
    graphs: [&'g Graph; 2],
    nodes: [&'g Node; 2],
    batches: [usize; 2],
}

/// Why a node does not treat each sample by itself.
type Why = &'static str;

const ACROSS: Why = "works across that axis";
const CONSTANT: Why = "has a constant that changes with it";
const EXTENT: Why = "gives a result that does not grow with it";

impl Pair<'_> {
    fn check(&self) -> std::result::Result<(), Why> {
        let [old, new] = self.nodes;
        if old.inputs.len() != new.inputs.len() || old.outputs.len() != new.outputs.len() {
            return Err(ACROSS);
        }
        let mut inputs = Vec::new();
        for (old, new) in old.inputs.iter().zip(&new.inputs) {
            inputs.push(match (old, new) {
                (Some(old), Some(new)) => self.grown(*old, *new)?,
                (None, None) => None,
                _ => return Err(ACROSS),
            });
        }
        let mut outputs = Vec::new();
        for (old, new) in old.outputs.iter().zip(&new.outputs) {
            outputs.push(self.grown(*old, *new)?);
        }
        if inputs.iter().all(Option::is_none) {
            return if outputs.iter().all(Option::is_none) {
                Ok(())
            } else {
                Err(EXTENT)
            };
        }
        match outputs.as_slice() {
            [Some(output)] if self.apart(&inputs, *output) => Ok(()),
            [Some(_)] => Err(ACROSS),
            _ => Err(EXTENT),
        }
    }

    /// The axis along which a tensor grows with the batch; `None` of one that has nothing to do with it.
    fn grown(&self, old: TensorId, new: TensorId) -> std::result::Result<Option<usize>, Why> {
        let (old, new) = (self.graphs[0].tensor(old), self.graphs[1].tensor(new));
        if old.shape.len() != new.shape.len() {
            return Err(EXTENT);
        }
        if !same_value(old, new) {
            return Err(CONSTANT);
        }
        let mut axes = (0..old.shape.len()).filter(|&axis| old.shape[axis] != new.shape[axis]);
        let [from, to] = self.batches;
        match (axes.next(), axes.next()) {
            (None, _) => Ok(None),
            (Some(axis), None) if old.shape[axis] as u64 * to as u64 == new.shape[axis] as u64 * from as u64 => {
                Ok(Some(axis))
            }
            _ => Err(EXTENT),
        }
    }

    /// Whether the node computes each sample by itself; the operands and the result grow along these axes.
    fn apart(&self, inputs: &[Option<usize>], output: usize) -> bool {
        let node = self.nodes[0];
        let shape = |position: usize| {
            let id = node.inputs.get(position).copied().flatten();
            id.map_or(&[][..], |id| self.graphs[0].tensor(id).shape.as_slice())
        };
        let result = &self.graphs[0].tensor(node.outputs[0]).shape;
        let first = inputs.first().copied().flatten();
        let others_stay = inputs.iter().skip(1).all(Option::is_none);
        let alone = |axis: usize| others_stay && first.is_some_and(|grown| grown != axis);
        match &node.op {
            Op::Conv2d(_)
            | Op::LocallyConnected2d { .. }
            | Op::MaxPool2d(_)
            | Op::AvgPool2d(_)
            | Op::ResizeNearest { .. }
            | Op::ResizeBilinear { .. } => others_stay && first == Some(0) && output == 0,
            Op::Linear { .. } | Op::L2Norm => alone(shape(0).len().wrapping_sub(1)) && first == Some(output),
            Op::MatMul {
                transpose_a,
                transpose_b,
            } => {
                let (a, b) = (shape(0).len(), shape(1).len());
                let summed = [a - 1 - usize::from(*transpose_a), b - 2 + usize::from(*transpose_b)];
                let matrices = |axis: usize, rank: usize| axis + 2 < rank;
                match (first, inputs.get(1).copied().flatten()) {
                    (Some(of_a), None) => of_a != summed[0],
                    (None, Some(of_b)) => of_b != summed[1],
                    (Some(of_a), Some(of_b)) => matrices(of_a, a) && matrices(of_b, b) && a - of_a == b - of_b,
                    (None, None) => true,
                }
            }
            Op::Binary { .. }
            | Op::SpecialBinary { .. }
            | Op::SpecialInt { .. }
            | Op::Compare { .. }
            | Op::Choose
            | Op::Broadcast
            | Op::Unary(_)
            | Op::Affine
            | Op::Quantize
            | Op::Dequantize
            | Op::Cast
            | Op::Identity => {
                let from_end = |position: usize, axis: usize| shape(position).len() - axis;
                let grown = inputs.iter().enumerate().filter_map(|(i, axis)| Some((i, (*axis)?)));
                grown
                    .map(|(position, axis)| from_end(position, axis))
                    .all(|place| place == result.len() - output)
            }
            Op::BatchNorm { axis, .. }
            | Op::Lrn { axis, .. }
            | Op::Softmax { axis, .. }
            | Op::LogSoftmax { axis }
            | Op::ArgMax { axis } => alone(*axis),
            Op::Reduce { axes, .. } => first.is_some_and(|grown| !axes.contains(&grown)),
            Op::Reshape => {
                let before = |shape: &[usize], axis: usize| shape[..axis].iter().product::<usize>();
                first.is_some_and(|grown| before(shape(0), grown) == before(result, output))
            }
            Op::Transpose { perm } => first.is_some_and(|grown| perm.get(output) == Some(&grown)),
            Op::Pad { pads, .. } => first.is_some_and(|grown| grown == output && pads.get(grown) == Some(&(0, 0))),
            Op::Concat { axis, .. } => inputs.iter().flatten().all(|grown| grown != axis) && output != *axis,
            Op::Slice { begin, stride } => {
                first.is_some_and(|grown| grown == output && begin[grown] == 0 && stride[grown] == 1)
            }
            Op::Gather { axis } => first.is_none_or(|grown| grown != *axis) && (first.is_none() || others_stay),
            // State, signals, detections and commands for an NPU.
            _ => false,
        }
    }
}

/// Whether two constants hold the same; all other tensors do.
fn same_value(old: &Tensor, new: &Tensor) -> bool {
    match (&old.kind, &new.kind) {
        (TensorKind::Const(old), TensorKind::Const(new)) => match (old, new) {
            (Data::Bytes(old), Data::Bytes(new)) => old == new,
            (Data::Lazy(old), Data::Lazy(new)) => same_expr(old, new),
            _ => false,
        },
        (TensorKind::State(_), _) | (_, TensorKind::State(_)) => false,
        _ => true,
    }
}

fn same_expr(old: &Expr, new: &Expr) -> bool {
    match (old, new) {
        (Expr::Param { key, shape }, Expr::Param { key: other, shape: to }) => (key, shape) == (other, to),
        (
            Expr::Literal { values, shape },
            Expr::Literal {
                values: other,
                shape: to,
            },
        ) => shape == to && values.iter().map(|v| v.to_bits()).eq(other.iter().map(|v| v.to_bits())),
        (Expr::Permute { of, perm }, Expr::Permute { of: other, perm: to }) => perm == to && same_expr(of, other),
        (Expr::Reshape { of, shape }, Expr::Reshape { of: other, shape: to }) => shape == to && same_expr(of, other),
        (Expr::Reversed { of }, Expr::Reversed { of: other }) | (Expr::RowSums { of }, Expr::RowSums { of: other }) => {
            same_expr(of, other)
        }
        (Expr::Binary { op, a, b }, Expr::Binary { op: other, a: c, b: d }) => {
            op == other && same_expr(a, c) && same_expr(b, d)
        }
        (Expr::RsqrtEpsilon { of, epsilon }, Expr::RsqrtEpsilon { of: other, epsilon: to }) => {
            epsilon == to && same_expr(of, other)
        }
        _ => false,
    }
}
