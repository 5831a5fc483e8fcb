//! Training: one reverse-mode pass over a network, behind all other passes.
//!
//! [`differentiate`] makes two graphs of one: that of inference, whose trained parameters lie in the state, and that of a training step, which is the same
//! forward, then loss, gradients and updates. The rule of each operator is in `rules`, what is trained and by which name in `parameters`, and losses are in
//! [`loss`]. Weight gradients are applied at once, by the steps that compute them; the gradient of a layer's input comes before its update.

mod lora;
pub mod loss;
mod micro;
mod nodes;
pub mod optimiser;
pub mod parameters;
mod pointwise;
mod recompute;
mod reverse;
mod rules;
pub mod traced;

use std::collections::BTreeSet;

pub use loss::Loss;
use optimiser::Moments;
pub use optimiser::Optimiser;
pub use parameters::{Parameter, keep_batch_norms};
pub use recompute::Saving;

use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Graph, Op, TensorId, TensorKind, check, facts};
use crate::passes;
use reverse::Reverse;

/// Request of a training.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The loss.
    pub loss: Loss,
    /// Patterns of the names of parameters that are trained, and `lora:RANK` for narrow layers beside theirs; none stands for all.
    pub trainable: Vec<String>,
    /// Parts in which a training step goes through its batch.
    pub micro_batches: usize,
    /// The optimiser.
    pub optimiser: Optimiser,
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
    step: Step,
}

/// A step of a batch or a part of it, as the reverse-mode pass leaves it.
#[derive(Debug, Clone)]
struct Step {
    graph: Graph,
    /// Parts of the batch, loss, learning rate and moments, where gradients are stored.
    stored: Option<(usize, Loss, TensorId, Moments)>,
}

impl Step {
    /// The graph of a training step.
    fn whole(&self, graph: Graph, inference: &Graph) -> Result<Graph> {
        let mut training = match &self.stored {
            Some((parts, loss, rate, moments)) => micro::unroll(graph, inference, *parts, (*loss, *rate), moments)?,
            None => graph,
        };
        passes::name_apart(&mut training);
        check::check(&training)?;
        Ok(training)
    }

    /// Parts of the batch.
    fn parts(&self) -> u64 {
        self.stored.as_ref().map_or(1, |&(parts, ..)| parts as u64)
    }
}

impl Trained {
    /// Ways in which the training step computes activations again instead of keeping them, each with more operations and fewer bytes than the one before.
    /// `live` is the most bytes that are alive at once in a graph.
    pub fn savings(&self, live: &dyn Fn(&Graph) -> u64) -> Vec<Saving> {
        let mut savings = recompute::savings(&self.step.graph, live);
        savings
            .iter_mut()
            .for_each(|saving| saving.extra_macs *= self.step.parts());
        savings
    }

    /// The training step with one of them.
    ///
    /// # Errors
    /// As [`differentiate`].
    pub fn saving(&self, saving: &Saving) -> Result<Graph> {
        self.step
            .whole(recompute::with(&self.step.graph, saving), &self.inference)
    }
}

/// Differentiates a network. With micro-batches, `part` is the same network at the batch of one of them.
///
/// # Errors
/// [`ErrorKind::Unsupported`] naming all operators without a gradient, and for a `part` that is another network; [`ErrorKind::Input`] for a loss that is not
/// one of this network's, a pattern that names no parameter, and parameters that cannot be trained.
pub fn differentiate(graph: Graph, request: &Request, part: Option<Graph>) -> Result<Trained> {
    let parts = request.micro_batches;
    let (trainable, rank) = lora::asked(&request.trainable)?;
    let widened = |mut graph: Graph| {
        if let Some(rank) = rank {
            lora::add(&mut graph, rank)?;
            passes::name_apart(&mut graph);
        }
        Ok::<_, Error>(graph)
    };
    let graph = widened(graph)?;
    let (parameters, needs) = chosen(&graph, request.loss, &trainable)?;
    let (inference, moments) = with_state(graph, &parameters, request.optimiser);
    check::check(&inference)?;
    let mut training = match part {
        Some(part) => {
            let (part, _) = with_state(widened(part)?, &parameters, request.optimiser);
            micro::check(&inference, &part, parts)?;
            part
        }
        None => inference.clone(),
    };
    let mut reverse = Reverse::new(&mut training, needs);
    let (nodes, rate) = (reverse.forward(), reverse.rate());
    reverse.loss(request.loss)?;
    for node in nodes.iter().rev() {
        rules::apply(&mut reverse, node)?;
    }
    let backward_macs = reverse.finish();
    let step = Step {
        stored: (parts > 1 || moments.store()).then_some((parts, request.loss, rate, moments)),
        graph: training,
    };
    Ok(Trained {
        training: step.whole(step.graph.clone(), &inference)?,
        inference,
        parameters,
        backward_macs: backward_macs * step.parts(),
        step,
    })
}

/// The network with what is trained in its state, the moving statistics that follow the batches, and what the optimiser keeps.
fn with_state(mut graph: Graph, parameters: &[Parameter], optimiser: Optimiser) -> (Graph, Moments) {
    let norms = graph
        .nodes
        .iter()
        .filter(|node| matches!(node.op, Op::BatchNorm { .. }));
    let moving = norms.flat_map(|node| node.inputs[3..].iter().copied().flatten());
    let own = parameters.iter().map(|parameter| parameter.tensor);
    for id in moving.chain(own).collect::<Vec<TensorId>>() {
        let tensor = graph.tensor_mut(id);
        if let TensorKind::Const(data) = &tensor.kind {
            tensor.kind = TensorKind::State(data.clone());
        }
    }
    // Trained parameters are f32, whatever bits the file had.
    for node in &graph.nodes {
        let weights = node.inputs.get(1).copied().flatten();
        if parameters.iter().any(|parameter| Some(parameter.tensor) == weights) {
            graph.low_bits.remove(&node.name);
        }
    }
    let moments = Moments::added(&mut graph, parameters, optimiser);
    passes::name_apart(&mut graph);
    (graph, moments)
}

/// The parameters that are trained, and of each tensor whether it depends on one of them: there its gradient is wanted.
fn chosen(graph: &Graph, loss: Loss, trainable: &[String]) -> Result<(Vec<Parameter>, Vec<bool>)> {
    if graph.outputs.len() != 1 {
        let message = format!("--train of a network with {} outputs", graph.outputs.len());
        return Err(Error::unsupported(message)
            .expected("one output, which the loss judges")
            .help("--until OUTPUT takes the part of the network before one of them"));
    }
    let parameters = parameters::chosen(graph, trainable)?;
    let mut needs = vec![false; graph.tensors.len()];
    parameters.iter().for_each(|parameter| needs[parameter.tensor.0] = true);
    for node in &graph.nodes {
        if node.inputs.iter().flatten().any(|id| needs[id.0]) {
            node.outputs.iter().for_each(|id| needs[id.0] = true);
        }
    }
    without_gradient(graph, loss, &needs)?;
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
            refused.push(format!("{}: {reason}", facts::described(graph, node)));
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
