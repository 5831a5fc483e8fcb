//! Cost of a step on its target's cores, before there is a plan: kernels are chosen by it, and shares.

use std::convert::Infallible;

use arenite::kernels::Backend;
use arenite::{Slot, Step, Target};

use crate::board::{BOARDS, Board};
use crate::program::{LoweredStep, Place, Program};
use crate::worst::{cycles, instructions};

/// The board that a target's kernels are compared on: the first that runs nothing better than the target's code, or the first that runs it.
pub fn board_of(target: Target) -> Option<&'static Board> {
    let is_best = |board: &&Board| board.targets.last() == Some(&target.name());
    let runs = |board: &&Board| board.targets.contains(&target.name());
    BOARDS.iter().find(is_best).or_else(|| BOARDS.iter().find(runs))
}

/// The cycles of `step`, whose constants are in `weights`, as the tables estimate them, instructions where a core has no timings; `None` where no generated
/// step was like it, and of outer products, whose instructions depend on the length of the core's vectors, which a file does not know.
pub(super) fn cycles(target: Target, step: &Step, weights: &[u8]) -> Option<u64> {
    if step.kernel().backend() == Backend::Sme {
        return None;
    }
    let board = board_of(target)?;
    let names = (board.name, board.counts_as().name);
    cycles::TABLE.of(&instructions::TABLE, names, step, weights)
}

/// Tells the steps of `program` that may be shared what they take on the accelerator, whose kernels are those of `kernels`, and on the core: instructions, for
/// cycles are of boards that differ in more than these.
pub(super) fn estimate(program: &mut Program, kernels: Target) {
    let (core, weights) = (program.target, program.weights.known());
    let instructions = |target: Target, step: &LoweredStep| {
        let board = board_of(target)?;
        let counted = board.counts_as().name;
        instructions::TABLE.of(counted, &unplaced(step), &weights).ok()
    };
    for step in &mut program.steps {
        let handed = step.own.is_some().then(|| instructions(kernels, step)).flatten();
        if let Some(own) = &mut step.own {
            let takes = handed.zip(instructions(core, &own.step));
            own.takes = takes.map(Into::into);
        }
    }
}

/// The step with its constants, and all else anywhere.
fn unplaced(step: &LoweredStep) -> Step {
    let mut anywhere = |place| {
        Ok::<_, Infallible>(match place {
            Place::Constant(offset) => arenite::Place::constant(offset),
            Place::Tensor(..) | Place::Scratch => Slot::default(),
        })
    };
    let Ok(step) = step.step.clone().map(&mut anywhere);
    step
}
