//! On boards, where the assembly runs: the memory protection forbids what lies beside an operand.

use std::collections::BTreeSet;
use std::time::Duration;

use arenite::{Model, Target};
use arenite_host::board::protocol::Probe;
use arenite_host::board::{BOARDS, Board, BoardError, Guarding, guards, miscomputes, ready, touch};
use arenite_tests::kit::{boards_of, only};
use arenite_tests::{boards_by_turns, skip, turns};

use super::networks::{aligned, inputs, packed};
use super::*;

/// Cases of each kernel on a board.
const CASES: u32 = 40;
pub(super) const TIMEOUT: Duration = Duration::from_secs(600);

/// The boards whose kernels are no other one's: several cores run those of one. Of one kernel those of its own.
pub(super) fn boards(test: &str) -> impl Iterator<Item = &'static Board> {
    let ready = move |board: &&Board| match ready(board) {
        Ok(()) => true,
        Err(reason) => {
            skip(&format!("{test} on {}", board.name), &reason.to_string());
            false
        }
    };
    let own = |board: &&Board| !board.runtime.contains(&"cores") && board.name != "microbit";
    let asked = only().map(boards_of);
    let is_asked = move |board: &&Board| {
        asked
            .as_ref()
            .is_none_or(|asked| asked.iter().any(|of| of.name == board.name))
    };
    let all: Vec<&Board> = BOARDS.iter().filter(own).filter(is_asked).collect();
    let taken = if only().is_some() {
        all
    } else {
        boards_by_turns(test, all)
    };
    taken.into_iter().filter(ready)
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
        let cases = Guarding::Cases {
            only: only(),
            first: 0,
            cases: CASES,
        };
        let report = guards(board, cases, TIMEOUT).unwrap_or_else(|e| panic!("{}: {e}", board.name));
        let report = report.unwrap_or_else(|| panic!("{} has no memory protection", board.name));
        let wrong = miscomputes(board);
        let doubted = |kernel: KernelId| wrong.as_ref().is_some_and(|(backend, _)| *backend == kernel.backend());
        for (kernel, computed, _) in &report.kept {
            let few = compared().any(|of| of == *kernel) && *computed <= CASES / 4;
            assert!(
                !few,
                "{} on {}: computes {computed} of {CASES} cases",
                kernel.name(),
                board.name
            );
        }
        let runs: u64 = report.kept.iter().map(|(_, _, runs)| runs).sum();
        println!("{}: {runs} guarded runs", board.name);
        assert!(
            runs > u64::from(CASES) || !report.outside.is_empty(),
            "{}: {runs} guarded runs",
            board.name
        );
        // An emulator need not repeat its wrong results.
        let sound = report
            .outside
            .iter()
            .filter(|found| found.finding != "differs" || !doubted(found.kernel));
        findings.extend(sound.map(|found| format!("{}: {found:?}", board.name)));
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

/// Networks of portable kernels that have loops of their own on boards: tensors larger than those of the kit's cases.
const NETWORKS: [&str; 20] = [
    "tflite_ops/add_broadcast_int16",
    "tflite_ops/arg_max_int8_last",
    "tflite_ops/average_pool_float32",
    "tflite_ops/batch_matmul_adj_y_int16",
    "tflite_ops/batch_matmul_long_int8",
    "tflite_ops/cast_float32_int16",
    "tflite_ops/conv_i16",
    "tflite_ops/conv_i16_dilated",
    "tflite_ops/depthwise_i16",
    "tflite_ops/dequantize_int8",
    "tflite_ops/equal_broadcast_int8",
    "tflite_ops/exp_f32",
    "tflite_ops/floor_mod_int16",
    "tflite_ops/lstm",
    "tflite_ops/select_v2_broadcast_int16",
    "tflite_ops/softmax_0",
    "tflite_ops/svdf_i8_state",
    "tflite_signal/filter_bank",
    "tflite_signal/pcan",
    "tflite_signal/rfft_480",
];

#[test]
fn no_step_of_a_network_touches_a_byte_beside_its_operands_on_boards() {
    const TEST: &str = "no_step_of_a_network_touches_a_byte_beside_its_operands_on_boards";
    let folder = tempfile::tempdir().expect("a folder");
    let models = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let mut findings = Vec::new();
    for board in turns(TEST, 3, boards(TEST)) {
        let own = |target: &Target| board.targets.last() == Some(&target.name());
        let target = Target::ALL.into_iter().find(own).unwrap_or(Target::Portable);
        let (mut kernels, mut steps) = (BTreeSet::new(), 0);
        for name in NETWORKS {
            let path = models.join(format!("{name}.tflite"));
            let file = packed(&path, target, folder.path()).unwrap_or_else(|| panic!("{name} for {}", target.name()));
            let mut memory = aligned(&file);
            let model = Model::load(memory.bytes()).expect("it loads");
            let given = inputs(&model).concat();
            let arenas = (0..4).map(|region| model.arena_bytes(region)).max().unwrap_or(0);
            let largest = arenas.max(model.state_bytes()).max(file.len()).next_multiple_of(16) as u32;
            let guarding = Guarding::Steps {
                model: &file,
                inputs: &given,
                largest,
            };
            let report = guards(board, guarding, TIMEOUT).unwrap_or_else(|e| panic!("{name} on {}: {e}", board.name));
            let report = report.unwrap_or_else(|| panic!("{} has no memory protection", board.name));
            for (kernel, of, _) in report.kept {
                kernels.insert(kernel.name());
                steps += of;
            }
            findings.extend(
                report
                    .outside
                    .iter()
                    .map(|found| format!("{name} on {}: {found:?}", board.name)),
            );
        }
        println!(
            "{}: {steps} steps of {} kernels, each operand guarded",
            board.name,
            kernels.len()
        );
        assert!(
            kernels.len() >= 12 && steps >= 20,
            "{}: {steps} steps of {kernels:?}",
            board.name
        );
    }
    assert!(findings.is_empty(), "{findings:#?}");
}
