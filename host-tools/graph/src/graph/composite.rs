//! Functions of one number that a graph writes out in parts: operators element by element, of one operand and of constant numbers.

use arenite::ops::binary::{BinaryVisitor, Pairwise};
use arenite::ops::compare::Comparison;
use arenite::ops::pointwise::{Function, Pointwise, UnaryOp};
use arenite::quant::dequantize;

use super::{DType, Graph, Node, Op, Quant, TensorId, UnaryKind};

/// The most nodes of a composite.
const MOST: usize = 16;

/// Nodes that together compute a function of one tensor, element by element.
#[derive(Debug, Clone, PartialEq)]
pub struct Composite {
    /// The tensor.
    pub source: TensorId,
    /// The nodes, in the graph's order; the last one's result is the function's, all others' nobody else reads.
    pub nodes: Vec<usize>,
    /// Operations of the nodes.
    parts: Vec<Part>,
}

/// One node of a composite.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    op: Op,
    operands: Vec<Operand>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Operand {
    Source,
    /// The result of a part by its index.
    Part(usize),
    Number(f32),
}

/// Who writes and who reads each tensor.
pub struct Links {
    writers: Vec<Option<usize>>,
    /// Once for each operand.
    readers: Vec<Vec<usize>>,
}

impl Links {
    /// The links of all nodes.
    pub fn of(graph: &Graph) -> Self {
        let mut links = Self {
            writers: vec![None; graph.tensors.len()],
            readers: vec![Vec::new(); graph.tensors.len()],
        };
        for (index, node) in graph.nodes.iter().enumerate() {
            links.add(index, node);
        }
        links
    }

    /// The nodes that read a tensor, once for each operand; none of one that came later.
    pub fn readers(&self, id: TensorId) -> &[usize] {
        self.readers.get(id.0).map_or(&[], Vec::as_slice)
    }

    /// A node comes.
    pub fn add(&mut self, index: usize, node: &Node) {
        node.inputs
            .iter()
            .flatten()
            .for_each(|id| self.readers[id.0].push(index));
        node.outputs.iter().for_each(|id| self.writers[id.0] = Some(index));
    }

    /// It goes.
    pub fn remove(&mut self, index: usize, node: &Node) {
        let inputs = node.inputs.iter().flatten();
        inputs.for_each(|id| self.readers[id.0].retain(|reader| *reader != index));
        node.outputs.iter().for_each(|id| self.writers[id.0] = None);
    }
}

impl Composite {
    /// Those that end at the node, from the smallest to the largest. `number` is the value of a constant of one element.
    pub fn ending_at(graph: &Graph, links: &Links, end: usize, number: &dyn Fn(TensorId) -> Option<f32>) -> Vec<Self> {
        let mut found = Vec::new();
        let shape = |index: usize| Some(&graph.tensor(*graph.nodes[index].outputs.first()?).shape);
        let real = |id: TensorId| graph.tensor(id).dtype == DType::F32;
        let (Some(whole), true) = (shape(end), is_pointwise(graph, end)) else {
            return found;
        };
        if !graph.nodes[end].outputs.iter().all(|&id| real(id)) {
            return found;
        }
        let mut nodes = vec![end];
        loop {
            // Tensors that the nodes read and none of them writes.
            let mut open: Vec<TensorId> = Vec::new();
            for &id in nodes.iter().flat_map(|&node| graph.nodes[node].inputs.iter().flatten()) {
                let inner = links.writers[id.0].is_some_and(|writer| nodes.contains(&writer));
                if !inner && !open.contains(&id) && number(id).is_none() {
                    open.push(id);
                }
            }
            if let [source] = open[..]
                && graph.tensor(source).shape == *whole
                && real(source)
            {
                found.extend(Self::of(graph, &nodes, source, number));
            }
            // The last writer among them joins, where nobody else reads what it writes.
            let joins = |id: &TensorId| {
                let writer = links.writers[id.0]?;
                let own =
                    links.readers[id.0].iter().all(|reader| nodes.contains(reader)) && !graph.outputs.contains(id);
                (own && is_pointwise(graph, writer) && shape(writer) == Some(whole)).then_some(writer)
            };
            match open.iter().filter_map(joins).max() {
                Some(next) if nodes.len() < MOST => nodes.push(next),
                _ => return found,
            }
        }
    }

    fn of(graph: &Graph, nodes: &[usize], source: TensorId, number: &dyn Fn(TensorId) -> Option<f32>) -> Option<Self> {
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable();
        let part = |&index: &usize| {
            let node = &graph.nodes[index];
            let operand = |id: &TensorId| {
                if *id == source {
                    return Some(Operand::Source);
                }
                let writer = nodes
                    .iter()
                    .position(|&writer| graph.nodes[writer].outputs.contains(id));
                writer.map(Operand::Part).or_else(|| number(*id).map(Operand::Number))
            };
            Some(Part {
                op: node.op.clone(),
                operands: node.inputs.iter().flatten().map(operand).collect::<Option<_>>()?,
            })
        };
        let parts = nodes.iter().map(part).collect::<Option<_>>()?;
        Some(Self { source, nodes, parts })
    }

    /// Whether a comparison decides about the result.
    pub fn chooses(&self) -> bool {
        let compares = |part: &Part| matches!(part.op, Op::Compare { .. } | Op::Choose);
        self.parts.iter().any(compares)
    }

    /// The function of a number, in f32 as the network has it. Truth values are 0 and 1 on the way.
    pub fn apply(&self, x: f32) -> f32 {
        let mut results = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let operand = |index: usize| match part.operands[index] {
                Operand::Source => x,
                Operand::Part(part) => results[part],
                Operand::Number(number) => number,
            };
            let result = match part.op {
                Op::Unary(kind) => real(kind, operand(0)),
                Op::Binary { kind, activation } => {
                    let [min, max] = activation.bounds();
                    UnaryOp::Clamp { min, max }.apply(kind.visit(Call(operand(0), operand(1))))
                }
                Op::SpecialBinary { kind } => kind.visit(Call(operand(0), operand(1))),
                Op::Compare { kind } => f32::from(u8::from(holds(kind, operand(0), operand(1)))),
                Op::Choose if operand(0) != 0.0 => operand(1),
                Op::Choose => operand(2),
                _ => operand(0),
            };
            results.push(result);
        }
        results.pop().unwrap_or(x)
    }
}

/// Whether a node computes in f32, element by element; comparisons and choices of such numbers are of it.
fn is_pointwise(graph: &Graph, index: usize) -> bool {
    let node = &graph.nodes[index];
    let is_real = |id: &TensorId| graph.tensor(*id).dtype == DType::F32 && graph.tensor(*id).quant.is_none();
    let is_truth = |id: &TensorId| graph.tensor(*id).dtype == DType::Bool;
    let (inputs, outputs) = (node.inputs.iter().flatten(), node.outputs.iter());
    let typed = match node.op {
        Op::Unary(_) | Op::Binary { .. } | Op::SpecialBinary { .. } | Op::Identity => {
            inputs.chain(outputs).all(is_real)
        }
        Op::Compare { kind } => {
            let of = match kind {
                Comparison::And | Comparison::Or => inputs.into_iter().all(is_truth),
                _ => inputs.into_iter().all(is_real),
            };
            of && outputs.into_iter().all(is_truth)
        }
        Op::Choose => inputs.take(1).all(is_truth) && node.inputs.iter().flatten().skip(1).chain(outputs).all(is_real),
        _ => false,
    };
    typed && node.outputs.len() == 1
}

/// Whether a comparison holds.
fn holds(kind: Comparison, a: f32, b: f32) -> bool {
    match kind {
        Comparison::Equal => a == b,
        Comparison::NotEqual => a != b,
        Comparison::Less => a < b,
        Comparison::LessOrEqual => a <= b,
        Comparison::And => a != 0.0 && b != 0.0,
        Comparison::Or => a != 0.0 || b != 0.0,
    }
}

/// A function of real numbers.
pub fn real(kind: UnaryKind, x: f32) -> f32 {
    let clamped = |min, max| UnaryOp::Clamp { min, max }.apply(x);
    match kind {
        UnaryKind::Relu => clamped(0.0, f32::INFINITY),
        UnaryKind::Relu6 => clamped(0.0, 6.0),
        UnaryKind::ReluN1To1 => clamped(-1.0, 1.0),
        UnaryKind::Clamp { min, max } => clamped(min, max),
        UnaryKind::LeakyRelu { alpha } => UnaryOp::LeakyRelu { alpha }.apply(x),
        UnaryKind::Elu if x < 0.0 => f64::from(x).exp_m1() as f32,
        UnaryKind::Elu => x,
        UnaryKind::Function(Function::Basic(function)) => function.apply(x),
        UnaryKind::Function(Function::Special(function)) => function.apply(x),
    }
}

/// The operator that looks up what a function gives, of an operand and a result of these scales.
pub fn lookup(name: &'static str, function: &dyn Fn(f32) -> f32, from: &Quant, to: &Quant) -> Op {
    let (scale, zero) = (to.scale[0], to.zero_point[0]);
    let mut table = Box::new([0; 256]);
    for q in i8::MIN..=i8::MAX {
        let real = function(dequantize(q.into(), from.scale[0], from.zero_point[0]));
        // A NaN is stored as the zero point.
        let stored = ((real / scale).round_ties_even() as i32).saturating_add(zero);
        table[usize::from(q as u8)] = stored.clamp(-128, 127) as u8;
    }
    Op::Lookup { name, table }
}

/// Calls a function of two numbers.
pub struct Call(pub f32, pub f32);

impl BinaryVisitor for Call {
    type Output = f32;
    fn visit(self, f: impl Fn(f32, f32) -> f32) -> f32 {
        f(self.0, self.1)
    }
}
