//! Products and sums with constants, and the layers that take them into weights and bias.

use std::sync::Arc;

use super::constants::{binary, constant, filled, known, reshape, value};
use super::rewrite::Rewriter;
use crate::graph::data::ExprOp;
use crate::graph::{Activation, BinaryOp, Expr, Graph, Layout, Node, Op, Padding2d, TensorId};

/// `x op constant`, of x's shape.
#[derive(Clone)]
pub(super) struct Step {
    pub(super) x: TensorId,
    pub(super) op: ExprOp,
    pub(super) constant: Arc<Expr>,
    pub(super) activation: Activation,
}

impl Step {
    pub(super) fn of(graph: &Graph, node: &Node) -> Option<Self> {
        let (&Op::Binary { kind, activation }, &[Some(a), Some(b)], &[y]) =
            (&node.op, &node.inputs[..], &node.outputs[..])
        else {
            return None;
        };
        let op = match kind {
            BinaryOp::Add => ExprOp::Add,
            BinaryOp::Sub => ExprOp::Sub,
            BinaryOp::Mul => ExprOp::Mul,
            BinaryOp::Div => ExprOp::Div,
            _ => return None,
        };
        let commutes = matches!(op, ExprOp::Add | ExprOp::Mul);
        let (x, c) = if commutes && graph.tensor(a).is_const() {
            (b, a)
        } else {
            (a, b)
        };
        let constant = value(graph, c)?;
        let same = graph.tensor(x).shape == graph.tensor(y).shape;
        // The operators that `--preprocess` adds have a fold of their own.
        if graph.tensor(x).is_const()
            || !same
            || node.kind == "preprocess"
            || (op == ExprOp::Div && !divides(&constant))
        {
            return None;
        }
        Some(Self {
            x,
            op,
            constant,
            activation,
        })
    }

    pub(super) fn elements(&self) -> usize {
        self.constant.shape().iter().product()
    }

    /// Whether it multiplies or divides.
    pub(super) fn scales(&self) -> bool {
        matches!(self.op, ExprOp::Mul | ExprOp::Div)
    }

    /// The constant as one number for each index of `axis`, or one for all.
    pub(super) fn along(&self, axis: usize, shape: &[usize]) -> Option<Arc<Expr>> {
        let own = self.constant.shape();
        if own.iter().product::<usize>() == 1 {
            return Some(reshape(&self.constant, vec![1]));
        }
        let skipped = shape.len().checked_sub(own.len())?;
        let extent = |at: usize| at.checked_sub(skipped).map_or(1, |at| own[at]);
        let channels = shape[axis];
        let fits = (0..shape.len()).all(|at| extent(at) == if at == axis { channels } else { 1 });
        fits.then(|| reshape(&self.constant, vec![channels]))
    }
}

/// Whether every number of a constant is known and divides: no quotient of usual numbers leaves what f32 has.
fn divides(constant: &Expr) -> bool {
    let usual = |value: &f32| (1e-18..1e18).contains(&value.abs());
    known(constant).is_some_and(|values| values.iter().all(usual))
}

/// The layer's weights and bias, and the axis of channels in its operand (`0`) or result (`1`).
pub(super) struct Layer {
    pub(super) weights: Arc<Expr>,
    pub(super) bias: Option<Arc<Expr>>,
    /// Output channels.
    pub(super) channels: usize,
    groups: usize,
    pub(super) padded: bool,
}

impl Layer {
    pub(super) fn of(net: &Rewriter<'_>, node: &Node) -> Option<Self> {
        let (groups, padded) = match &node.op {
            Op::Conv2d(attrs) => (attrs.groups, attrs.padding != Padding2d::default()),
            Op::Linear { .. } => (1, false),
            _ => return None,
        };
        let weights = node.inputs.get(1).copied().flatten()?;
        let bias = match node.inputs.get(2).copied().flatten() {
            Some(bias) => Some(value(net.graph, bias)?),
            None => None,
        };
        let own = value(net.graph, weights)?;
        // A residual is added behind the bias; weights that another layer reads would be there twice.
        (node.inputs.len() <= 3 && net.reads(weights) == 1 && groups > 0).then(|| Self {
            channels: own.shape()[0],
            weights: own,
            bias,
            groups,
            padded,
        })
    }

    pub(super) fn bias(&self) -> Arc<Expr> {
        let none = || filled(0.0, vec![self.channels]);
        self.bias.clone().unwrap_or_else(none)
    }

    /// The node with these weights and this bias.
    pub(super) fn write(
        &self,
        graph: &mut Graph,
        node: &Node,
        weights: Option<Arc<Expr>>,
        bias: Option<Arc<Expr>>,
    ) -> Node {
        let mut node = node.clone();
        if let Some(weights) = weights {
            node.inputs[1] = Some(constant(graph, format!("{}: folded weights", node.name), weights));
        }
        if let Some(bias) = bias {
            node.inputs.resize(3, None);
            node.inputs[2] = Some(constant(graph, format!("{}: folded bias", node.name), bias));
        }
        node
    }

    /// The weights times, or divided by, a number for each input channel, or one for all.
    pub(super) fn by_input(&self, op: ExprOp, numbers: &Arc<Expr>) -> Arc<Expr> {
        let shape = self.weights.shape();
        let inner = shape.last().copied().unwrap_or(1);
        if numbers.shape() == [1] {
            return binary(op, Arc::clone(&self.weights), Arc::clone(numbers));
        }
        let rows = shape.iter().product::<usize>() / self.groups / inner.max(1);
        let grouped = reshape(&self.weights, vec![self.groups, rows, inner]);
        let numbers = reshape(numbers, vec![self.groups, 1, inner]);
        reshape(&binary(op, grouped, numbers), shape)
    }

    /// The node with its weights and bias times, or divided by, numbers: one for each channel, or one.
    pub(super) fn scaled(&self, graph: &mut Graph, node: &Node, op: ExprOp, numbers: &Arc<Expr>) -> Node {
        let mut column = vec![1; self.weights.shape().len()];
        column[0] = numbers.shape()[0];
        let weights = binary(op, Arc::clone(&self.weights), reshape(numbers, column));
        let bias = self.bias.clone().map(|bias| binary(op, bias, Arc::clone(numbers)));
        self.write(graph, node, Some(weights), bias)
    }
}

/// The axis of a layer's channels in a tensor that it reads or writes.
pub(super) fn channel_axis(op: &Op, rank: usize) -> usize {
    match op {
        Op::Conv2d(attrs) if attrs.layout == Layout::Nchw => 1,
        _ => rank - 1,
    }
}

pub(super) fn activation(op: &mut Op) -> Option<&mut Activation> {
    match op {
        Op::Conv2d(attrs) => Some(&mut attrs.activation),
        Op::Linear { activation } => Some(activation),
        _ => None,
    }
}
