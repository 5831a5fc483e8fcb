//! Mixed precision: which layers compute with weights of four bits, with int8, int16 or f32, for a file of at most so many bytes or answers of at most so much
//! noise.
//!
//! `sources` measures what each rounding alone adds to the answers, `path` goes from the coarsest network to the finest by that, and here networks on that path
//! are made, measured whole (their answers and their file), and one of them is taken.

mod level;
mod path;
mod sources;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

pub(super) use self::level::Level;
use self::path::{NodeFacts, TensorFacts, Terrain, Unit};
use super::activations::Activations;
use super::context::Context;
use super::evaluate::{Evaluator, Samples};
use super::form::{concerns, form, is_real};
use super::groups::Groups;
use super::judge::{self, Judge};
use super::network::{Network, is_layer};
use super::parameters::Layer;
use super::range::Method;
use super::ranges::Ranges;
use super::rewrite::{Plan, Quants};
use super::search::{self, Refined};
use super::statistics::Parts;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Graph, LowBits, Node, Op, TensorId, UnaryKind, facts};
use crate::report::{FrontPoint, LayerPrecision, Quantization};

/// Multiply-accumulates that the measurements of whole networks may take.
const MACS: u64 = 1 << 35;
/// Runs of a sample that each network takes: to correct biases, and to judge twice.
const RUNS: u64 = 3;
/// Networks that are measured, evenly spread over the path, before the place that is looked for is narrowed down; and the most in all.
const SURVEYED: usize = 9;
const MEASURED: u64 = 16;
/// The fewest samples that judge, where there are as many.
const JUDGES: u64 = 8;

/// Aims of the search; at least one of them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Aims {
    /// The most bytes of the file.
    pub flash: Option<u64>,
    /// The least signal-to-noise ratio of the answers, in dB.
    pub snr_db: Option<f64>,
}

/// A network that was made and measured.
#[derive(Clone)]
pub(super) struct Measured {
    pub(super) plan: Plan,
    pub(super) refined: Refined,
    pub(super) levels: Vec<Level>,
    /// Bytes of the file.
    pub(super) bytes: u64,
}

impl Measured {
    fn decibels(&self) -> f64 {
        judge::decibels(self.refined.noise).unwrap_or(f64::INFINITY)
    }

    fn fits(&self, aims: Aims) -> bool {
        aims.flash.is_none_or(|most| self.bytes <= most)
    }

    fn is_good(&self, aims: Aims) -> bool {
        aims.snr_db.is_none_or(|least| self.decibels() >= least)
    }
}

/// Result of the search.
pub(super) struct Chosen {
    pub(super) measured: Measured,
    /// Networks that no other beats in both bytes and noise, by rising bytes.
    pub(super) front: Vec<FrontPoint>,
    /// Samples that judged.
    pub(super) judges: usize,
    /// Noise over signal that each layer's own rounding adds, by name: of weights in four bits, in eight, and of its result in int8.
    pub(super) sensitivity: BTreeMap<String, [Option<f64>; 3]>,
}

impl Chosen {
    /// Adds what the summary says of the choice.
    pub(super) fn tell(&self, graph: &Graph, report: &mut Quantization) {
        report.judged = Some(self.judges).filter(|&judges| judges < report.samples);
        report.front.clone_from(&self.front);
        let decibels = |noise: Option<f64>| noise.and_then(judge::decibels);
        for (node, level) in graph.nodes.iter().zip(&self.measured.levels) {
            if let Some(&[four, eight, result]) = self.sensitivity.get(&node.name) {
                let layer = LayerPrecision {
                    precision: level.name().to_string(),
                    int4_weights_snr_db: decibels(four),
                    int8_weights_snr_db: decibels(eight),
                    int8_result_snr_db: decibels(result),
                };
                report.layers.insert(node.name.clone(), layer);
            }
        }
    }
}

/// The form of four-bit weights where nobody says another.
pub(super) const FOUR_BITS: LowBits = LowBits { bits: 4, group: None };

/// The forms in which `levels` has a network: a plan, what came of it, and the bytes of its file.
pub(super) type Making<'a> = &'a dyn Fn(&Plan, &Refined, &[Level]) -> Result<u64>;

/// Chooses.
pub(super) fn choose(
    network: &Network<'_>,
    (context, parts): (&Context<'_>, &Parts),
    choice: &[Method],
    aims: Aims,
    optimise: bool,
    bytes_of: Making<'_>,
    progress: &mut dyn FnMut(&str, u64, u64),
) -> Result<Chosen> {
    let survey = Survey::new(network, (context, parts), choice, optimise, bytes_of, progress)?;
    let mut measured: BTreeMap<usize, Measured> = BTreeMap::new();
    let last = survey.path.len() - 1;
    let mut measure = |measured: &mut BTreeMap<usize, Measured>, at: usize| -> Result<()> {
        if let Entry::Vacant(unknown) = measured.entry(at) {
            unknown.insert(survey.measure(at)?);
            progress("measuring mixed networks", measured.len() as u64, MEASURED);
        }
        Ok(())
    };
    for point in 0..SURVEYED {
        measure(&mut measured, point * last / (SURVEYED - 1).max(1))?;
    }
    // Where the path crosses what is asked for: the first that is good enough, or the last that fits.
    let beyond = |one: &Measured| match aims.snr_db {
        Some(_) => one.is_good(aims),
        None => !one.fits(aims),
    };
    let mut high = measured.iter().find(|(_, one)| beyond(one)).map_or(last, |(&at, _)| at);
    let mut low = measured.range(..high).next_back().map_or(0, |(&at, _)| at);
    while high > low + 1 && (measured.len() as u64) < MEASURED {
        let middle = low + (high - low) / 2;
        measure(&mut measured, middle)?;
        if beyond(&measured[&middle]) {
            high = middle;
        } else {
            low = middle;
        }
    }
    let taken = pick(measured.values(), aims).ok_or_else(|| refusal(measured.values(), aims))?;
    Ok(Chosen {
        measured: taken.clone(),
        front: front(network.graph, measured.values(), taken),
        judges: survey.judge.samples(),
        sensitivity: survey.sensitivity,
    })
}

/// Of the networks that are all that is asked for: the smallest where noise is limited, else the one with the least noise.
fn pick<'a>(all: impl Iterator<Item = &'a Measured>, aims: Aims) -> Option<&'a Measured> {
    let good = all.filter(|one| one.fits(aims) && one.is_good(aims));
    let noise = |one: &Measured| one.refined.noise;
    good.min_by(|a, b| {
        let (by_bytes, by_noise) = (a.bytes.cmp(&b.bytes), noise(a).total_cmp(&noise(b)));
        match aims.snr_db {
            Some(_) => by_bytes.then(by_noise),
            None => by_noise.then(by_bytes),
        }
    })
}

/// Returns the refusal of aims that nothing reaches, with the alternatives in figures.
fn refusal<'a>(all: impl Iterator<Item = &'a Measured> + Clone, aims: Aims) -> Error {
    let smallest = all.clone().min_by_key(|one| one.bytes);
    let best = all.clone().min_by(|a, b| a.refined.noise.total_cmp(&b.refined.noise));
    let least = all.clone().filter(|one| one.is_good(aims)).min_by_key(|one| one.bytes);
    let fitting = all.filter(|one| one.fits(aims));
    let fitting = fitting.min_by(|a, b| a.refined.noise.total_cmp(&b.refined.noise));
    let of = |one: Option<&Measured>| match one {
        Some(one) => format!("{} bytes with {:.1} dB", one.bytes, one.decibels()),
        None => "none".to_string(),
    };
    let error = |message: String| Error::new(ErrorKind::DoesNotFit, message);
    match (aims.flash, aims.snr_db, fitting, least) {
        (Some(flash), _, None, _) => error(format!("the smallest network found takes {}", of(smallest)))
            .expected(format!("at most {flash} bytes (--budget flash)"))
            .help("--weight-bits 4 --group N changes what weights of four bits take; a smaller network helps most"),
        (_, Some(snr), _, None) => error(format!("the best network found takes {}", of(best)))
            .expected(format!("at least {snr} dB (--target-snr)"))
            .help("inputs and outputs are int8 whatever the layers are: --input-dtype, --output-dtype and more samples may help"),
        (Some(flash), Some(snr), fitting, least) => error(format!(
            "the best network found within {flash} bytes takes {}, the smallest with {snr} dB {}",
            of(fitting),
            of(least)
        ))
        .expected("both --budget flash and --target-snr")
        .help("ask for less of one of them"),
        _ => Error::internal("a mixed network that is what was asked for was not taken"),
    }
}

/// The networks that no other beats, by rising bytes.
fn front<'a>(graph: &Graph, all: impl Iterator<Item = &'a Measured>, taken: &Measured) -> Vec<FrontPoint> {
    let mut all: Vec<&Measured> = all.collect();
    all.sort_by(|a, b| a.bytes.cmp(&b.bytes).then(a.refined.noise.total_cmp(&b.refined.noise)));
    let mut front: Vec<FrontPoint> = Vec::new();
    let mut least = f64::INFINITY;
    for one in all {
        let chosen = one.levels == taken.levels;
        if one.refined.noise < least || chosen {
            least = least.min(one.refined.noise);
            front.push(FrontPoint {
                model_bytes: one.bytes,
                snr_db: judge::decibels(one.refined.noise),
                layers: counts(graph, &one.levels),
                chosen,
            });
        }
    }
    front
}

/// Layers by level.
pub(super) fn counts(graph: &Graph, levels: &[Level]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (node, level) in graph.nodes.iter().zip(levels) {
        if concerns(graph, node) {
            *counts.entry(level.name().to_string()).or_default() += 1;
        }
    }
    counts
}

/// All that networks on the path are made from.
struct Survey<'a, 'n> {
    network: &'a Network<'n>,
    samples: &'a Samples,
    quant: Quants,
    bits: LowBits,
    optimise: bool,
    path: Vec<Vec<Level>>,
    judge: Judge,
    bytes_of: Making<'a>,
    sensitivity: BTreeMap<String, [Option<f64>; 3]>,
}

impl<'a, 'n> Survey<'a, 'n> {
    fn new(
        network: &'a Network<'n>,
        (context, parts): (&'a Context<'n>, &Parts),
        choice: &[Method],
        optimise: bool,
        bytes_of: Making<'a>,
        progress: &mut dyn FnMut(&str, u64, u64),
    ) -> Result<Self> {
        let graph = network.graph;
        let int8 = network.plan(choice, None)?;
        let mut quant = int8.quant.clone();
        let without: Vec<bool> = graph
            .nodes
            .iter()
            .zip(network.kept)
            .map(|(node, &kept)| kept || form(graph, node, Activations::Int16).is_err())
            .collect();
        quant.extend(int16(
            graph,
            &Context {
                kept: &without,
                activations: Activations::Int16,
                ..*context
            },
            parts,
        )?);
        let bits = network.low_bits.unwrap_or(FOUR_BITS);
        let fixed = network.groups.fixed.keys().map(|&id| vec![id]);
        let units: Vec<Vec<TensorId>> = network.groups.members.iter().cloned().chain(fixed).collect();
        let mut measuring = |done, all| progress("measuring layers", done, all);
        let found = sources::measure(network, &int8, &units, bits, context.samples, &mut measuring)?;
        let terrain = terrain(network, &units, &quant, &without, bits, &found)?;
        let once = facts::macs_of_a_run(graph).max(1) * RUNS * MEASURED;
        let count = (MACS / once).max(JUDGES).min(context.samples.len() as u64) as usize;
        let float = Evaluator::new(graph, network.weights, network.threads, |id| is_real(graph, id))?;
        Ok(Self {
            network,
            samples: context.samples,
            path: terrain.path(),
            judge: Judge::new(graph, &float, context.samples, 1, count)?,
            quant,
            bits,
            optimise,
            bytes_of,
            sensitivity: sensitivity(network, &units, &found),
        })
    }

    /// A network of the path, made and measured.
    fn measure(&self, at: usize) -> Result<Measured> {
        let levels = &self.path[at];
        let kinds = levels.iter().map(|level| level.activations()).collect();
        let four = |index: usize| (levels[index] == Level::Int4).then_some(self.bits);
        let plain = self.network.of(kinds, self.quant.clone(), &four)?;
        let (plan, refined) = search::refine(
            self.network,
            &self.judge,
            self.samples,
            self.optimise,
            plain,
            &mut |_, _| {},
        )?;
        Ok(Measured {
            bytes: (self.bytes_of)(&plan, &refined, levels)?,
            levels: levels.clone(),
            plan,
            refined,
        })
    }
}

/// The scales of int16: its steps are so fine that ranges may lie well outside of what the samples have.
fn int16(graph: &Graph, context: &Context<'_>, parts: &Parts) -> Result<Quants> {
    let groups = Groups::of(graph, context.kept, Activations::Int16);
    let ranges = Ranges::of(graph, context, &groups, parts, 1)?;
    let method = |&whole: &bool| if whole { Method::MinMax } else { Method::Wider };
    let choice: Vec<Method> = ranges.whole.iter().map(method).collect();
    let quant = ranges.quant(graph, &groups, &choice, None)?;
    Ok(Quants::from([(Activations::Int16, quant)]))
}

/// Returns the terrain that the path goes by.
fn terrain(
    network: &Network<'_>,
    units: &[Vec<TensorId>],
    quant: &Quants,
    without_int16: &[bool],
    bits: LowBits,
    found: &sources::Sources,
) -> Result<Terrain> {
    let graph = network.graph;
    let mut nodes = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let mut facts = NodeFacts::default();
        if network.kept[index] || !concerns(graph, node) {
            facts.levels.push(Level::F32);
            nodes.push(facts);
            continue;
        }
        facts.levels.extend([Level::Int8, Level::Int16, Level::F32]);
        facts.bytes = tables(graph, node);
        if without_int16[index] {
            facts.levels.retain(|level| *level != Level::Int16);
        }
        if let Some(&(four, eight)) = found.weights.get(&index) {
            let layer = Layer::of(graph, network.weights, &node.inputs)?;
            let (weights, outputs) = (layer.weights.len() as u64, layer.bias.len() as u64);
            facts.weights_noise = [four.unwrap_or(eight), eight];
            let of_four = layer.four_bit_bytes(bits) as u64;
            facts.bytes = [
                of_four + 12 * outputs,
                weights + 12 * outputs,
                weights + 16 * outputs,
                4 * (weights + outputs),
            ];
            if four.is_some() {
                facts.levels.insert(0, Level::Int4);
            }
        }
        nodes.push(facts);
    }
    let touching = |id: TensorId| -> Vec<usize> {
        let touches = |index: &usize| {
            let node = &graph.nodes[*index];
            node.inputs
                .iter()
                .flatten()
                .chain(&node.outputs)
                .any(|&other| other == id)
        };
        (0..graph.nodes.len()).filter(touches).collect()
    };
    let [given, taken] = network.float_ports.map(|float| !float);
    let tensor = |&id: &TensorId| TensorFacts {
        elements: graph.tensor(id).elements() as u64,
        writer: graph.nodes.iter().position(|node| node.outputs.contains(&id)),
        touching: touching(id),
        port: given && graph.inputs.contains(&id) || taken && graph.outputs.contains(&id),
    };
    let units: Vec<Unit> = units
        .iter()
        .zip(&found.units)
        .map(|(members, &noise)| Unit {
            noise: [noise, noise * finer(members, quant), 0.0],
            tensors: members.iter().map(tensor).collect(),
        })
        .collect();
    let touched = (0..nodes.len()).map(|node| {
        let touches = |unit: &usize| {
            let mut all = units[*unit].tensors.iter().flat_map(|tensor| &tensor.touching);
            all.any(|&other| other == node)
        };
        (0..units.len()).filter(touches).collect()
    });
    Ok(Terrain {
        touched: touched.collect(),
        nodes,
        units,
    })
}

/// Bytes of the tables, about, that functions take in integers, by level.
fn tables(graph: &Graph, node: &Node) -> [u64; Level::ALL.len()] {
    let elements = node.outputs.first().map_or(0, |&id| graph.tensor(id).elements());
    match node.op {
        Op::Softmax { .. } if elements <= 64 => [0, 0, 2 * 2 * 513, 0],
        Op::Softmax { .. } => [1024, 1024, 2 * 2 * 513, 0],
        Op::Unary(UnaryKind::Clamp { .. } | UnaryKind::Relu | UnaryKind::Relu6) => [0; Level::ALL.len()],
        Op::Unary(_) => [256, 256, 0, 0],
        _ => [0; Level::ALL.len()],
    }
}

/// Returns the share of an activation's noise that is left in int16: the square of the steps' ratio.
fn finer(members: &[TensorId], quant: &Quants) -> f64 {
    let step = |kind: Activations| {
        let quant = quant.get(&kind)?.get(members.first()?)?;
        Some(f64::from(quant.scale[0]))
    };
    match (step(Activations::Int8), step(Activations::Int16)) {
        (Some(eight), Some(sixteen)) => (sixteen / eight).powi(2).min(1.0),
        _ => 1.0,
    }
}

/// The noise of each layer's own rounding, by name.
fn sensitivity(
    network: &Network<'_>,
    units: &[Vec<TensorId>],
    found: &sources::Sources,
) -> BTreeMap<String, [Option<f64>; 3]> {
    let graph = network.graph;
    let named = graph
        .nodes
        .iter()
        .enumerate()
        .filter(|(index, node)| concerns(graph, node) && !network.kept[*index]);
    let of = |(index, node): (usize, &Node)| {
        let weights = found.weights.get(&index).filter(|_| is_layer(graph, node));
        let own: BTreeSet<TensorId> = node.outputs.iter().copied().collect();
        let unit = units.iter().position(|unit| unit.iter().any(|id| own.contains(id)));
        let result = unit.and_then(|unit| found.units.get(unit)).copied();
        let values = [
            weights.and_then(|weights| weights.0),
            weights.map(|weights| weights.1),
            result,
        ];
        (node.name.clone(), values)
    };
    named.map(of).collect()
}
