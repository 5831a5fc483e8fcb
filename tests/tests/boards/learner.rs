//! Samples over a serial port: the last layer of a network learns on a board of 16 KiB, stack included.

use arenite::Slot;
use arenite_host::board::{Board, Firmware, ready};
use arenite_host::gradient::Loss;
use arenite_host::model::{self, Memories};
use arenite_tests::emulated::Emulated;
use arenite_tests::skip;
use arenite_tests::training::{bytes, digits, mirrored, step_inputs, training_images, training_labels};

/// Bytes that a step of training takes, and those that it gives.
type Step = (Vec<u8>, Vec<u8>);

/// The last layer of digits learns mirrored images on the micro:bit: each loss, the state, and what the network says of images behind it are the host's, bit
/// for bit (of which `learning::the_last_layer_alone_learns_mirrored_digits` says how many it gets right).
fn learns(test: &str, steps: usize) {
    let board = Board::find("microbit").expect("a board");
    if let Err(reason) = ready(board) {
        return skip(test, &reason.to_string());
    }
    assert_eq!(board.ram.size, 16 << 10);
    let folder = tempfile::tempdir().expect("a folder");
    let (file, packed) = digits("digits", folder.path(), Loss::CrossEntropy, &["fc2*"]);
    let model = file.load().expect("loads");
    let (images, labels) = (training_images(mirrored), training_labels());
    let inputs = |step: usize| step_inputs(&images[step], labels[step], 0.03);
    let mut expected: Vec<Step> = Vec::new();
    let mut given = |step: usize| (step < steps).then(|| inputs(step));
    let trained = model::train(&model, None, &mut given, &mut |step, outputs| {
        expected.push((inputs(step).concat(), outputs.concat()));
        Ok(())
    });
    let trained = trained.expect("it trains");

    let firmware = Firmware::build_learner(board, file.path()).unwrap_or_else(|error| panic!("{error}"));
    let mut qemu = Emulated::start(board, &firmware, folder.path());
    for (step, (inputs, outputs)) in expected.iter().enumerate() {
        let said = qemu.asked(&[b"T", &inputs[..]].concat(), outputs.len());
        assert_eq!(&said, outputs, "the loss of step {step}");
    }
    assert!(qemu.asked(b"S", trained.len()) == trained, "the trained state");
    let image = bytes(&images[steps]);
    let mut memories = Memories::of(&model);
    let mut session = memories.session(&model).expect("a session");
    let (region, offset) = (Slot::STATE, 0);
    session.write(Slot { region, offset }, &trained).expect("a state");
    session
        .set_input(0, &image)
        .and_then(|()| session.run())
        .expect("it runs");
    let logits = session.output(0).expect("an output");
    assert_eq!(qemu.asked(&[b"I", &image[..]].concat(), logits.len()), logits);
    eprintln!(
        "an arena of {} bytes, a state of {}",
        packed.summary.arena_bytes, packed.summary.state_bytes
    );
}

#[test]
fn the_last_layer_learns_in_16_kib() {
    learns("the_last_layer_learns_in_16_kib", 40);
}

#[test]
#[ignore = "long: five hundred steps in software floating point"]
fn five_hundred_steps_in_16_kib() {
    learns("five_hundred_steps_in_16_kib", 500);
}
