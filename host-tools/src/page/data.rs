//! Data of the page's script: a model as one object of JSON.

use std::collections::BTreeSet;

use arenite::Port;
use serde::Serialize;

use super::extra::{Accuracy, Extra};
use super::layers::{Drawing, draw};
use super::model::{self, PageStep};
use super::names;
use super::network;
use super::timeline::{self, Block, PagePort};
use crate::Result;
use crate::chips::{self, Chip, Fit};
use crate::metadata::{Metadata, NO_TENSOR};
use crate::model::ModelView;
use crate::report::{PortSummary, Summary};

/// A model as the page shows it.
#[derive(Serialize)]
pub(super) struct Shown<'a> {
    name: &'a str,
    dialect: &'a str,
    target: &'a str,
    dtype: &'a str,
    tool: String,
    sha256: String,
    batch: usize,
    params: u64,
    macs: u64,
    arena_bytes: u64,
    state_bytes: u64,
    model_bytes: u64,
    weights_bytes: u64,
    plan_bytes: u64,
    /// The most that is alive at once.
    alive_bytes: u64,
    proven: bool,
    lower_bound: u64,
    stack: Option<String>,
    inputs: &'a [PortSummary],
    outputs: &'a [PortSummary],
    regions: Vec<Region<'a>>,
    tensors: Vec<Named<'a>>,
    steps: Vec<StepData<'a>>,
    blocks: Vec<Block>,
    /// Inputs that steps may read, steps, outputs, in this order.
    graph: Drawing,
    /// Indices of the inputs that the graph has.
    graph_inputs: Vec<usize>,
    /// The same of the outputs.
    graph_outputs: Vec<usize>,
    chips: Vec<ChipData>,
    /// The board whose instructions the steps have as `at_most`.
    at_most_on: Option<&'a str>,
    /// The board that counted the steps' `instructions`.
    counted_on: Option<&'a str>,
    accuracy: Option<&'a Accuracy>,
    /// How the model was made: what, and how much of it.
    made: Vec<[String; 2]>,
    /// Commands for what a model file does not say.
    lacks: Vec<[&'static str; 2]>,
}

#[derive(Serialize)]
struct Region<'a> {
    name: &'a str,
    bytes: u64,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    short: String,
}

#[derive(Serialize)]
struct StepData<'a> {
    name: &'a str,
    short: String,
    op: &'a str,
    kernel: &'a str,
    macs: u64,
    /// Bytes of constants that it reads.
    weights: u64,
    /// The part of them that no step before it reads.
    own_weights: u64,
    cost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<ResultData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<WindowData>,
}

#[derive(Serialize)]
struct ResultData<'a> {
    name: &'a str,
    dtype: &'a str,
    shape: &'a [u32],
    scale: f32,
    zero_point: i32,
}

#[derive(Serialize)]
struct WindowData {
    kernel: [u16; 2],
    stride: [u8; 2],
    dilation: [u8; 2],
    padding: [u8; 2],
}

#[derive(Serialize)]
struct ChipData {
    #[serde(flatten)]
    fit: Fit,
    core: &'static str,
    target: &'static str,
    mhz: Option<u32>,
}

impl<'a> Shown<'a> {
    /// All of a model. `summary` has the sizes of the whole file.
    ///
    /// # Errors
    /// As [`ModelView::steps`].
    pub(super) fn of(
        view: &ModelView<'_>,
        summary: &'a Summary,
        extra: &'a Extra,
        metadata: &'a Metadata,
        steps: &'a [PageStep],
    ) -> Result<Self> {
        let (of_inputs, of_outputs) = metadata.ports.split_at(view.inputs.len().min(metadata.ports.len()));
        let inputs = ports(&view.inputs, of_inputs, false);
        let outputs = ports(&view.outputs, of_outputs, true);
        let both: Vec<PagePort> = inputs.iter().chain(&outputs).copied().collect();
        let edges = network::edges(steps, &inputs, &outputs);
        let count = inputs.len() + steps.len() + outputs.len();
        let most = summary.instructions_at_most.iter().next();
        let fit = |chip: &Chip| -> Result<ChipData> {
            Ok(ChipData {
                fit: chips::fit(view, chip)?,
                core: chip.core,
                target: chip.target,
                mhz: chip.mhz,
            })
        };
        Ok(Self {
            name: &summary.name,
            dialect: &summary.dialect,
            target: &summary.target,
            dtype: &summary.dtype,
            tool: metadata.tool.clone(),
            sha256: metadata.input_sha256.clone(),
            batch: summary.batch,
            params: summary.params,
            macs: summary.macs,
            arena_bytes: summary.arena_bytes,
            state_bytes: summary.state_bytes,
            model_bytes: summary.model_bytes,
            weights_bytes: summary.weights_bytes,
            plan_bytes: summary.plan_bytes,
            alive_bytes: summary.liveness_bound_bytes,
            proven: summary.plan_proven_optimal,
            lower_bound: summary.plan_lower_bound_bytes,
            stack: summary.stack_text(),
            inputs: &summary.inputs,
            outputs: &summary.outputs,
            regions: summary
                .regions
                .iter()
                .map(|region| Region {
                    name: &region.name,
                    bytes: region.bytes,
                })
                .collect(),
            tensors: named(metadata.tensors.iter().map(String::as_str)),
            steps: steps_data(steps, extra, most.map(|(_, most)| &most.steps[..])),
            blocks: timeline::blocks(steps, &both),
            graph: draw(count, &edges),
            graph_inputs: owned(of_inputs),
            graph_outputs: owned(of_outputs),
            chips: chips::all().iter().map(fit).collect::<Result<_>>()?,
            at_most_on: most.map(|(board, _)| board.as_str()),
            counted_on: extra.counted.as_ref().map(|(board, _)| board.as_str()),
            accuracy: extra.accuracy.as_ref(),
            made: made(summary),
            lacks: lacks(summary, extra),
        })
    }
}

/// Steps and metadata that [`Shown::of`] borrows.
///
/// # Errors
/// As [`ModelView::steps`].
pub(super) fn read(view: &ModelView<'_>) -> Result<(Metadata, Vec<PageStep>)> {
    let metadata = view.metadata()?;
    let steps = model::steps(view, &metadata)?;
    Ok((metadata, steps))
}

fn named<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Named<'a>> {
    let names: Vec<&str> = names.collect();
    let short = names::short(&names).into_iter();
    names
        .into_iter()
        .zip(short)
        .map(|(name, short)| Named { name, short })
        .collect()
}

fn steps_data<'a>(steps: &'a [PageStep], extra: &Extra, most: Option<&[Option<u64>]>) -> Vec<StepData<'a>> {
    let counted = extra.counted.as_ref().map(|(_, counts)| &counts[..]);
    let mut read = BTreeSet::new();
    let names = named(steps.iter().map(|step| step.name.as_str()));
    let each = steps.iter().zip(names).enumerate();
    each.map(|(index, (step, named))| StepData {
        name: named.name,
        short: named.short,
        op: &step.op,
        kernel: step.kernel,
        macs: step.macs,
        weights: step.constants().map(|(_, bytes)| u64::from(bytes)).sum(),
        own_weights: step
            .constants()
            .filter(|&place| read.insert(place))
            .map(|(_, bytes)| u64::from(bytes))
            .sum(),
        cost: step.cost,
        at_most: most.and_then(|most| most.get(index).copied().flatten()),
        instructions: counted.and_then(|counts| counts.get(index).copied()),
        result: step.completes.as_ref().map(|tensor| ResultData {
            name: tensor.names.first().map_or("", String::as_str),
            dtype: tensor.dtype.name(),
            shape: &tensor.shape,
            scale: tensor.scale,
            zero_point: tensor.zero_point,
        }),
        window: step.window.map(|window| WindowData {
            kernel: window.kernel,
            stride: window.stride,
            dilation: window.dilation,
            padding: window.padding,
        }),
    })
    .collect()
}

/// Indices of ports that have a tensor.
fn owned(owners: &[u32]) -> Vec<usize> {
    let known = owners.iter().enumerate().filter(|&(_, &owner)| owner != NO_TENSOR);
    known.map(|(index, _)| index).collect()
}

fn ports(ports: &[Port<'_>], owners: &[u32], output: bool) -> Vec<PagePort> {
    let known = ports.iter().zip(owners).filter(|&(_, &owner)| owner != NO_TENSOR);
    let ports = known.map(|(port, &owner)| PagePort {
        owner: owner as usize,
        place: port.slot,
        bytes: port.bytes().unwrap_or(0),
        output,
    });
    ports.collect()
}

/// Returns the rows on the assumptions of packing, and on all that it left out and removed.
fn made(summary: &Summary) -> Vec<[String; 2]> {
    let counts = |of: &std::collections::BTreeMap<String, usize>| {
        let counts: Vec<String> = of.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
        counts.join(", ")
    };
    let mut rows = vec![
        ["operators of the input".to_string(), counts(&summary.ops)],
        ["steps".to_string(), counts(&summary.ops_final)],
    ];
    if !summary.pruned.is_empty() {
        rows.push(["not for inference".to_string(), counts(&summary.pruned)]);
    }
    if let Some(removed) = summary.dead_channels {
        let (channels, bytes, macs) = (removed.channels, removed.bytes, removed.macs);
        let text = format!("{channels} removed: {bytes} bytes, {macs} MACs");
        rows.push(["dead channels".to_string(), text]);
    }
    rows.extend(summary.assumptions.iter().map(|a| {
        let text = format!("{}={} for {} ({})", a.key, a.value, a.applies_to, a.reason);
        ["assumed".to_string(), text]
    }));
    rows
}

fn lacks(summary: &Summary, extra: &Extra) -> Vec<[&'static str; 2]> {
    let mut lacks = Vec::new();
    if extra.accuracy.is_none() {
        lacks.push([
            "accuracy",
            "arenite report MODEL --inputs X.npy --labels Y.npy -o FILE.html",
        ]);
    }
    if extra.counted.is_none() {
        lacks.push([
            "instructions of each step",
            "arenite report MODEL --on qemu:BOARD -o FILE.html",
        ]);
    }
    if extra.trace.is_none() {
        lacks.push([
            "the network before fusion",
            "arenite report MODEL --trace FILE -o FILE.html",
        ]);
    }
    lacks.push([
        "how far each layer is from a reference",
        "arenite diff MODEL REFERENCE.npz",
    ]);
    if summary.stack_bytes.is_empty() {
        lacks.push(["bounds of the stack", "pack --target CORE"]);
    }
    lacks
}
