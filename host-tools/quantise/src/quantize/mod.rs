//! Post-training quantisation: a float network and sample inputs become an int8 network of the arithmetic that `arenite::quant` defines, TensorFlow
//! Lite's. Weights are int8 with a scale for each output channel, activations int8 or int16 with one scale and zero point each; zero is exact everywhere.
//!
//! `form` says what each operator asks for; `evaluate` runs the network, `statistics` keeps what its activations are like, `range` and `search` choose
//! their scales, `parameters` stores weights and biases, and `rewrite` makes the graph of integers.

mod activations;
mod calibrated;
mod columns;
mod context;
mod equalise;
mod estimate;
mod evaluate;
mod form;
mod grid;
mod groups;
mod judge;
mod masks;
mod mixed;
mod moments;
mod names;
mod network;
mod norms;
mod parameters;
mod parts;
pub mod ports;
mod range;
mod ranges;
mod recurrent;
mod rewrite;
mod rounding;
mod search;
mod statistics;
mod suspects;
mod weight_only;
mod wide;

use std::path::PathBuf;

use arenite::{DType, Port};

pub use self::activations::Activations;
use self::calibrated::Calibrated;
use self::context::Context;
use self::evaluate::Evaluator;
pub(crate) use self::form::{Form, activations, on_int8};
use self::form::{concerns, is_real};
pub use self::grid::Grid;
pub use self::mixed::Aims;
use self::mixed::Level;
use self::rewrite::Plan;
pub(crate) use self::rewrite::conversion;
use self::search::{Found, Refined};
pub use self::weight_only::WeightOnly;
pub use self::weight_only::{keep_bytes, run as store_weights};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Graph, LowBits, Node, Op, TensorId, TensorKind, facts};
use crate::memory::lifetimes;
use crate::report::Quantization;
use crate::samples;
use crate::weights::Weights;
pub use names::AUTO;

/// Request of a quantisation.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Sample inputs, `.npz` or `.npy`, or a folder of pictures or recordings.
    pub samples: PathBuf,
    /// The integers that activations become.
    pub activations: Activations,
    /// Stores the weights in four bits, but for those of depthwise layers.
    pub low_bits: Option<LowBits>,
    /// Chooses the precision of each layer for these.
    pub mixed: Option<Aims>,
    /// Layers that stay in f32; [`AUTO`] stands for those without a form on integers.
    pub keep_f32: Vec<String>,
    /// Weights are rounded for the least error of their layer's output on the samples.
    pub optimise_rounding: bool,
    /// Whether the quality on other samples is estimated, for which the network is quantised anew without each of a few folds.
    pub estimate: bool,
    /// The samples are bytes of these values, and so is the input that is quantised.
    pub grid: Option<Grid>,
    /// Whether the caller gives its inputs, and gets its outputs, in f32: layers in f32 there have them as they are.
    pub float_ports: [bool; 2],
    /// Whether the caller gives integers: an input then has one scale, whatever its columns are.
    pub integer_inputs: bool,
    /// Threads of the calibration; all there are where it is none. The result does not depend on it.
    pub threads: Option<usize>,
}

/// Result of a quantisation.
pub struct Quantized {
    /// The network of integers.
    pub graph: Graph,
    /// Report on the quantisation.
    pub report: Quantization,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// The bytes of the file that a network becomes, with this said of it.
pub type FileBytes<'a> = &'a dyn Fn(&Graph, &Quantization) -> Result<u64>;

/// Quantises a network behind all other passes. `file_bytes` is asked where the file's size decides.
///
/// # Errors
/// Layers without a form on integers; samples that are not the network's inputs; values that no scale holds.
pub fn run(
    graph: &Graph,
    weights: &Weights,
    request: &Request,
    file_bytes: FileBytes<'_>,
    progress: &mut dyn FnMut(&str, u64, u64),
) -> Result<Quantized> {
    refuse_states(graph)?;
    if !graph.nodes.iter().any(|node| computes(graph, node)) {
        return Err(
            Error::unsupported("there is nothing to quantise: no layer of the network is of f32").help(format!(
                "leave --dtype {} and --calibrate out",
                request.activations.option()
            )),
        );
    }
    let mut whole = parts::run(graph, weights, request.activations)?;
    masks::finite(&mut whole, weights)?;
    let graph = &whole;
    let names::Kept { nodes: kept, note } = names::kept(graph, &request.keep_f32, request.activations)?;
    let threads = request.threads.unwrap_or_else(|| {
        let available = std::thread::available_parallelism();
        available.map_or(1, std::num::NonZero::get)
    });
    let mut warnings: Vec<String> = note.into_iter().collect();
    let samples = {
        let float = Evaluator::new(graph, weights, threads, |_| false)?;
        let ports = float.ports()?;
        let mut note = |note| warnings.push(format!("--calibrate: {note}"));
        let each = |array, port: &Port<'_>, first: usize| {
            let array = match request.grid {
                Some(grid) => grid.values(array, port)?,
                None => array,
            };
            samples::of_a_data_set(array, port, first)
        };
        samples::read_any(&request.samples, &ports, request.grid.is_some(), &each, &mut note)?
    };
    if samples.len() == 1 {
        warnings.push("--calibrate: one sample says little of the ranges; a hundred are a good number".into());
    }
    let plain = Context {
        weights,
        kept: &kept,
        samples: &samples,
        threads,
        grid: request.grid,
        activations: request.activations,
        low_bits: request.low_bits,
        float_ports: request.float_ports,
        integer_inputs: request.integer_inputs,
        widens: request.mixed.is_none(),
        spend: search::MACS,
    };
    let chosen = calibrated::choose(graph, &plain, progress)?;
    let (best, own) = (&chosen.best, &chosen.own);
    let context = &chosen.context(plain);
    let base = own.as_ref().map_or(graph, |columns| &columns.graph);
    let integers = suspects::Integers {
        activations: request.activations,
        kept: &kept,
        float_inputs: request.float_ports[0],
        integer_inputs: request.integer_inputs,
        by_column: own.as_ref().map_or(&[], |columns| &columns.inputs),
    };
    let known = request.grid.is_some();
    warnings.extend(suspects::find(graph, weights, &samples, &integers, known)?);
    if let Some(columns) = own.as_ref().filter(|_| !request.float_ports[0]) {
        warnings.push(columns.told());
    }
    warnings.extend(best.ranges.zero.iter().map(|name| {
        let [low, high] = request.activations.ends();
        format!("`{name}` is zero for every sample: its scale is 1, and other values will be cut to {low} to {high}")
    }));
    let network = best.network(context);
    let found = &chosen.found;
    let optimise = request.optimise_rounding;
    let outcome = Outcome {
        request,
        float: base,
        kept: kept_names(graph, &kept),
        best,
        found,
        context,
    };
    let (quantized, report) = match request.mixed {
        None => {
            let mut refining = |done, all| progress("refining weights", done, all);
            let nearest = network.plan(&found.choice, None)?;
            let (plan, refined) = search::refine(&network, &best.judge, &samples, optimise, nearest, &mut refining)?;
            if optimise && !refined.rounding_optimised {
                warnings.push(
                    "--optimise-rounding brings the answers no nearer on these samples: weights are at their nearest"
                        .into(),
                );
            }
            let quantized = outcome.graph(&plan)?;
            if let Some(bits) = request.low_bits.filter(|_| quantized.low_bits.is_empty()) {
                let message = format!("--weight-bits {}: no layer's weights would take less", bits.bits);
                return Err(Error::unsupported(message).help("leave it out, or pass a larger --group"));
            }
            let mut report = outcome.report(&quantized, &refined, None);
            if request.estimate {
                report.estimate = estimate::run(graph, &plain, optimise, progress)?;
            }
            (quantized, report)
        }
        Some(aims) => {
            let bytes = |plan: &Plan, refined: &Refined, levels: &[Level]| {
                let quantized = outcome.graph(plan)?;
                file_bytes(&quantized, &outcome.report(&quantized, refined, Some(levels)))
            };
            let from = (context, &best.parts);
            let chosen = mixed::choose(&network, from, &found.choice, aims, optimise, &bytes, progress)?;
            let quantized = outcome.graph(&chosen.measured.plan)?;
            let (refined, levels) = (&chosen.measured.refined, &chosen.measured.levels);
            let mut report = outcome.report(&quantized, refined, Some(levels));
            chosen.tell(&best.graph, &mut report);
            (quantized, report)
        }
    };
    warnings.extend(suspects::lost(report.snr_db, request.activations));
    Ok(Quantized {
        graph: quantized,
        report,
        warnings,
    })
}

/// Data from which a plan's outcome and its report are made.
struct Outcome<'a> {
    request: &'a Request,
    /// The network whose ranges were chosen, but for factors between its layers.
    float: &'a Graph,
    /// Layers that the caller leaves in f32.
    kept: Vec<String>,
    best: &'a Calibrated,
    found: &'a Found,
    context: &'a Context<'a>,
}

impl Outcome<'_> {
    /// The network of integers.
    fn graph(&self, plan: &Plan) -> Result<Graph> {
        let graph = &self.best.graph;
        let mut quantized = rewrite::run(graph, self.context.weights, plan)?;
        let bits = self.request.low_bits.unwrap_or(mixed::FOUR_BITS);
        let layers = plan.layers.iter().filter(|(_, stored)| stored.lattice.largest < 127);
        let layers = layers.map(|(&index, _)| (graph.nodes[index].name.clone(), bits));
        quantized.low_bits.extend(layers);
        if self.context.float_ports[0] && !self.request.float_ports[0] {
            ports::retype(&mut quantized, Some(DType::F32), None, None)?;
        }
        crate::passes::name_apart(&mut quantized);
        Ok(quantized)
    }

    /// Returns the report for a summary; `levels` are those of mixed precision.
    fn report(&self, quantized: &Graph, refined: &Refined, levels: Option<&[Level]>) -> Quantization {
        let Self { best, found, .. } = self;
        let four = quantized.low_bits.values().next().or(self.request.low_bits.as_ref());
        let mut report = Quantization {
            samples: self.context.samples.len(),
            snr_db: judge::decibels(refined.noise),
            cross_snr_db: judge::decibels(found.noise()).filter(|_| best.judge.folds() > 1 && levels.is_none()),
            bias_corrected: refined.bias_corrected,
            rounding_optimised: refined.rounding_optimised,
            equalised: best.equalised,
            kept_f32: self.kept.clone(),
            int16_inside: best
                .wide
                .as_ref()
                .map_or(0, |wide| wide.nodes.iter().filter(|own| **own).count()),
            weight_bits: four.map(|bits| bits.bits),
            group: four.and_then(|bits| bits.group),
            low_bit_layers: quantized.low_bits.len(),
            precisions: levels.map_or_else(Default::default, |levels| mixed::counts(&best.graph, levels)),
            ..Quantization::default()
        };
        let values = statistics::without(&best.parts, None);
        let choice = &found.choice;
        best.ranges.tell(self.float, &best.groups, &values, choice, &mut report);
        report
    }
}

/// Refuses a network that is not of the type that is wanted, where nothing is asked for that would make it so.
///
/// # Errors
/// [`crate::error::ErrorKind::Usage`], [`crate::error::ErrorKind::Unsupported`].
pub fn refuse_other(graph: &Graph, wanted: Option<DType>) -> Result<()> {
    let layer = |node: &&Node| computes(graph, node);
    let integers = |node: &&Node| {
        let mut outputs = node.outputs.iter().map(|&id| graph.tensor(id));
        outputs.any(|tensor| matches!(tensor.dtype, DType::I8 | DType::I16) && tensor.quant.is_some())
    };
    let wanted_integers = [Activations::Int8, Activations::Int16];
    let wanted_integers = wanted_integers.into_iter().find(|kind| Some(kind.dtype()) == wanted);
    if let Some(activations) = wanted_integers {
        let option = activations.option();
        let own = |node: &&Node| node.kind != facts::IMPLIED && layer(node);
        if let Some(node) = graph.nodes.iter().find(own).or_else(|| graph.nodes.iter().find(layer)) {
            let message = format!(
                "--dtype {option}: the network computes in f32, {} first of all",
                facts::described(graph, node)
            );
            return Err(Error::new(ErrorKind::Usage, message)
                .help(format!("--calibrate FILE gives the sample inputs that {option} wants")));
        }
        // Its layers tell: there are others of two types among quantised networks.
        let other = graph.nodes.iter().find(|node| {
            let mut outputs = node.outputs.iter().map(|&id| graph.tensor(id).dtype);
            let layers = matches!(node.op, Op::Conv2d(_) | Op::Linear { .. });
            layers && outputs.any(|dtype| matches!(dtype, DType::I8 | DType::I16) && dtype != activations.dtype())
        });
        return other.map_or(Ok(()), |node| {
            let is = graph.tensor(node.outputs[0]).dtype.name();
            let message = format!("--dtype {option}: {} is {is}", facts::described(graph, node));
            Err(Error::unsupported(message)
                .expected(format!(
                    "activations of {}, or a network in f32 and --calibrate",
                    activations.dtype().name()
                ))
                .help("leave it out: the network keeps its own element type"))
        });
    }
    match wanted {
        Some(DType::F32) => match graph.nodes.iter().find(integers) {
            None => Ok(()),
            Some(node) => {
                let message = format!(
                    "--dtype f32: the network is quantised, {} first of all",
                    facts::described(graph, node)
                );
                Err(Error::unsupported(message)
                    .expected("a network in f32")
                    .help("leave it out: the network keeps its own element type"))
            }
        },
        _ => Ok(()),
    }
}

/// Whether a node computes with real numbers, and does not only convert them.
fn computes(graph: &Graph, node: &Node) -> bool {
    concerns(graph, node) && !matches!(node.op, Op::Quantize | Op::Dequantize | Op::Cast)
}

/// Max-live of a float network, were its activations such integers.
pub fn max_live(graph: &Graph, activations: Activations) -> u64 {
    let mut graph = graph.clone();
    for index in 0..graph.tensors.len() {
        if is_real(&graph, TensorId(index)) {
            graph.tensors[index].dtype = activations.dtype();
        }
    }
    lifetimes::max_live(&graph)
}

fn kept_names(graph: &Graph, kept: &[bool]) -> Vec<String> {
    let nodes = graph.nodes.iter().zip(kept);
    let kept = nodes.filter(|(node, kept)| **kept && concerns(graph, node));
    kept.map(|(node, _)| node.name.clone()).collect()
}

fn refuse_states(graph: &Graph) -> Result<()> {
    let state = graph
        .tensors
        .iter()
        .find(|tensor| matches!(tensor.kind, TensorKind::State(_)));
    match state.filter(|tensor| tensor.dtype == DType::F32) {
        None => Ok(()),
        Some(tensor) => {
            let users = graph.nodes.iter().filter(|node| {
                let mut operands = node.inputs.iter().flatten();
                operands.any(|&id| graph.tensor(id).name == tensor.name)
            });
            let users: Vec<String> = users.map(|node| facts::described(graph, node)).collect();
            Err(Error::unsupported(format!(
                "a network with a state in f32, `{}`, of {}",
                tensor.name,
                users.join(", ")
            ))
            .expected("a network whose runs do not depend on each other")
            .help("quantise it in the training framework and pack its .tflite file"))
        }
    }
}
