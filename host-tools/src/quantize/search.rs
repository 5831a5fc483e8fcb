//! Which range each group of activations gets: the one of several with which the whole network's answers are nearest to the float network's.

use std::collections::BTreeMap;

use super::activations::Activations;
use super::context::Context;
use super::evaluate::{Samples, floats};
use super::form::{Form, concerns, form, is_depthwise, is_real};
use super::grid::Grid;
use super::groups::Groups;
use super::judge::{self, Judge, Squares};
use super::moments::{self, Windows};
use super::parameters::{self, Layer};
use super::range::{self, Method};
use super::rewrite::{self, Plan, ends};
use super::rounding;
use super::statistics::{self, Parts, Values};
use crate::error::Result;
use crate::graph::{Graph, LowBits, Op, Quant, TensorId, facts};
use crate::report::Quantization;
use crate::weights::Weights;

/// Multiply-accumulates that the search may spend.
const MACS: u64 = 1 << 33;

/// At most so many samples of a fold judge.
const JUDGES: u64 = 8;

/// Runs of all judging samples without which nothing is chosen: every method for three forms of the network, and as much for its groups.
const RUNS: u64 = 4 * Method::ALL.len() as u64;

/// What the noise must fall to for a group to get another method than the others.
const NEARER: f64 = 0.99;

/// By how much the noise of the few samples that judge may grow where each layer by itself is nearer.
const TOLERATED: f64 = 1.1;

/// A range for each method.
type Candidates = [[f64; 2]; Method::ALL.len()];

/// The ranges that each group may have, by method.
pub(super) struct Ranges {
    /// From all samples.
    candidates: Vec<Candidates>,
    /// From all samples but those of a fold.
    without: Vec<Vec<Candidates>>,
    /// Groups that keep all values: the network's inputs, whose noise nothing takes back.
    whole: Vec<bool>,
    /// Activations that are zero for every sample.
    pub(super) zero: Vec<String>,
    activations: Activations,
}

impl Ranges {
    pub(super) fn of(
        graph: &Graph,
        context: &Context<'_>,
        groups: &Groups,
        parts: &Parts,
        folds: usize,
    ) -> Result<Self> {
        let Context {
            weights,
            kept,
            samples,
            grid,
            activations,
            ..
        } = *context;
        let constants = constants(graph, weights, kept, activations)?;
        let images: Vec<Option<[f64; 2]>> = (0..graph.inputs.len())
            .map(|input| {
                grid.map(Grid::ends)
                    .or_else(|| bytes_of_an_image(graph, input, samples))
            })
            .collect();
        let input = |members: &[TensorId]| graph.inputs.iter().position(|id| members.contains(id));
        let candidates = |values: &BTreeMap<TensorId, Values>| {
            let of_group = |members: &Vec<TensorId>| {
                let seen = members.iter().filter_map(|id| values.get(id));
                let together = seen.cloned().reduce(|a, b| a.joined(&b));
                let mut candidates = match &together {
                    Some(values) => Method::ALL.map(|method| method.range(values, activations)),
                    None => Candidates::default(),
                };
                if let Some(steps) = input(members).and_then(|input| images[input]) {
                    candidates = [steps; Method::ALL.len()];
                }
                for &[low, high] in members.iter().filter_map(|id| constants.get(id)) {
                    candidates
                        .iter_mut()
                        .for_each(|range| *range = [range[0].min(low), range[1].max(high)]);
                }
                candidates
            };
            groups.members.iter().map(of_group).collect::<Vec<Candidates>>()
        };
        let all = candidates(&statistics::without(parts, None));
        // What is judged by the samples that made it has no fold to leave out.
        let left_out = |fold: usize| match folds {
            1 => all.clone(),
            _ => candidates(&statistics::without(parts, Some((fold, folds)))),
        };
        let zero = groups
            .members
            .iter()
            .zip(&all)
            .filter(|(_, candidates)| candidates[0] == [0.0; 2]);
        Ok(Self {
            zero: zero.map(|(members, _)| graph.tensor(members[0]).name.clone()).collect(),
            whole: groups.members.iter().map(|members| input(members).is_some()).collect(),
            without: (0..folds).map(left_out).collect(),
            candidates: all,
            activations,
        })
    }

    /// The quantisation of every activation, for a method of each group; with a fold, from the other samples.
    fn quant(
        &self,
        graph: &Graph,
        groups: &Groups,
        choice: &[Method],
        fold: Option<usize>,
    ) -> Result<BTreeMap<TensorId, Quant>> {
        let mut quant = groups.fixed.clone();
        let table = fold.map_or(&self.candidates, |fold| &self.without[fold]);
        for ((members, candidates), &method) in groups.members.iter().zip(table).zip(choice) {
            let range = candidates[method as usize];
            let of_group = self.activations.affine(range, &graph.tensor(members[0]).name)?;
            quant.extend(members.iter().map(|&id| (id, of_group.clone())));
        }
        Ok(quant)
    }

    /// Adds what the summary says of the ranges.
    pub(super) fn tell(
        &self,
        graph: &Graph,
        groups: &Groups,
        values: &BTreeMap<TensorId, Values>,
        choice: &[Method],
        report: &mut Quantization,
    ) {
        let fixed = groups
            .fixed
            .iter()
            .map(|(&id, quant)| (id, self.activations.held(quant), "fixed"));
        let chosen = groups.members.iter().zip(&self.candidates).zip(choice);
        let chosen = chosen.flat_map(|((members, candidates), &method)| {
            let range = candidates[method as usize];
            members.iter().map(move |&id| (id, range, method.name()))
        });
        for (id, range, how) in chosen.chain(fixed) {
            *report.ranges.entry(how.to_string()).or_default() += 1;
            let name = graph.tensor(id).name.clone();
            let Some(values) = values.get(&id) else { continue };
            let [low, high] = range;
            let half = self.activations.step(range) / 2.0;
            let inside = f64::from(values.min) >= low - half && f64::from(values.max) <= high + half;
            if inside {
                report.never_left_range.push(name);
            } else {
                let share = range::outside(values, range);
                report.left_range.insert(name, (share * 1e6).round() / 1e6);
            }
        }
        report.never_left_range.sort();
    }
}

/// Images are bytes, as they are or divided by 255 or 256, with or without an offset: where every value of an input is such a byte, its scale stores
/// all of them exactly, whether the samples have the darkest and the brightest or not.
fn bytes_of_an_image(graph: &Graph, input: usize, samples: &Samples) -> Option<[f64; 2]> {
    if !is_real(graph, graph.inputs[input]) {
        return None;
    }
    let grids = [
        (1.0, 0.0),
        (1.0 / 255.0, 0.0),
        (1.0 / 256.0, 0.0),
        (1.0, 128.0),
        (2.0 / 255.0, 127.0),
        (1.0 / 128.0, 128.0),
    ];
    let fits = |&(step, zero): &(f64, f64)| {
        let mut far = false;
        let mut inner = false;
        for sample in samples {
            for value in floats(&sample[input]) {
                let at = f64::from(value) / step + zero;
                if (at - at.round()).abs() > 1e-3 || !(-0.5..255.5).contains(&at) {
                    return false;
                }
                far |= (at - zero).abs() > 1.5;
                inner |= at > 0.5 && at < 254.5;
            }
        }
        far && inner
    };
    let (step, zero) = grids.into_iter().find(fits)?;
    Some([-zero * step, (255.0 - zero) * step])
}

/// The constants that meet activations of one scale, by the activation that results.
fn constants(
    graph: &Graph,
    weights: &Weights,
    kept: &[bool],
    activations: Activations,
) -> Result<BTreeMap<TensorId, [f64; 2]>> {
    let mut found = BTreeMap::new();
    for (node, kept) in graph.nodes.iter().zip(kept) {
        if *kept || !concerns(graph, node) || !matches!(form(graph, node, activations), Ok(Form::Shared)) {
            continue;
        }
        let mut all = Vec::new();
        for &id in node.inputs.iter().flatten().filter(|id| graph.tensor(**id).is_const()) {
            if graph.tensor(id).dtype == crate::graph::DType::F32 {
                all.extend(parameters::values(graph, weights, id)?);
            }
        }
        if let Op::Pad { value, .. } = node.op {
            all.push(value);
        }
        if let Some(&output) = node.outputs.first() {
            found.insert(output, ends(&all));
        }
    }
    Ok(found)
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
}

impl<'a> Network<'a> {
    /// The plan for a method of each group, every weight at its nearest integer; with a fold, from the other samples.
    pub(super) fn plan(&self, choice: &[Method], fold: Option<usize>) -> Result<Plan<'a>> {
        let quant = self.ranges.quant(self.graph, self.groups, choice, fold)?;
        let mut layers = BTreeMap::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let layer = matches!(node.op, Op::Conv2d(_) | Op::Linear { .. });
            if !layer || self.kept[index] || !concerns(self.graph, node) {
                continue;
            }
            let input = node.inputs[0]
                .and_then(|id| quant.get(&id))
                .map_or(1.0, |quant| quant.scale[0]);
            let layer = Layer::of(self.graph, self.weights, &node.inputs)?;
            let scales = layer.scales(input, &node.name, self.activations)?;
            let bits = self
                .low_bits
                .filter(|&bits| !is_depthwise(self.graph, node) && layer.gains(bits));
            let stored = match bits {
                Some(bits) => layer.of_four_bits(input, &scales, bits, self.activations),
                None => layer.nearest(input, scales, self.activations),
            };
            layers.insert(index, stored);
        }
        Ok(Plan {
            kept: self.kept,
            activations: self.activations,
            quant,
            layers,
        })
    }

    /// Noise over signal of the answers to all judging samples.
    fn noise(&self, plan: &Plan<'_>, judge: &Judge) -> Result<f64> {
        let graph = rewrite::run(self.graph, self.weights, plan)?;
        let mut squares = Squares::new();
        for fold in 0..judge.folds() {
            judge::add(&mut squares, judge.squares(fold, &graph, self.weights, self.threads)?);
        }
        Ok(judge::noise(&squares))
    }

    /// The same of a choice, where no sample judges what it has calibrated itself.
    fn cross_noise(&self, choice: &[Method], judge: &Judge) -> Result<f64> {
        let mut squares = Squares::new();
        for fold in 0..judge.folds() {
            let graph = rewrite::run(self.graph, self.weights, &self.plan(choice, Some(fold))?)?;
            judge::add(&mut squares, judge.squares(fold, &graph, self.weights, self.threads)?);
        }
        Ok(judge::noise(&squares))
    }

    /// The plan with biases that take up what rounded weights add on average, and, where it is wanted, weights rounded for their layer's output.
    pub(super) fn refined(
        &self,
        plan: &Plan<'a>,
        samples: &Samples,
        optimise: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Plan<'a>> {
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
                let input = node.inputs[0]
                    .and_then(|id| plan.quant.get(&id))
                    .map_or(1.0, |quant| quant.scale[0]);
                if let Some(weights) = optimise
                    .then(|| rounding::optimised(&layer, &stored, moments, windows.groups, self.threads))
                    .flatten()
                {
                    stored.weights = weights;
                }
                let bias = rounding::corrected_bias(&layer, &stored, moments, windows.groups, input);
                stored.bias = layer.stored_bias(input, &stored.scales, &bias, self.activations);
            }
            refined.insert(index, stored);
        }
        Ok(Plan {
            kept: plan.kept,
            activations: plan.activations,
            quant: plan.quant.clone(),
            layers: refined,
        })
    }
}

/// What the search found.
pub(super) struct Found {
    pub(super) choice: Vec<Method>,
    /// Noise over signal of samples that have not calibrated what they judge.
    pub(super) crossed: f64,
}

/// The best of the methods for all groups alike. Samples that would judge themselves choose nothing.
pub(super) fn uniform(network: &Network<'_>, judge: &Judge) -> Result<Found> {
    let all = |method: Method| -> Vec<Method> {
        let of = |whole: &bool| if *whole { Method::MinMax } else { method };
        network.ranges.whole.iter().map(of).collect()
    };
    let mut best = Found {
        choice: all(Method::MinMax),
        crossed: network.cross_noise(&all(Method::MinMax), judge)?,
    };
    if affordable(network, judge) {
        for method in Method::ALL.into_iter().skip(1) {
            let choice = all(method);
            let crossed = network.cross_noise(&choice, judge)?;
            if crossed < best.crossed {
                best = Found { choice, crossed };
            }
        }
    }
    Ok(best)
}

/// Whether the network can be run often enough to choose anything.
pub(super) fn affordable(network: &Network<'_>, judge: &Judge) -> bool {
    budget(network, judge) >= RUNS
}

/// How many samples of each fold judge: the larger the network the fewer, for a choice by one sample a fold is better than none.
pub(super) fn judges(macs: u64, folds: usize) -> usize {
    let once = macs * folds as u64 * RUNS;
    (MACS / once.max(1)).clamp(1, JUDGES) as usize
}

/// Runs of all judging samples.
fn budget(network: &Network<'_>, judge: &Judge) -> u64 {
    if judge.folds() > 1 {
        MACS / (facts::macs_of_a_run(network.graph) * judge.samples() as u64).max(1)
    } else {
        0
    }
}

/// Tries each group with the other methods, as far as the budget goes.
pub(super) fn run(
    network: &Network<'_>,
    judge: &Judge,
    start: Found,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Found> {
    let mut best = start;
    let groups = network.groups.members.len();
    let budget = budget(network, judge).min((groups * Method::ALL.len()) as u64);
    let mut spent = 0;
    for group in 0..groups {
        for method in Method::ALL {
            let candidates = &network.ranges.candidates[group];
            let same = candidates[method as usize] == candidates[best.choice[group] as usize];
            if network.ranges.whole[group] || same {
                continue;
            }
            if spent >= budget {
                return Ok(best);
            }
            let mut choice = best.choice.clone();
            choice[group] = method;
            let crossed = network.cross_noise(&choice, judge)?;
            // Less is chance.
            if crossed < best.crossed * NEARER {
                best = Found { choice, crossed };
            }
            spent += 1;
            progress(spent, budget);
        }
    }
    Ok(best)
}

/// The plan of a choice with better biases and, where that is wanted, better weights: as far as they bring the answers nearer.
pub(super) fn refine<'a>(
    network: &Network<'a>,
    judge: &Judge,
    samples: &Samples,
    optimise: bool,
    found: &Found,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Plan<'a>, Refined)> {
    let mut best = network.plan(&found.choice, None)?;
    let mut told = Refined {
        noise: network.noise(&best, judge)?,
        bias_corrected: false,
        rounding_optimised: false,
    };
    let nearest = network.refined(&best, samples, false, progress)?;
    let noise = network.noise(&nearest, judge)?;
    let plain = best.clone();
    if noise < told.noise * TOLERATED {
        best = nearest;
        (told.noise, told.bias_corrected) = (noise, true);
    }
    if optimise {
        let rounded = network.refined(&plain, samples, true, progress)?;
        let noise = network.noise(&rounded, judge)?;
        if noise < told.noise * TOLERATED {
            best = rounded;
            (told.noise, told.bias_corrected, told.rounding_optimised) = (noise, true, true);
        }
    }
    Ok((best, told))
}

/// What refining did.
pub(super) struct Refined {
    /// Noise over signal.
    pub(super) noise: f64,
    pub(super) bias_corrected: bool,
    pub(super) rounding_optimised: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_the_network_the_fewer_samples_judge_but_one_of_a_fold_at_least() {
        assert_eq!(judges(7_489_664, 4), JUDGES as usize);
        assert_eq!(judges(40_000_000, 4), 2);
        assert_eq!(judges(76_473_920, 4), 1);
        assert_eq!(judges(4_089_184_256, 4), 1);
        assert_eq!(judges(0, 1), JUDGES as usize);
        // As many as can pay for the runs that a choice takes.
        for macs in [10_000_000, 30_000_000, 76_473_920] {
            assert!(MACS / (macs * 4 * judges(macs, 4) as u64) >= RUNS, "{macs}");
        }
    }
}
