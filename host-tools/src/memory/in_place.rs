//! Merges an operator's output into its input where the kernel runs in place only: element for element in the same spot.
//!
//! What a kernel may overlap at a distance is left to the planner ([`mod@super::bodies`]); this is for rules of the second kind, which the
//! planner's relations do not state.

use super::lifetimes::{self, Moment, in_arena};
use crate::graph::TensorKind;
use crate::program::{Place, Program};

/// Lets outputs be views of inputs that die with the step, for kernels that allow the same spot and want a gap otherwise.
pub fn merge(program: &mut Program) {
    let mut lives = lifetimes::lives(&lifetimes::of_program(program));
    for index in 0..program.steps.len() {
        let step = &program.steps[index];
        let places = step.places();
        let (Some(&Place::Tensor(output, 0)), Some(&Place::Tensor(input, 0))) = (places.first(), places.get(1)) else {
            continue;
        };
        let wants_gap = step.step.distance(1).is_none_or(|distance| distance > 0);
        if !step.step.in_place(1) || !wants_gap {
            continue;
        }
        let ((output, output_at), (input, input_at)) = (program.root(output), program.root(input));
        let graph = &program.graph;
        let movable = in_arena(graph, input) && matches!(graph.tensor(output).kind, TensorKind::Activation);
        let same_size = graph.tensor(output).bytes() == graph.tensor(input).bytes() && output_at == 0 && input_at == 0;
        let (Some(&dying), Some(&born)) = (lives.get(&input), lives.get(&output)) else {
            continue;
        };
        let now = Moment::Step(index);
        if movable && same_size && dying.last == now && born.first == now && input != output {
            program.views.insert(output, (input, 0));
            lives.insert(input, dying.joined(born));
        }
    }
}
