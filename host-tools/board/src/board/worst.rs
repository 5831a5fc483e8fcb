//! Upper bounds of a model's cost on the boards that run it.

use std::collections::{BTreeMap, BTreeSet};

use arenite::kernels::Backend;
use arenite::{KernelId, Slot, Step};

use super::table::{BOARDS, Board};
use crate::report::{Most, Summary};
use crate::worst::{code_bytes, instructions, stack};

/// Adds to the summary of a model for `target` what `steps`, whose constants are in `weights`, take on every board that runs them. Of a model that rolls
/// it adds nothing: its first steps run once for each row, and the tables have steps of whole tensors.
pub fn tell(summary: &mut Summary, target: &str, steps: &[Step], weights: &[u8]) {
    if steps.iter().any(rolls) {
        return;
    }
    // The tables do not have the cost of handing steps over.
    let hands_over = |board: &Board| summary.accelerator.is_some() && board.runtime.contains(&"accelerators");
    // One of several cores takes what one by itself takes.
    let boards = BOARDS
        .iter()
        .filter(|board| board.cores() == 1 && board.targets.contains(&target) && !hands_over(board));
    // Of a model that learns, the steps here are those of inference alone.
    let board = own_board(target).filter(|_| summary.training.is_none());
    summary.code_bytes_estimate = board.and_then(|board| code_bytes::TABLE.estimate(board, steps, weights));
    let (mut runs, mut loads, mut most) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for board in boards {
        if let Some(bound) = stack::TABLE.bound(board.name, steps.iter().map(Step::kernel)) {
            runs.insert(board.name.to_owned(), bound.run);
            loads.insert(board.name.to_owned(), bound.load);
        }
        most.insert(board.name.to_owned(), most_of(board, steps, weights));
    }
    (
        summary.stack_bytes,
        summary.load_stack_bytes,
        summary.instructions_at_most,
    ) = (runs, loads, most);
}

/// The name of the board that has the build of a target's core; none has that of a target for all.
fn own_board(target: &str) -> Option<&'static str> {
    let own = |board: &&Board| board.targets.len() > 1 && board.targets.last() == Some(&target);
    let mut boards = BOARDS.iter().filter(|board| board.cores() == 1);
    boards.find(own).map(|board| board.counts_as().name)
}

/// Whether a step touches a tensor of which rows alone are in the arena.
fn rolls(step: &Step) -> bool {
    let mut found = false;
    step.operands(&mut |operand| found |= operand.place.region == Slot::ROLLED);
    found
}

fn most_of(board: &Board, steps: &[Step], weights: &[u8]) -> Most {
    let (mut by_data, mut unknown) = (BTreeSet::new(), BTreeMap::new());
    let each = steps.iter().map(|step| {
        let kernel = step.kernel().name().to_owned();
        let row = instructions::TABLE.row(board.counts_as().name, step, weights);
        if row.is_ok_and(|row| row.by_data.is_some()) {
            by_data.insert(kernel.clone());
        }
        let most = most_instructions(board, step, weights);
        most.map_err(|reason| unknown.insert(kernel, reason.to_owned())).ok()
    });
    let steps: Vec<Option<u64>> = each.collect();
    Most {
        total: steps
            .iter()
            .try_fold(0u64, |sum, step| Some(sum.saturating_add((*step)?))),
        steps,
        by_data,
        unknown,
    }
}

/// The most instructions of `step` on `board`, whose constants are in `weights`.
///
/// # Errors
/// Why that is not known.
pub fn most_instructions(board: &Board, step: &Step, weights: &[u8]) -> Result<u64, &'static str> {
    instructions::TABLE.of(board.counts_as().name, step, weights)
}

impl Board {
    /// Whether the board's core and firmware have what `kernel` is written in.
    pub fn has(&self, kernel: KernelId) -> bool {
        let any = |targets: &[&str]| self.targets.iter().any(|target| targets.contains(target));
        match kernel.backend() {
            Backend::Dsp => any(&["cortex-m4", "cortex-m33"]),
            Backend::Mve => any(&["cortex-m55"]),
            Backend::Neon => any(&["aarch64"]),
            Backend::Dotprod => any(&["aarch64-dotprod"]),
            Backend::I8mm => any(&["aarch64-i8mm"]),
            Backend::Sme => any(&["aarch64-sme"]),
            Backend::Rvv => any(&["riscv64gcv", "riscv32imacv"]),
            // Commands that no board here has an NPU for.
            Backend::EthosU => false,
            // Backends in portable code, and those that are added to it.
            _ => true,
        }
    }
}
