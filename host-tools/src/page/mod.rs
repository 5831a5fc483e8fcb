//! A model as one HTML page that needs nothing else: graph, arena over time, steps, weights, and what the file does not hold.

mod layers;
mod model;
mod network;
mod pictures;
mod timeline;

use arenite::Port;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use self::model::PageStep;
use self::pictures::Region;
use self::timeline::PagePort;
use crate::Result;
use crate::metadata::NO_TENSOR;
use crate::model::ModelView;
use crate::report::{PortSummary, Summary, grouped};

/// The page's only script, for a policy that names what may run.
pub const SCRIPT: &str = include_str!("script.js");

/// What the page shows beyond the file itself.
#[derive(Debug, Clone, Default)]
pub struct Extra {
    /// The text of the imported trace.
    pub trace: Option<String>,
    /// Where the model ran, and the instructions of each step.
    pub counted: Option<(String, Vec<u64>)>,
}

/// The page of a model. `summary` has the sizes of the whole file.
///
/// # Errors
/// As [`ModelView::metadata`] and [`ModelView::steps`].
pub fn page(view: &ModelView<'_>, summary: &Summary, extra: &Extra) -> Result<String> {
    let metadata = view.metadata()?;
    let steps = model::steps(view, &metadata)?;
    let (inputs, outputs) = metadata.ports.split_at(view.inputs.len().min(metadata.ports.len()));
    let inputs = ports(&view.inputs, inputs, false);
    let outputs = ports(&view.outputs, outputs, true);
    let both: Vec<PagePort> = inputs.iter().chain(&outputs).copied().collect();
    let blocks = timeline::blocks(&steps, &both);
    let edges = network::edges(&steps, &inputs, &outputs);
    let names = |ports: &[Port<'_>]| ports.iter().map(|port| port.name.to_string()).collect::<Vec<_>>();
    let counts = extra.counted.as_ref();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // The page loads nothing, whatever a model calls its tensors.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
                title { (summary.name) " · Arenite" }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                h1 { (summary.name) }
                p { (summary.dialect) ", packed for " (summary.target) ", " (summary.dtype) ", by " (metadata.tool)
                    " from an input of sha256 " code { (metadata.input_sha256) } }
                (facts(summary))
                (port_table(summary))
                h2 { "Arena over time" }
                @for (index, region) in (0..).zip(&summary.regions) {
                    (pictures::arena(&Region { index, name: &region.name, bytes: region.bytes }, &blocks, &metadata.tensors, &steps))
                }
                p { "Tensors are boxes: steps across, bytes upwards; scratch is grey. Steps that reach the end of a memory are marked." }
                h2 { "Graph" }
                (pictures::graph(&names(&view.inputs), &steps, &names(&view.outputs), &edges))
                h2 { "Steps" }
                (step_table(&steps, counts))
                (told(summary))
                (lacks(extra, summary))
                @if let Some(trace) = &extra.trace {
                    h2 { "The trace as imported" }
                    pre id="trace" { (trace) }
                }
                div id="detail" {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    Ok(page.into_string())
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

fn facts(summary: &Summary) -> Markup {
    let proof = if summary.plan_proven_optimal {
        "proven minimal for this order".to_string()
    } else {
        format!("lower bound {}", grouped(summary.plan_lower_bound_bytes))
    };
    let stack = summary.stack_text();
    html! {
        div class="facts" {
            div { "arena" b { (grouped(summary.arena_bytes)) } (proof) }
            div { "state" b { (grouped(summary.state_bytes)) } "bytes" }
            div { "file" b { (grouped(summary.model_bytes)) } (grouped(summary.weights_bytes)) " weights, " (grouped(summary.plan_bytes)) " plan" }
            div { "parameters" b { (grouped(summary.params)) } "as traced" }
            div { "MACs" b { (grouped(summary.macs)) } "each of a batch of " (summary.batch) }
            div { "steps" b { (summary.steps) } "most alive at once: " (grouped(summary.liveness_bound_bytes)) }
            @if let Some(stack) = stack { div { "stack" b { (stack) } } }
        }
    }
}

fn port_table(summary: &Summary) -> Markup {
    let row = |kind: &str, port: &PortSummary| {
        let shape: Vec<String> = port.shape.iter().map(usize::to_string).collect();
        html! {
            tr {
                td { (kind) } td { (port.name) } td { (port.dtype) } td { (shape.join(" × ")) }
                td { @if let (Some(scale), Some(zero)) = (port.scale, port.zero_point) { "scale " (scale) ", zero point " (zero) } }
            }
        }
    };
    html! {
        table id="ports" {
            @for port in &summary.inputs { (row("input", port)) }
            @for port in &summary.outputs { (row("output", port)) }
        }
    }
}

fn step_table(steps: &[PageStep], counted: Option<&(String, Vec<u64>)>) -> Markup {
    let most = |of: &dyn Fn(&PageStep) -> u64| steps.iter().map(of).max().unwrap_or(0).max(1);
    let (most_macs, most_weights) = (most(&|step| step.macs), most(&PageStep::weights));
    let bar = |value: u64, most: u64| {
        html! {
            td class="n" data-v=(value) { (grouped(value)) @if value > 0 { " " meter min="0" max=(most) value=(value) {} } }
        }
    };
    html! {
        table id="steps" {
            thead {
                tr {
                    th class="n" data-sort="" { "#" } th data-sort="" { "name" } th data-sort="" { "operator" } th data-sort="" { "kernel" }
                    th { "result" } th class="n" data-sort="" { "MACs" } th class="n" data-sort="" { "weight bytes" }
                    @if let Some((place, _)) = counted { th class="n" data-sort="" { "instructions on " (place) } }
                }
            }
            tbody {
                @for (index, step) in steps.iter().enumerate() {
                    tr data-step=(index) {
                        td class="n" { (index) } td { (step.name) } td { (step.op) } td { (step.kernel) }
                        td { (step.tensor.as_deref().unwrap_or("")) } (bar(step.macs, most_macs)) (bar(step.weights(), most_weights))
                        @if let Some((_, counts)) = counted {
                            (bar(counts.get(index).copied().unwrap_or(0), counts.iter().copied().max().unwrap_or(1)))
                        }
                    }
                }
            }
        }
    }
}

/// What packing assumed, left out and removed.
fn told(summary: &Summary) -> Markup {
    let counts = |of: &std::collections::BTreeMap<String, usize>| {
        let counts: Vec<String> = of.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
        counts.join(", ")
    };
    html! {
        h2 { "What packing did" }
        table {
            tr { td { "operators of the input" } td { (counts(&summary.ops)) } }
            tr { td { "steps" } td { (counts(&summary.ops_final)) } }
            @if !summary.pruned.is_empty() { tr { td { "not for inference" } td { (counts(&summary.pruned)) } } }
            @if let Some(removed) = summary.dead_channels {
                tr { td { "dead channels" } td { (removed.channels) " removed, " (grouped(removed.bytes)) " bytes, " (grouped(removed.macs)) " MACs" } }
            }
            @for a in &summary.assumptions {
                tr { td { "assumed" } td { (a.key) "=" (a.value) " for " (a.applies_to) " (" (a.reason) ")" } }
            }
        }
    }
}

/// What a model file cannot say, with the command that does.
fn lacks(extra: &Extra, summary: &Summary) -> Markup {
    html! {
        h2 { "What this page lacks" }
        ul id="lacks" {
            @if extra.trace.is_none() { li { "The trace before fusion: " code { "arenite report MODEL --trace FILE" } } }
            @if extra.counted.is_none() { li { "Instructions of each step: " code { "arenite report MODEL --on qemu:BOARD" } } }
            li { "How far each layer is from a reference: " code { "arenite diff MODEL REFERENCE.npz" } }
            @if summary.stack_bytes.is_empty() { li { "Bounds of the stack: none are tracked for " (summary.target) } }
        }
    }
}
