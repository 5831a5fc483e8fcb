//! Backward halves of frameworks that make one operator of each, or a few: Chainer, TensorFlow 1, and the rectangles' framework.

use super::live::{Backward, Operator, Value};
use crate::graph::{Graph, Node, Op, Role};

/// Whether a node outside the forward half computes a gradient, clears one, applies one or averages one: what is left is bookkeeping, and the gradients of
/// nothing that TensorFlow lists.
pub(super) fn is_operator(node: &Node) -> bool {
    let name = node.name.as_str();
    let leaf = name.rsplit('/').next().unwrap_or(name);
    let made = !name.ends_with("-LayoutOptimizer") && !name.contains(':');
    match node.role {
        Role::Backward if name.starts_with(super::keras::TAPE) => made && super::keras::GRADIENTS.contains(&leaf),
        Role::Backward if name.starts_with(TF_SCOPE) => made && TF_GRADIENTS.contains(&leaf),
        Role::Backward => true,
        Role::Optimizer => name.starts_with("update_") || super::keras::is_update(name),
        Role::Allreduce => super::keras::is_averaged(name),
        _ => false,
    }
}

/// How names of TensorFlow 1's gradients begin, and how those of the other two end.
pub(super) const TF_SCOPE: &str = "gradients/";
pub(super) const ONE_END: &str = ".backward";
pub(super) const CLEARED_END: &str = ".grad";

/// Operators of gradients of TensorFlow 1.
const TF_GRADIENTS: [&str; 6] = [
    "BiasAddGrad",
    "Conv2DBackpropFilter",
    "Conv2DBackpropInput",
    "LRNGrad",
    "MaxPoolGrad",
    "ReluGrad",
];

/// Chainer's: one operator for each, which reads what its record lists.
pub(super) fn one_for_each(graph: &Graph) -> Option<Vec<Operator>> {
    let mut pass = Backward::new(graph, |index, _| index);
    let loss = graph.nodes.iter().find(|node| node.role == Role::Loss)?;
    let logits = pass.root(*graph.outputs.first()?);
    let (labels, behind) = (Value::Labels(logits), graph.nodes.len());
    pass.push(behind, Vec::new(), (vec![Value::Tensor(logits), labels], Vec::new()));
    let gradient = pass.part(logits);
    let name = (format!("{}{ONE_END}", loss.name), "gradients");
    pass.push(
        behind + 1,
        vec![name],
        (vec![labels, Value::Tensor(logits)], vec![gradient]),
    );
    let nodes: Vec<&Node> = graph.nodes.iter().filter(|node| node.role == Role::Forward).collect();
    for (index, node) in nodes.into_iter().rev().enumerate() {
        let place = behind + 2 + index;
        let name = (format!("{}{ONE_END}", node.name), "gradients");
        if matches!(node.op, Op::Reshape) {
            // Another name of the gradient that it reads.
            pass.push(place, vec![name], (Vec::new(), Vec::new()));
            continue;
        }
        let (x, y) = (pass.operand(node)?, *node.outputs.first()?);
        if !pass.wants(y) {
            continue;
        }
        let [dy] = pass.parts(y)[..] else { return None };
        let (reads, own) = match &node.op {
            Op::Conv2d(_) | Op::Linear { .. } | Op::Identity => (vec![dy, Value::Tensor(x)], pass.parameters(node)),
            Op::Unary(_) => (vec![dy, Value::Tensor(y)], Vec::new()),
            Op::MaxPool2d(_) | Op::AvgPool2d(_) => (vec![dy, Value::Tensor(x), Value::Tensor(y)], Vec::new()),
            _ => return None,
        };
        let mut writes: Vec<Value> = own.into_iter().map(Value::Gradient).collect();
        if pass.wants(x) {
            writes.push(pass.part(x));
        }
        pass.push(place, vec![name], (reads, writes));
    }
    Some(pass.operators)
}

/// TensorFlow 1's, of a network whose loss is not traced: the gradient of its output is that output.
pub(super) fn a_few_for_each(graph: &Graph) -> Option<Vec<Operator>> {
    let mut pass = Backward::new(graph, |index, _| index);
    let output = pass.root(*graph.outputs.first()?);
    pass.pass(output, Value::Tensor(output));
    let forward = pass.forward.clone();
    let mut place = graph.nodes.len();
    for node in forward.into_iter().rev() {
        let (x, y) = (pass.operand(node)?, *node.outputs.first()?);
        if !pass.wants(y) {
            continue;
        }
        let [dy] = pass.parts(y)[..] else { return None };
        let mut push = |pass: &mut Backward<'_>, what: &str, buffers| {
            let name = (format!("{TF_SCOPE}{}_grad/{what}", node.name), "gradients");
            pass.push(place, vec![name], buffers);
            place += 1;
        };
        let own = pass
            .parameters(node)
            .into_iter()
            .map(Value::Gradient)
            .collect::<Vec<_>>();
        match &node.op {
            Op::Binary { .. } if !own.is_empty() => {
                push(&mut pass, "BiasAddGrad", (vec![dy], own));
                pass.pass(x, dy);
                continue;
            }
            Op::Conv2d(_) => push(&mut pass, "Conv2DBackpropFilter", (vec![dy, Value::Tensor(x)], own)),
            _ => {}
        }
        if !pass.wants(x) {
            continue;
        }
        let dx = pass.part(x);
        let all = vec![dy, Value::Tensor(x), Value::Tensor(y)];
        match &node.op {
            Op::Conv2d(_) => push(&mut pass, "Conv2DBackpropInput", (vec![dy], vec![dx])),
            Op::Unary(_) => push(&mut pass, "ReluGrad", (vec![dy, Value::Tensor(y)], vec![dx])),
            Op::MaxPool2d(_) => push(&mut pass, "MaxPoolGrad", (all, vec![dx])),
            Op::Lrn { .. } => push(&mut pass, "LRNGrad", (all, vec![dx])),
            _ => return None,
        }
    }
    Some(pass.operators)
}

/// The rectangles': an operator for each node, cleared buffers, and the updates of what it writes right behind it.
pub(super) fn cleared(graph: &Graph) -> Option<Vec<Operator>> {
    let mut pass = Backward::new(graph, |index, _| index);
    let forward = pass.forward.clone();
    let is_there = |name: &str| graph.nodes.iter().any(|node| node.name == name);
    let mut place = graph.nodes.len();
    for node in forward.into_iter().rev() {
        let (x, y) = (pass.operand(node)?, *node.outputs.first()?);
        if !pass.wants(y) {
            continue;
        }
        let parameters = pass.parameters(node);
        let reads = match &node.op {
            Op::Softmax { .. } => vec![Value::Tensor(y), Value::Labels(y)],
            _ => {
                let [dy] = pass.parts(y)[..] else { return None };
                match &node.op {
                    Op::Unary(_) | Op::Identity => vec![dy, Value::Tensor(x), Value::Tensor(y)],
                    _ => vec![dy, Value::Tensor(x)],
                }
            }
        };
        let mut writes: Vec<Value> = parameters.iter().map(|&id| Value::Gradient(id)).collect();
        if pass.wants(x) {
            writes.push(pass.part(x));
        }
        // The buffers that gather what the operators behind this one give are cleared.
        let mut names = vec![(format!("{}{CLEARED_END}", node.name), "gradients")];
        let cleared = std::iter::once(format!("{}.output", node.name));
        let cleared = cleared.chain(parameters.iter().map(|&id| graph.tensor(id).name.clone()));
        let cleared = cleared
            .map(|name| format!("{name}{CLEARED_END}.set_zero"))
            .filter(|name| is_there(name));
        names.extend(cleared.map(|name| (name, "zeroings")));
        pass.push(place, names, (reads, writes));
        place += 1;
        for &id in &parameters {
            let name = match graph.tensor(id).name.as_str() {
                "classifier.weights1" => "update_W1".to_string(),
                name => format!("update_{name}"),
            };
            let names = is_there(&name)
                .then_some((name, "updates"))
                .into_iter()
                .collect::<Vec<_>>();
            if !names.is_empty() {
                pass.push(place, names, (vec![Value::Gradient(id)], Vec::new()));
                place += 1;
            }
        }
    }
    Some(pass.operators)
}
