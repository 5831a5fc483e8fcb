//! Inputs whose columns have unlike units, of which one scale loses most. Each column gets a scale of its own: a step in f32 in front of the first layers
//! takes its mean away and divides it by its deviation, and their weights and biases take both back. In real numbers nothing changes.

use super::activations::Activations;
use super::context::Context;
use super::equalise::{constant, replace};
use super::evaluate::{Evaluator, floats};
use super::form::is_real;
use super::parameters::Layer;
use crate::error::Result;
use crate::graph::{Activation, BinaryOp, Graph, Layout, Node, Op, Padding2d, Tensor, TensorId};
use crate::weights::Weights;

/// A column that spans fewer steps of the input's one scale has less than four bits.
const STEPS: f64 = 16.0;

/// One column in so many must have fewer for the network to be tried with scales of their own.
const ONE_IN: usize = 4;

/// A network whose columns have scales of their own.
pub(super) struct Own {
    pub(super) graph: Graph,
    /// Of each node, whether it stays in f32: those that did, and all in front of the first layers.
    pub(super) kept: Vec<bool>,
    /// The inputs that have such columns.
    pub(super) inputs: Vec<TensorId>,
}

impl Own {
    /// The context of this network: its inputs come in f32.
    pub(super) fn context<'a>(&'a self, plain: Context<'a>) -> Context<'a> {
        Context {
            kept: &self.kept,
            float_ports: [true, plain.float_ports[1]],
            ..plain
        }
    }

    /// The warning of a caller who has not asked for inputs in f32.
    pub(super) fn told(&self) -> String {
        let names: Vec<String> = self
            .inputs
            .iter()
            .map(|&id| format!("`{}`", self.graph.tensor(id).name))
            .collect();
        format!(
            "--calibrate: the columns of {} have unlike units, of which one scale would lose most: each has a scale of its own, and the network's \
             inputs are f32 for it; --input-dtype f32 says so without this warning, --input-dtype int8 keeps one scale",
            names.join(", ")
        )
    }
}

/// The share of the noise that must be left for the scales to be taken: half of it, where inputs become f32 for them.
pub(super) fn enough([float_inputs, _]: [bool; 2]) -> f64 {
    if float_inputs { 1.0 } else { 0.5 }
}

/// The way from an input to the layers that read it first.
struct Way {
    input: TensorId,
    /// Nodes that move its elements.
    moves: Vec<usize>,
    /// The tensor that gets the scales: its last axis is the columns.
    read: TensorId,
    /// The nodes that read it: the layers, or one that puts zeros around it for them.
    readers: Vec<usize>,
    layers: Vec<usize>,
    /// Whether nothing adds zeros around it, so that a mean may be taken away.
    whole: bool,
}

/// The network with such steps; none where no input's columns are unlike.
///
/// # Errors
/// Weights that are not there, samples that cannot be run.
pub(super) fn run(graph: &Graph, context: &Context<'_>) -> Result<Option<Own>> {
    let &Context { weights, kept, .. } = context;
    let ways: Vec<Way> = graph
        .inputs
        .iter()
        .filter(|&&id| is_real(graph, id))
        .filter_map(|&id| way(graph, kept, id))
        .collect();
    if ways.is_empty() {
        return Ok(None);
    }
    let mut own = Own {
        graph: graph.clone(),
        kept: kept.to_vec(),
        inputs: Vec::new(),
    };
    // Nodes go in from the back, so that places in front stay.
    let mut steps = Vec::new();
    for (way, columns) in ways.iter().zip(columns(graph, context, &ways)?) {
        if !unlike(&columns, context.activations) {
            continue;
        }
        let (means, deviations) = of_all(&columns, way.whole);
        for &index in &way.layers {
            fold(&mut own.graph, weights, index, &means, &deviations)?;
        }
        let made = added(&mut own.graph, way, &means, &deviations);
        let first = way.readers.iter().min().copied().unwrap_or(0);
        steps.push((first, made));
        way.moves.iter().for_each(|&index| own.kept[index] = true);
        own.inputs.push(way.input);
    }
    steps.sort_by_key(|(first, _)| *first);
    for (first, made) in steps.into_iter().rev() {
        for node in made.into_iter().rev() {
            own.graph.nodes.insert(first, node);
            own.kept.insert(first, true);
        }
    }
    Ok((!own.inputs.is_empty()).then_some(own))
}

/// The way from an input to layers that alone read it, behind whatever moves its elements one by one.
fn way(graph: &Graph, kept: &[bool], input: TensorId) -> Option<Way> {
    let readers = |id: TensorId| -> Option<Vec<usize>> {
        let reads = |index: &usize| graph.nodes[*index].inputs.contains(&Some(id));
        let found: Vec<usize> = (0..graph.nodes.len()).filter(reads).collect();
        (!found.is_empty() && !graph.outputs.contains(&id)).then_some(found)
    };
    let (mut read, mut moves) = (input, Vec::new());
    let mut all = readers(read)?;
    while let &[only] = &all[..]
        && matches!(graph.nodes[only].op, Op::Reshape | Op::Transpose { .. } | Op::Identity)
    {
        moves.push(only);
        read = graph.nodes[only].outputs[0];
        all = readers(read)?;
    }
    let mut way = Way {
        input,
        moves,
        read,
        readers: all.clone(),
        layers: all,
        whole: true,
    };
    let mut padded = read;
    if let &[only] = &way.layers[..]
        && matches!(&graph.nodes[only].op, Op::Pad { value, .. } if *value == 0.0)
    {
        padded = graph.nodes[only].outputs[0];
        way.layers = readers(padded)?;
        way.whole = false;
    }
    let channels = *graph.tensor(read).shape.last()?;
    let takes = |&index: &usize| !kept[index] && takes(graph, &graph.nodes[index], padded, channels);
    let whole = |&index: &usize| match &graph.nodes[index].op {
        Op::Conv2d(attrs) => attrs.padding == Padding2d::default(),
        _ => true,
    };
    way.whole &= way.layers.iter().all(whole);
    (channels > 1 && way.layers.iter().all(takes)).then_some(way)
}

/// Whether a node is a layer with constant weights for each column of its first operand.
fn takes(graph: &Graph, node: &Node, read: TensorId, channels: usize) -> bool {
    let shape = |operand: usize| {
        let id = node.inputs.get(operand).copied().flatten();
        id.filter(|&id| graph.tensor(id).is_const())
            .map(|id| &graph.tensor(id).shape)
    };
    let constants = (1..node.inputs.len()).all(|operand| node.inputs[operand].is_none() || shape(operand).is_some());
    let own = match &node.op {
        Op::Conv2d(attrs) => attrs.layout == Layout::Nhwc && attrs.groups == 1,
        Op::Linear { .. } => true,
        _ => false,
    };
    own && constants
        && node.inputs.len() <= 3
        && node.inputs[0] == Some(read)
        && shape(1).is_some_and(|weights| weights.last() == Some(&channels))
}

/// Figures that are kept of a column.
#[derive(Clone, Copy)]
struct Column {
    low: f64,
    high: f64,
    count: f64,
    sum: f64,
    squares: f64,
}

impl Column {
    const NONE: Self = Self {
        low: f64::INFINITY,
        high: f64::NEG_INFINITY,
        count: 0.0,
        sum: 0.0,
        squares: 0.0,
    };

    fn and(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            count: self.count + other.count,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        }
    }

    fn span(&self) -> f64 {
        self.high - self.low
    }

    fn mean(&self) -> f64 {
        self.sum / self.count.max(1.0)
    }

    /// The root of the mean square of what it is beside `from`.
    fn deviation(&self, from: f64) -> f64 {
        let square = self.squares / self.count.max(1.0) - self.mean() * self.mean();
        (square.max(0.0) + (self.mean() - from).powi(2)).sqrt()
    }
}

/// The columns of what each way's layers read.
fn columns(graph: &Graph, context: &Context<'_>, ways: &[Way]) -> Result<Vec<Vec<Column>>> {
    let wanted = |id: TensorId| ways.iter().position(|way| way.read == id);
    let channels = |way: &Way| graph.tensor(way.read).shape.last().copied().unwrap_or(1);
    let none = || -> Vec<Vec<Column>> { ways.iter().map(|way| vec![Column::NONE; channels(way)]).collect() };
    let parts = Evaluator::new(graph, context.weights, context.threads, |id| wanted(id).is_some())?.each(
        context.samples,
        none,
        |all, seen| {
            if let Some(way) = wanted(seen.tensor) {
                let columns = &mut all[way];
                let count = columns.len();
                for (at, value) in floats(seen.bytes).map(f64::from).enumerate() {
                    columns[at % count] = columns[at % count].and(Column {
                        low: value,
                        high: value,
                        count: 1.0,
                        sum: value,
                        squares: value * value,
                    });
                }
            }
            Ok(())
        },
        &mut |_| {},
    )?;
    Ok(parts.into_iter().fold(none(), |all, part| {
        let each = all.into_iter().zip(part);
        each.map(|(all, part)| all.into_iter().zip(part).map(|(all, part)| all.and(part)).collect())
            .collect()
    }))
}

/// Whether one scale has few steps for many of the columns.
fn unlike(columns: &[Column], activations: Activations) -> bool {
    let low = columns.iter().fold(0.0_f64, |low, column| low.min(column.low));
    let high = columns.iter().fold(0.0_f64, |high, column| high.max(column.high));
    let step = activations.step([low, high]);
    let varying: Vec<f64> = columns.iter().map(Column::span).filter(|&span| span > 0.0).collect();
    let few = varying.iter().filter(|&&span| span < STEPS * step).count();
    step.is_finite() && few > 0 && few * ONE_IN >= varying.len()
}

/// The mean, or zero, and the deviation of each column. One that never changes gets the largest, which says least of it.
fn of_all(columns: &[Column], whole: bool) -> (Vec<f32>, Vec<f32>) {
    let means: Vec<f32> = columns
        .iter()
        .map(|column| if whole { column.mean() as f32 } else { 0.0 })
        .collect();
    let own = |(column, &mean): (&Column, &f32)| {
        if column.span() > 0.0 {
            column.deviation(f64::from(mean))
        } else {
            0.0
        }
    };
    let own: Vec<f64> = columns.iter().zip(&means).map(own).collect();
    let largest = own.iter().fold(0.0_f64, |most, &deviation| most.max(deviation));
    let deviation = |own: f64| {
        let usable = own > f64::from(f32::MIN_POSITIVE) && own.recip() < f64::from(f32::MAX);
        if usable { own as f32 } else { largest as f32 }
    };
    (means, own.into_iter().map(deviation).collect())
}

/// A layer takes back what the step in front of it does: `W (x - mean) / deviation`.
fn fold(graph: &mut Graph, weights: &Weights, index: usize, means: &[f32], deviations: &[f32]) -> Result<()> {
    let mut layer = Layer::of(graph, weights, &graph.nodes[index].inputs)?;
    let channels = means.len();
    for (row, bias) in layer.weights.chunks_mut(layer.inputs.max(1)).zip(&mut layer.bias) {
        let mut sum = f64::from(*bias);
        for (at, weight) in row.iter_mut().enumerate() {
            sum += f64::from(*weight) * f64::from(means[at % channels]);
            *weight *= deviations[at % channels];
        }
        *bias = sum as f32;
    }
    replace(graph, index, &layer);
    Ok(())
}

/// The steps in front of the layers, which read the last one's result from now on.
fn added(graph: &mut Graph, way: &Way, means: &[f32], deviations: &[f32]) -> Vec<Node> {
    let source = graph.tensor(way.read).clone();
    let mut shape = vec![1; source.shape.len()];
    if let Some(last) = shape.last_mut() {
        *last = means.len();
    }
    let origin = graph.nodes[way.layers[0]].origin.clone();
    let role = graph.nodes[way.layers[0]].role;
    let factors: Vec<f32> = deviations.iter().map(|deviation| 1.0 / deviation).collect();
    let changes = means.iter().any(|&mean| mean != 0.0);
    let subtract = changes.then_some((BinaryOp::Sub, "less its means", means));
    let steps = subtract.into_iter().chain([(BinaryOp::Mul, "by column", &factors[..])]);
    let (mut nodes, mut last) = (Vec::new(), way.read);
    for (kind, what, values) in steps {
        let name = format!("{} ({what})", source.name);
        let operand = constant(graph, format!("{name}: values"), &shape, values);
        let result = graph.add_tensor(Tensor {
            name: name.clone(),
            ..Tensor::activation(name.clone(), &source.shape, source.dtype)
        });
        nodes.push(Node {
            name,
            kind: "Columns".into(),
            op: Op::Binary {
                kind,
                activation: Activation::None,
            },
            inputs: vec![Some(last), Some(operand)],
            outputs: vec![result],
            role,
            origin: origin.clone(),
        });
        last = result;
    }
    for &index in &way.readers {
        graph.nodes[index].inputs[0] = Some(last);
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[f64]) -> Column {
        let one = |&value: &f64| Column {
            low: value,
            high: value,
            count: 1.0,
            sum: value,
            squares: value * value,
        };
        values.iter().map(one).fold(Column::NONE, Column::and)
    }

    #[test]
    fn columns_of_one_unit_are_alike() {
        let like = [column(&[-1.0, 0.5]), column(&[0.2, 0.9]), column(&[-0.3, 0.1])];
        assert!(!unlike(&like, Activations::Int8));
        let unlike_ones = [column(&[-300.0, 250.0]), column(&[0.2, 0.9]), column(&[5.0, 5.0])];
        assert!(unlike(&unlike_ones, Activations::Int8));
        assert!(!unlike(&unlike_ones, Activations::Int16));
    }

    #[test]
    fn means_and_deviations_are_of_each_column() {
        let columns = [column(&[2.0, 6.0]), column(&[5.0, 5.0]), column(&[-100.0, 100.0])];
        assert_eq!(of_all(&columns, true), (vec![4.0, 5.0, 0.0], vec![2.0, 100.0, 100.0]));
        let (means, deviations) = of_all(&columns, false);
        assert_eq!(means, [0.0; 3]);
        assert_eq!(deviations, [20.0_f32.sqrt(), 100.0, 100.0]);
    }
}
