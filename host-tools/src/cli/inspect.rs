//! `arenite inspect`: what a model holds and needs.

use std::path::PathBuf;

use serde::Serialize;

use super::program::{Verdict, print_json};
use crate::board::tell_worst;
use crate::error::one_line;
use crate::files::print::out as print_out;
use crate::metadata::Metadata;
use crate::model::ModelFile;
use crate::report::{PortSummary, Summary, grouped};
use crate::{Result, sign};

/// Arguments of `arenite inspect`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model file.
    model: PathBuf,
    /// Prints the summary of `pack --json`, and with --steps the steps, as JSON on stdout.
    #[arg(long)]
    json: bool,
    /// Lists every step: kernel, operands with their places, MACs.
    #[arg(long)]
    steps: bool,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    summary: Summary,
    tool: String,
    input_sha256: String,
    format_version: u16,
    labels: Vec<String>,
    /// Envelope of a signed file, which is not verified here.
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<Signature>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_list: Option<Vec<StepReport>>,
}

#[derive(Serialize)]
struct Signature {
    key: String,
    counter: u64,
}

#[derive(Serialize)]
struct StepReport {
    index: usize,
    name: String,
    op: String,
    kernel: &'static str,
    macs: u64,
    /// Tensor that the step writes, where it is a whole one.
    tensor: Option<String>,
    operands: Vec<OperandReport>,
}

#[derive(Serialize)]
struct OperandReport {
    access: &'static str,
    region: String,
    offset: u32,
    bytes: u32,
}

/// Looks at any intact model, whether this host has its kernels or not.
pub(super) fn run(args: &Args) -> Result<Verdict> {
    let file = ModelFile::open(&args.model)?;
    let view = file.view()?;
    let Metadata {
        tool,
        input_sha256,
        labels,
        steps: metas,
        ..
    } = view.metadata()?;
    let step_list = if args.steps {
        let steps = view.steps()?.into_iter().zip(metas).enumerate();
        Some(
            steps
                .map(|(index, (step, meta))| step_report(index, &step, meta))
                .collect(),
        )
    } else {
        None
    };
    let report = Report {
        summary: summary(&file)?,
        tool,
        input_sha256,
        format_version: arenite::FORMAT_VERSION,
        labels,
        signature: file.envelope().map(|envelope| Signature {
            key: format!("{:016x}", envelope.key),
            counter: envelope.counter,
        }),
        step_list,
    };
    if args.json {
        print_json(&report)?
    } else {
        print_out(&text(&report))?
    }
    Ok(Verdict::Good)
}

/// Returns the summary in the file's metadata, its signature's bytes included, and the stacks of its kernels.
///
/// # Errors
/// Errors of reading its metadata.
pub(super) fn summary(file: &ModelFile) -> Result<Summary> {
    let view = file.view()?;
    let mut summary = view.summary()?;
    summary.model_bytes += file.envelope().map_or(0, |_| sign::ENVELOPE_BYTES);
    if let Ok(steps) = view.steps() {
        tell_worst(&mut summary, view.target_name(), &steps, view.weights());
    }
    Ok(summary)
}

fn step_report(index: usize, step: &arenite::Step, meta: crate::metadata::StepMeta) -> StepReport {
    use arenite::{Access, Slot};
    let mut operands = Vec::new();
    step.operands(&mut |operand| {
        operands.push(OperandReport {
            access: match operand.access {
                Access::Read => "read",
                Access::Write => "write",
                Access::Update => "update",
                Access::Scratch => "scratch",
            },
            region: match operand.place.region {
                Slot::STATE => "state".to_string(),
                Slot::WEIGHTS => "weights".to_string(),
                Slot::ROLLED => "rolled".to_string(),
                region => format!("arena{region}"),
            },
            offset: operand.place.offset,
            bytes: operand.bytes,
        });
    });
    StepReport {
        index,
        name: meta.name,
        op: meta.kind,
        kernel: step.kernel().name(),
        macs: meta.macs,
        tensor: meta.completes.and_then(|tensor| tensor.names.into_iter().next()),
        operands,
    }
}

fn text(report: &Report) -> String {
    let s = &report.summary;
    let counts = |of: &std::collections::BTreeMap<String, usize>| {
        of.iter()
            .map(|(kind, n)| format!("{kind} {n}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut text = format!("{} ({}, target {}, {})\n", s.name, s.dialect, s.target, s.dtype);
    for (what, ports) in [("input", &s.inputs), ("output", &s.outputs)] {
        ports
            .iter()
            .for_each(|port| text += &format!("  {what:<11}{}\n", port_text(port)));
    }
    let proof = if s.plan_proven_optimal {
        "proven minimal for this order".to_string()
    } else {
        format!("lower bound {}", grouped(s.plan_lower_bound_bytes))
    };
    text += &format!("  parameters {}\n", grouped(s.params));
    text += &format!(
        "  MACs       {} for each element of the batch of {}\n",
        grouped(s.macs),
        s.batch
    );
    text += &format!("  steps      {} ({})\n", s.steps, counts(&s.ops_final));
    text += &format!("  arena      {} bytes, {proof}\n", grouped(s.arena_bytes));
    text += &s.cores_text();
    text += &s.accelerator_text();
    text += &format!("  state      {} bytes\n", grouped(s.state_bytes));
    text += &format!(
        "  model      {} bytes: {} weights, {} plan, format version {}\n",
        grouped(s.model_bytes),
        grouped(s.weights_bytes),
        grouped(s.plan_bytes),
        report.format_version
    );
    text += &s
        .stack_text()
        .map_or(String::new(), |stack| format!("  stack      {stack}\n"));
    if !s.pruned.is_empty() {
        text += &format!("  pruned     {}\n", counts(&s.pruned));
    }
    for a in &s.assumptions {
        text += &format!(
            "  assumed    {}={} for {} ({})\n",
            a.key, a.value, a.applies_to, a.reason
        );
    }
    if let Some(Signature { key, counter }) = &report.signature {
        text +=
            &format!("  signed by  the key {key}, counter {counter}; not verified: `arenite verify --trust KEYFILE`\n");
    }
    text += &format!(
        "  packed by  {} from an input of sha256 {}\n",
        report.tool, report.input_sha256
    );
    for step in report.step_list.iter().flatten() {
        let operands: Vec<String> = step
            .operands
            .iter()
            .filter(|o| o.bytes > 0)
            .map(|o| format!("{} {}@{}+{}", o.access, o.region, o.offset, o.bytes))
            .collect();
        let macs = grouped(step.macs);
        text += &format!("{:4} {:<20} {macs:>14} MACs  {}\n", step.index, step.kernel, step.name);
        text += &format!("     {}\n", operands.join(", "));
    }
    text
}

pub(super) fn port_text(port: &PortSummary) -> String {
    let quantised = match (port.scale, port.zero_point) {
        (Some(scale), Some(zero_point)) => format!(", scale {scale}, zero point {zero_point}"),
        _ => String::new(),
    };
    format!("{} {} {:?}{quantised}", one_line(&port.name), port.dtype, port.shape)
}
