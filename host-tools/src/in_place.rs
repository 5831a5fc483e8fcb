//! Merges an operator's output into its input where the kernel runs in place only: element for element in the same spot.
//!
//! What a kernel may overlap at a distance is left to the planner ([`crate::memory`]); this pass is for rules of the second kind, which the
//! planner's relations do not state.

use std::collections::HashMap;

use crate::graph::{TensorId, TensorKind};
use crate::program::{Place, Program};

/// Lets outputs be views of inputs that die with the step, for kernels that allow the same spot and want a gap otherwise.
pub fn merge(program: &mut Program) {
    for index in 0..program.steps.len() {
        let step = &program.steps[index];
        let (Some(&Place::Tensor(output, 0)), Some(&Place::Tensor(input, 0))) =
            (step.places.first(), step.places.get(1))
        else {
            continue;
        };
        let wants_gap = step.step.distance(1).is_none_or(|distance| distance > 0);
        if !step.step.in_place(1) || !wants_gap {
            continue;
        }
        let ((output, output_at), (input, input_at)) = (program.root(output), program.root(input));
        let lives = lives(program);
        let graph = &program.graph;
        let activation = matches!(graph.tensor(input).kind, TensorKind::Activation | TensorKind::Input)
            && matches!(graph.tensor(output).kind, TensorKind::Activation);
        let same_size = graph.tensor(output).bytes() == graph.tensor(input).bytes() && output_at == 0 && input_at == 0;
        let dies = lives.get(&input).is_some_and(|life| life.1 == index);
        let born = lives.get(&output).is_some_and(|life| life.0 == index);
        if activation && same_size && dies && born && input != output {
            program.views.insert(output, (input, 0));
        }
    }
}

/// The first and the last step that touch each root tensor; a network output lives past the last step.
fn lives(program: &Program) -> HashMap<TensorId, (usize, usize)> {
    let mut lives: HashMap<TensorId, (usize, usize)> = HashMap::new();
    for (index, step) in program.steps.iter().enumerate() {
        for place in &step.places {
            if let Place::Tensor(id, _) = *place {
                lives.entry(program.root(id).0).or_insert((index, index)).1 = index;
            }
        }
    }
    for &id in &program.graph.outputs {
        lives.entry(program.root(id).0).or_insert((0, 0)).1 = usize::MAX;
    }
    lives
}
