//! The back: from the graph to steps, and to their places in memory.

use std::collections::BTreeSet;

use arenite::{Declaration, Target};

use super::cost;
use super::dump::Dump;
use super::options::{Options, Progress};
use crate::accelerator::Handing;
use crate::describe::{self, explain};
use crate::error::{Error, ErrorKind, Result};
use crate::gradient::{self, Request as TrainRequest, Trained};
use crate::graph::Graph;
use crate::import;
use crate::lower::{self, Preferences};
use crate::memory::{self, Placed, Region, Request, accelerate, cores, fit, in_place, lifetimes, roll, schedule};
use crate::program::{Constants, Program};
use crate::report::{Summary, TrainingReport};
use crate::stage::Stage;
use crate::weights::Weights;

/// Steps with all that they touch in its place.
pub struct Back {
    /// The steps.
    pub program: Program,
    /// Where everything lies.
    pub placed: Placed,
    /// The text of `--explain`.
    pub explanation: Option<String>,
    /// The steps of training.
    pub training: Option<Box<TrainingBack>>,
}

/// Steps of training in their places, over the arena and the state of inference.
pub struct TrainingBack {
    /// The steps; their weights are those of inference and more.
    pub program: Program,
    /// Where everything lies.
    pub placed: Placed,
    /// Parameters that are trained.
    pub parameters: Vec<gradient::Parameter>,
}

/// Lowers a graph, orders its steps and places what they touch; `summary` hears of it. Layers spend flash where `spend` is given, but for those in it.
///
/// # Errors
/// Operators that no kernel computes, and programs that do not fit.
pub fn run(
    graph: Graph,
    weights: &Weights,
    options: &Options,
    spend: Option<&BTreeSet<String>>,
    (dump, summary): (&mut Dump, &mut Summary),
    progress: &mut Progress<'_>,
) -> Result<Back> {
    let program = steps(graph, weights, options, spend, progress)
        .map_err(|e| import::remedied(e, &summary.dialect).in_file(&options.input))?;
    place(program, options, (dump, summary), progress)
}

/// Places what the steps touch; `summary` hears of it.
///
/// # Errors
/// Programs that do not fit.
pub fn place(
    mut program: Program,
    options: &Options,
    (dump, summary): (&mut Dump, &mut Summary),
    progress: &mut Progress<'_>,
) -> Result<Back> {
    let at_input = |e: crate::Error| e.in_file(&options.input);
    let request = request(options);
    // Steps of training are to fit, and take no less: `train`.
    let fit = options.fit.filter(|_| options.train.is_none());
    if options.stream_input {
        return rolled(program, options, (dump, summary), progress);
    }
    let (cuts, sums) = match options.accelerator {
        // It takes whole steps.
        Some(_) => (Vec::new(), None),
        None => fit::sums(&program, &request).map_err(at_input)?,
    };
    summary.sums_by_rows = sums;
    // Merged tensors cannot be cut: a fit starts from separate ones and merges what is left of them.
    let separate = (fit.is_some() || options.explain).then(|| program.clone());
    program = fit::cut(&program, &cuts, options.in_place)?;
    if let Some(limit) = options.max_step {
        fit::split(&mut program, limit).map_err(at_input)?;
    }
    // Steps for several cores or an accelerator are merged when it is known which of them are.
    let declared = declared(options)?;
    if options.in_place && options.cores == 1 && declared.is_none() {
        in_place::merge(&mut program);
    }
    dump.program(Stage::Schedule, &program, None);

    let mut explanation = None;
    let placed = match &separate {
        None if options.cores > 1 => {
            let (divided, placed) = cores::divide(&program, options.cores, &request, progress).map_err(at_input)?;
            program = divided;
            placed
        }
        None if let Some(declared) = declared => {
            let (handed, placed) = accelerate::hand_over(&program, declared, &request, progress).map_err(at_input)?;
            program = handed;
            accelerate::tell(&mut program, &options.sharing.channels);
            placed
        }
        None => memory::place(memory::bodies(&program, options.in_place), &request, progress).map_err(at_input)?,
        Some(separate) => {
            match fit::fit((separate, &cuts), &request, fit, progress) {
                Err(error)
                    if error.kind() == ErrorKind::DoesNotFit && !options.explain && options.max_step.is_none() =>
                {
                    program = separate.clone();
                    summary.sums_by_rows = None;
                    rolled_to_fit(&mut program, options, progress).map_err(|_| at_input(error))?
                }
                fitted => {
                    let fitted = fitted.map_err(at_input)?;
                    program = fitted.program;
                    // It may have begun anew without them.
                    if !fitted.cuts.starts_with(&cuts) {
                        summary.sums_by_rows = None;
                    }
                    explanation = options
                        .explain
                        .then(|| explain::explain(&program, &fitted.memory, &fitted.front, options.in_place));
                    summary.extra_macs = fitted.extra_macs;
                    summary.pareto = fitted.front;
                    fitted.memory
                }
            }
        }
    };
    dump.program(Stage::Plan, &program, Some(&placed));
    describe::add_program(summary, &program, &placed);
    Ok(Back {
        program,
        placed,
        explanation,
        training: None,
    })
}

/// As [`place`], with the first steps made row by row of an input that is fed by rows.
fn rolled(
    mut program: Program,
    options: &Options,
    (dump, summary): (&mut Dump, &mut Summary),
    progress: &mut Progress<'_>,
) -> Result<Back> {
    dump.program(Stage::Schedule, &program, None);
    let fed: Vec<usize> = (0..program.graph.inputs.len()).collect();
    let placed = roll::roll(&mut program, &fed, &to_fit(options), progress).map_err(|e| e.in_file(&options.input))?;
    dump.program(Stage::Plan, &program, Some(&placed));
    describe::add_program(summary, &program, &placed);
    Ok(Back {
        program,
        placed,
        explanation: None,
        training: None,
    })
}

/// Places of steps that roll over inputs that are whole, where no cut fits: nothing is computed twice.
fn rolled_to_fit(program: &mut Program, options: &Options, progress: &mut Progress<'_>) -> Result<Placed> {
    roll::roll(program, &[], &to_fit(options), progress)
}

/// The request with the one region as large as `--fit` says.
fn to_fit(options: &Options) -> Request {
    let mut request = request(options);
    if let (Some(capacity), [region]) = (options.fit, &mut request.regions[..]) {
        region.size = Some(region.size.map_or(capacity, |size| size.min(capacity)));
    }
    request
}

/// Lowers, orders and places the steps of training beside those of inference, `back`; `summary` hears of it.
///
/// # Errors
/// Operators that no kernel computes, and programs that do not fit.
pub fn train(
    back: &mut Back,
    trained: Trained,
    weights: &Weights,
    (options, asked): (&Options, &TrainRequest),
    summary: &mut Summary,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let at_input = |e: crate::Error| e.in_file(&options.input);
    let source = Source {
        weights,
        options,
        spend: None,
    };
    let mut placed = |graph: Graph| {
        let constants = back.program.weights.clone();
        let mut program = lowered_beside(graph, source, constants, progress).map_err(at_input)?;
        let found = schedule::schedule(&program, options.plan_nodes, progress);
        schedule::apply(&mut program, &found.order);
        if options.in_place {
            in_place::merge(&mut program);
        }
        let bodies = memory::bodies(&program, options.in_place);
        let placed = memory::place(bodies, &request(options), progress).map_err(at_input)?;
        Ok::<_, Error>((program, placed))
    };
    let kept = placed(trained.training.clone())?;
    let (program, placed) = match options.fit {
        Some(limit) => {
            let of_inference = back.placed.arena_bytes();
            if of_inference > limit {
                let message = format!("inference beside training takes {of_inference} bytes");
                return Err(at_input(Error::new(ErrorKind::DoesNotFit, message))
                    .expected(format!("at most {limit} (--fit)"))
                    .help("give more memory"));
            }
            let (made, extra_macs) = training_to_fit(kept, &trained, limit, &mut placed).map_err(at_input)?;
            summary.extra_macs = extra_macs;
            made
        }
        None => kept,
    };
    let Trained {
        parameters,
        backward_macs,
        ..
    } = trained;
    let mut ops = std::collections::BTreeMap::new();
    for step in &program.steps {
        *ops.entry(step.kind.to_string()).or_insert(0) += 1;
    }
    let [inference, training] = [back.placed.arena_bytes(), placed.arena_bytes()];
    summary.training = Some(TrainingReport {
        loss: asked.loss.name().to_string(),
        optimiser: (asked.optimiser != gradient::Optimiser::Sgd).then(|| asked.optimiser.to_string()),
        micro_batches: (asked.micro_batches > 1).then_some(asked.micro_batches),
        trained_params: gradient::scalars(&program.graph, &parameters),
        gradients: parameters.len(),
        backward_macs,
        train_steps: program.steps.len(),
        train_ops_final: ops,
        train_arena_bytes: training,
        train_liveness_bound_bytes: placed.bodies.max_live(),
        inference_arena_bytes: inference,
        train_liveness_as_traced_bytes: None,
        matched: Default::default(),
    });
    // Each region is as large as the list of steps that takes more of it.
    let both = back.placed.region_bytes().into_iter().zip(placed.region_bytes());
    let regions: Vec<u64> = both.map(|(a, b)| a.max(b)).collect();
    summary.arena_bytes = regions.iter().sum();
    for (region, bytes) in summary.regions.iter_mut().zip(regions) {
        region.bytes = bytes;
    }
    summary.plan_proven_optimal &= placed.proven_optimal();
    summary.plan_lower_bound_bytes = summary.plan_lower_bound_bytes.max(placed.lower_bound());
    back.training = Some(Box::new(TrainingBack {
        program,
        placed,
        parameters,
    }));
    Ok(())
}

/// Steps of training in at most `limit` bytes: what is kept whole where that fits, and else the saving with the fewest operations; the multiply-accumulates
/// that are done twice.
fn training_to_fit(
    kept: (Program, Placed),
    trained: &Trained,
    limit: u64,
    placed: &mut dyn FnMut(Graph) -> Result<(Program, Placed)>,
) -> Result<((Program, Placed), u64)> {
    if kept.1.arena_bytes() <= limit {
        return Ok((kept, 0));
    }
    let savings = trained.savings(&lifetimes::max_live);
    let (mut least, mut found) = (kept.1.arena_bytes(), None);
    // Each takes fewer bytes than the one before.
    let (mut from, mut to) = (0, savings.len());
    while from < to {
        let middle = (from + to) / 2;
        let made = placed(trained.saving(&savings[middle])?)?;
        least = least.min(made.1.arena_bytes());
        if made.1.arena_bytes() <= limit {
            (to, found) = (middle, Some((made, savings[middle].extra_macs)));
        } else {
            from = middle + 1;
        }
    }
    found.ok_or_else(|| {
        Error::new(
            ErrorKind::DoesNotFit,
            format!("the smallest arena of training found is {least} bytes, with activations that are computed again"),
        )
        .expected(format!("at most {limit} (--fit)"))
        .help("--micro-batches K keeps the activations of a part of the batch, --trainable PATTERN those of fewer layers; or give more memory")
    })
}

/// Sources from which steps are made, beside the graph.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The values of parameters.
    pub weights: &'a Weights,
    /// Options of the command.
    pub options: &'a Options,
    /// Layers spend flash where this is given, but for those in it.
    pub spend: Option<&'a BTreeSet<String>>,
}

/// The steps of a graph in the order in which they run, every tensor by itself.
///
/// # Errors
/// Operators that no kernel computes.
pub fn steps(
    graph: Graph,
    weights: &Weights,
    options: &Options,
    spend: Option<&BTreeSet<String>>,
    progress: &mut Progress<'_>,
) -> Result<Program> {
    let source = Source {
        weights,
        options,
        spend,
    };
    let mut program = lowered(graph, source, progress)?;
    if let Some(accelerator) = options.accelerator.as_ref().filter(|accelerator| accelerator.share) {
        cost::estimate(&mut program, accelerator.kernels);
    }
    let found = schedule::schedule(&program, options.plan_nodes, progress);
    schedule::apply(&mut program, &found.order);
    Ok(program)
}

/// The steps of a graph in its own order.
///
/// # Errors
/// Operators that no kernel computes.
pub fn lowered(graph: Graph, source: Source<'_>, progress: &mut Progress<'_>) -> Result<Program> {
    lowered_beside(graph, source, Constants::default(), progress)
}

/// The same with constants behind those of another list of steps.
///
/// # Errors
/// Operators that no kernel computes.
fn lowered_beside(
    graph: Graph,
    source: Source<'_>,
    constants: Constants,
    progress: &mut Progress<'_>,
) -> Result<Program> {
    let Source {
        weights,
        options,
        spend,
    } = source;
    let preferences = Preferences {
        target: options.target,
        size: options.size,
        share: options.in_place,
        spend,
        cost: cost::cycles,
        without: &options.without,
        paged: options.stream.is_some(),
        accelerator: options
            .accelerator
            .as_ref()
            .zip(declared(options)?)
            .map(|(accelerator, declared)| Handing {
                accelerator,
                declared,
                sharing: &options.sharing,
            }),
    };
    progress("choosing kernels", 0, 0);
    lower::lower_beside(graph, preferences, weights, constants)
}

/// Whether flash buys instructions on this target.
pub fn spends_flash(target: Target) -> bool {
    lower::spends_flash(target)
}

/// Returns the model file's declaration of the accelerator, where there is one.
fn declared(options: &Options) -> Result<Option<Declaration>> {
    let regions = request(options).regions;
    let names: Vec<&str> = regions.iter().map(|region| region.name.as_str()).collect();
    let declared = options
        .accelerator
        .as_ref()
        .map(|accelerator| accelerator.declaration(&names));
    declared.transpose()
}

/// How memory is to be planned: in one region without limit, where none is given.
pub fn request(options: &Options) -> Request {
    let mut regions = options.regions.clone();
    // A plan that is too large for its region is not refused there, but made smaller: `train`.
    if options.train.is_some() && options.fit.is_some() {
        regions.iter_mut().for_each(|region| region.size = None);
    }
    if regions.is_empty() {
        regions.push(Region {
            name: "arena".into(),
            size: None,
        });
    }
    Request {
        regions,
        in_place: options.in_place,
        nodes: options.plan_nodes,
        max_step: options.max_step,
    }
}
