//! Summary of a packed model: the data behind `pack --json` and `arenite inspect --json`.

use std::collections::{BTreeMap, BTreeSet};

use arenite::Port;
use serde::{Deserialize, Serialize};

use super::quantization::{Quantization, WeightOnlyReport};
use crate::graph::{Assumption, Graph, Tensor, TensorId};
use crate::metadata::StepMeta;

/// The summary; all sizes in bytes. The fields are specified in the README.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The input's dialect.
    pub dialect: String,
    /// The target that kernels were chosen for.
    pub target: String,
    /// The network's element type.
    pub dtype: String,
    /// Images a run.
    pub batch: usize,
    /// The network's name.
    pub name: String,
    /// Inputs, which the caller fills.
    pub inputs: Vec<PortSummary>,
    /// Outputs, which the caller reads.
    pub outputs: Vec<PortSummary>,
    /// Scalars in the parameters, as traced.
    pub params: u64,
    /// Multiply-accumulates for one element of the batch, as traced.
    pub macs: u64,
    /// Forward operators by the dialect's own name.
    pub ops: BTreeMap<String, usize>,
    /// Nodes that do not serve inference, by kind.
    pub pruned: BTreeMap<String, usize>,
    /// Steps by kind.
    pub ops_final: BTreeMap<String, usize>,
    /// Number of steps.
    pub steps: usize,
    /// Max-live of the imported forward graph in its order.
    pub liveness_as_traced_bytes: u64,
    /// Max-live of the final steps: their order, aliases and scratch.
    pub liveness_bound_bytes: u64,
    /// Arena that the caller must give, over all regions.
    pub arena_bytes: u64,
    /// State that the caller must give.
    pub state_bytes: u64,
    /// Whether the plan is proven to be the smallest.
    pub plan_proven_optimal: bool,
    /// Lower bound of every plan of these steps, in bytes.
    pub plan_lower_bound_bytes: u64,
    /// The file.
    pub model_bytes: u64,
    /// Its weights.
    pub weights_bytes: u64,
    /// Its ports and steps.
    pub plan_bytes: u64,
    /// The most stack of a run, by board, where it is known.
    pub stack_bytes: BTreeMap<String, u64>,
    /// The same of the load. A file does not hold it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub load_stack_bytes: BTreeMap<String, u64>,
    /// The most instructions of a run, by board. A file does not hold them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub instructions_at_most: BTreeMap<String, Most>,
    /// Bytes of code of a program with the model on the target's core, where its kernels are measured. A file does not hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_bytes_estimate: Option<CodeEstimate>,
    /// Memories and what each holds.
    pub regions: Vec<RegionSummary>,
    /// Multiply-accumulates beyond those of the network as packed whole: the price of a fit.
    #[serde(default)]
    pub extra_macs: u64,
    /// Residual sums that are computed by rows, where that lowers the arena.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sums_by_rows: Option<Sums>,
    /// How several cores share the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<Shares>,
    /// Steps handed to an accelerator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<HandedOver>,
    /// With `--fit` or `--explain`: the Pareto front of arena against extra MACs.
    #[serde(default)]
    pub pareto: Vec<Point>,
    /// Channels removed since they cannot change the output. Files say it only where something was, for they lie in a device's flash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_channels: Option<Removed>,
    /// The pieces of a model that is read from a flash; files do not hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Pieces>,
    /// The layers that Winograd's algorithm computes, where any does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winograd: Option<Winograd>,
    /// How an f32 network became int8 or int16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantization: Option<Quantization>,
    /// How its weights are stored in fewer bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_only: Option<WeightOnlyReport>,
    /// The training step, where the file has one.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingReport>,
    /// Every value that the trace did not state.
    pub assumptions: Vec<Assumption>,
}

/// A training step. The arena of the summary is enough for it and for inference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainingReport {
    /// The loss.
    pub loss: String,
    /// The optimiser, as the option has it. None for gradient descent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimiser: Option<String>,
    /// Parts in which a step goes through its batch. None for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_batches: Option<usize>,
    /// Scalars that are trained.
    pub trained_params: u64,
    /// Gradients of parameters.
    pub gradients: usize,
    /// Multiply-accumulates of the gradients, of the whole batch.
    pub backward_macs: u64,
    /// Steps of a training step, forward, loss and backward.
    pub train_steps: usize,
    /// The same by kind.
    pub train_ops_final: BTreeMap<String, usize>,
    /// Arena of a training step.
    pub train_arena_bytes: u64,
    /// Max-live of its steps: their order, aliases and scratch.
    pub train_liveness_bound_bytes: u64,
    /// Arena of inference.
    pub inference_arena_bytes: u64,
    /// Max-live of the training step that the trace states: its operators, its order, a buffer for each result. None of networks without a backward half.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_liveness_as_traced_bytes: Option<u64>,
    /// Operators of that half that the forward half asks for, by what they are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub matched: BTreeMap<String, usize>,
}

/// Counts of removed channels and constants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// Output channels of convolutions and fully connected layers.
    pub channels: u64,
    /// Bytes of their weights and biases, and of the weights that read them.
    pub bytes: u64,
    /// Multiply-accumulates for one element of the batch.
    pub macs: u64,
}

/// Sums that are computed by rows, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// How many.
    pub sums: usize,
    /// Steps that the network has more for it.
    pub more_steps: usize,
    /// Lower bound of the arena with whole sums, in bytes.
    pub whole_arena_bytes: u64,
}

/// A way of running the network: what it needs and what it costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The cuts, for people.
    pub cuts: String,
    /// Bytes of arena.
    pub arena_bytes: u64,
    /// Multiply-accumulates beyond those of the uncut network.
    pub extra_macs: u64,
    /// Steps.
    pub steps: usize,
}

/// Work shared by several cores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// How many cores.
    pub cores: usize,
    /// Groups of steps between barriers.
    pub groups: usize,
    /// The part of the estimated cost (`Model::costs`) that the core with most of it has.
    pub busiest_share: f64,
}

/// Steps handed to an accelerator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HandedOver {
    /// The accelerator's name.
    pub name: String,
    /// Its version.
    pub version: u16,
    /// The target whose kernels its steps have.
    pub kernels: String,
    /// Indices of the steps that are handed over.
    pub steps: Vec<usize>,
    /// The part of the estimated cost (`Model::costs`) that they have.
    pub share: f64,
    /// The part of that beside which the core has steps of its own.
    pub beside: f64,
    /// The layers of which the core computes a part, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedLayers>,
}

/// The layers that an accelerator and the core compute in parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedLayers {
    /// How many.
    pub layers: usize,
    /// Their multiply-accumulates that the accelerator computes.
    pub macs_handed: u64,
    /// Those that the core computes.
    pub macs_own: u64,
    /// Instructions of all of them by the accelerator alone, as the bounds estimate them.
    pub takes_handed: u64,
    /// The same by the core alone.
    pub takes_own: u64,
    /// The same of the parts that take longer.
    pub takes_shared: u64,
    /// Bytes of weights that are there for the core's parts alone.
    pub weights_bytes: u64,
}

/// Bytes of code and constants, start-up included, of the smallest program with a model: an estimate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeEstimate {
    /// The board with the core that they are of.
    pub board: String,
    /// Beyond its weights, at most, where the model is compiled (`include_model!`).
    pub compiled: u64,
    /// Beyond its file, where it is loaded: docs/footprint.md says how near.
    pub loaded: u64,
}

/// The most instructions of a run on a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Most {
    /// Of all steps; `null` where that of one is not known.
    pub total: Option<u64>,
    /// By step.
    pub steps: Vec<Option<u64>>,
    /// Kernels of these steps whose count depends on the data.
    pub by_data: BTreeSet<String>,
    /// Kernels of the steps of which it is not known, with the reason.
    pub unknown: BTreeMap<String, String>,
}

/// A model in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pieces {
    /// How many.
    pub pieces: usize,
    /// Bytes of a device's buffer: for the largest that is read for each run, and for those that stay.
    pub buffer_bytes: u64,
    /// Bytes of a buffer in which the next piece is read while one computes.
    pub double_buffer_bytes: u64,
    /// Bytes of those that stay.
    pub resident_bytes: u64,
    /// Bytes that a run reads.
    pub read_bytes: u64,
}

/// Cost of the Winograd convolutions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Winograd {
    /// Layers that are computed so.
    pub layers: usize,
    /// Bytes by which the file grew for them.
    pub extra_bytes: u64,
}

/// An input or output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortSummary {
    /// The tensor's name.
    pub name: String,
    /// Extents.
    pub shape: Vec<usize>,
    /// Element type.
    pub dtype: String,
    /// Scale, where it is quantised.
    pub scale: Option<f32>,
    /// Zero point, where it is quantised.
    pub zero_point: Option<i32>,
}

/// A memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegionSummary {
    /// Its name.
    pub name: String,
    /// Bytes of arena in it.
    pub bytes: u64,
}

impl Summary {
    /// Sets the ports that the caller fills and reads, once they are decided.
    pub fn set_ports(&mut self, graph: &Graph) {
        let ports = |ids: &[TensorId]| ids.iter().map(|&id| PortSummary::of(graph.tensor(id))).collect();
        (self.inputs, self.outputs) = (ports(&graph.inputs), ports(&graph.outputs));
    }
}

impl Summary {
    /// Returns the text on the accelerator's steps, for people; empty where there is none.
    pub fn accelerator_text(&self) -> String {
        let text = |handed: &HandedOver| {
            let (share, beside) = (100.0 * handed.share, 100.0 * handed.beside);
            let whole = format!(
                "  handed     {} steps to {} (version {}, {}): {share:.1} % of the estimated cost, {beside:.1} % of it beside the core's own\n",
                handed.steps.len(),
                handed.name,
                handed.version,
                handed.kernels
            );
            whole + &handed.shared.as_ref().map_or(String::new(), SharedLayers::text)
        };
        self.accelerator.as_ref().map_or(String::new(), text)
    }

    /// Returns the text on the shares of several cores, for people; empty for one.
    pub fn cores_text(&self) -> String {
        let text = |shares: &Shares| {
            let Shares { cores, groups, .. } = shares;
            let share = 100.0 * shares.busiest_share;
            format!(
                "  cores      {cores}, in {groups} groups of steps; the busiest has {share:.1} % of the estimated cost\n"
            )
        };
        self.cores.as_ref().map_or(String::new(), text)
    }

    /// The training step, for people; nothing for a file without.
    pub fn training_text(&self) -> String {
        let text = |training: &TrainingReport| {
            format!(
                "  training   {} parameters by {}, {} MACs of gradients, {} steps; arena {} bytes, {} of inference\n",
                training.trained_params,
                training.loss,
                training.backward_macs,
                training.train_steps,
                training.train_arena_bytes,
                training.inference_arena_bytes
            )
        };
        self.training.as_ref().map_or(String::new(), text)
    }

    /// Describes another list of steps of the same file, by what the list says of itself.
    pub fn describe_list(&mut self, steps: &[StepMeta], inputs: &[Port<'_>], outputs: &[Port<'_>]) {
        let ports = |ports: &[Port<'_>]| ports.iter().map(PortSummary::of_port).collect();
        (self.inputs, self.outputs) = (ports(inputs), ports(outputs));
        self.steps = steps.len();
        self.ops_final.clear();
        for step in steps {
            *self.ops_final.entry(step.kind.clone()).or_insert(0) += 1;
        }
        self.training = None;
    }

    /// The stacks, for people: what the boards take at most, and which takes most.
    pub fn stack_text(&self) -> Option<String> {
        let (board, run) = self.stack_bytes.iter().max_by_key(|(_, bytes)| **bytes)?;
        let load = self.load_stack_bytes.get(board)?;
        Some(format!(
            "at most {run} bytes for a run and {load} for the load, on {board}, the board that needs most"
        ))
    }
}

impl SharedLayers {
    /// For people.
    fn text(&self) -> String {
        let part = |of: u64, whole: u64| 100.0 * of as f64 / whole.max(1) as f64;
        format!(
            "  shared     {} layers: the core computes {:.1} % of their multiply-accumulates, in {:.1} % of the instructions of the \
             accelerator alone; {} bytes of weights for it\n",
            self.layers,
            part(self.macs_own, self.macs_own + self.macs_handed),
            part(self.takes_shared, self.takes_handed),
            self.weights_bytes
        )
    }
}

impl PortSummary {
    /// Describes an input or output of a file.
    pub fn of_port(port: &Port<'_>) -> Self {
        let is_quantised = port.scale != 0.0;
        Self {
            name: port.name.to_string(),
            shape: port.shape.iter().map(|&extent| extent as usize).collect(),
            dtype: port.dtype.name().to_string(),
            scale: is_quantised.then_some(port.scale),
            zero_point: is_quantised.then_some(port.zero_point),
        }
    }

    /// Describes a tensor.
    pub fn of(tensor: &Tensor) -> Self {
        let quant = tensor.quant.as_ref().filter(|q| q.axis.is_none());
        Self {
            name: tensor.name.clone(),
            shape: tensor.shape.clone(),
            dtype: tensor.dtype.name().to_string(),
            scale: quant.map(|q| q.scale[0]),
            zero_point: quant.map(|q| q.zero_point[0]),
        }
    }
}
