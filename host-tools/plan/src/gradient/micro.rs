//! Gradients that are stored: a training step that goes through its batch in parts, one or more, sums the gradients of the parts, and updates once.
//!
//! Activations are those of a part; what is more is a buffer for each trained parameter's gradient, which lives until its update. The kernels of gradient
//! descent sum into it: `sum -= -1 / parts * dw`.

use std::collections::HashMap;

use super::loss::{Loss, judged};
use super::nodes::{binary, constant, node};
use super::optimiser::Moments;
use super::parameters::update;
use crate::error::{Error, Result};
use crate::graph::train::Train;
use crate::graph::{BinaryOp, DType, Graph, Node, Op, Tensor, TensorId, TensorKind};
use crate::model::gradients::{SUM, UPDATE};

/// Refuses parts whose network is not that of the whole batch but for the batch: tensors must have the same numbers.
///
/// # Errors
/// [`crate::ErrorKind::Unsupported`] naming the first node that differs.
pub(super) fn check(whole: &Graph, part: &Graph, parts: usize) -> Result<()> {
    let same_tensor = |(a, b): (&Tensor, &Tensor)| {
        a.name == b.name && std::mem::discriminant(&a.kind) == std::mem::discriminant(&b.kind)
    };
    let tensors = whole.tensors.len() == part.tensors.len()
        && whole.tensors.iter().zip(&part.tensors).all(same_tensor)
        && whole.inputs == part.inputs;
    let same_node = |(a, b): &(&Node, &Node)| {
        std::mem::discriminant(&a.op) == std::mem::discriminant(&b.op)
            && (&a.inputs, &a.outputs) == (&b.inputs, &b.outputs)
    };
    let other = whole.nodes.iter().zip(&part.nodes).find(|pair| !same_node(pair));
    if tensors && other.is_none() && whole.nodes.len() == part.nodes.len() {
        return Ok(());
    }
    let at = other.map_or(String::new(), |(node, _)| format!(" at `{}`", node.name));
    Err(Error::unsupported(format!(
        "--micro-batches {parts}: a part of the batch has other operators{at}"
    ))
    .expected("a network that is the same for any batch")
    .help("leave --micro-batches out, or export the network with the batch of a part"))
}

/// The training step of a batch, from that of one of its `parts`; `whole` is the network at the whole batch. Parameters go where `moments` say.
///
/// # Errors
/// [`crate::ErrorKind::Unsupported`] for an input that has no axis of samples, and for results whose first axis is not that of samples.
pub(super) fn unroll(
    training: Graph,
    whole: &Graph,
    parts: usize,
    (loss, rate): (Loss, TensorId),
    moments: &Moments,
) -> Result<Graph> {
    let mut graph = training;
    // Labels and targets of a part are the next ones of the batch.
    let extent = |graph: &Graph| graph.tensor(judged(whole, loss)).shape.first().copied();
    if loss != Loss::L2 && extent(whole) != extent(&graph).map(|extent| extent * parts) {
        let name = &whole.tensor(judged(whole, loss)).name;
        let message = format!("--micro-batches {parts}: the first axis of `{name}` holds no samples");
        return Err(Error::unsupported(message)
            .expected("a network whose results have the batch in front")
            .help("leave --micro-batches out"));
    }
    let nodes = std::mem::take(&mut graph.nodes);
    let zero = constant(&mut graph, "zero", 0.0);
    let share = if loss == Loss::L2 { 1.0 } else { 1.0 / parts as f32 };
    let mut unrolled = Unrolled {
        parameters: Vec::new(),
        sums: HashMap::new(),
        rate,
        zero,
        factor: constant(&mut graph, "share of a part", -share),
        graph,
        parts,
    };
    let ports = unrolled.inputs(whole)?;
    let found: Vec<Vec<TensorId>> = (0..parts).map(|part| unrolled.part(&nodes, part, &ports)).collect();
    unrolled.updates(moments);
    unrolled.outputs(&found, loss);
    Ok(unrolled.graph)
}

/// A training step while it is made.
struct Unrolled {
    graph: Graph,
    parts: usize,
    /// Each trained parameter and the sum of its gradients, in the order of the gradients.
    parameters: Vec<(TensorId, TensorId)>,
    /// The sum of each parameter's gradients.
    sums: HashMap<TensorId, TensorId>,
    /// The learning rate.
    rate: TensorId,
    /// Zero, `[1]`.
    zero: TensorId,
    /// By which the sums take gradients, `[1]`.
    factor: TensorId,
}

/// An input of a whole batch, and the one of a part that stands for it; along which axis.
struct Port {
    whole: TensorId,
    part: TensorId,
    axis: usize,
}

impl Unrolled {
    /// Makes the inputs those of the whole batch; those that hold samples.
    fn inputs(&mut self, whole: &Graph) -> Result<Vec<Port>> {
        let parts = self.parts;
        let mut ports = Vec::new();
        for index in 0..self.graph.inputs.len() {
            let part = self.graph.inputs[index];
            if self.rate == part {
                continue;
            }
            let tensor = self.graph.tensor(part).clone();
            // A tensor that the loss compares with has as many rows as the batch.
            let mut shape = tensor.shape.clone();
            match whole.inputs.get(index) {
                Some(&id) => shape.clone_from(&whole.tensor(id).shape),
                None => shape.iter_mut().take(1).for_each(|extent| *extent *= parts),
            }
            let differ = |axis: &usize| shape.get(*axis) != tensor.shape.get(*axis);
            let Some(axis) = (0..tensor.shape.len()).find(differ) else {
                continue;
            };
            if shape[axis] != tensor.shape[axis] * parts {
                let message = format!("--micro-batches {parts}: `{}` has no axis of samples", tensor.name);
                return Err(Error::unsupported(message)
                    .expected("inputs whose extent along one axis is the batch")
                    .help("leave --micro-batches out"));
            }
            let of_part = self.graph.tensor_mut(part);
            of_part.kind = TensorKind::Activation;
            of_part.name = format!("{} of a part", tensor.name);
            let whole = self.graph.add_tensor(Tensor { shape, ..tensor });
            self.graph.inputs[index] = whole;
            ports.push(Port { whole, part, axis });
        }
        Ok(ports)
    }

    /// The buffer that a parameter's gradients are summed in, zeros where there was none.
    fn sum(&mut self, parameter: TensorId) -> TensorId {
        if let Some(&sum) = self.sums.get(&parameter) {
            return sum;
        }
        let tensor = self.graph.tensor(parameter);
        let (name, shape) = (format!("{}{SUM}", tensor.name), tensor.shape.clone());
        let sum = self.graph.add_tensor(Tensor::activation(&name, &shape, DType::F32));
        node(
            &mut self.graph,
            &format!("{name}.zeros"),
            Op::Broadcast,
            &[self.zero],
            &[sum],
        );
        self.parameters.push((parameter, sum));
        self.sums.insert(parameter, sum);
        sum
    }

    /// Adds the nodes of a part; its outputs. The first part keeps its tensors.
    fn part(&mut self, nodes: &[Node], part: usize, ports: &[Port]) -> Vec<TensorId> {
        let mut own = HashMap::new();
        for port in ports {
            let to = self.own(&mut own, port.part, part);
            let tensor = self.graph.tensor(to);
            let from = |(axis, &extent): (usize, &usize)| if axis == port.axis { part * extent } else { 0 };
            let begin: Vec<usize> = tensor.shape.iter().enumerate().map(from).collect();
            let (name, stride) = (tensor.name.clone(), vec![1; begin.len()]);
            node(
                &mut self.graph,
                &name,
                Op::Slice { begin, stride },
                &[port.whole],
                &[to],
            );
        }
        for node in nodes {
            let mut node = node.clone();
            if is_update(&node) {
                self.sums_up(&mut node, part);
            }
            for id in node.inputs.iter_mut().flatten().chain(&mut node.outputs) {
                *id = self.own(&mut own, *id, part);
            }
            self.graph.add_node(node);
        }
        let outputs = self.graph.outputs.clone();
        outputs.into_iter().map(|id| self.own(&mut own, id, part)).collect()
    }

    /// Makes of a parameter's update one of the sum of its gradients. That of the last part has the gradient's name, for it is whole then.
    fn sums_up(&mut self, node: &mut Node, part: usize) {
        if let Some(parameter) = node.inputs.first_mut().and_then(Option::as_mut) {
            *parameter = self.sum(*parameter);
        }
        let (rate, factor) = (self.rate, self.factor);
        node.inputs
            .iter_mut()
            .flatten()
            .filter(|id| **id == rate)
            .for_each(|id| *id = factor);
        if let Some(name) = node.name.strip_suffix(UPDATE) {
            node.name = match part + 1 {
                last if last == self.parts => format!("{name}{SUM}"),
                number => format!("{name}{SUM} of part {number}"),
            };
        }
    }

    /// The tensor of a part that stands for one of the first part's.
    fn own(&mut self, own: &mut HashMap<TensorId, TensorId>, id: TensorId, part: usize) -> TensorId {
        let tensor = self.graph.tensor(id);
        let is_shared = !matches!(tensor.kind, TensorKind::Activation) || self.sums.values().any(|&sum| sum == id);
        if part == 0 || is_shared {
            return id;
        }
        let name = format!("{} ({})", tensor.name, part + 1);
        *own.entry(id).or_insert_with(|| {
            let tensor = self.graph.tensor(id).clone();
            self.graph.add_tensor(Tensor { name, ..tensor })
        })
    }

    /// Each parameter by its sum, once.
    fn updates(&mut self, moments: &Moments) {
        let begun = moments.begin(&mut self.graph);
        for (parameter, sum) in std::mem::take(&mut self.parameters) {
            let direction = moments.direction(&mut self.graph, parameter, sum, &begun);
            let name = update(&self.graph, parameter);
            node(
                &mut self.graph,
                &name,
                Op::Train(Train::BiasSgd),
                &[parameter, direction, self.rate],
                &[],
            );
        }
    }

    /// The loss of the batch, and the labels that are no class, from those of its parts.
    fn outputs(&mut self, parts: &[Vec<TensorId>], loss: Loss) {
        let first = self.graph.outputs.clone();
        for (port, &of_first) in first.iter().enumerate() {
            let name = self.graph.tensor(of_first).name.clone();
            let in_all = format!("{name} of parts");
            let mut sum = of_first;
            for of_part in &parts[1..] {
                sum = binary(&mut self.graph, &in_all, BinaryOp::Add, [sum, of_part[port]]);
            }
            if port == 0 && loss != Loss::L2 && parts.len() > 1 {
                let share = constant(&mut self.graph, "share of a loss", 1.0 / parts.len() as f32);
                sum = binary(&mut self.graph, &in_all, BinaryOp::Mul, [sum, share]);
            }
            // The batch's has the name.
            if sum != of_first {
                self.graph.tensor_mut(of_first).name = format!("{name} of a part");
                self.graph.tensor_mut(sum).name = name;
            }
            self.graph.outputs[port] = sum;
        }
    }
}

/// Whether a node is a step of gradient descent.
fn is_update(node: &Node) -> bool {
    matches!(
        node.op,
        Op::Train(
            Train::Conv2dWeightSgd(_) | Train::LinearWeightSgd | Train::LocallyConnectedWeightSgd | Train::BiasSgd
        )
    )
}
