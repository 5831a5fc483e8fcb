//! Programs that are planned to see what they need, and are not packed.

use crate::error::{Error, Result};
use crate::memory::place::whole_words;
use crate::memory::plan::{self, Problem};
use crate::program::{Constants, Program, State};

/// Bytes of a plan that is made in no time.
pub(super) fn estimated(problem: &Problem) -> Result<u64> {
    let plan = plan::estimate(problem).map_err(|e| Error::internal(e.to_string()))?;
    Ok(whole_words(plan.height))
}

/// A program with all that planning looks at, cheap to clone: no weights, no state, no operators.
pub(super) fn skeleton(program: &Program) -> Program {
    let mut graph = program.graph.clone();
    graph.nodes.clear();
    Program {
        graph,
        target: program.target,
        size: program.size,
        share: program.share,
        steps: program.steps.clone(),
        views: program.views.clone(),
        over: program.over.clone(),
        weights: Constants::default(),
        state: State {
            offsets: program.state.offsets.clone(),
            initial: Vec::new(),
        },
        assigned: program.assigned.clone(),
    }
}
