//! A float network, equalised or not, with what the samples say of its activations.

use super::context::Context;
use super::equalise::{self, Extent};
use super::evaluate::{self, Evaluator};
use super::form::is_real;
use super::groups::Groups;
use super::judge::Judge;
use super::network::Network;
use super::ranges::Ranges;
use super::search::{self, Found};
use super::statistics::{self, Parts};
use crate::error::Result;
use crate::graph::{Graph, facts};

/// The samples are cut into at most so many folds, of which each judges ranges from the others.
const FOLDS: usize = 4;

/// The form of the network, as it is or equalised, with which the answers of its best ranges are nearest, and those ranges.
pub(super) fn choose(
    graph: &Graph,
    context: &Context<'_>,
    progress: &mut dyn FnMut(&str, u64, u64),
) -> Result<(Calibrated, Found)> {
    let mut best = Calibrated::of(graph.clone(), 0, context, progress)?;
    let mut start = search::uniform(&best.network(context), &best.judge)?;
    if search::affordable(&best.network(context), &best.judge) {
        for extent in [Extent::Depthwise, Extent::All] {
            let equal = equalise::run(
                graph,
                context.weights,
                context.kept,
                extent,
                context.samples,
                context.threads,
            )?;
            let Some((equal, pairs)) = equal else { continue };
            let other = Calibrated::of(equal, pairs, context, progress)?;
            let found = search::uniform(&other.network(context), &other.judge)?;
            if found.crossed < start.crossed {
                (best, start) = (other, found);
            }
        }
    }
    Ok((best, start))
}

/// A float graph with what the samples say of it.
pub(super) struct Calibrated {
    pub(super) graph: Graph,
    /// Pairs of layers that were equalised.
    pub(super) equalised: usize,
    pub(super) groups: Groups,
    pub(super) parts: Parts,
    pub(super) ranges: Ranges,
    pub(super) judge: Judge,
}

impl Calibrated {
    pub(super) fn of(
        graph: Graph,
        equalised: usize,
        context: &Context<'_>,
        progress: &mut dyn FnMut(&str, u64, u64),
    ) -> Result<Self> {
        let &Context {
            weights,
            kept,
            samples,
            threads,
            activations,
            ..
        } = context;
        let groups = Groups::of(&graph, kept, activations);
        let float = Evaluator::new(&graph, weights, threads, |id| is_real(&graph, id))?;
        let all = 2 * samples.len() as u64;
        let folds = FOLDS.min(evaluate::parts(samples).count());
        let mut calibrating = |done: usize| progress("calibrating", done as u64, all);
        let parts = statistics::collect(&float, &graph, samples, &mut calibrating)?;
        let ranges = Ranges::of(&graph, context, &groups, &parts, folds)?;
        let judge = Judge::new(
            &graph,
            &float,
            samples,
            folds,
            search::judges(facts::macs_of_a_run(&graph), folds, context.spend),
        )?;
        Ok(Self {
            graph,
            equalised,
            groups,
            parts,
            ranges,
            judge,
        })
    }

    pub(super) fn network<'a>(&'a self, context: &Context<'a>) -> Network<'a> {
        Network {
            graph: &self.graph,
            weights: context.weights,
            kept: context.kept,
            groups: &self.groups,
            ranges: &self.ranges,
            threads: context.threads,
            activations: context.activations,
            low_bits: context.low_bits,
            float_ports: context.float_ports,
            spend: context.spend,
        }
    }
}
