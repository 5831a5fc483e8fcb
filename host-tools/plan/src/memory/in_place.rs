//! Merges an operator's output into its input where the kernel runs in place only: element for element in the same spot.
//!
//! Overlaps at a distance that a kernel allows are left to the planner ([`mod@super::bodies`]); this is for rules of the second kind, which the planner's
//! relations do not state.

use arenite::Step;

use super::lifetimes::{self, Moment, in_arena};
use crate::graph::TensorKind;
use crate::program::{Place, Program};

/// Lets outputs be views of inputs that die with the step, for kernels that allow the same spot and want a gap otherwise.
pub fn merge(program: &mut Program) {
    merge_where(program, &|step, operand| {
        let wants_gap = step.distance(operand).is_none_or(|distance| distance > 0);
        step.in_place(operand) && wants_gap
    });
}

/// As [`merge`], for steps that several cores share. These take no other overlap, so that what goes element by element is merged even where its kernel would
/// take more; what reads its neighbours is not.
pub fn merge_shared(program: &mut Program) {
    merge_where(program, &|step, operand| {
        let same_spot = step.distance(operand).is_some_and(|distance| distance <= 0);
        step.elements().is_some() && (step.in_place(operand) || same_spot)
    });
}

fn merge_where(program: &mut Program, wants: &dyn Fn(&Step<Place>, usize) -> bool) {
    let mut lives = lifetimes::lives(&lifetimes::of_program(program));
    for index in 0..program.steps.len() {
        let step = &program.steps[index];
        // Whether an accelerator wrote an output is seen at its place.
        if step.handed {
            continue;
        }
        let places = step.places();
        let wanted = (1..places.len()).find(|&operand| wants(&step.step, operand));
        let (Some(&Place::Tensor(output, 0)), Some(&Place::Tensor(input, 0))) =
            (places.first(), wanted.and_then(|operand| places.get(operand)))
        else {
            continue;
        };
        // Written in place it would be gone for the step's other operands.
        let root = |place: &Place| match place {
            Place::Tensor(tensor, _) => Some(program.root(*tensor).0),
            _ => None,
        };
        let readers = places
            .iter()
            .skip(1)
            .filter(|place| root(place) == Some(program.root(input).0));
        if readers.count() > 1 {
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
