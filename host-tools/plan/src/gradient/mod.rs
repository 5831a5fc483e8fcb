//! Training: one reverse-mode pass over a network, behind all other passes.
//!
//! [`differentiate`] makes two graphs of one: that of inference, whose trained parameters lie in the state, and that of a training step, which is the same
//! forward, then loss, gradients and updates. The rule of each operator is in `rules`, what is trained and by which name in `parameters`, and losses are in
//! [`loss`]. Weight gradients are applied at once, by the steps that compute them; the gradient of a layer's input comes before its update.

pub mod loss;
pub mod parameters;
mod reverse;
mod rules;
pub mod traced;

use std::collections::BTreeSet;

pub use loss::Loss;
pub use parameters::{Parameter, keep_batch_norms};

use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Graph, Op, TensorId, TensorKind, check};
use crate::passes;
use reverse::Reverse;

/// Request of a training.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The loss.
    pub loss: Loss,
    /// Patterns of the names of parameters that are trained; none stands for all.
    pub trainable: Vec<String>,
}

/// A network and its training.
#[derive(Debug, Clone)]
pub struct Trained {
    /// Inference, with what is trained in the state.
    pub inference: Graph,
    /// A training step. Tensors of inference have the same numbers.
    pub training: Graph,
    /// Result of adding the gradients: trained parameters and their cost.
    pub parameters: Vec<Parameter>,
    /// Multiply-accumulates of the gradients.
    pub backward_macs: u64,
}

/// Differentiates a network.
///
/// # Errors
/// [`ErrorKind::Unsupported`] naming all operators without a gradient; [`ErrorKind::Input`] for a loss that is not one of this network's, a pattern that names
/// no parameter, and parameters that cannot be trained.
pub fn differentiate(graph: Graph, request: &Request) -> Result<Trained> {
    let (parameters, needs) = chosen(&graph, request)?;
    let mut inference = graph;
    for parameter in &parameters {
        let tensor = inference.tensor_mut(parameter.tensor);
        if let TensorKind::Const(data) = &tensor.kind {
            tensor.kind = TensorKind::State(data.clone());
        }
    }
    // Moving statistics follow the batches.
    let norms = inference
        .nodes
        .iter()
        .filter(|node| matches!(node.op, Op::BatchNorm { .. }));
    let moving: Vec<TensorId> = norms
        .flat_map(|node| node.inputs[3..].iter().copied().flatten())
        .collect();
    for id in moving {
        let tensor = inference.tensor_mut(id);
        if let TensorKind::Const(data) = &tensor.kind {
            tensor.kind = TensorKind::State(data.clone());
        }
    }
    // What is trained is f32, whatever bits the file had.
    for node in &inference.nodes {
        let weights = node.inputs.get(1).copied().flatten();
        if parameters.iter().any(|parameter| Some(parameter.tensor) == weights) {
            inference.low_bits.remove(&node.name);
        }
    }
    check::check(&inference)?;
    let mut training = inference.clone();
    let mut reverse = Reverse::new(&mut training, needs);
    let nodes = reverse.forward();
    reverse.loss(request.loss)?;
    for node in nodes.iter().rev() {
        rules::apply(&mut reverse, node)?;
    }
    let backward_macs = reverse.finish();
    passes::name_apart(&mut training);
    check::check(&training)?;
    Ok(Trained {
        inference,
        training,
        parameters,
        backward_macs,
    })
}

/// The parameters that are trained, and of each tensor whether it depends on one of them: there its gradient is wanted.
fn chosen(graph: &Graph, request: &Request) -> Result<(Vec<Parameter>, Vec<bool>)> {
    if graph.outputs.len() != 1 {
        let message = format!("--train of a network with {} outputs", graph.outputs.len());
        return Err(Error::unsupported(message)
            .expected("one output, which the loss judges")
            .help("--until OUTPUT takes the part of the network before one of them"));
    }
    let parameters = parameters::chosen(graph, &request.trainable)?;
    let mut needs = vec![false; graph.tensors.len()];
    parameters.iter().for_each(|parameter| needs[parameter.tensor.0] = true);
    for node in &graph.nodes {
        if node.inputs.iter().flatten().any(|id| needs[id.0]) {
            node.outputs.iter().for_each(|id| needs[id.0] = true);
        }
    }
    without_gradient(graph, request.loss, &needs)?;
    Ok((parameters, needs))
}

/// Refuses a network of which operators between what is trained and the loss have no gradient.
fn without_gradient(graph: &Graph, loss: Loss, needs: &[bool]) -> Result<()> {
    let judged = loss::judged(graph, loss);
    let mut reaches: BTreeSet<TensorId> = BTreeSet::from([judged]);
    let mut refused = Vec::new();
    for node in graph.nodes.iter().rev() {
        let on_the_way = node.outputs.iter().any(|id| reaches.contains(id) && needs[id.0]);
        if !on_the_way {
            continue;
        }
        if let Err(reason) = rules::has_gradient(graph, node, needs) {
            refused.push(format!("`{}` ({}): {reason}", node.name, node.kind));
        }
        reaches.extend(node.inputs.iter().flatten());
    }
    if refused.is_empty() {
        return Ok(());
    }
    refused.reverse();
    Err(Error::new(
        ErrorKind::Unsupported,
        format!("--train: no gradient of {}", refused.join("; ")),
    )
    .expected("operators that have one between what is trained and the loss")
    .help("--trainable PATTERN trains the layers behind them alone; docs/training.md lists operators with a gradient"))
}

/// Parameters' scalars.
pub fn scalars(graph: &Graph, parameters: &[Parameter]) -> u64 {
    parameters
        .iter()
        .map(|parameter| graph.tensor(parameter.tensor).elements() as u64)
        .sum()
}
