//! A float network with what the samples say of its activations, and the form of it whose answers on integers are nearest: with a scale for each column of its
//! inputs, equalised, with normalisations in int16, or as it is.

use super::columns::{self, Own};
use super::context::Context;
use super::equalise::{self, Extent};
use super::evaluate::{self, Evaluator};
use super::form::is_real;
use super::groups::Groups;
use super::judge::Judge;
use super::masks;
use super::network::Network;
use super::ranges::Ranges;
use super::search::{self, Found};
use super::statistics::{self, Parts};
use super::wide::{self, Wide};
use crate::error::Result;
use crate::graph::{Graph, facts};

/// The samples are cut into at most so many folds, of which each judges ranges from the others.
const FOLDS: usize = 4;

/// A form of the network, and its ranges.
pub(super) struct Chosen {
    pub(super) best: Calibrated,
    /// Its inputs' columns, where they have scales of their own.
    pub(super) own: Option<Own>,
    pub(super) found: Found,
}

impl Chosen {
    /// The context of this form.
    pub(super) fn context<'a>(&'a self, plain: Context<'a>) -> Context<'a> {
        match &self.own {
            Some(columns) => columns.context(plain),
            None => plain,
        }
    }
}

/// Chooses the form and its ranges.
pub(super) fn choose(graph: &Graph, plain: &Context<'_>, progress: &mut dyn FnMut(&str, u64, u64)) -> Result<Chosen> {
    let mut best = Calibrated::of(graph.clone(), 0, plain, progress)?;
    let mut start = search::uniform(&best.network(plain), &best.judge)?;
    let affordable = search::affordable(&best.network(plain), &best.judge);
    let mut own = None;
    if affordable && !plain.integer_inputs && plain.grid.is_none() {
        own = columns::run(graph, plain)?;
    }
    if let Some(columns) = &own {
        let context = columns.context(*plain);
        let other = Calibrated::of(columns.graph.clone(), 0, &context, progress)?;
        let found = search::uniform(&other.network(&context), &other.judge)?;
        if found.is_nearer(&start, columns::enough(plain.float_ports)) {
            (best, start) = (other, found);
        } else {
            own = None;
        }
    }
    let (context, base) = match &own {
        Some(columns) => (columns.context(*plain), &columns.graph),
        None => (*plain, graph),
    };
    if affordable {
        for extent in [Extent::Depthwise, Extent::All] {
            let samples = context.samples;
            let equal = equalise::run(base, context.weights, context.kept, extent, samples, context.threads)?;
            let Some((equal, pairs)) = equal else { continue };
            let other = Calibrated::of(equal, pairs, &context, progress)?;
            let found = search::uniform(&other.network(&context), &other.judge)?;
            if found.is_nearer(&start, 1.0) {
                (best, start) = (other, found);
            }
        }
        if context.widens {
            best.widen(&context, &mut start)?;
        }
    }
    let mut searching = |done, all| progress("choosing ranges", done, all);
    let found = search::run(&best.network(&context), &best.judge, start, &mut searching)?;
    Ok(Chosen { best, own, found })
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
    pub(super) wide: Option<Wide>,
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
        let masked = masks::lines(&graph, weights)?;
        let parts = statistics::collect(&float, &graph, (samples, &masked), &mut calibrating)?;
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
            wide: None,
        })
    }

    pub(super) fn network<'a>(&'a self, context: &Context<'a>) -> Network<'a> {
        self.network_with(context, self.wide.as_ref())
    }

    fn network_with<'a>(&'a self, context: &Context<'a>, wide: Option<&'a Wide>) -> Network<'a> {
        Network {
            graph: wide.map_or(&self.graph, |wide| &wide.graph),
            weights: context.weights,
            kept: context.kept,
            groups: &self.groups,
            ranges: &self.ranges,
            threads: context.threads,
            activations: context.activations,
            low_bits: context.low_bits,
            float_ports: context.float_ports,
            wide,
            spend: context.spend,
        }
    }

    /// Takes recurrent layers and normalisations in int16, where they bring the answers nearer.
    fn widen(&mut self, context: &Context<'_>, start: &mut Found) -> Result<()> {
        for wide in wide::of(&self.graph, context, &self.parts)? {
            let network = self.network_with(context, Some(&wide));
            let found = Found {
                crossed: network.cross_noise(&start.choice, &self.judge)?,
                choice: start.choice.clone(),
            };
            if found.is_nearer(start, wide::ENOUGH) {
                self.graph = wide.graph.clone();
                self.wide = Some(wide);
                *start = found;
            }
        }
        Ok(())
    }
}
