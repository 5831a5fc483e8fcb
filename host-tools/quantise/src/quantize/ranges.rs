//! The ranges that each group of activations may have, from the values that the samples give.

use std::collections::BTreeMap;

use super::activations::Activations;
use super::context::Context;
use super::evaluate::{Samples, floats};
use super::form::{Form, concerns, form, is_real};
use super::grid::Grid;
use super::groups::Groups;
use super::parameters;
use super::range::{self, Method};
use super::rewrite::ends;
use super::statistics::{self, Parts, Values};
use crate::error::Result;
use crate::graph::{Graph, Op, Quant, TensorId};
use crate::report::Quantization;
use crate::weights::Weights;

/// A range for each method.
pub(super) type Candidates = [[f64; 2]; Method::ALL.len()];

/// The ranges that each group may have, by method.
pub(super) struct Ranges {
    /// From all samples.
    pub(super) candidates: Vec<Candidates>,
    /// From all samples but those of a fold.
    without: Vec<Vec<Candidates>>,
    /// Groups that keep all values: the network's inputs, whose noise nothing takes back.
    pub(super) whole: Vec<bool>,
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
        let candidates = |values: &BTreeMap<TensorId, Values>, by_fold: &[BTreeMap<TensorId, Values>]| {
            let of_group = |members: &Vec<TensorId>| {
                let seen = members.iter().filter_map(|id| values.get(id));
                let together = seen.cloned().reduce(|a, b| a.joined(&b));
                let apart: Vec<Values> = by_fold
                    .iter()
                    .filter_map(|values| {
                        let seen = members.iter().filter_map(|id| values.get(id));
                        seen.cloned().reduce(|a, b| a.joined(&b))
                    })
                    .collect();
                let mut candidates = match &together {
                    Some(values) => Method::ALL.map(|method| method.range(values, &apart, activations)),
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
        let all = candidates(
            &statistics::without(parts, None),
            &statistics::by_fold(parts, None, folds),
        );
        // Candidates that are judged by the samples that made them have no fold to leave out.
        let left_out = |fold: usize| match folds {
            1 => all.clone(),
            _ => candidates(
                &statistics::without(parts, Some((fold, folds))),
                &statistics::by_fold(parts, Some(fold), folds),
            ),
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
    pub(super) fn quant(
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
            let Ok(bytes) = sample[input].bytes() else {
                return false;
            };
            for value in floats(&bytes) {
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
