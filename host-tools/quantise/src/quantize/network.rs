//! A float network with the ranges of its activations: plans for it, and how far from its answers they are.

use std::collections::BTreeMap;

use arenite::DType;

use super::activations::Activations;
use super::evaluate::Samples;
use super::form::{concerns, is_depthwise};
use super::groups::Groups;
use super::judge::{self, Judge, Squares};
use super::moments::{self, Windows};
use super::parameters::Layer;
use super::ports;
use super::range::Method;
use super::ranges::Ranges;
use super::rewrite::{self, Plan, Quants};
use super::rounding;
use super::wide::Wide;
use crate::error::Result;
use crate::graph::{Graph, LowBits, Node, Op};
use crate::weights::Weights;

/// Whether a node has weights and a bias that become integers.
pub(super) fn is_layer(graph: &Graph, node: &Node) -> bool {
    let weighted = matches!(
        node.op,
        Op::Conv2d(_) | Op::Linear { .. } | Op::LocallyConnected2d { .. }
    );
    weighted && concerns(graph, node)
}

/// Whether a layer's weights become four bits where they may: not those of depthwise and locally connected layers, and not where that would take no less.
pub(super) fn takes_four_bits(graph: &Graph, node: &Node, layer: &Layer, bits: LowBits) -> bool {
    let local = matches!(node.op, Op::LocallyConnected2d { .. });
    !local && !is_depthwise(graph, node) && layer.gains(bits)
}

/// All that a plan is made of.
pub(super) struct Network<'a> {
    pub(super) graph: &'a Graph,
    pub(super) weights: &'a Weights,
    pub(super) kept: &'a [bool],
    pub(super) groups: &'a Groups,
    pub(super) ranges: &'a Ranges,
    pub(super) threads: usize,
    pub(super) activations: Activations,
    pub(super) low_bits: Option<LowBits>,
    pub(super) float_ports: [bool; 2],
    /// Normalisations in int16.
    pub(super) wide: Option<&'a Wide>,
    /// Multiply-accumulates that a search may take.
    pub(super) spend: u64,
}

impl Network<'_> {
    /// The plan for a method of each group, every weight at its nearest integer; with a fold, from the other samples.
    pub(super) fn plan(&self, choice: &[Method], fold: Option<usize>) -> Result<Plan> {
        let quant = self.ranges.quant(self.graph, self.groups, choice, fold)?;
        let kind = |&kept: &bool| (!kept).then_some(self.activations);
        let mut nodes: Vec<_> = self.kept.iter().map(kind).collect();
        let mut quants = Quants::from([(self.activations, quant)]);
        if let Some(wide) = self.wide {
            let own = nodes.iter_mut().zip(&wide.nodes).filter(|(_, own)| **own);
            own.for_each(|(node, _)| *node = Some(Activations::Int16));
            quants.insert(Activations::Int16, wide.quant.clone());
        }
        self.of(nodes, quants, &|_| self.low_bits)
    }

    /// The plan with such integers in each node, every weight at its nearest; layers have four bits where `bits` says how and that takes less.
    pub(super) fn of(
        &self,
        nodes: Vec<Option<Activations>>,
        quant: Quants,
        bits: &dyn Fn(usize) -> Option<LowBits>,
    ) -> Result<Plan> {
        let mut plan = Plan {
            nodes,
            ports: self.activations,
            quant,
            layers: BTreeMap::new(),
        };
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let Some(kind) = plan.nodes[index].filter(|_| is_layer(self.graph, node)) else {
                continue;
            };
            let layer = Layer::of(self.graph, self.weights, &node.inputs)?;
            let bits = bits(index).filter(|&bits| takes_four_bits(self.graph, node, &layer, bits));
            let ends = [plan.input_scale(index, node), plan.output_scale(index, node)];
            let stored = layer.stored(ends, &node.name, kind, bits)?;
            plan.layers.insert(index, stored);
        }
        Ok(plan)
    }

    /// The network of a plan, as its caller has it.
    pub(super) fn made(&self, plan: &Plan) -> Result<Graph> {
        let mut graph = rewrite::run(self.graph, self.weights, plan)?;
        let [input, output] = self.float_ports.map(|float| float.then_some(DType::F32));
        ports::retype(&mut graph, input, output, None)?;
        Ok(graph)
    }

    /// Noise over signal of the answers to all judging samples.
    pub(super) fn noise(&self, plan: &Plan, judge: &Judge) -> Result<f64> {
        let graph = self.made(plan)?;
        let mut squares = Squares::new();
        for fold in 0..judge.folds() {
            judge::add(&mut squares, judge.squares(fold, &graph, self.weights, self.threads)?);
        }
        Ok(judge::noise(&squares))
    }

    /// The same of a choice and by sample, where no sample judges what it has calibrated itself.
    pub(super) fn cross_noise(&self, choice: &[Method], judge: &Judge) -> Result<Vec<f64>> {
        let mut squares = Squares::new();
        for fold in 0..judge.folds() {
            let graph = self.made(&self.plan(choice, Some(fold))?)?;
            judge::add(&mut squares, judge.squares(fold, &graph, self.weights, self.threads)?);
        }
        Ok(judge::of_each(&squares))
    }

    /// The plan with biases that take up what rounded weights add on average, and, where it is wanted, weights rounded for their layer's output.
    pub(super) fn refined(
        &self,
        plan: &Plan,
        samples: &Samples,
        optimise: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Plan> {
        let graph = rewrite::run(self.graph, self.weights, plan)?;
        // Conversions have come between the nodes: layers keep their names.
        let places: BTreeMap<&str, usize> = graph
            .nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (node.name.as_str(), index))
            .collect();
        let place = |index: usize| places.get(self.graph.nodes[index].name.as_str()).copied();
        let layers: Vec<usize> = plan.layers.keys().filter_map(|&index| place(index)).collect();
        let moments = moments::collect(&graph, &layers, self.weights, samples, self.threads, optimise, progress)?;
        let mut refined = BTreeMap::new();
        for (&index, stored) in &plan.layers {
            let node = &self.graph.nodes[index];
            let mut stored = stored.clone();
            let found =
                place(index).and_then(|place| Some((moments.get(&place)?, Windows::of(&graph, &graph.nodes[place])?)));
            if let Some((moments, windows)) = found {
                let layer = Layer::of(self.graph, self.weights, &node.inputs)?;
                let input = plan.input_scale(index, node);
                if let Some(weights) = optimise
                    .then(|| rounding::optimised(&layer, &stored, moments, windows.groups, self.threads))
                    .flatten()
                {
                    stored.weights = weights;
                }
                let bias = rounding::corrected_bias(&layer, &stored, moments, windows.groups, input);
                let kind = plan.nodes[index].unwrap_or(self.activations);
                stored.bias = layer.stored_bias(input, &stored.scales, &bias, kind);
            }
            refined.insert(index, stored);
        }
        Ok(Plan {
            layers: refined,
            ..plan.clone()
        })
    }
}
