//! The back: from the graph to steps, and to their places in memory.

use std::collections::BTreeSet;

use arenite::Target;

use super::dump::Dump;
use super::options::{Options, Progress};
use crate::error::Result;
use crate::graph::Graph;
use crate::lower::{self, Preferences};
use crate::memory::{self, Placed, Region, Request, fit, in_place, schedule};
use crate::program::Program;
use crate::report::{Summary, explain};
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
}

/// Lowers a graph, orders its steps and places what they touch; `summary` hears of it. Layers spend flash where `spend` is given, but for those in it.
///
/// # Errors
/// What no kernel computes, and what does not fit.
pub fn run(
    graph: Graph,
    weights: &Weights,
    options: &Options,
    spend: Option<&BTreeSet<String>>,
    (dump, summary): (&mut Dump, &mut Summary),
    progress: &mut Progress<'_>,
) -> Result<Back> {
    let at_input = |e: crate::Error| e.in_file(&options.input);
    let mut program = steps(graph, weights, options, spend, progress).map_err(at_input)?;
    // Merged tensors cannot be cut: a fit starts from separate ones and merges what is left of them.
    let separate = (options.fit.is_some() || options.explain).then(|| program.clone());
    if let Some(limit) = options.max_step {
        fit::split(&mut program, limit).map_err(at_input)?;
    }
    if options.in_place {
        in_place::merge(&mut program);
    }
    dump.program(Stage::Schedule, &program, None);

    let request = request(options);
    let mut explanation = None;
    let placed = match &separate {
        None => memory::place(memory::bodies(&program, options.in_place), &request, progress).map_err(at_input)?,
        Some(separate) => {
            let fitted = fit::fit(separate, &request, options.fit, progress).map_err(at_input)?;
            program = fitted.program;
            explanation = options
                .explain
                .then(|| explain::explain(&program, &fitted.memory, &fitted.front, options.in_place));
            summary.extra_macs = fitted.extra_macs;
            summary.pareto = fitted.front;
            fitted.memory
        }
    };
    dump.program(Stage::Plan, &program, Some(&placed));
    summary.add_program(&program, &placed);
    Ok(Back {
        program,
        placed,
        explanation,
    })
}

/// The steps of a graph in the order in which they run, every tensor by itself.
///
/// # Errors
/// What no kernel computes.
pub fn steps(
    graph: Graph,
    weights: &Weights,
    options: &Options,
    spend: Option<&BTreeSet<String>>,
    progress: &mut Progress<'_>,
) -> Result<Program> {
    let preferences = Preferences {
        target: options.target,
        size: options.size,
        share: options.in_place,
        spend,
    };
    progress("choosing kernels", 0, 0);
    let mut program = lower::lower(graph, preferences, weights)?;
    let found = schedule::schedule(&program, options.plan_nodes, progress);
    schedule::apply(&mut program, &found.order);
    Ok(program)
}

/// Whether flash buys instructions on this target.
pub fn spends_flash(target: Target) -> bool {
    lower::spends_flash(target)
}

/// How memory is to be planned: in one region without limit, where none is given.
pub fn request(options: &Options) -> Request {
    let mut regions = options.regions.clone();
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
