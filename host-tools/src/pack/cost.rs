//! What a step takes on its target's cores, before there is a plan: what kernels are chosen by.

use arenite::{Step, Target};

use crate::board::{BOARDS, Board};
use crate::worst::{cycles, instructions};

/// The board that a target's kernels are compared on: the first that runs nothing better than the target's code, or the first that runs it.
pub fn board_of(target: Target) -> Option<&'static Board> {
    let is_best = |board: &&Board| board.targets.last() == Some(&target.name());
    let runs = |board: &&Board| board.targets.contains(&target.name());
    BOARDS.iter().find(is_best).or_else(|| BOARDS.iter().find(runs))
}

/// The cycles of `step`, whose constants are in `weights`, as the tables estimate them, instructions where a core has no timings; `None` where no generated
/// step was like it.
pub(super) fn cycles(target: Target, step: &Step, weights: &[u8]) -> Option<u64> {
    let board = board_of(target)?;
    let names = (board.name, board.counts_as().name);
    cycles::TABLE.of(&instructions::TABLE, names, step, weights)
}
