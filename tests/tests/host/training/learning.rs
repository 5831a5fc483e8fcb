//! Results of training, beside PyTorch's.

use std::collections::BTreeMap;

use arenite_host::gradient::Loss;
use arenite_host::memory::prove;
use arenite_host::model;
use arenite_host::pack::Options;
use arenite_tests::oracle;

use super::*;

/// One pass over the digits, mounted sideways: every loss within 1e-3 and every parameter within 1e-4 of PyTorch in f64, and as many images right.
#[test]
fn digits_mounted_sideways_learn_as_in_pytorch() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, packed) = digits("digits", folder.path(), Loss::CrossEntropy, &[]);
    let summary = packed.summary;
    let training = summary.training.expect("steps of training");
    assert_eq!((training.trained_params, training.gradients), (8162, 10));
    assert_eq!(training.backward_macs, 269_440);
    assert_eq!(summary.state_bytes, 32_648);
    assert!(
        training.train_arena_bytes <= 8_704,
        "{} bytes",
        training.train_arena_bytes
    );
    assert_eq!(
        summary.arena_bytes,
        training.train_arena_bytes.max(training.inference_arena_bytes)
    );
    assert!(summary.plan_proven_optimal);
    let view = file.view().expect("intact");
    prove::prove(&view).expect("both plans are right");
    assert_eq!(summary.arena_bytes, u64::from(view.header().arena[0]));

    assert_eq!(right(&file, &initial(&file), sideways), 36);
    let (images, labels) = (training_images(sideways), training_labels());
    let order: Vec<i16> = array("training/order.npy");
    let losses: Vec<f64> = array("training/sideways.losses.npy");
    let mut inputs = |step: usize| {
        let sample = *order.get(step)? as usize;
        Some(step_inputs(&images[sample], labels[sample], 0.01))
    };
    let mut worst = 0.0_f64;
    let state = model::train(&file.load().expect("loads"), None, &mut inputs, &mut |step, outputs| {
        let [loss, ignored] = outputs else {
            panic!("two outputs")
        };
        worst = worst.max((f64::from(floats(loss)[0]) - losses[step]).abs());
        assert_eq!(ignored, &0_i32.to_le_bytes());
        Ok(())
    });
    let state = state.expect("it trains");
    assert!(worst <= 1e-3, "a loss differs by {worst:e}");
    let expected: Vec<f64> = array("training/sideways.parameters.npy");
    let ours: Vec<f32> = parameters(&file, &state, &flattened())
        .into_iter()
        .flat_map(|(_, values)| values)
        .collect();
    assert_eq!(ours.len(), expected.len());
    let difference = ours
        .iter()
        .zip(&expected)
        .map(|(a, b)| (f64::from(*a) - b).abs())
        .fold(0.0, f64::max);
    assert!(difference <= 1e-4, "a parameter differs by {difference:e}");
    assert_eq!(right(&file, &state, sideways), 327);
    println!("losses within {worst:e}, parameters within {difference:e} of PyTorch");
    oracle::compared("PyTorch", order.len(), 8);
}

/// `fc2` alone: the others stay in flash, and so does their half of the backward pass.
#[test]
fn the_last_layer_alone_learns_mirrored_digits() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, packed) = digits("digits", folder.path(), Loss::CrossEntropy, &["fc2*"]);
    let training = packed.summary.training.expect("steps of training");
    assert_eq!(
        (training.trained_params, training.gradients, training.backward_macs),
        (330, 2, 320)
    );
    assert_eq!(packed.summary.state_bytes, 4 * 330);
    let whole = digits("digits", folder.path(), Loss::CrossEntropy, &["conv*", "fc*"])
        .1
        .summary;
    assert_eq!(whole.training.expect("steps of training").trained_params, 8162);
    assert!(packed.summary.weights_bytes > whole.weights_bytes + 30_000);

    assert_eq!(right(&file, &initial(&file), mirrored), 129);
    let (images, labels) = (training_images(mirrored), training_labels());
    let order: Vec<i16> = array("training/order.npy");
    let mut inputs = |step: usize| {
        let sample = *order[..500].get(step)? as usize;
        Some(step_inputs(&images[sample], labels[sample], 0.03))
    };
    let state = model::train(&file.load().expect("loads"), None, &mut inputs, &mut |_, _| Ok(())).expect("it trains");
    let expected: Vec<f64> = array("training/mirrored.fc2.npy");
    let all = parameters(&file, &state, &flattened());
    let ours: Vec<f32> = all.into_iter().flat_map(|(_, values)| values).collect();
    let difference = ours
        .iter()
        .zip(&expected)
        .map(|(a, b)| (f64::from(*a) - b).abs())
        .fold(0.0, f64::max);
    assert!(ours.len() == expected.len() && difference <= 1e-4, "{difference:e}");
    assert_eq!(right(&file, &state, mirrored), 289);
}

/// The parameters of branches in PyTorch's order.
const BRANCHES: [&str; 11] = [
    "stem.weight",
    "stem.bias",
    "depthwise.weight",
    "depthwise.bias",
    "grouped.weight",
    "dilated.weight",
    "dilated.bias",
    "pointwise.weight",
    "pointwise.bias",
    "fc.weight",
    "fc.bias",
];

/// Convolutions of groups, overlapping windows, padding, sums, concatenations, tanh, logistic and means, at batch 2.
#[test]
fn gradients_of_branches_are_those_of_pytorch() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, packed) = packed(Options {
        train: request(Loss::CrossEntropy, &[]),
        ..Options::new(
            models("training/branches.trace.json"),
            folder.path().join("branches.bin"),
        )
    });
    let labels: Vec<i64> = array("training/branches.labels.npy");
    let labels: Vec<u8> = labels.iter().flat_map(|&label| (label as i32).to_le_bytes()).collect();
    let images = bytes(&array::<f32>("training/branches.images.npy"));
    // At rate 1 the gradient is what a parameter loses.
    let mut given = Some(vec![images, labels, bytes(&[1.0])]);
    let mut loss = 0.0;
    let after = model::train(
        &file.load().expect("loads"),
        None,
        &mut |_| given.take(),
        &mut |_, outputs| {
            loss = f64::from(floats(&outputs[0])[0]);
            Ok(())
        },
    );
    let after = after.expect("it trains");
    let expected: Vec<f64> = array("training/branches.gradients.npy");
    assert!((loss - expected[0]).abs() <= 1e-5, "{loss} and {}", expected[0]);
    let [before, after] = [initial(&file), after].map(|state| parameters(&file, &state, &BTreeMap::new()));
    let of = |all: &[(String, Vec<f32>)], name: &str| {
        let found = all.iter().find(|(own, _)| own == name);
        found.unwrap_or_else(|| panic!("{name} is not trained")).1.clone()
    };
    let mut at = 1;
    for name in BRANCHES {
        let (before, after) = (of(&before, name), of(&after, name));
        let theirs = &expected[at..at + before.len()];
        at += before.len();
        let ours: Vec<f64> = before.iter().zip(&after).map(|(a, b)| f64::from(a - b)).collect();
        let largest = theirs.iter().fold(0.0_f64, |most, g| most.max(g.abs()));
        let error = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        // The change of a parameter is rounded as the parameter is.
        let rounding = before.iter().fold(0.0_f32, |most, w| most.max(w.abs())) * f32::EPSILON;
        assert!(
            error <= 1e-5 * largest + f64::from(rounding),
            "{name}: {error:e} of {largest:e}"
        );
    }
    assert_eq!(at, expected.len());
    assert_eq!(
        packed.summary.training.expect("steps of training").gradients,
        before.len()
    );
    oracle::compared("PyTorch", before.len(), 8);
}
