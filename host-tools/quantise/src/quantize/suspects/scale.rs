//! Inputs of which one scale loses most: columns of unlike units, values that a logarithm follows, bytes where the network takes fractions.

use crate::error::Result;
use crate::graph::{Graph, Node, Op, TensorId, UnaryKind, facts};
use crate::weights::Weights;

use super::super::activations::Activations;
use super::super::form::is_real;
use super::super::parameters::Layer;
use super::numbers::{LISTED, Numbers};

/// A column that spans fewer steps of the input's scale has lost its values.
const STEPS: f64 = 2.0;

/// More columns are pixels rather than quantities.
const MOST_COLUMNS: usize = 512;

/// One column in so many must be lost for a warning: the rare ink at a picture's edge is no quantity.
const ONE_IN: usize = 4;

/// Values below so many steps have a logarithm that rounding changes by more than an eighth.
const FINE_STEPS: f64 = 4.0;

/// The share of such values that is told.
const COARSE_SHARE: f64 = 0.05;

/// Layers between an input and a logarithm that are followed.
const DEEPEST: usize = 4;

/// The usual size of the first layer's results is about one; beyond this the input has another scaling than the weights.
const LARGE: f64 = 20.0;

/// Layers that become integers, and their number format.
pub(in crate::quantize) struct Integers<'a> {
    pub(in crate::quantize) activations: Activations,
    /// Of each layer, whether it stays in f32.
    pub(in crate::quantize) kept: &'a [bool],
    /// Whether inputs come in f32, and layers in f32 have them as they are.
    pub(in crate::quantize) float_inputs: bool,
    /// Whether the caller has said that inputs are integers.
    pub(in crate::quantize) integer_inputs: bool,
    /// Inputs whose columns have scales of their own.
    pub(in crate::quantize) by_column: &'a [TensorId],
}

impl Integers<'_> {
    /// Whether these layers have an input as it is.
    fn are_in_f32(&self, graph: &Graph, layers: &[&Node]) -> bool {
        let kept = |node: &&Node| {
            let at = graph.nodes.iter().position(|other| std::ptr::eq(other, *node));
            at.and_then(|at| self.kept.get(at)).is_some_and(|kept| *kept)
        };
        self.float_inputs && layers.iter().all(kept)
    }
}

/// The least and the greatest of each column, by axis.
pub(super) struct Columns {
    shape: Vec<usize>,
    /// By axis, from the first that counts no samples.
    ends: Vec<Vec<[f32; 2]>>,
}

impl Columns {
    /// Of an input of rows: `[1, columns]`, `[1, rows, columns]` or `[1, columns, rows]`.
    pub(super) fn of(shape: &[usize]) -> Option<Self> {
        let columns = shape.get(1..)?;
        if !(1..=2).contains(&columns.len()) || columns.iter().all(|n| !(2..=MOST_COLUMNS).contains(n)) {
            return None;
        }
        let none = [f32::INFINITY, f32::NEG_INFINITY];
        Some(Self {
            shape: shape.to_vec(),
            ends: columns.iter().map(|&n| vec![none; n]).collect(),
        })
    }

    /// Takes a sample's values.
    pub(super) fn add(&mut self, values: &[f32]) {
        for (at, &value) in values.iter().enumerate() {
            let mut rest = at;
            for (ends, &extent) in self.ends.iter_mut().zip(&self.shape[1..]).rev() {
                let [low, high] = &mut ends[rest % extent];
                (*low, *high) = (low.min(value), high.max(value));
                rest /= extent;
            }
        }
    }

    /// The warning about columns that the input's one scale loses.
    pub(super) fn lost(&self, graph: &Graph, input: TensorId, range: [f32; 2], of: &Integers<'_>) -> Option<String> {
        let step = step(range, of.activations);
        let readers = readers(graph, input);
        if of.are_in_f32(graph, &readers) || of.by_column.contains(&input) {
            return None;
        }
        let of_axis = |ends: &[[f32; 2]]| {
            let spans: Vec<(usize, f64)> = ends
                .iter()
                .map(|[low, high]| f64::from(*high) - f64::from(*low))
                .enumerate()
                .filter(|(_, span)| *span > 0.0)
                .collect();
            let lost: Vec<usize> = spans
                .iter()
                .filter(|(_, span)| *span < STEPS * step)
                .map(|(at, _)| *at)
                .collect();
            (lost, spans.len())
        };
        let axes = self
            .ends
            .iter()
            .enumerate()
            .filter(|(_, ends)| (2..=MOST_COLUMNS).contains(&ends.len()));
        let found = axes.map(|(axis, ends)| (axis + 1, of_axis(ends)));
        let (axis, (lost, varying)) = found.max_by_key(|(_, (lost, _))| lost.len())?;
        if lost.is_empty() || lost.len() * ONE_IN < varying {
            return None;
        }
        let name = &graph.tensor(input).name;
        let numbers: Vec<String> = lost.iter().take(LISTED).map(ToString::to_string).collect();
        let more = if lost.len() > LISTED { ", …" } else { "" };
        let remedy = if of.integer_inputs {
            "leave --input-dtype out, so that each column may have a scale of its own".into()
        } else {
            format!("give it in f32: {}", in_f32(&readers))
        };
        Some(format!(
            "--calibrate: `{name}` has one scale, whose step is {step:.3}: {} of its {varying} columns along axis {axis} \
             span less than two steps ({}{more}) and are lost; divide \
             each column by what it spans before the network is trained, or {remedy}",
            lost.len(),
            numbers.join(", "),
        ))
    }
}

/// The warning about an input whose logarithm one scale cannot give.
pub(super) fn logarithm(graph: &Graph, input: TensorId, numbers: &Numbers, of: &Integers<'_>) -> Option<String> {
    let path = to_logarithm(graph, input).filter(|path| !of.are_in_f32(graph, path))?;
    let step = step(numbers.ends(), of.activations);
    let share = numbers.share_below((FINE_STEPS * step) as f32);
    if share <= COARSE_SHARE {
        return None;
    }
    let name = &graph.tensor(input).name;
    let last = path.last()?;
    Some(format!(
        "--calibrate: `{name}` goes into {}, and {:.0} % of its values are below four steps ({step:.3}) of its one scale: \
         their logarithms are lost; give it in f32: {}",
        facts::described(graph, last),
        100.0 * share,
        in_f32(&path)
    ))
}

/// Whether the network's first layers take much smaller values than these: their results would be far beyond their biases, and beyond what networks
/// compute with.
///
/// # Errors
/// Weights that are not there.
pub(super) fn expects_less(graph: &Graph, weights: &Weights, input: TensorId, rms: f64) -> Result<bool> {
    let readers = readers(graph, input);
    if readers.is_empty()
        || !readers
            .iter()
            .all(|node| matches!(node.op, Op::Conv2d(_) | Op::Linear { .. }))
    {
        return Ok(false);
    }
    for node in readers {
        if node
            .inputs
            .iter()
            .flatten()
            .skip(1)
            .any(|&id| !graph.tensor(id).is_const())
        {
            return Ok(false);
        }
        let layer = Layer::of(graph, weights, &node.inputs)?;
        let norm = |row: &[f32]| {
            row.iter()
                .map(|&weight| f64::from(weight) * f64::from(weight))
                .sum::<f64>()
                .sqrt()
        };
        let mut results: Vec<f64> = layer
            .weights
            .chunks(layer.inputs.max(1))
            .map(|row| rms * norm(row))
            .collect();
        let mut biases: Vec<f64> = layer.bias.iter().map(|&bias| f64::from(bias).abs()).collect();
        let (result, bias) = (median(&mut results), median(&mut biases));
        if result < LARGE.max(LARGE * bias) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The warning about bytes where the network takes fractions.
pub(super) fn unscaled_bytes(name: &str) -> String {
    format!(
        "--calibrate: all values of `{name}` are whole numbers from 0 to 255, as those of pictures that were not scaled, and its \
         first layer takes far smaller ones: divide them as in training (by 255, say), or let the device take bytes: --preprocess 'u8 scale=0.00392157'"
    )
}

/// The step of the scale that holds a range and zero.
fn step([low, high]: [f32; 2], activations: Activations) -> f64 {
    activations.step([f64::from(low.min(0.0)), f64::from(high.max(0.0))])
}

/// The options that leave an input and these layers in f32.
fn in_f32(layers: &[&Node]) -> String {
    let kept: Vec<String> = layers
        .iter()
        .map(|node| format!(" --keep-f32 '{}'", node.name))
        .collect();
    format!("--input-dtype f32{}", kept.concat())
}

/// The layers that read a tensor, behind whatever only moves its elements, with these movements.
fn readers(graph: &Graph, tensor: TensorId) -> Vec<&Node> {
    let mut found = Vec::new();
    let reads = graph.nodes.iter().filter(|node| node.inputs.contains(&Some(tensor)));
    for node in reads {
        if moves(&node.op) {
            node.outputs.iter().for_each(|&id| found.extend(readers(graph, id)));
        } else {
            found.push(node);
        }
    }
    found
}

fn moves(op: &Op) -> bool {
    matches!(
        op,
        Op::Reshape | Op::Transpose { .. } | Op::Identity | Op::Pad { .. } | Op::Slice { .. }
    )
}

/// The layers from a tensor to a logarithm, that one included, behind layers of one activation that keep the sizes of values apart.
fn to_logarithm(graph: &Graph, tensor: TensorId) -> Option<Vec<&Node>> {
    fn from(graph: &Graph, tensor: TensorId, depth: usize) -> Option<Vec<&Node>> {
        let reads = graph.nodes.iter().filter(|node| node.inputs.contains(&Some(tensor)));
        for node in reads {
            if node.op == Op::Unary(UnaryKind::LOG) {
                return Some(vec![node]);
            }
            let keeps = moves(&node.op)
                || matches!(
                    node.op,
                    Op::Affine | Op::Unary(UnaryKind::Relu | UnaryKind::ABS | UnaryKind::Clamp { .. })
                )
                || matches!(node.op, Op::Binary { .. })
                    && node.inputs.iter().flatten().filter(|&&id| is_real(graph, id)).count() == 1;
            if !keeps || depth == 0 {
                continue;
            }
            for &output in &node.outputs {
                if let Some(mut path) = from(graph, output, depth - 1) {
                    path.insert(0, node);
                    return Some(path);
                }
            }
        }
        None
    }
    from(graph, tensor, DEEPEST)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
