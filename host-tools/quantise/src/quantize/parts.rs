//! Layers as parts that have forms on integers: biases and clamps apart from products of two activations, clamps apart from what cannot clamp, choices by
//! constants as products, quotients of roots as products. In f32 the parts compute what the layers compute, but for the last bit of a quotient.

use arenite::DType;
use arenite::ops::binary::{BinaryOp, SpecialBinaryOp};
use arenite::ops::pointwise::{Function, UnaryOp};

use super::activations::Activations;
use super::form::is_real;
use crate::error::Result;
use crate::graph::{Activation, Data, Graph, Node, Op, Tensor, TensorId, TensorKind, UnaryKind};
use crate::weights::Weights;

/// The graph with such layers in parts.
///
/// # Errors
/// Constants that cannot be read.
pub(super) fn run(graph: &Graph, weights: &Weights, activations: Activations) -> Result<Graph> {
    let roots = roots_that_divide(graph);
    let mut parts = Parts {
        out: graph.clone(),
        nodes: Vec::with_capacity(graph.nodes.len()),
        weights,
        squares: activations == Activations::Int16,
    };
    for (index, node) in std::mem::take(&mut parts.out.nodes).into_iter().enumerate() {
        parts.take(node, roots[index])?;
    }
    parts.out.nodes = parts.nodes;
    Ok(parts.out)
}

/// Of each node, whether it is a root that divides, or divides by such a root.
fn roots_that_divide(graph: &Graph) -> Vec<bool> {
    let consumers = graph.consumers();
    let producers = graph.producers();
    let mut found = vec![false; graph.nodes.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        let &[Some(_), Some(by)] = &node.inputs[..] else {
            continue;
        };
        if !is(&node.op, BinaryOp::Div) || graph.outputs.contains(&by) || consumers[by.0].len() != 1 {
            continue;
        }
        let root = producers[by.0].map(|id| id.0);
        let root = root.filter(|&root| graph.nodes[root].op == Op::Unary(function(UnaryOp::Sqrt)));
        if let Some(root) = root {
            found[root] = true;
            found[index] = true;
        }
    }
    found
}

fn is(op: &Op, wanted: BinaryOp) -> bool {
    matches!(op, Op::Binary { kind, .. } if *kind == wanted)
}

fn function(op: UnaryOp) -> UnaryKind {
    UnaryKind::Function(Function::Basic(op))
}

struct Parts<'a> {
    out: Graph,
    nodes: Vec<Node>,
    weights: &'a Weights,
    /// Squares are products: of int16 lines between values are not exact.
    squares: bool,
}

impl Parts<'_> {
    /// Appends a node, or its parts.
    fn take(&mut self, mut node: Node, root: bool) -> Result<()> {
        match node.op.clone() {
            Op::Linear { activation } if self.is_product(&node) => {
                let bias = node.inputs.get(2).copied().flatten();
                node.inputs.truncate(2);
                let product = Op::MatMul {
                    transpose_a: false,
                    transpose_b: true,
                };
                let sum = Op::Binary {
                    kind: BinaryOp::Add,
                    activation: Activation::None,
                };
                let sum = bias.map(|bias| (sum, Some(bias)));
                let clamp = clamp(activation).map(|clamp| (clamp, None));
                self.chain(node, product, sum.into_iter().chain(clamp));
            }
            Op::Binary {
                kind: kind @ (BinaryOp::Minimum | BinaryOp::Maximum),
                activation,
            } => {
                let alone = Op::Binary {
                    kind,
                    activation: Activation::None,
                };
                self.chain(node, alone, clamp(activation).map(|clamp| (clamp, None)).into_iter());
            }
            Op::Concat { axis, activation } => {
                let alone = Op::Concat {
                    axis,
                    activation: Activation::None,
                };
                self.chain(node, alone, clamp(activation).map(|clamp| (clamp, None)).into_iter());
            }
            Op::SpecialBinary {
                kind: SpecialBinaryOp::Keep,
            } => self.choice(node)?,
            Op::Unary(UnaryKind::SQUARE) if self.squares => {
                node.inputs = vec![node.inputs[0]; 2];
                node.op = Op::Binary {
                    kind: BinaryOp::Mul,
                    activation: Activation::None,
                };
                self.nodes.push(node);
            }
            Op::Unary(_) if root => self.nodes.push(Node {
                op: Op::Unary(UnaryKind::RSQRT),
                ..node
            }),
            Op::Binary { activation, .. } if root => self.nodes.push(Node {
                op: Op::Binary {
                    kind: BinaryOp::Mul,
                    activation,
                },
                ..node
            }),
            _ => self.nodes.push(node),
        }
        Ok(())
    }

    /// Whether a linear layer's weights are an activation of real numbers.
    fn is_product(&self, node: &Node) -> bool {
        let weights = node.inputs.get(1).copied().flatten();
        let low_bits = self.out.low_bits.contains_key(&node.name);
        !low_bits && weights.is_some_and(|id| is_real(&self.out, id))
    }

    /// Appends `first` in the place of the node's operation, then others of its result and their own operand. The last one has the node's name and result.
    fn chain(&mut self, node: Node, first: Op, others: impl Iterator<Item = (Op, Option<TensorId>)>) {
        let mut part = Node {
            op: first,
            ..node.clone()
        };
        for (number, (op, operand)) in others.enumerate() {
            let between = self.out.add_tensor(Tensor {
                name: format!("{} (part {number})", node.name),
                kind: TensorKind::Activation,
                quant: None,
                ..self.out.tensor(node.outputs[0]).clone()
            });
            part.name = format!("{} (part {number})", node.name);
            part.outputs = vec![between];
            self.nodes.push(part);
            let mut inputs = vec![Some(between)];
            inputs.extend(operand.map(Some));
            part = Node {
                op,
                inputs,
                ..node.clone()
            };
        }
        self.nodes.push(part);
    }

    /// A choice by a constant: a product with ones and zeros, or a constant itself.
    fn choice(&mut self, mut node: Node) -> Result<()> {
        let &[Some(value), Some(mask)] = &node.inputs[..] else {
            self.nodes.push(node);
            return Ok(());
        };
        if !self.out.tensor(mask).is_const() {
            self.nodes.push(node);
            return Ok(());
        }
        let kept: Vec<bool> = self.values(mask)?.into_iter().map(|value| value != 0.0).collect();
        if self.out.tensor(value).is_const() {
            let values = self.values(value)?;
            let output = node.outputs[0];
            let [shape, of, by] = [output, value, mask].map(|id| self.out.tensor(id).shape.clone());
            let chosen = (0..shape.iter().product()).map(|index| {
                let keeps = kept[broadcast(index, &shape, &by)];
                if keeps {
                    values[broadcast(index, &shape, &of)]
                } else {
                    0.0
                }
            });
            let data = literal(chosen);
            self.out.tensor_mut(output).kind = TensorKind::Const(data);
            return Ok(());
        }
        let tensor = self.out.tensor(mask);
        let factors = Tensor {
            name: format!("{} (kept)", tensor.name),
            kind: TensorKind::Const(literal(kept.into_iter().map(|kept| f32::from(u8::from(kept))))),
            dtype: DType::F32,
            ..tensor.clone()
        };
        node.inputs[1] = Some(self.out.add_tensor(factors));
        node.op = Op::Binary {
            kind: BinaryOp::Mul,
            activation: Activation::None,
        };
        self.nodes.push(node);
        Ok(())
    }

    /// The values of a constant, whatever they are.
    fn values(&self, id: TensorId) -> Result<Vec<f32>> {
        let tensor = self.out.tensor(id);
        match &tensor.kind {
            TensorKind::Const(data) => self.weights.evaluate(&data.to_expr(&tensor.shape)),
            _ => Ok(Vec::new()),
        }
    }
}

/// Numbers as a constant's bytes.
pub(super) fn literal(values: impl Iterator<Item = f32>) -> Data {
    Data::Bytes(values.flat_map(f32::to_le_bytes).collect())
}

/// The clamp as a step of its own.
fn clamp(activation: Activation) -> Option<Op> {
    Some(Op::Unary(match activation {
        Activation::None => return None,
        Activation::Relu => UnaryKind::Relu,
        Activation::Relu6 => UnaryKind::Relu6,
        Activation::ReluN1To1 => UnaryKind::ReluN1To1,
    }))
}

/// Where the element at `index` of extents `shape` lies in an operand of extents `of`, by NumPy's rules.
fn broadcast(mut index: usize, shape: &[usize], of: &[usize]) -> usize {
    let (mut at, mut stride) = (0, 1);
    for (axis, &extent) in shape.iter().enumerate().rev() {
        let own = (axis + of.len()).checked_sub(shape.len()).map_or(1, |axis| of[axis]);
        at += (index % extent).min(own - 1) * stride;
        stride *= own;
        index /= extent;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_of_fewer_and_shorter_axes_are_read_again() {
        let of: Vec<usize> = (0..12).map(|index| broadcast(index, &[2, 3, 2], &[3, 1])).collect();
        assert_eq!(of, [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]);
        let whole: Vec<usize> = (0..12).map(|index| broadcast(index, &[2, 3, 2], &[2, 3, 2])).collect();
        assert_eq!(whole, (0..12).collect::<Vec<_>>());
        assert_eq!(broadcast(7, &[2, 3, 2], &[]), 0);
    }
}
