//! Products, quotients, sums and differences with constants, for each channel or for all, go into the layer beside them: into its weights and bias,
//! or those of the layer behind. Those in a row become one. Only in networks of floats, for results change by roundings: integers that a file
//! states stay what they are.
//!
//! A hard sigmoid between two layers is the clamp of the first one, for its sum and its quotient are such constants.
//!
//! In front of a layer with padding a factor is exact, a sum is not: zeros are padded behind it.

use std::sync::Arc;

use arenite::ops::pointwise::{Function, SpecialOp};

use super::constants::{binary, constant, either, filled, known, states_integers};
use super::layer_constants::{Layer, Step, activation, channel_axis};
use super::rewrite::{Rewriter, rewrite_all};
use super::{identity, linear_factor};
use crate::error::Result;
use crate::graph::data::ExprOp;
use crate::graph::{Activation, BinaryOp, DType, Expr, Graph, Node, NodeId, Op, Tensor, TensorId, UnaryKind};

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
        // Factors that have gone elsewhere leave identities.
        identity::run(graph)?;
        rewrite_all(graph, |net, id| {
            let done = behind_layer(net, id)
                || merge(net, id)
                || reorder(net, id)
                || ahead_of_layer(net, id)
                || hard_sigmoid(net, id)
                || linear_factor::fold(net, id);
            changed |= done;
            done
        });
        if !changed {
            break;
        }
    }
    Ok(())
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
    let merged = if step.scales() {
        layer.scaled(net.graph, &first, step.op, &numbers)
    } else {
        let bias = binary(step.op, layer.bias(), numbers);
        layer.write(net.graph, &first, None, Some(bias))
    };
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

/// A hard sigmoid between two layers, the second of which is `id`, is the clamp of the first: its sum and its quotient are theirs.
fn hard_sigmoid(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let layer = |node: NodeId| {
        let node = &net.graph.nodes[node.0];
        Layer::of(net, node).and(activation(&mut node.op.clone()).copied())
    };
    let fed = |reader: NodeId| net.feeder(net.graph.nodes[reader.0].inputs.first().copied().flatten()?, reader);
    let Some(between) = layer(id).and_then(|_| fed(id)) else {
        return false;
    };
    let node = net.graph.nodes[between.0].clone();
    let is_hard_sigmoid = node.op == Op::Unary(UnaryKind::Function(Function::Special(SpecialOp::HardSigmoid)));
    if !is_hard_sigmoid || fed(between).and_then(layer) != Some(Activation::None) {
        return false;
    }
    let shape = net.graph.tensor(node.outputs[0]).shape.clone();
    let [shifted, clamped] = ["shifted", "clamped"].map(|what| {
        let name = format!("{} ({what})", node.name);
        net.graph.add_tensor(Tensor::activation(name, &shape, DType::F32))
    });
    let [three, six] =
        [3.0, 6.0].map(|number| constant(net.graph, format!("{}: constant", node.name), filled(number, vec![1])));
    let step = |kind, x: TensorId, by: TensorId, y: TensorId, what: &str| Node {
        name: format!("{} ({what})", node.name),
        op: Op::Binary {
            kind,
            activation: Activation::None,
        },
        inputs: vec![Some(x), Some(by)],
        outputs: vec![y],
        ..node.clone()
    };
    let Some(x) = node.inputs[0] else { return false };
    net.insert_before(between, step(BinaryOp::Add, x, three, shifted, "shifted"));
    net.insert_before(id, step(BinaryOp::Div, clamped, six, node.outputs[0], "scaled"));
    let clamp = Node {
        op: Op::Unary(UnaryKind::Relu6),
        inputs: vec![Some(shifted)],
        outputs: vec![clamped],
        ..node
    };
    net.set(between, clamp);
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
