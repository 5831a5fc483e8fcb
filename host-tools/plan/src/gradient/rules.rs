//! The gradient of each operator: one rule each, from the gradient of the result to those of the operands.

use arenite::ops::pointwise::{Function, UnaryOp};

use super::parameters::update;
use super::pointwise::{self, Chain};
use super::reverse::{Reverse, input};
use crate::error::{Error, Result};
use crate::graph::train::{Activated, Train};
use crate::graph::{
    BinaryOp, Conv2dAttrs, DType, Graph, Layout, Node, Op, PoolAttrs, ReduceKind, Tensor, TensorId, UnaryKind, facts,
};

/// Whether the gradient of a node's result has a rule.
///
/// # Errors
/// Why not, for people.
pub(super) fn has_gradient(graph: &Graph, node: &Node, needs: &[bool]) -> std::result::Result<(), String> {
    let tensor = |index: usize| input(node, index).map(|id| graph.tensor(id));
    let tensors = || node.inputs.iter().flatten().chain(&node.outputs);
    if let Some(id) = tensors().find(|id| graph.tensor(**id).dtype != DType::F32) {
        return Err(format!("it computes {}", graph.tensor(*id).dtype.name()));
    }
    let wanted = |index: usize| input(node, index).is_some_and(|id| needs[id.0]);
    // A layer's own gradient is that of constants; but for a linear one's weights.
    let computed = |index: usize| wanted(index) && tensor(index).is_some_and(|x| !x.is_const());
    match &node.op {
        Op::LocallyConnected2d { .. } if (1..4).any(computed) => Err("its weights are computed in the run".into()),
        Op::Conv2d(_) | Op::BatchNorm { .. } if (1..3).any(computed) => {
            Err("its weights are computed in the run".into())
        }
        Op::Linear { .. } if computed(2) => Err("its bias is computed in the run".into()),
        Op::Conv2d(attrs) if attrs.layout != Layout::Nhwc => Err("its channels are not last".into()),
        Op::Conv2d(_) if tensor(3).is_some() => Err("a sum is fused into it".into()),
        Op::MaxPool2d(attrs) if attrs.kernel.iter().product::<usize>() > 256 => {
            Err("its windows have more than 256 elements".into())
        }
        Op::Lrn { axis, .. } | Op::BatchNorm { axis, .. } if tensor(0).is_some_and(|x| axis + 1 != x.shape.len()) => {
            Err("its channels are not last".into())
        }
        Op::Conv2d(_)
        | Op::BatchNorm { trained: true, .. }
        | Op::Linear { .. }
        | Op::LocallyConnected2d { .. }
        | Op::Lrn { .. }
        | Op::MaxPool2d(_)
        | Op::AvgPool2d(_)
        | Op::Reshape
        | Op::Identity
        | Op::Transpose { .. }
        | Op::Concat { .. }
        | Op::Softmax { .. }
        | Op::LogSoftmax { .. }
        | Op::RmsNorm { .. }
        | Op::Broadcast
        | Op::Pad { .. } => Ok(()),
        Op::Slice { stride, .. } if stride.iter().any(|&step| step != 1) => Err("it leaves elements out".into()),
        Op::Slice { .. } => Ok(()),
        Op::Unary(UnaryKind::Relu | UnaryKind::Relu6 | UnaryKind::ReluN1To1) => Ok(()),
        Op::Unary(kind) if activated(*kind).is_some() || pointwise::has_gradient(*kind) => Ok(()),
        Op::Unary(_) => Err("its function has none here".into()),
        Op::Binary {
            kind: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div,
            ..
        } => Ok(()),
        Op::Reduce {
            kind: ReduceKind::Mean | ReduceKind::Sum,
            ..
        } => Ok(()),
        _ => Err("there is no rule for it".into()),
    }
}

/// Appends the gradients of a node of inference, and the updates of its parameters.
///
/// # Errors
/// [`crate::ErrorKind::Internal`] for an operator without a rule.
pub(super) fn apply(pass: &mut Reverse<'_>, node: &Node) -> Result<()> {
    let Some(dy) = pass.of_result(node)? else { return Ok(()) };
    let (Some(x), Some(&y)) = (input(node, 0), node.outputs.first()) else {
        return Err(Error::internal("an operator without operands has a gradient"));
    };
    match &node.op {
        Op::Conv2d(attrs) => conv2d(pass, node, attrs, (x, dy)),
        Op::Linear { .. } => linear(pass, node, (x, dy)),
        Op::LocallyConnected2d { .. } => locally_connected(pass, node, (x, dy)),
        Op::BatchNorm { epsilon, .. } => batch_norm(pass, node, *epsilon, (x, y, dy))?,
        Op::Lrn {
            radius,
            bias,
            alpha,
            beta,
            ..
        } => {
            let (radius, values) = (*radius, [*bias, *alpha, *beta]);
            lrn(pass, node, Train::LrnGrad { radius, values }, (x, dy));
        }
        Op::MaxPool2d(attrs) => max_pool(pass, node, attrs, (x, y, dy))?,
        Op::AvgPool2d(attrs) => avg_pool(pass, node, attrs.clone(), (x, dy)),
        Op::Reduce { kind, axes, .. } => {
            let is_image = pass.graph.tensor(x).shape.len() == 4 && axes[..] == [1, 2];
            if *kind == ReduceKind::Mean && is_image {
                mean(pass, node, (x, y, dy));
            } else {
                Chain::of(pass, node).reduction(*kind, axes, (x, dy));
            }
        }
        Op::Reshape | Op::Identity => view(pass, node, Op::Reshape, (x, dy)),
        Op::Transpose { perm } => {
            let mut inverse = vec![0; perm.len()];
            perm.iter().enumerate().for_each(|(to, &from)| inverse[from] = to);
            view(pass, node, Op::Transpose { perm: inverse }, (x, dy));
        }
        // The gradient has gone through these on its way here.
        Op::Unary(UnaryKind::Relu | UnaryKind::Relu6 | UnaryKind::ReluN1To1) => pass.give(x, dy),
        Op::Unary(kind) => match activated(*kind) {
            Some(activation) => {
                let dx = pass.activation_grad(activation, dy, y);
                pass.give(x, dx);
            }
            None => Chain::of(pass, node).unary(*kind, (x, y, dy)),
        },
        Op::Binary { kind, .. } => Chain::of(pass, node).operands(node, *kind, (y, dy)),
        Op::Softmax { axis, beta } => Chain::of(pass, node).softmax((*axis, *beta), (x, y, dy)),
        Op::LogSoftmax { axis } => Chain::of(pass, node).log_softmax(*axis, (x, y, dy)),
        Op::RmsNorm { epsilon } => {
            let gain = input(node, 1).ok_or_else(|| Error::internal("an RMSNorm without a gain"))?;
            Chain::of(pass, node).rms_norm(*epsilon, gain, (x, dy));
        }
        Op::Broadcast => Chain::of(pass, node).broadcast((x, dy)),
        Op::Slice { begin, .. } => Chain::of(pass, node).slice(begin, (x, dy)),
        Op::Concat { axis, .. } => concat(pass, node, *axis, dy),
        Op::Pad { pads, .. } => {
            let begin = pads.iter().map(|&(before, _)| before).collect();
            slice(pass, node, x, dy, begin);
        }
        _ => return Err(Error::internal(format!("`{}` has no gradient", node.name))),
    }
    Ok(())
}

/// An activation whose gradient follows from its result, of those that are no end of an operator.
fn activated(kind: UnaryKind) -> Option<Activated> {
    let clamp = |min, max| Some(Activated::Clamp { min, max });
    match kind {
        UnaryKind::Clamp { min, max } => clamp(min, max),
        UnaryKind::Function(Function::Basic(UnaryOp::Tanh)) => Some(Activated::Tanh),
        UnaryKind::Function(Function::Basic(UnaryOp::Logistic)) => Some(Activated::Logistic),
        _ => None,
    }
}

/// `dx` from all filters; then weights and bias, each by itself.
fn conv2d(pass: &mut Reverse<'_>, node: &Node, attrs: &Conv2dAttrs, (x, dy): (TensorId, TensorId)) {
    let plain = Conv2dAttrs {
        activation: Default::default(),
        ..attrs.clone()
    };
    let input_grad = Op::Train(Train::Conv2dInputGrad(plain.clone()));
    layer(
        pass,
        node,
        (x, dy),
        [input_grad, Op::Train(Train::Conv2dWeightSgd(plain))],
    );
}

fn linear(pass: &mut Reverse<'_>, node: &Node, ends: (TensorId, TensorId)) {
    let ops = [Train::LinearInputGrad, Train::LinearWeightSgd].map(Op::Train);
    layer(pass, node, ends, ops);
    // Of a product of two activations.
    if let Some(w) = input(node, 1).filter(|&w| pass.wants(w) && !pass.is_trained(w)) {
        Chain::of(pass, node).linear_weights((ends.0, w, ends.1));
    }
}

/// As of other layers; the gain, which all but the bias read, comes last. Its gradient is computed from the filters before they change.
fn locally_connected(pass: &mut Reverse<'_>, node: &Node, (x, dy): (TensorId, TensorId)) {
    let gain = input(node, 3);
    let trained = gain.filter(|&gain| pass.is_trained(gain));
    let of_gain = trained.map(|gain| {
        let dgain = pass.gradient_like(gain);
        let op = Op::Train(Train::LocallyConnectedGainGrad);
        let name = format!("{}.gain_grad", node.name);
        pass.node(&name, op, vec![Some(dy), Some(x), input(node, 1)], vec![dgain]);
        (gain, dgain)
    });
    let ops = [Train::LocallyConnectedInputGrad, Train::LocallyConnectedWeightSgd].map(Op::Train);
    layer(pass, node, (x, dy), ops);
    if let Some((gain, dgain)) = of_gain {
        let operands = [gain, dgain, pass.rate()].map(Some).to_vec();
        pass.node(&update(pass.graph, gain), Op::Train(Train::BiasSgd), operands, vec![]);
    }
}

fn layer(pass: &mut Reverse<'_>, node: &Node, (x, dy): (TensorId, TensorId), [input_grad, weight_sgd]: [Op; 2]) {
    let macs = forward_macs(pass.graph, node);
    // A residual is refused, so that operand 3 is a gain.
    let gain = input(node, 3);
    if let Some(w) = input(node, 1) {
        // An operand must be read before it is changed.
        if pass.wants(x) {
            let dx = pass.gradient_like(x);
            let name = format!("{}.input_grad", node.name);
            let mut operands = vec![Some(dy), Some(w)];
            operands.extend(gain.map(Some));
            pass.node(&name, input_grad, operands, vec![dx]);
            pass.count(macs);
            pass.give(x, dx);
        }
        if pass.is_trained(w) {
            let mut operands = [w, dy, x, pass.rate()].map(Some).to_vec();
            operands.extend(gain.map(Some));
            pass.node(&update(pass.graph, w), weight_sgd, operands, vec![]);
            pass.count(macs);
        }
    }
    if let Some(bias) = input(node, 2).filter(|&bias| pass.is_trained(bias)) {
        let operands = [bias, dy, pass.rate()].map(Some).to_vec();
        let op = Op::Train(Train::BiasSgd);
        pass.node(&update(pass.graph, bias), op, operands, vec![]);
    }
}

/// All three gradients come of the same sums. Those of gain and shift are applied at once where they are trained.
fn batch_norm(
    pass: &mut Reverse<'_>,
    node: &Node,
    epsilon: f32,
    (x, y, dy): (TensorId, TensorId, TensorId),
) -> Result<()> {
    let (Some(gain), Some(shift)) = (input(node, 1), input(node, 2)) else {
        return Err(Error::internal("a batch norm without gain or shift"));
    };
    let [mean, variance] = pass.statistics(y)?;
    let dx = pass.gradient_like(x);
    let [dgain, dshift] = [gain, shift].map(|id| pass.gradient_like(id));
    let operands = [dy, x, gain, mean, variance].map(Some).to_vec();
    let name = format!("{}.input_grad", node.name);
    pass.node(
        &name,
        Op::Train(Train::BatchNormGrad { epsilon }),
        operands,
        vec![dx, dgain, dshift],
    );
    pass.give(x, dx);
    for (parameter, gradient) in [(gain, dgain), (shift, dshift)] {
        if pass.is_trained(parameter) {
            let operands = [parameter, gradient, pass.rate()].map(Some).to_vec();
            pass.node(
                &update(pass.graph, parameter),
                Op::Train(Train::BiasSgd),
                operands,
                vec![],
            );
        }
    }
    Ok(())
}

/// Multiply-accumulates of a layer.
fn forward_macs(graph: &Graph, node: &Node) -> u64 {
    let index = graph.nodes.iter().position(|other| other.name == node.name);
    index.map_or(0, |index| facts::macs(graph, index))
}

/// To where the maxima are from. The pooled tensor has gone through its layer's activation: as a maximum lies where that result lies, its gradient goes through
/// the activation here, from the pooled results, and what was pooled need not live on.
fn max_pool(
    pass: &mut Reverse<'_>,
    node: &Node,
    attrs: &PoolAttrs,
    (x, y, mut dy): (TensorId, TensorId, TensorId),
) -> Result<()> {
    if !pass.wants(x) {
        return Ok(());
    }
    if let Some(activation) = pass.movable_activation(x)
        && attrs.activation == Default::default()
    {
        dy = pass.through(activation, dy, y)?;
        pass.set_masked(x);
    }
    let (dx, positions) = (pass.gradient_like(x), pass.positions(y)?);
    let op = Op::Train(Train::MaxPoolGrad(attrs.clone()));
    let name = format!("{}.input_grad", node.name);
    pass.node(&name, op, vec![Some(dy), Some(positions)], vec![dx]);
    pass.give(x, dx);
    Ok(())
}

fn avg_pool(pass: &mut Reverse<'_>, node: &Node, attrs: PoolAttrs, (x, dy): (TensorId, TensorId)) {
    if pass.wants(x) {
        let dx = pass.gradient_like(x);
        let op = Op::Train(Train::AvgPoolGrad(attrs));
        pass.node(&format!("{}.input_grad", node.name), op, vec![Some(dy)], vec![dx]);
        pass.give(x, dx);
    }
}

/// From the input again: the powers are not kept.
fn lrn(pass: &mut Reverse<'_>, node: &Node, op: Train, (x, dy): (TensorId, TensorId)) {
    if pass.wants(x) {
        let dx = pass.gradient_like(x);
        let name = format!("{}.input_grad", node.name);
        pass.node(&name, Op::Train(op), vec![Some(dy), Some(x)], vec![dx]);
        pass.give(x, dx);
    }
}

/// A mean over rows and columns is an average over a window that is the whole image.
fn mean(pass: &mut Reverse<'_>, node: &Node, (x, y, dy): (TensorId, TensorId, TensorId)) {
    let shape = pass.graph.tensor(x).shape.clone();
    let [n, rows, columns, channels] = shape[..] else {
        return;
    };
    let gradient = Tensor::activation(
        format!("{}.grad as an image", pass.graph.tensor(y).name),
        &[n, 1, 1, channels],
        DType::F32,
    );
    let image = pass.graph.add_tensor(gradient);
    pass.node(
        &format!("{}.image", node.name),
        Op::Reshape,
        vec![Some(dy)],
        vec![image],
    );
    let attrs = PoolAttrs {
        layout: Layout::Nhwc,
        kernel: [rows, columns],
        stride: [1, 1],
        padding: Default::default(),
        count_include_pad: false,
        activation: Default::default(),
    };
    avg_pool(pass, node, attrs, (x, image));
}

/// The same elements in another shape or order.
fn view(pass: &mut Reverse<'_>, node: &Node, op: Op, (x, dy): (TensorId, TensorId)) {
    if pass.wants(x) {
        let dx = pass.gradient_like(x);
        pass.node(&format!("{}.input_grad", node.name), op, vec![Some(dy)], vec![dx]);
        pass.give(x, dx);
    }
}

/// Each operand's part.
fn concat(pass: &mut Reverse<'_>, node: &Node, axis: usize, dy: TensorId) {
    let mut from = 0;
    for x in node.inputs.iter().flatten().copied() {
        let shape = pass.graph.tensor(x).shape.clone();
        let mut begin = vec![0; shape.len()];
        begin[axis] = from;
        from += shape[axis];
        slice(pass, node, x, dy, begin);
    }
}

/// The part of a gradient from `begin` on that belongs to `x`.
fn slice(pass: &mut Reverse<'_>, node: &Node, x: TensorId, dy: TensorId, begin: Vec<usize>) {
    if pass.wants(x) {
        let dx = pass.gradient_like(x);
        let name = format!("{}.grad of {}", node.name, pass.graph.tensor(x).name);
        let stride = vec![1; begin.len()];
        pass.node(&name, Op::Slice { begin, stride }, vec![Some(dy)], vec![dx]);
        pass.give(x, dx);
    }
}
