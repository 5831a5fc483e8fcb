//! Products, quotients, sums and differences with constants, for each channel or for all, go into the layer beside them: into its weights and bias,
//! or those of the layer behind. Those in a row become one. Only in networks of floats, for results change by roundings: integers that a file
//! states stay what they are.
//!
//! In front of a layer with padding a factor is exact, a sum is not: zeros are padded behind it.

use std::sync::Arc;

use super::constants::{binary, constant, either, filled, known, reshape, states_integers, value};
use super::rewrite::{Rewriter, rewrite_all};
use crate::error::Result;
use crate::graph::data::ExprOp;
use crate::graph::{Activation, BinaryOp, Expr, Graph, Layout, Node, NodeId, Op, Padding2d, TensorId};

/// Most rounds: each lets what has merged merge once more.
const MOST_ROUNDS: usize = 16;

/// The largest number that is added in front of a layer and folded: each bit of it is one that the sums of products lose.
const LARGEST_OFFSET: f32 = 256.0;

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    if states_integers(graph) {
        return Ok(());
    }
    for _ in 0..MOST_ROUNDS {
        let mut changed = false;
        rewrite_all(graph, |net, id| {
            let done = behind_layer(net, id) || merge(net, id) || reorder(net, id) || ahead_of_layer(net, id);
            changed |= done;
            done
        });
        if !changed {
            break;
        }
    }
    Ok(())
}

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
        // What `--preprocess` adds has a fold of its own.
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

    fn elements(&self) -> usize {
        self.constant.shape().iter().product()
    }

    /// Whether it multiplies or divides.
    fn scales(&self) -> bool {
        matches!(self.op, ExprOp::Mul | ExprOp::Div)
    }

    /// The constant as one number for each index of `axis`, or one for all.
    fn along(&self, axis: usize, shape: &[usize]) -> Option<Arc<Expr>> {
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
struct Layer {
    weights: Arc<Expr>,
    bias: Option<Arc<Expr>>,
    /// Output channels.
    channels: usize,
    groups: usize,
    padded: bool,
}

impl Layer {
    fn of(net: &Rewriter<'_>, node: &Node) -> Option<Self> {
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

    fn bias(&self) -> Arc<Expr> {
        let none = || filled(0.0, vec![self.channels]);
        self.bias.clone().unwrap_or_else(none)
    }

    /// The node with these weights and this bias.
    fn write(&self, graph: &mut Graph, node: &Node, weights: Option<Arc<Expr>>, bias: Option<Arc<Expr>>) -> Node {
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
}

/// The axis of a layer's channels in a tensor that it reads or writes.
fn channel_axis(op: &Op, rank: usize) -> usize {
    match op {
        Op::Conv2d(attrs) if attrs.layout == Layout::Nchw => 1,
        _ => rank - 1,
    }
}

fn activation(op: &mut Op) -> Option<&mut Activation> {
    match op {
        Op::Conv2d(attrs) => Some(&mut attrs.activation),
        Op::Linear { activation } => Some(activation),
        _ => None,
    }
}

/// Into the layer that computes the operand.
fn behind_layer(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let node = net.graph.nodes[id.0].clone();
    let Some(step) = Step::of(net.graph, &node) else {
        return false;
    };
    let Some(before) = net.feeder(step.x, id) else {
        return false;
    };
    let mut first = net.graph.nodes[before.0].clone();
    let Some(layer) = Layer::of(net, &first) else {
        return false;
    };
    let shape = net.graph.tensor(step.x).shape.clone();
    let Some(numbers) = step.along(channel_axis(&first.op, shape.len()), &shape) else {
        return false;
    };
    match activation(&mut first.op) {
        Some(own) if *own == Activation::None => *own = step.activation,
        _ => return false,
    }
    let (weights, bias) = if step.scales() {
        let mut column = vec![1; layer.weights.shape().len()];
        column[0] = numbers.shape()[0];
        let weights = binary(step.op, Arc::clone(&layer.weights), reshape(&numbers, column));
        (
            Some(weights),
            layer.bias.clone().map(|bias| binary(step.op, bias, numbers)),
        )
    } else {
        (None, Some(binary(step.op, layer.bias(), numbers)))
    };
    let merged = layer.write(net.graph, &first, weights, bias);
    let outputs = node.outputs;
    net.merge(before, id, Node { outputs, ..merged });
    true
}

/// Into the layer `id`, of whose operand the step is.
fn ahead_of_layer(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let node = net.graph.nodes[id.0].clone();
    let Some(layer) = Layer::of(net, &node) else {
        return false;
    };
    let Some(x) = node.inputs[0] else { return false };
    let Some(before) = net.feeder(x, id) else { return false };
    let Some(step) = Step::of(net.graph, &net.graph.nodes[before.0]) else {
        return false;
    };
    let shape = net.graph.tensor(x).shape.clone();
    let Some(numbers) = step.along(channel_axis(&node.op, shape.len()), &shape) else {
        return false;
    };
    if step.activation != Activation::None {
        return false;
    }
    let merged = if step.scales() {
        let weights = layer.by_input(step.op, &numbers);
        layer.write(net.graph, &node, Some(weights), None)
    } else {
        let small = known(&numbers).is_none_or(|values| values.iter().all(|value| value.abs() <= LARGEST_OFFSET));
        if layer.padded || !small {
            return false;
        }
        let of = layer.by_input(ExprOp::Mul, &numbers);
        let bias = binary(step.op, layer.bias(), Arc::new(Expr::RowSums { of }));
        layer.write(net.graph, &node, None, Some(bias))
    };
    let mut inputs = merged.inputs.clone();
    inputs[0] = Some(step.x);
    net.merge(before, id, Node { inputs, ..merged });
    true
}

impl Layer {
    /// The weights times, or divided by, a number for each input channel, or one for all.
    fn by_input(&self, op: ExprOp, numbers: &Arc<Expr>) -> Arc<Expr> {
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
}

/// Two of a kind in a row are one.
fn merge(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let Some((before, [first, second])) = pair(net, id) else {
        return false;
    };
    if first.scales() != second.scales() {
        return false;
    }
    let most = first.elements().max(second.elements());
    let (forward, backward) = if first.scales() {
        (ExprOp::Mul, ExprOp::Div)
    } else {
        (ExprOp::Add, ExprOp::Sub)
    };
    // x op a op' b: one that undoes keeps its kind where both do.
    let (op, how) = match (first.op == forward, second.op == forward) {
        (true, true) => (forward, either(forward, first.constant, second.constant)),
        (true, false) => (forward, either(backward, first.constant, second.constant)),
        (false, true) => (forward, either(backward, second.constant, first.constant)),
        (false, false) => (backward, either(forward, first.constant, second.constant)),
    };
    let Some(constant) = how.filter(|constant| usual(constant) && constant.shape().iter().product::<usize>() <= most)
    else {
        return false;
    };
    let merged = written(net.graph, id, first.x, op, constant, second.activation);
    net.merge(before, id, merged);
    true
}

/// `(x + a) * b` between others that would merge with its parts is `x * b + a * b`.
fn reorder(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let Some((before, [first, second])) = pair(net, id) else {
        return false;
    };
    let earlier = net
        .feeder(first.x, before)
        .and_then(|node| Step::of(net.graph, &net.graph.nodes[node.0]));
    let merges = earlier.is_some_and(|earlier| earlier.scales() && earlier.activation == Activation::None);
    if first.scales() || !second.scales() || !merges {
        return false;
    }
    let most = first.elements().max(second.elements());
    let offset = either(second.op, first.constant, Arc::clone(&second.constant));
    let Some(offset) = offset.filter(|c| usual(c) && c.shape().iter().product::<usize>() <= most) else {
        return false;
    };
    let product = Node {
        outputs: net.graph.nodes[before.0].outputs.clone(),
        ..written(net.graph, id, first.x, second.op, second.constant, Activation::None)
    };
    let between = product.outputs[0];
    // It is no tensor of the trace any more.
    let tensor = net.graph.tensor_mut(between);
    tensor.name = format!("{} (scaled)", tensor.name);
    let name = format!("{} (scaled)", product.name);
    net.set(before, Node { name, ..product });
    let sum = written(net.graph, id, between, first.op, offset, second.activation);
    net.set(id, sum);
    true
}

/// Two steps in a row, of which nobody else reads the first's result.
fn pair(net: &Rewriter<'_>, id: NodeId) -> Option<(NodeId, [Step; 2])> {
    let second = Step::of(net.graph, &net.graph.nodes[id.0])?;
    let before = net.feeder(second.x, id)?;
    let first = Step::of(net.graph, &net.graph.nodes[before.0])?;
    (first.activation == Activation::None).then_some((before, [first, second]))
}

/// Whether a constant is finite, as far as it is known.
fn usual(constant: &Expr) -> bool {
    known(constant).is_none_or(|values| values.iter().all(|value| value.is_finite()))
}

/// The node `id` as a step of this constant.
fn written(graph: &mut Graph, id: NodeId, x: TensorId, op: ExprOp, value: Arc<Expr>, activation: Activation) -> Node {
    let node = graph.nodes[id.0].clone();
    let kind = match op {
        ExprOp::Add => BinaryOp::Add,
        ExprOp::Sub => BinaryOp::Sub,
        ExprOp::Mul => BinaryOp::Mul,
        ExprOp::Div => BinaryOp::Div,
    };
    let value = constant(graph, format!("{}: constant", node.name), value);
    Node {
        op: Op::Binary { kind, activation },
        inputs: vec![Some(x), Some(value)],
        ..node
    }
}
