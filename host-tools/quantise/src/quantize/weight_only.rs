//! `--dtype f32 --weight-bits`: which layers of a float network store their weights in fewer bits. Activations and arithmetic stay f32.

use std::collections::BTreeSet;

use super::form::is_depthwise;
use super::names;
use super::parameters;
use crate::error::{Error, Result};
use crate::graph::{DType, Graph, Layout, LowBits, Node, Op};
use crate::half::rounded_to_f16;
use crate::lower::low_bit::{bytes, exact, halves, squares};
use crate::report::WeightOnlyReport;
use crate::weights::Weights;

/// Request of a quantisation of weights alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightOnly {
    /// The form of the weights.
    pub bits: LowBits,
    /// Layers whose weights stay f32.
    pub keep_f32: Vec<String>,
}

/// Marks the layers of a network behind all passes, and says what rounding changes.
///
/// # Errors
/// A name that is not there; weights that are not finite; a network without a layer whose weights could be stored in fewer bits.
pub fn run(
    graph: &mut Graph,
    weights: &Weights,
    request: &WeightOnly,
    warnings: &mut Vec<String>,
) -> Result<WeightOnlyReport> {
    let kept = names::named(graph, &request.keep_f32, &|node| layer(graph, node).is_some())?;
    let mut report = WeightOnlyReport {
        bits: request.bits.bits,
        group: request.bits.group,
        ..WeightOnlyReport::default()
    };
    let mut all = [0.0; 2];
    let mut marked = Vec::new();
    for (node, kept) in graph.nodes.iter().zip(kept) {
        let Some([outputs, filter]) = layer(graph, node) else {
            continue;
        };
        if kept {
            report.kept_f32.push(node.name.clone());
            continue;
        }
        // Depthwise layers have few weights, and mind their rounding most; so do embeddings, of which a classifier may have the table as well.
        let bits = match request.bits {
            LowBits { bits: 4, .. } if is_depthwise(graph, node) || is_table(graph, node) => {
                LowBits { bits: 8, group: None }
            }
            bits => bits,
        };
        let id = node.inputs[1].ok_or_else(|| Error::internal("a layer without weights"))?;
        let values = parameters::values(graph, weights, id)?;
        let unfit = unfit(graph, node, [outputs, filter], bits).or_else(|| {
            let lost = bits.bits == 16 && halves(&values).is_none();
            lost.then(|| "a weight is beyond 65,504, the largest number of 16 bits".to_owned())
        });
        if let Some(reason) = unfit {
            warnings.push(format!(
                "--weight-bits {}: `{}` keeps f32 weights: {reason}",
                report.bits, node.name
            ));
            continue;
        }
        let found = squares(&values, filter, bits);
        all = [all[0] + found[0], all[1] + found[1]];
        let snr = 10.0 * (found[0] / found[1]).log10();
        if report.worst.as_ref().is_none_or(|(_, worst)| snr < *worst) && snr.is_finite() {
            report.worst = Some((node.name.clone(), (snr * 100.0).round() / 100.0));
        }
        marked.push((node.name.clone(), bits));
    }
    if marked.is_empty() {
        return Err(Error::unsupported(format!(
            "--weight-bits {}: the network has no f32 convolution or linear layer with weights to store in fewer bits",
            report.bits
        ))
        .help("leave it out"));
    }
    let snr = 10.0 * (all[0] / all[1]).log10();
    report.weights_snr_db = snr.is_finite().then(|| (snr * 100.0).round() / 100.0);
    report.layers = marked.len();
    graph.low_bits.extend(marked);
    Ok(report)
}

/// Marks the layers of a network behind all passes whose weights were numbers of 4 or 8 bits or halves in the file, and are still: they are stored as these.
/// Files that hold such weights have marked them.
///
/// # Errors
/// Weights that cannot be read.
pub fn keep_bytes(graph: &mut Graph, weights: &Weights) -> Result<()> {
    let in_file = std::mem::take(&mut graph.low_bits);
    if in_file.is_empty() {
        return Ok(());
    }
    let mut forms: BTreeSet<LowBits> = in_file.into_values().collect();
    // Numbers of four bits are some of eight; less a zero point they may need these.
    if forms.iter().any(|form| form.bits == 4) {
        forms.insert(LowBits { bits: 8, group: None });
    }
    let mut marked = Vec::new();
    for node in &graph.nodes {
        let Some([outputs, filter]) = layer(graph, node) else {
            continue;
        };
        let Some(id) = node.inputs[1] else { continue };
        let fit = |bits: &&LowBits| unfit(graph, node, [outputs, filter], **bits).is_none();
        let mut fitting = forms.iter().filter(fit).peekable();
        if fitting.peek().is_none() {
            continue;
        }
        let values = parameters::values(graph, weights, id)?;
        let holds = |bits: &&LowBits| match bits.bits {
            16 => values
                .iter()
                .all(|&weight| weight.is_finite() && rounded_to_f16(weight) == weight),
            _ => {
                let parts = values
                    .chunks(filter.max(1))
                    .flat_map(|of| of.chunks(bits.share(filter)));
                parts.into_iter().all(|part| exact(part, bits.bits).is_some())
            }
        };
        if let Some(&bits) = fitting.find(holds) {
            marked.push((node.name.clone(), bits));
        }
    }
    graph.low_bits.extend(marked);
    Ok(())
}

/// Whether rows of a node's weights are embeddings.
fn is_table(graph: &Graph, node: &Node) -> bool {
    let Some(weights) = node.inputs.get(1) else {
        return false;
    };
    let mut nodes = graph.nodes.iter();
    nodes.any(|other| other.op == Op::Embedding && other.inputs.get(1) == Some(weights))
}

/// Outputs of a layer of f32 with constant weights, and weights of each; rows of a table of embeddings, and their elements.
fn layer(graph: &Graph, node: &Node) -> Option<[usize; 2]> {
    let operand = |index: usize| node.inputs.get(index).copied().flatten().map(|id| graph.tensor(id));
    let w = operand(1).filter(|w| w.is_const() && w.dtype == DType::F32)?;
    let constant = operand(2).is_none_or(|bias| bias.is_const());
    let of = if node.op == Op::Embedding {
        DType::I32
    } else {
        DType::F32
    };
    let typed = operand(0).is_some_and(|x| x.dtype == of && !x.is_const());
    let own = match &node.op {
        Op::Conv2d(attrs) => attrs.layout == Layout::Nhwc,
        Op::Linear { .. } | Op::Embedding => true,
        _ => false,
    };
    let outputs = *w.shape.first()?;
    (own && typed && constant && w.elements() > 0).then(|| [outputs, w.elements() / outputs])
}

/// Why a layer keeps its weights.
fn unfit(graph: &Graph, node: &Node, [outputs, filter]: [usize; 2], bits: LowBits) -> Option<String> {
    if bits.bits == 16 && node.op == Op::Embedding {
        return Some("rows of a table have forms of 32 and 8 bits".to_owned());
    }
    if bytes(outputs, filter, bits) >= 4 * outputs * filter {
        return Some(format!("with their scales {filter} of an output would take no less"));
    }
    let x = node.inputs.first().copied().flatten().map(|id| graph.tensor(id))?;
    let rows = x.elements() / filter.max(1);
    let wide = [outputs, filter, rows]
        .into_iter()
        .find(|&extent| extent > usize::from(u16::MAX));
    match (&node.op, wide) {
        (Op::Linear { .. }, Some(extent)) => Some(format!("an extent of {extent} is more than 16 bits")),
        _ => None,
    }
}
