//! The backward half of TensorFlow's gradient tape with Keras' updates, in the order of the trace.

use std::collections::HashMap;

use super::live::{Backward, Operator, Value};
use crate::graph::{BinaryOp, Graph, Node, Op, ReduceKind, Role, TensorId};

/// Operators of gradients, by the last part of their names.
pub(super) const GRADIENTS: [&str; 12] = [
    "BiasAddGrad",
    "Conv2DBackpropFilter",
    "Conv2DBackpropInput",
    "FusedBatchNormGradV3",
    "MatMul",
    "MatMul_1",
    "MaxPoolGrad",
    "ReluGrad",
    "Slice_1",
    "Tile",
    "mul",
    "truediv",
];

/// Whether a name is the update of one parameter, by whatever optimiser.
pub(super) fn is_update(name: &str) -> bool {
    name.rsplit('/')
        .next()
        .is_some_and(|leaf| leaf.starts_with("ResourceApply"))
}

/// The number of a parameter in the name of its update or of its averaged gradient: that of `update_7` or `cond_7`, 0 without one.
fn number(name: &str) -> Option<usize> {
    name.split('/').find_map(|part| {
        let rest = part.strip_prefix("update").or_else(|| part.strip_prefix("cond"))?;
        if rest.is_empty() {
            return Some(0);
        }
        rest.strip_prefix('_')?.parse().ok()
    })
}

/// Whether a name is one gradient, averaged between workers.
pub(super) fn is_averaged(name: &str) -> bool {
    name.starts_with(AVERAGED) && name.contains("/output/")
}

/// How names of the tape begin.
pub(super) const TAPE: &str = "gradient_tape/";

const AVERAGED: &str = "DistributedGradientTape_Allreduce/cond";

/// The step; none of operators that are not of these networks.
pub(super) fn step(graph: &Graph) -> Option<Vec<Operator>> {
    let lines: HashMap<&str, usize> = graph
        .nodes
        .iter()
        .filter_map(|node| Some((node.name.as_str(), node.origin.line?)))
        .collect();
    let tape = graph.nodes.iter().find_map(|node| {
        let network = node.name.strip_suffix("/conv1_conv/Conv2D/Conv2DBackpropFilter")?;
        network.starts_with(TAPE).then_some(network)
    })?;
    let mut pass = Backward::new(graph, |_, node| node.origin.line.unwrap_or(0));
    let mut tape = Tape {
        lines,
        tape,
        sums: 0,
        last: pass.operators.iter().map(|operator| operator.place).max()?,
    };
    let logits = pass.root(*graph.outputs.first()?);
    let unscaled = Value::Unscaled(logits);
    let loss = graph.nodes.iter().find(|node| node.role == Role::Loss)?;
    let reads = vec![Value::Tensor(logits), Value::Labels(logits)];
    pass.push(loss.origin.line?, Vec::new(), (reads, vec![unscaled]));
    let gradient = pass.part(logits);
    tape.add(
        &mut pass,
        format!("{TAPE}{}/mul", loss.name.split('/').next()?),
        (vec![unscaled], vec![gradient]),
    );
    for node in pass.forward.clone().into_iter().rev() {
        tape.back(&mut pass, node)?;
    }
    tape.updates(&mut pass)?;
    Some(pass.operators)
}

/// Names of the tape, and where they stand.
struct Tape<'g> {
    lines: HashMap<&'g str, usize>,
    /// The first part of the names of the network's gradients.
    tape: &'g str,
    /// Sums of gradients so far.
    sums: usize,
    /// The place of the last operator so far: of one that the trace lacks.
    last: usize,
}

impl Tape<'_> {
    /// Adds an operator of this name at its place.
    fn add(&mut self, pass: &mut Backward<'_>, name: String, buffers: (Vec<Value>, Vec<Value>)) {
        let place = self.lines.get(name.as_str()).copied().unwrap_or(self.last);
        self.last = place;
        pass.push(place, vec![(name, "gradients")], buffers);
    }

    /// The gradients of an operator.
    fn back(&mut self, pass: &mut Backward<'_>, node: &Node) -> Option<()> {
        let (x, y) = (pass.operand(node)?, *node.outputs.first()?);
        if !pass.wants(y) {
            return Some(());
        }
        let dy = match pass.parts(y)[..] {
            [] => return None,
            [dy] => dy,
            ref parts => {
                let name = match self.sums {
                    0 => "AddN".to_string(),
                    n => format!("AddN_{n}"),
                };
                self.sums += 1;
                let sum = Value::Gradient(y);
                self.add(pass, name, (parts.to_vec(), vec![sum]));
                sum
            }
        };
        let own: Vec<Value> = pass.parameters(node).into_iter().map(Value::Gradient).collect();
        let layer = node
            .name
            .rsplit_once('/')
            .map_or(node.name.as_str(), |(layer, _)| layer);
        let of = |what: &str| format!("{}/{layer}/{what}", self.tape);
        let (tx, ty) = (Value::Tensor(x), Value::Tensor(y));
        match &node.op {
            Op::Binary {
                kind: BinaryOp::Add, ..
            } if own.is_empty() => {
                let operands = pass.activations(node);
                operands.into_iter().for_each(|id| pass.pass(id, dy));
            }
            Op::Binary {
                kind: BinaryOp::Add, ..
            } => {
                let name = of("BiasAdd/BiasAddGrad");
                self.add(pass, name, (vec![dy], own));
                pass.pass(x, dy);
            }
            Op::Conv2d(_) => {
                let [filter, input] = ["Conv2D/Conv2DBackpropFilter", "Conv2D/Conv2DBackpropInput"].map(of);
                self.add(pass, filter, (vec![dy, tx], own));
                self.input(pass, input, (x, vec![dy]));
            }
            Op::Linear { .. } => {
                let [input, weights] = ["MatMul", "MatMul_1"].map(of);
                self.input(pass, input, (x, vec![dy]));
                self.add(pass, weights, (vec![dy, tx], own));
            }
            Op::BatchNorm { .. } => {
                let name = of("FusedBatchNormGradV3");
                // Gain and shift; moving statistics have none.
                let mut writes = own[..2.min(own.len())].to_vec();
                writes.push(pass.part(x));
                self.add(pass, name, (vec![dy, tx, Value::Statistics(y)], writes));
            }
            Op::Unary(_) => {
                let name = of("ReluGrad");
                self.input(pass, name, (x, vec![dy, ty]));
            }
            Op::MaxPool2d(_) => {
                let name = of("MaxPool/MaxPoolGrad");
                self.input(pass, name, (x, vec![dy, tx, ty]));
            }
            Op::Pad { .. } => {
                let name = of("Slice_1");
                self.input(pass, name, (x, vec![dy]));
            }
            Op::Reduce {
                kind: ReduceKind::Mean, ..
            } => {
                let [tile, division] = ["Tile", "truediv"].map(of);
                let tiled = Value::Unscaled(x);
                self.add(pass, tile, (vec![dy], vec![tiled]));
                self.input(pass, division, (x, vec![tiled]));
            }
            _ => return None,
        }
        Some(())
    }

    /// An operator that writes the gradient of `x`, where one is wanted.
    fn input(&mut self, pass: &mut Backward<'_>, name: String, (x, reads): (TensorId, Vec<Value>)) {
        if pass.wants(x) {
            let dx = pass.part(x);
            self.add(pass, name, (reads, vec![dx]));
        }
    }

    /// The updates of all parameters, in Keras' order of layers, and what averages their gradients before.
    fn updates(&self, pass: &mut Backward<'_>) -> Option<()> {
        let graph = pass.graph;
        let mut parameters: Vec<((usize, usize, usize), usize, TensorId)> = Vec::new();
        for node in &pass.forward {
            let layer = node.name.rsplit_once('/')?.0;
            let own = pass.parameters(node);
            let trained = if matches!(node.op, Op::BatchNorm { .. }) {
                2
            } else {
                own.len()
            };
            let behind = usize::from(node.name.ends_with("BiasAdd"));
            let of_layer = own.into_iter().take(trained).enumerate();
            parameters.extend(of_layer.map(|(at, id)| (order(layer), behind + at, id)));
        }
        parameters.sort_by_key(|&(layer, at, _)| (layer, at));
        let outside = || graph.nodes.iter().filter(|node| node.role != Role::Forward);
        let numbered = |is_one: &dyn Fn(&str) -> bool| -> HashMap<usize, &str> {
            let names = outside().map(|node| node.name.as_str()).filter(|name| is_one(name));
            names.filter_map(|name| Some((number(name)?, name))).collect()
        };
        // A trace of gradients alone has neither.
        let stated = [
            (numbered(&is_update), "updates"),
            (numbered(&is_averaged), "allreduces"),
        ];
        for (index, (_, _, id)) in parameters.into_iter().enumerate() {
            let any = stated.iter().filter(|(names, _)| !names.is_empty());
            let missing = |kind: &str| format!("number {index} of the {kind}");
            let names: Vec<(String, &str)> = any
                .map(|(names, kind)| {
                    (
                        names
                            .get(&index)
                            .map_or_else(|| missing(kind), |name| (*name).to_string()),
                        *kind,
                    )
                })
                .collect();
            let last = names.iter().filter_map(|(name, _)| self.lines.get(name.as_str())).max();
            let place = last.copied().unwrap_or(self.last);
            if !names.is_empty() {
                pass.push(place, names, (vec![Value::Gradient(id)], Vec::new()));
            }
        }
        Some(())
    }
}

/// Layers of a block in Keras' order.
const OF_A_BLOCK: [&str; 8] = ["1_conv", "1_bn", "2_conv", "2_bn", "0_conv", "3_conv", "0_bn", "3_bn"];

/// Where a layer stands among Keras' own.
fn order(layer: &str) -> (usize, usize, usize) {
    let inside = layer.strip_prefix("conv").and_then(|rest| {
        let (stage, rest) = rest.split_once("_block")?;
        let (block, layer) = rest.split_once('_')?;
        let place = OF_A_BLOCK.iter().position(|name| *name == layer)?;
        Some((stage.parse().ok()?, block.parse().ok()?, place))
    });
    match (inside, layer) {
        (Some(place), _) => place,
        (None, "conv1_conv") => (1, 0, 0),
        (None, "conv1_bn") => (1, 0, 1),
        _ => (usize::MAX, 0, 0),
    }
}
