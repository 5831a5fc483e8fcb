//! Training on a board.

use std::time::Duration;

use arenite_host::board::{self, Blob, Board, RunOptions};
use arenite_host::gradient::{Loss, Optimiser};
use arenite_host::model::{self, ModelFile, derived};
use arenite_tests::training::{digits, packed, request, sideways, step_inputs, training_images, training_labels};
use arenite_tests::{digits_options, named_by_turns, skip};

/// Steps on a board of each family: every loss and the trained state are those of the host, bit for bit.
#[test]
fn boards_learn_the_same_bits() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, _) = digits("digits", folder.path(), Loss::CrossEntropy, &[]);
    for (name, steps) in [
        ("mps2-an386", 200),
        ("mps2-an385", 10),
        ("riscv32-virt", 10),
        ("aarch64-virt", 50),
    ] {
        let Some(&board) = named_by_turns("boards_learn_the_same_bits", &[name]).first() else {
            continue;
        };
        if let Err(reason) = board::ready(board) {
            skip("boards_learn_the_same_bits", &reason.to_string());
            continue;
        }
        learns(&file, board, steps);
    }
}

/// The same of what chains of other operators train: narrow layers beside frozen ones, by Adam.
#[test]
fn boards_adapt_the_same_bits() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = digits_options("digits", &folder.path().join("adapted.bin"));
    options.train = request(Loss::CrossEntropy, &["lora:2"]);
    if let Some(asked) = &mut options.train {
        asked.optimiser = Optimiser::named("adam").expect("an optimiser");
    }
    let (file, _) = packed(options);
    for board in named_by_turns("boards_adapt_the_same_bits", &["mps2-an385", "aarch64-virt"]) {
        match board::ready(board) {
            Ok(()) => learns(&file, board, 5),
            Err(reason) => skip("boards_adapt_the_same_bits", &reason.to_string()),
        }
    }
}

fn learns(file: &ModelFile, board: &'static Board, steps: usize) {
    let name = board.name;
    let (images, labels) = (training_images(sideways), training_labels());
    let inputs = |step: usize| step_inputs(&images[step], labels[step], 0.01);
    let mut losses = Vec::new();
    let mut given = |step: usize| (step < steps).then(|| inputs(step));
    let state = model::train(&file.load().expect("loads"), None, &mut given, &mut |_, outputs| {
        losses.push(outputs[0].clone());
        Ok(())
    });
    let state = state.expect("it trains");
    let training = file
        .view()
        .expect("intact")
        .training()
        .expect("intact")
        .expect("steps of training");
    let made = derived::of_training(&training, true).expect("a file");
    let options = RunOptions {
        runs: steps as u32,
        timeout: Duration::from_secs(600),
        ..RunOptions::default()
    };
    let all: Vec<u8> = (0..steps).flat_map(inputs).flatten().collect();
    let report = board::run(board, Blob::Bytes(&made), &all, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
    let each = 8 + state.len();
    assert_eq!(report.outputs.len(), steps * each, "{name}");
    for (step, (outputs, loss)) in report.outputs.chunks(each).zip(&losses).enumerate() {
        assert_eq!(&outputs[..4], &loss[..], "{name}: the loss of step {step}");
    }
    assert!(
        report.outputs[steps * each - state.len()..] == state[..],
        "{name}: the trained state"
    );
    let mean = report.instructions.iter().sum::<u64>() / steps as u64;
    println!(
        "{name}: {mean} instructions a step, arena {}, stack {}",
        report.arena_bytes, report.stack_bytes
    );
    assert!(
        report.arena_bytes + report.state_bytes + u64::from(report.stack_bytes) <= 48 << 10,
        "{name}"
    );
    // Of a core with an FPU.
    if name == "mps2-an386" {
        assert!(mean <= 1_150_000, "{mean} instructions a step");
    }
}
