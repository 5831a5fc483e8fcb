//! The fewest instructions that a step's loops could take: its MACs through the kernel's inner loop, and the least requantising of every output.
//!
//! The figures are the kernels' own, beside their loops (`Candidate::bound`); here is only on what a board runs them.

use arenite::kernels::api::candidate::Machine;
use arenite::{Step, Target};

use super::table::{Board, Core};

/// The bound of `step`, which has `macs` multiply-accumulates, packed for `target`, on `board`; `None` for steps without any whose kernel states
/// no other: softmax, copies, and pooling and sums of the scalar and the `int` backend.
pub fn bound(step: &Step, target: Target, board: &Board, macs: u64) -> Option<u64> {
    step.bound(&Machine {
        target,
        // Cores for which compilers vectorise by themselves.
        vectors: matches!(board.timings, Core::A64 | Core::M55),
        vector_bits: board.vector_bits(),
        macs,
    })
}
