//! Parts of a [`Summary`] that come from the graph, its steps and their places.

use arenite::Target;

use crate::graph::{Graph, facts};
use crate::memory::{Placed, accelerate, cores, lifetimes, whole_words};
use crate::program::{Program, Shared};
use crate::report::{HandedOver, RegionSummary, SharedLayers, Shares, Summary};

/// Returns the summary of a network once it is read and pruned.
pub fn of_import(graph: &Graph, dialect: &str, target: Target) -> Summary {
    let first = graph.inputs.first().map(|&id| graph.tensor(id));
    let mut summary = Summary {
        dialect: dialect.to_string(),
        target: target.name().to_string(),
        dtype: first.map_or("f32", |t| t.dtype.name()).to_string(),
        batch: first.and_then(|t| t.shape.first().copied()).unwrap_or(1),
        name: graph.name.clone(),
        params: facts::params(graph),
        macs: facts::macs_per_element(graph),
        pruned: graph.pruned.clone(),
        liveness_as_traced_bytes: lifetimes::max_live(graph),
        ..Summary::default()
    };
    summary.set_ports(graph);
    summary
}

/// Adds what is known of its steps and their places.
pub fn add_program(summary: &mut Summary, program: &Program, placed: &Placed) {
    for step in &program.steps {
        *summary.ops_final.entry(step.kind.to_string()).or_insert(0) += 1;
    }
    summary.steps = program.steps.len();
    summary.liveness_bound_bytes = placed.bodies.max_live();
    summary.arena_bytes = placed.arena_bytes();
    summary.state_bytes = program.state.initial.len() as u64;
    summary.cores = (program.assigned.cores > 0).then(|| {
        let (busiest_share, groups) = cores::shares(program);
        Shares {
            cores: program.assigned.cores,
            groups,
            busiest_share,
        }
    });
    summary.accelerator = program.assigned.accelerator.map(|declared| {
        let (share, beside) = accelerate::shares(program);
        let steps = program.steps.iter().enumerate().filter(|(_, step)| step.handed);
        HandedOver {
            name: declared.name.to_string(),
            version: declared.version,
            kernels: declared.layout.name().to_string(),
            steps: steps.map(|(index, _)| index).collect(),
            share,
            beside,
            shared: layers_in_parts(&program.assigned.shared),
        }
    });
    summary.plan_proven_optimal = placed.proven_optimal();
    summary.plan_lower_bound_bytes = placed.lower_bound();
    let regions = placed.plans.iter().map(|(region, plan)| RegionSummary {
        name: region.name.clone(),
        bytes: whole_words(plan.height),
    });
    summary.regions = regions.collect();
}

fn layers_in_parts(shared: &[Shared]) -> Option<SharedLayers> {
    let sum = |of: fn(&Shared) -> u64| shared.iter().map(of).sum();
    (!shared.is_empty()).then(|| SharedLayers {
        layers: shared.len(),
        macs_handed: sum(|shared| shared.macs[0]),
        macs_own: sum(|shared| shared.macs[1]),
        takes_handed: sum(|shared| shared.takes[0]),
        takes_own: sum(|shared| shared.takes[1]),
        takes_shared: sum(|shared| shared.longest),
        weights_bytes: sum(|shared| shared.bytes),
    })
}
