//! The graph of a training step while it is made: gradients by tensor, and the nodes that compute them.

use std::collections::{HashMap, HashSet};

use super::loss::{self, Loss};
use super::nodes::{append, plain};
use crate::error::{Error, Result};
use crate::graph::train::{Activated, Train, classes};
use crate::graph::{Activation, BinaryOp, DType, Graph, Node, Op, Tensor, TensorId, TensorKind, UnaryKind};

/// A reverse-mode pass under way.
pub(super) struct Reverse<'g> {
    pub(super) graph: &'g mut Graph,
    /// Of each tensor of inference, whether it depends on what is trained.
    needs: Vec<bool>,
    /// How many nodes read each tensor of inference.
    readers: Vec<usize>,
    /// The activation that each tensor has gone through in the node that writes it.
    activated: HashMap<TensorId, Activation>,
    /// Positions of maxima, by the pooling's output.
    positions: HashMap<TensorId, TensorId>,
    /// Mean and variance of the batch, by the batch norm's output.
    statistics: HashMap<TensorId, [TensorId; 2]>,
    /// Gradients whose sum is that of a tensor.
    parts: HashMap<TensorId, Vec<TensorId>>,
    /// Tensors whose gradient has gone through their activation already.
    masked: HashSet<TensorId>,
    rate: TensorId,
    macs: u64,
}

impl<'g> Reverse<'g> {
    /// A pass over the graph of inference, to which it adds the learning rate.
    pub(super) fn new(graph: &'g mut Graph, needs: Vec<bool>) -> Self {
        let readers = graph.consumers().iter().map(Vec::len).collect();
        let activated = graph
            .nodes
            .iter()
            .filter_map(|node| Some((*node.outputs.first()?, activation(&node.op)?)))
            .collect();
        let rate = graph.add_tensor(Tensor {
            kind: TensorKind::Input,
            ..Tensor::activation("learning_rate", &[1], DType::F32)
        });
        Self {
            graph,
            needs,
            readers,
            activated,
            positions: HashMap::new(),
            statistics: HashMap::new(),
            parts: HashMap::new(),
            masked: HashSet::new(),
            rate,
            macs: 0,
        }
    }

    /// The nodes of inference; maxima of them keep their positions from now on, where a gradient goes through them, and batch norms that are trained take the
    /// statistics of the batch.
    pub(super) fn forward(&mut self) -> Vec<Node> {
        let nodes = self.graph.nodes.clone();
        for (index, node) in nodes.iter().enumerate() {
            let (Op::MaxPool2d(attrs), Some(x), Some(&y)) = (&node.op, input(node, 0), node.outputs.first()) else {
                continue;
            };
            if !self.wants(x) {
                continue;
            }
            let tensor = self.graph.tensor(y);
            let (name, shape) = (format!("{}.positions", tensor.name), tensor.shape.clone());
            let kept = self.graph.add_tensor(Tensor::activation(name, &shape, DType::U8));
            let node = &mut self.graph.nodes[index];
            node.op = Op::Train(Train::MaxPoolPositions(attrs.clone()));
            node.outputs.push(kept);
            self.positions.insert(y, kept);
        }
        for node in std::mem::take(&mut self.graph.nodes) {
            let node = self.by_its_batch(node);
            self.graph.nodes.push(node);
        }
        nodes
    }

    /// A batch norm that is trained reads the statistics of its batch, which a node in front of it computes; other nodes are as they are.
    fn by_its_batch(&mut self, mut node: Node) -> Node {
        let (
            &Op::BatchNorm {
                momentum,
                trained: true,
                ..
            },
            &[Some(x), _, _, Some(mean), Some(variance)],
            &[y],
        ) = (&node.op, &node.inputs[..], &node.outputs[..])
        else {
            return node;
        };
        let mut of_batch = |moving: TensorId| {
            let tensor = self.graph.tensor(moving);
            let (name, shape) = (format!("{} of the batch", tensor.name), tensor.shape.clone());
            self.graph.add_tensor(Tensor::activation(name, &shape, DType::F32))
        };
        let batch = [mean, variance].map(&mut of_batch);
        let name = format!("{}.statistics", node.name);
        let operands = [x, mean, variance].map(Some).to_vec();
        let op = Op::Train(Train::BatchStatistics { momentum });
        self.node(&name, op, operands, batch.to_vec());
        [node.inputs[3], node.inputs[4]] = batch.map(Some);
        self.statistics.insert(y, batch);
        node
    }

    /// Adds the loss: its inputs and outputs become those of a training step.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Input`] where it does not judge f32.
    pub(super) fn loss(&mut self, loss: Loss) -> Result<()> {
        let judged = loss::judged(self.graph, loss);
        let tensor = self.graph.tensor(judged).clone();
        if tensor.dtype != DType::F32 {
            return Err(Error::input(format!("--loss {} of {}", loss.name(), tensor.dtype.name())).expected("f32"));
        }
        let classes = classes(&tensor.shape).max(1);
        // Without a softmax that names them, the classes of more than two axes could be any of them.
        let named = tensor.shape.len() == 2 || judged != self.graph.outputs[0];
        if loss == Loss::CrossEntropy && (classes < 2 || !named) {
            return Err(
                Error::unsupported(format!("--loss cross-entropy of an output of shape {:?}", tensor.shape))
                    .expected("[rows, classes] with two classes at least, or a softmax over the last axis")
                    .help("end the network with a reshape to [rows, classes]"),
            );
        }
        let scalar = |name: &str, dtype| Tensor::activation(name, &[1], dtype);
        let given = |tensor| Tensor {
            kind: TensorKind::Input,
            ..tensor
        };
        let rows = [tensor.elements() / classes];
        let wanted = match loss {
            Loss::CrossEntropy => Some(given(Tensor::activation("labels", &rows, DType::I32))),
            Loss::Mse => Some(given(Tensor {
                name: "target".into(),
                ..tensor.clone()
            })),
            Loss::L2 => None,
        };
        let wanted = wanted.map(|tensor| self.graph.add_tensor(tensor));
        self.graph.inputs.extend(wanted);
        self.graph.inputs.push(self.rate);
        let gradient = self.gradient_like(judged);
        let value = self.graph.add_tensor(scalar("loss", DType::F32));
        let mut outputs = vec![gradient, value];
        let op = match loss {
            Loss::CrossEntropy => {
                outputs.push(self.graph.add_tensor(scalar("ignored_labels", DType::I32)));
                Train::SoftmaxCrossEntropy
            }
            Loss::L2 => Train::SquaredError { factor: 0.5 },
            Loss::Mse => Train::SquaredError {
                factor: 1.0 / tensor.elements().max(1) as f32,
            },
        };
        let operands = match loss {
            Loss::L2 => vec![Some(judged), None, Some(self.rate)],
            _ => vec![Some(judged), wanted, Some(self.rate)],
        };
        self.graph.outputs = outputs[1..].to_vec();
        self.node("loss", Op::Train(op), operands, outputs);
        self.parts.insert(judged, vec![gradient]);
        Ok(())
    }

    /// Drops what feeds neither the loss nor an update; multiply-accumulates of the gradients.
    pub(super) fn finish(self) -> u64 {
        let mut wanted: HashSet<TensorId> = self.graph.outputs.iter().copied().collect();
        let mut live = Vec::with_capacity(self.graph.nodes.len());
        for node in self.graph.nodes.iter().rev() {
            let is_live = node.outputs.is_empty() || node.outputs.iter().any(|id| wanted.contains(id));
            live.push(is_live);
            if is_live {
                wanted.extend(node.inputs.iter().flatten());
            }
        }
        let mut live = live.into_iter().rev();
        self.graph.nodes.retain(|_| live.next().unwrap_or(false));
        self.macs
    }

    /// Whether a gradient is wanted of a tensor of inference.
    pub(super) fn wants(&self, id: TensorId) -> bool {
        self.needs.get(id.0).copied().unwrap_or(false)
    }

    /// Whether it is a parameter that is trained.
    pub(super) fn is_trained(&self, id: TensorId) -> bool {
        self.wants(id) && matches!(self.graph.tensor(id).kind, TensorKind::State(_))
    }

    /// The learning rate.
    pub(super) fn rate(&self) -> TensorId {
        self.rate
    }

    /// Where the maxima of a pooling are from.
    pub(super) fn positions(&self, output: TensorId) -> Result<TensorId> {
        let none = || Error::internal("a pooling without positions");
        self.positions.get(&output).copied().ok_or_else(none)
    }

    /// Mean and variance of a batch norm's batch.
    pub(super) fn statistics(&self, output: TensorId) -> Result<[TensorId; 2]> {
        let none = || Error::internal("a batch norm without statistics");
        self.statistics.get(&output).copied().ok_or_else(none)
    }

    /// The gradient of a node's result, summed over all that read it, and back through the activation that the node ends with; none where nothing wants it.
    pub(super) fn of_result(&mut self, node: &Node) -> Result<Option<TensorId>> {
        let Some(&y) = node.outputs.first() else {
            return Ok(None);
        };
        let Some(parts) = self.parts.remove(&y) else {
            return Ok(None);
        };
        let mut parts = parts.into_iter();
        let Some(mut sum) = parts.next() else { return Ok(None) };
        for part in parts {
            let whole = self.gradient_like(y);
            let name = self.graph.tensor(whole).name.clone();
            self.node(&name, plain(BinaryOp::Add), vec![Some(sum), Some(part)], vec![whole]);
            sum = whole;
        }
        if self.masked.contains(&y) {
            return Ok(Some(sum));
        }
        let activation = activation(&node.op).unwrap_or_default();
        self.through(activation, sum, y).map(Some)
    }

    /// The gradient of an activation's operand, from that of its result `y`.
    pub(super) fn through(&mut self, activation: Activation, gradient: TensorId, y: TensorId) -> Result<TensorId> {
        let [min, max] = activation.bounds();
        if activation == Activation::None {
            return Ok(gradient);
        }
        Ok(self.activation_grad(Activated::Clamp { min, max }, gradient, y))
    }

    /// The same of any activation.
    pub(super) fn activation_grad(&mut self, activation: Activated, gradient: TensorId, y: TensorId) -> TensorId {
        let result = self.gradient_like(y);
        let name = self.graph.tensor(result).name.clone();
        let op = Op::Train(Train::ActivationGrad(activation));
        self.node(&name, op, vec![Some(gradient), Some(y)], vec![result]);
        result
    }

    /// The activation that a tensor has gone through in the node that writes it, where nothing but one node reads it: its gradient may go through the
    /// activation there.
    pub(super) fn movable_activation(&self, id: TensorId) -> Option<Activation> {
        let once = self.readers.get(id.0).is_some_and(|&readers| readers == 1);
        let activation = self.activated.get(&id).copied();
        activation.filter(|&activation| once && activation != Activation::None)
    }

    /// The tensor's gradient needs not go through its activation any more.
    pub(super) fn set_masked(&mut self, id: TensorId) {
        self.masked.insert(id);
    }

    /// Another part of a tensor's gradient, where one is wanted.
    pub(super) fn give(&mut self, to: TensorId, gradient: TensorId) {
        if self.wants(to) {
            self.parts.entry(to).or_default().push(gradient);
        }
    }

    /// A tensor for the gradient of another one.
    pub(super) fn gradient_like(&mut self, id: TensorId) -> TensorId {
        let tensor = self.graph.tensor(id);
        let gradient = Tensor {
            traced_perm: tensor.traced_perm.clone(),
            ..Tensor::activation(format!("{}.grad", tensor.name), &tensor.shape, DType::F32)
        };
        self.graph.add_tensor(gradient)
    }

    /// Appends a node.
    pub(super) fn node(&mut self, name: &str, op: Op, inputs: Vec<Option<TensorId>>, outputs: Vec<TensorId>) {
        append(self.graph, name, op, inputs, outputs);
    }

    /// Counts multiply-accumulates of gradients.
    pub(super) fn count(&mut self, macs: u64) {
        self.macs += macs;
    }
}

/// Operand `index`.
pub(super) fn input(node: &Node, index: usize) -> Option<TensorId> {
    node.inputs.get(index).copied().flatten()
}

/// The activation that an operator ends with, or is; none for operators that end with no clamp.
fn activation(op: &Op) -> Option<Activation> {
    match op {
        Op::Conv2d(attrs) => Some(attrs.activation),
        Op::MaxPool2d(attrs) | Op::AvgPool2d(attrs) => Some(attrs.activation),
        Op::Linear { activation }
        | Op::LocallyConnected2d { activation }
        | Op::Binary { activation, .. }
        | Op::Concat { activation, .. } => Some(*activation),
        Op::Unary(UnaryKind::Relu) => Some(Activation::Relu),
        Op::Unary(UnaryKind::Relu6) => Some(Activation::Relu6),
        Op::Unary(UnaryKind::ReluN1To1) => Some(Activation::ReluN1To1),
        _ => None,
    }
}
