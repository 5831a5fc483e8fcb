//! The judges of steps of training: gradients that are summed, activations that are computed again, parameters that change under the steps that read them.

use arenite_host::gradient::{Loss, Optimiser};
use arenite_host::model::derived;
use arenite_tests::digits_options;
use arenite_tests::training::{PIXELS, bytes, packed, request, training_images, training_labels};

use super::*;

/// The steps of training of a network as those of a file by themselves, whose last output is the state.
fn case(name: &str, (batch, parts): (usize, usize), optimiser: &str, fit: Option<u64>) -> Case {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = digits_options(name, &folder.path().join("trained.bin"));
    options.import.batch = Some(batch);
    options.fit = fit;
    options.train = request(Loss::CrossEntropy, &[]);
    if let Some(asked) = &mut options.train {
        asked.micro_batches = parts;
        asked.optimiser = Optimiser::named(optimiser).expect("an optimiser");
    }
    let (file, told) = packed(options);
    assert_eq!(told.summary.extra_macs > 0, fit.is_some(), "{name}");
    let view = file.view().expect("intact");
    let training = view.training().expect("intact").expect("steps of training");
    let (images, labels) = (training_images(<[f32]>::to_vec), training_labels());
    let inputs = |from: usize| {
        let labels = labels[from..from + batch].iter().flat_map(|label| label.to_le_bytes());
        vec![
            bytes(&images[from..from + batch].concat()),
            labels.collect(),
            bytes(&[0.1]),
        ]
    };
    assert_eq!(images[0].len(), PIXELS);
    let file = derived::of_training(&training, true).expect("a file");
    Case::of(
        format!("{name} by {optimiser} in {parts}"),
        &file,
        vec![inputs(0), inputs(batch)],
    )
}

fn cases() -> [Case; 3] {
    [
        case("mlp", (4, 2), "momentum", None),
        case("digits", (1, 1), "sgd", None),
        case("residual", (6, 1), "sgd", Some(FITTED)),
    ]
}

/// Bytes in which the network keeps not all activations of a batch of six.
const FITTED: u64 = 200_000;

#[test]
fn a_slot_that_is_moved_alone_is_noticed_or_does_no_harm() {
    let mut tally = Tally::default();
    cases().iter().for_each(|case| slots_moved(case, &mut tally));
    tally.holds([100, 100, 1]);
}

#[test]
fn a_tensor_on_top_of_another_is_noticed_or_does_no_harm() {
    let mut tally = Tally::default();
    cases().iter().for_each(|case| tensors_moved(case, &mut tally));
    tally.holds([100, 80, 20]);
}
