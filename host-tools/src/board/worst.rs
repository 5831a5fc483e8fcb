//! What a model takes at the worst on the boards that run it.

use std::collections::BTreeMap;

use arenite::Step;

use super::table::BOARDS;
use crate::report::Summary;
use crate::worst::stack;

/// Adds to the summary of a model for `target` what `steps` take on every board that runs them.
pub fn tell(summary: &mut Summary, target: &str, steps: &[Step]) {
    let boards = BOARDS.iter().filter(|board| board.targets.contains(&target));
    let (mut runs, mut loads) = (BTreeMap::new(), BTreeMap::new());
    for board in boards {
        if let Some(bound) = stack::TABLE.bound(board.name, steps.iter().map(Step::kernel)) {
            runs.insert(board.name.to_owned(), bound.run);
            loads.insert(board.name.to_owned(), bound.load);
        }
    }
    (summary.stack_bytes, summary.load_stack_bytes) = (runs, loads);
}
