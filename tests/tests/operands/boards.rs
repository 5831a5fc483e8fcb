//! On boards, where the assembly runs: the memory protection forbids what lies beside an operand.

use std::time::Duration;

use arenite_host::board::protocol::Probe;
use arenite_host::board::{BOARDS, Board, BoardError, Guarding, guards, miscomputes, ready, touch};
use arenite_tests::skip;

use super::*;

/// Cases of each kernel on a board.
const CASES: u32 = 40;
pub(super) const TIMEOUT: Duration = Duration::from_secs(600);

/// The boards whose kernels are no other one's: several cores run those of one.
pub(super) fn boards(test: &str) -> impl Iterator<Item = &'static Board> {
    let ready = move |board: &&Board| match ready(board) {
        Ok(()) => true,
        Err(reason) => {
            skip(&format!("{test} on {}", board.name), &reason.to_string());
            false
        }
    };
    let own = |board: &&Board| !board.runtime.contains(&"cores") && board.name != "microbit";
    BOARDS.iter().filter(own).filter(ready)
}

/// Each board's protection is seen to fire: on both sides, for reads and for writes.
#[test]
fn every_guard_fires_on_boards() {
    for board in boards("every_guard_fires_on_boards") {
        for (behind, write) in [(false, false), (false, true), (true, false), (true, true)] {
            let touched = touch(board, Probe { behind, write }, TIMEOUT);
            assert!(
                matches!(touched, Err(BoardError::Fault { .. })),
                "{}: behind {behind}, write {write}: {touched:?}",
                board.name
            );
        }
    }
}

#[test]
fn no_kernel_touches_a_byte_beside_its_operands_on_boards() {
    let mut findings = Vec::new();
    for board in boards("no_kernel_touches_a_byte_beside_its_operands_on_boards") {
        let cases = Guarding::Cases { first: 0, cases: CASES };
        let report = guards(board, cases, TIMEOUT).unwrap_or_else(|e| panic!("{}: {e}", board.name));
        let report = report.unwrap_or_else(|| panic!("{} has no memory protection", board.name));
        let wrong = miscomputes(board);
        let doubted = |kernel: KernelId| wrong.as_ref().is_some_and(|(backend, _)| *backend == kernel.backend());
        for (kernel, computed, _) in &report.kept {
            let few = reached().any(|of| of == *kernel) && *computed <= CASES / 4;
            assert!(
                !few,
                "{} on {}: computes {computed} of {CASES} cases",
                kernel.name(),
                board.name
            );
        }
        let runs: u64 = report.kept.iter().map(|(_, _, runs)| runs).sum();
        println!("{}: {runs} guarded runs", board.name);
        assert!(runs > u64::from(CASES), "{}: {runs} guarded runs", board.name);
        // What an emulator computes wrongly it need not compute twice alike.
        let sound = report
            .outside
            .iter()
            .filter(|found| found.finding != "differs" || !doubted(found.kernel));
        findings.extend(sound.map(|found| format!("{}: {found:?}", board.name)));
    }
    assert!(findings.is_empty(), "{findings:#?}");
}
