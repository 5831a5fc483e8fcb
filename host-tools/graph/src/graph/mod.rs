//! The network as the host sees it: tensors and nodes in execution order.
//!
//! Importers build a [`Graph`], passes rewrite it, lowering turns it into the steps of a blob. Shapes are always static.
//! [`check::check`] holds after the import and after every pass.

pub mod attrs;
pub mod check;
pub mod composite;
pub mod data;
pub mod facts;
pub mod infer;
pub mod numbers;
pub mod op;
pub mod signal;
pub mod train;

pub use arenite::ops::binary::BinaryOp;
pub use attrs::{Activation, Conv2dAttrs, Layout, Padding2d, PoolAttrs};
pub use data::{Data, Expr};
pub use op::{Detector, EthosU, Op, ReduceKind, UnaryKind};
pub use signal::Signal;
pub use train::Train;

use std::collections::BTreeMap;
use std::fmt;

pub use arenite::DType;

use crate::metadata::Channels;

/// Index of a tensor in [`Graph::tensors`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorId(pub usize);

/// Index of a node in [`Graph::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub usize);

/// A network, its tensors and its operators.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// The network's name; the input file's stem unless the input names itself.
    pub name: String,
    /// All tensors: activations, parameters, constants, state.
    pub tensors: Vec<Tensor>,
    /// All operators, in an order in which every tensor is written before it is read.
    pub nodes: Vec<Node>,
    /// Tensors that the caller fills before a run, in order.
    pub inputs: Vec<TensorId>,
    /// Tensors that the caller reads after a run, in order.
    pub outputs: Vec<TensorId>,
    /// Counts of the input file that the graph alone does not show.
    pub stated: Stated,
    /// Nodes that were dropped since they do not serve inference, by kind; for the summary.
    pub pruned: BTreeMap<String, usize>,
    /// Fates of the channels of activations of which some were removed, by the tensor's name; its shape has those in memory.
    pub channels: BTreeMap<String, Channels>,
    /// Multiply-accumulates of layers of which channels were removed, before and after, by the node's name.
    pub cut_macs: BTreeMap<String, [u64; 2]>,
    /// Layers whose weights are stored in fewer bits, by the node's name.
    pub low_bits: BTreeMap<String, LowBits>,
    /// Of a network of text its tokenizer, as the file's section has it; else empty.
    pub tokenizer: std::sync::Arc<[u8]>,
}

/// How a layer's weights are stored in fewer bits than it computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LowBits {
    /// 16 (halves), 8 or 4.
    pub bits: u8,
    /// Neighbouring weights of an output that share a scale; none: all of them.
    pub group: Option<usize>,
}

impl LowBits {
    /// As it computes with.
    pub const WIDE: Self = Self { bits: 32, group: None };
}

impl LowBits {
    /// Weights that share a scale, of as many of an output.
    pub fn share(self, filter: usize) -> usize {
        self.group.unwrap_or(filter).min(filter).max(1)
    }
}

/// Counts of an input file that holds its own weights, or whose operators became others: for [`facts`].
#[derive(Debug, Clone, Default)]
pub struct Stated {
    /// Constant tensors by name: the parameter of the file that each is made of, and its elements.
    pub params: BTreeMap<String, (usize, u64)>,
    /// Multiply-accumulates of nodes by name.
    pub macs: BTreeMap<String, u64>,
}

/// A value of static shape.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// The trace's own name: unique, used by `arenite diff`, weights files and messages.
    pub name: String,
    /// Extent of each axis, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
    /// Element type.
    pub dtype: DType,
    /// Affine quantisation: `real = scale * (stored - zero_point)`.
    pub quant: Option<Quant>,
    /// Where its bytes come from.
    pub kind: TensorKind,
    /// How the traced layout is had from this tensor: axis `i` of the traced tensor is axis `perm[i]` of this one.
    /// `None`: this is the traced layout. The layout pass sets it; `arenite diff` and reports apply it.
    pub traced_perm: Option<Vec<usize>>,
}

/// Where a tensor's bytes come from.
#[derive(Debug, Clone)]
pub enum TensorKind {
    /// Filled by the caller before each run.
    Input,
    /// Written by a node.
    Activation,
    /// Known when packing: a parameter or a constant.
    Const(Data),
    /// Kept from run to run in the state slice; `Data` is its value after a reset.
    State(Data),
}

/// Affine quantisation parameters of a tensor, as in the TensorFlow Lite 8-bit quantisation specification.
#[derive(Debug, Clone, PartialEq)]
pub struct Quant {
    /// One scale for the tensor, or one for each index along `axis`.
    pub scale: Vec<f32>,
    /// As many zero points as scales.
    pub zero_point: Vec<i32>,
    /// The axis of per-channel quantisation; `None` where it is per-tensor.
    pub axis: Option<usize>,
}

/// One operator.
#[derive(Debug, Clone)]
pub struct Node {
    /// Unique name from the trace.
    pub name: String,
    /// The operator's name in the dialect (`Convolution2DFunction`, `CONV_2D`), for the counts of the summary.
    pub kind: String,
    /// Operation of the node.
    pub op: Op,
    /// Operands in the order that the [`Op`] documents; `None` for an absent optional one.
    pub inputs: Vec<Option<TensorId>>,
    /// Results.
    pub outputs: Vec<TensorId>,
    /// Whether it serves inference, and if not, what else.
    pub role: Role,
    /// Where in the input file it stands.
    pub origin: Origin,
}

/// Purpose of a node. Only [`Role::Forward`] survives the prune pass; the others are counted by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Computes the network's outputs.
    Forward,
    /// Computes gradients.
    Backward,
    /// Computes the loss or a metric from outputs and labels.
    Loss,
    /// Updates parameters or moving statistics.
    Optimizer,
    /// Averages gradients between workers.
    Allreduce,
    /// Shape arithmetic, layout bookkeeping, transfers, callbacks.
    Bookkeeping,
}

/// Where something stands in the input file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// One-based line, where the format has lines.
    pub line: Option<usize>,
    /// A path in the format's own terms (`operator/621`, `subgraph 0, op 3`, `module.conv1 (model.py:12)`).
    pub path: String,
}

/// A value that the trace does not state: from `--assume` or from a documented default. Printed and put into the JSON.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Assumption {
    /// The key that `--assume KEY=VALUE` takes.
    pub key: String,
    /// The value used.
    pub value: String,
    /// The tensor or operator that it applies to.
    pub applies_to: String,
    /// Why this value: `given`, or the reason of the default.
    pub reason: String,
}

impl Graph {
    /// The tensor with this id.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.0]
    }

    /// The tensor with this id.
    pub fn tensor_mut(&mut self, id: TensorId) -> &mut Tensor {
        &mut self.tensors[id.0]
    }

    /// Adds a tensor and returns its id.
    pub fn add_tensor(&mut self, tensor: Tensor) -> TensorId {
        self.tensors.push(tensor);
        TensorId(self.tensors.len() - 1)
    }

    /// Adds a node at the end of the order and returns its id.
    pub fn add_node(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() - 1)
    }

    /// Elements of a tensor before any of its channels were removed.
    pub fn traced_elements(&self, id: TensorId) -> usize {
        let tensor = self.tensor(id);
        match self.channels.get(&tensor.name) {
            Some(channels) => tensor.elements() / channels.in_memory().max(1) * channels.traced(),
            None => tensor.elements(),
        }
    }

    /// The node that writes each tensor, by tensor index.
    pub fn producers(&self) -> Vec<Option<NodeId>> {
        let mut producers = vec![None; self.tensors.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            for output in &node.outputs {
                producers[output.0] = Some(NodeId(index));
            }
        }
        producers
    }

    /// The nodes that read each tensor, by tensor index, in order.
    pub fn consumers(&self) -> Vec<Vec<NodeId>> {
        let mut consumers = vec![Vec::new(); self.tensors.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            for input in node.inputs.iter().flatten() {
                if consumers[input.0].last() != Some(&NodeId(index)) {
                    consumers[input.0].push(NodeId(index));
                }
            }
        }
        consumers
    }
}

impl Tensor {
    /// An f32 activation without quantisation.
    pub fn activation(name: impl Into<String>, shape: &[usize], dtype: DType) -> Self {
        Self {
            name: name.into(),
            shape: shape.to_vec(),
            dtype,
            quant: None,
            kind: TensorKind::Activation,
            traced_perm: None,
        }
    }

    /// An f32 parameter whose values come from the weights source under its own name.
    pub fn parameter(name: impl Into<String>, shape: &[usize]) -> Self {
        let name = name.into();
        Self {
            kind: TensorKind::Const(Data::param(&name, shape)),
            ..Self::activation(name, shape, DType::F32)
        }
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes of its elements.
    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.bytes()
    }

    /// Whether its value is known when packing.
    pub fn is_const(&self) -> bool {
        matches!(self.kind, TensorKind::Const(_))
    }
}

impl Quant {
    /// Per-tensor quantisation.
    pub fn per_tensor(scale: f32, zero_point: i32) -> Self {
        Self {
            scale: vec![scale],
            zero_point: vec![zero_point],
            axis: None,
        }
    }
}

impl Role {
    /// The key under `pruned` in the summary.
    pub fn name(self) -> &'static str {
        match self {
            Role::Forward => "forward",
            Role::Backward => "backward",
            Role::Loss => "loss",
            Role::Optimizer => "optimizer",
            Role::Allreduce => "allreduce",
            Role::Bookkeeping => "bookkeeping",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.path.is_empty()) {
            (Some(line), true) => write!(f, "line {line}"),
            (Some(line), false) => write!(f, "line {line} ({})", self.path),
            (None, _) => write!(f, "{}", self.path),
        }
    }
}
